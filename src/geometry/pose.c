/* pose.c - the pose of a camera from points that it sees. */
#include "base/error.h"
#include "base/take_options.h"
#include "geometry/linalg.h"
#include "geometry/p3p.h"
#include "geometry/ransac.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum {
    SAMPLE = 3,
    LEAST_INLIERS = 6,
    MOST_SCORED = 4096,    /* points that candidates are scored on: a fixed random choice of them where there are more */
    LEAST_ITERATIONS = 40, /* a sample of three noisy points is often bad without containing an outlier */
    POLISH_STEPS = 10,     /* of the best candidate so far, on its inliers among the scored points */
    REFINE_STEPS = 50,
    RESELECTIONS = 3, /* inliers chosen again by the refined pose, and refined again */
};

typedef struct correspondence {
    double world[3], pixel[2];
    int index; /* of the caller's point */
} correspondence;

typedef struct placement {
    double R[9], t[3];
} placement;

typedef struct fit {
    theo_intrinsics camera;
    double threshold2;
    const correspondence *points; /* all finite ones, in the order of the fixed random choice */
    int count, scored;
    int *chosen, chosen_count; /* inliers of the pose being refined */
} fit;

/* Squared distance in pixels; infinite for a point that is not in front of the camera. */
static double error2(const fit *f, const placement *p, const correspondence *c) {
    double at[3];
    theo_mat3_apply(at, p->R, c->world);
    double z = at[2] + p->t[2];
    if (!(z > 0))
        return INFINITY;
    double dx = f->camera.fx * (at[0] + p->t[0]) / z + f->camera.cx - c->pixel[0];
    double dy = f->camera.fy * (at[1] + p->t[1]) / z + f->camera.cy - c->pixel[1];
    return dx * dx + dy * dy;
}

/* Sum of squared errors, none above the threshold's (MSAC, Torr and Zisserman 2000): less is better. */
static double score(const fit *f, const placement *p) {
    double sum = 0;
    for (int i = 0; i < f->scored; i++)
        sum += fmin(error2(f, p, &f->points[i]), f->threshold2);
    return sum;
}

/* Inliers among the first `count` points into f->chosen. */
static void choose(fit *f, const placement *p, int count) {
    f->chosen_count = 0;
    for (int i = 0; i < count; i++)
        if (error2(f, p, &f->points[i]) <= f->threshold2)
            f->chosen[f->chosen_count++] = i;
}

/* ---------------------------------------------------------------- refinement */

/* Adds J^T J and J^T r of one coordinate of one residual. */
static void add_row(double JtJ[36], double Jtr[6], const double row[6], double residual) {
    for (int i = 0; i < 6; i++) {
        Jtr[i] += row[i] * residual;
        for (int k = 0; k <= i; k++)
            JtJ[6 * i + k] += row[i] * row[k];
    }
}

/* Cost of the inliers' reprojection errors with respect to a turn about the camera's axes and a shift. */
static double evaluate(const void *context, const double *state, double *JtJ, double *Jtr) {
    const fit *f = context;
    double cost = 0;
    if (JtJ) {
        memset(JtJ, 0, 36 * sizeof *JtJ);
        memset(Jtr, 0, 6 * sizeof *Jtr);
    }
    for (int i = 0; i < f->chosen_count; i++) {
        const correspondence *c = &f->points[f->chosen[i]];
        double turned[3], at[3];
        theo_mat3_apply(turned, state, c->world);
        for (int k = 0; k < 3; k++)
            at[k] = turned[k] + state[9 + k];
        if (!(at[2] > 0))
            return INFINITY;
        double x = at[0] / at[2], y = at[1] / at[2], fx = f->camera.fx, fy = f->camera.fy;
        double dx = fx * x + f->camera.cx - c->pixel[0], dy = fy * y + f->camera.cy - c->pixel[1];
        cost += dx * dx + dy * dy;
        if (!JtJ)
            continue;
        /* Derivatives to the point in the camera's frame: (fx/z, 0, -fx x/z) and (0, fy/z, -fy y/z); the point moves by w x
         * turned. */
        const double gx[3] = {fx / at[2], 0, -fx * x / at[2]}, gy[3] = {0, fy / at[2], -fy * y / at[2]};
        double row_x[6], row_y[6];
        theo_vec3_cross(row_x, turned, gx);
        theo_vec3_cross(row_y, turned, gy);
        memcpy(row_x + 3, gx, sizeof gx);
        memcpy(row_y + 3, gy, sizeof gy);
        add_row(JtJ, Jtr, row_x, dx);
        add_row(JtJ, Jtr, row_y, dy);
    }
    for (int i = 0; JtJ && i < 6; i++)
        for (int k = 0; k < i; k++)
            JtJ[6 * k + i] = JtJ[6 * i + k];
    return cost;
}

static void move(const void *context, const double *state, const double *step, double *moved) {
    double turn[9];
    (void)context;
    theo_rotation_exp(turn, step);
    theo_mat3_multiply(moved, turn, state);
    for (int k = 0; k < 3; k++)
        moved[9 + k] = state[9 + k] + step[3 + k];
}

/* Improves the pose on the chosen points. Their error can only fall. */
static void refine(const fit *f, placement *p, int steps) {
    theo_minimisation problem = {.parameters = 6, .state_size = 12, .context = f, .evaluate = evaluate, .move = move};
    double state[12];
    memcpy(state, p->R, sizeof p->R);
    memcpy(state + 9, p->t, sizeof p->t);
    theo_minimise(&problem, state, steps);
    memcpy(p->R, state, sizeof p->R);
    memcpy(p->t, state + 9, sizeof p->t);
}

/* ---------------------------------------------------------------- samples */

static void ray_of(const fit *f, const correspondence *c, double ray[3]) {
    ray[0] = (c->pixel[0] - f->camera.cx) / f->camera.fx;
    ray[1] = (c->pixel[1] - f->camera.cy) / f->camera.fy;
    ray[2] = 1;
    theo_vec3_normalise(ray);
}

/* Takes the candidate where it is better, polished on its inliers where that is better still. True where it was taken. */
static bool take(fit *f, const placement *candidate, placement *best, double *best_score) {
    double s = score(f, candidate);
    if (!(s < *best_score))
        return false;
    *best = *candidate;
    *best_score = s;
    choose(f, candidate, f->scored);
    if (f->chosen_count < LEAST_INLIERS)
        return true;
    placement polished = *candidate;
    refine(f, &polished, POLISH_STEPS);
    s = score(f, &polished);
    if (s < *best_score) {
        *best = polished;
        *best_score = s;
    }
    return true;
}

/* The best pose of random samples; false where no sample gave one. */
static bool search(fit *f, const theo_ransac_options *o, placement *best) {
    theo_random random = {o->seed};
    double best_score = INFINITY;
    for (int i = 0, wanted = o->max_iterations; i < wanted; i++) {
        int sample[SAMPLE];
        double points[SAMPLE][3], rays[SAMPLE][3], R[THEO_P3P_MOST][9], t[THEO_P3P_MOST][3];
        theo_random_sample(&random, f->scored, SAMPLE, sample);
        for (int k = 0; k < SAMPLE; k++) {
            memcpy(points[k], f->points[sample[k]].world, sizeof points[k]);
            ray_of(f, &f->points[sample[k]], rays[k]);
        }
        int found = theo_p3p(points, rays, R, t);
        bool is_better = false;
        for (int k = 0; k < found; k++) {
            placement candidate;
            memcpy(candidate.R, R[k], sizeof candidate.R);
            memcpy(candidate.t, t[k], sizeof candidate.t);
            is_better |= take(f, &candidate, best, &best_score);
        }
        if (is_better) {
            choose(f, best, f->scored);
            wanted = theo_ransac_iterations(o->confidence, (double)f->chosen_count / f->scored, SAMPLE, LEAST_ITERATIONS,
                                            o->max_iterations);
        }
    }
    return isfinite(best_score);
}

/* ---------------------------------------------------------------- the whole */

static double rms_of_chosen(const fit *f, const placement *p) {
    double sum = 0;
    for (int i = 0; i < f->chosen_count; i++)
        sum += error2(f, p, &f->points[f->chosen[i]]);
    return sqrt(sum / f->chosen_count);
}

/* Are the chosen points no further from a line than single precision rounds them? A turn about the line then changes nothing that
 * is seen, and the pose is one of many. */
static bool lie_on_a_line(const fit *f) {
    double mean[3] = {0}, scatter[9] = {0}, spread[3], axes[9], size = 0;
    for (int i = 0; i < f->chosen_count; i++) {
        const double *world = f->points[f->chosen[i]].world;
        size += theo_vec3_dot(world, world);
        for (int k = 0; k < 3; k++)
            mean[k] += world[k] / f->chosen_count;
    }
    for (int i = 0; i < f->chosen_count; i++)
        for (int row = 0; row < 3; row++)
            for (int column = 0; column < 3; column++)
                scatter[3 * row + column] +=
                    (f->points[f->chosen[i]].world[row] - mean[row]) * (f->points[f->chosen[i]].world[column] - mean[column]);
    theo_eigen_symmetric(3, scatter, spread, axes);
    return spread[1] <= (double)FLT_EPSILON * (double)FLT_EPSILON * size;
}

static const char *solve(fit *f, const theo_ransac_options *o, theo_camera_pose *out) {
    placement p;
    if (f->count <= SAMPLE)
        return "fewer than four points are finite";
    if (!search(f, o, &p))
        return "no three points determine a pose: they lie on a line, or in one place";
    choose(f, &p, f->count);
    for (int i = 0; i < RESELECTIONS && f->chosen_count >= LEAST_INLIERS; i++) {
        int before = f->chosen_count;
        refine(f, &p, REFINE_STEPS);
        choose(f, &p, f->count);
        if (f->chosen_count == before && i)
            break;
    }
    if (f->chosen_count < LEAST_INLIERS)
        return "no pose agrees with six points";
    if (lie_on_a_line(f))
        return "the points that agree with a pose lie on a line: any turn about it agrees with them as well";
    memcpy(out->R, p.R, sizeof p.R);
    memcpy(out->t, p.t, sizeof p.t);
    out->inlier_count = f->chosen_count;
    out->inlier_rms = rms_of_chosen(f, &p);
    out->found = true;
    return NULL;
}

static bool is_finite(const float *x, int count) {
    for (int i = 0; i < count; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

/* The finite points; the scored ones, a fixed random choice, come first. */
static int gather_points(correspondence *to, const float *xyz, const float *xy, int count) {
    int n = 0;
    for (int i = 0; i < count; i++, xyz += 3, xy += 2) {
        if (!is_finite(xyz, 3) || !is_finite(xy, 2))
            continue;
        correspondence *c = &to[n++];
        c->index = i;
        for (int k = 0; k < 3; k++)
            c->world[k] = (double)xyz[k];
        for (int k = 0; k < 2; k++)
            c->pixel[k] = (double)xy[k];
    }
    theo_random random = {0};
    for (int i = 0; i < MOST_SCORED && i < n && n > MOST_SCORED; i++) {
        int other = i + theo_random_below(&random, n - i);
        correspondence c = to[i];
        to[i] = to[other];
        to[other] = c;
    }
    return n;
}

static theo_status check(const float *xyz, const float *xy, int count, const theo_intrinsics *camera,
                         const theo_camera_pose *pose, theo_error *err) {
    if (!camera || !pose || count < 0 || (count && (!xyz || !xy)))
        return theo_fail(err, THEO_ARGUMENT, NULL, "pose", "points, camera and pose must be given, count %d must be at least 0",
                         count);
    if (!(camera->fx > 0) || !(camera->fy > 0) || !isfinite(camera->fx) || !isfinite(camera->fy) || !isfinite(camera->cx) ||
        !isfinite(camera->cy))
        return theo_fail(err, THEO_ARGUMENT, NULL, "camera",
                         "%g, %g, %g, %g (fx, fy, cx, cy): focal lengths must be positive, all finite", camera->fx, camera->fy,
                         camera->cx, camera->cy);
    return THEO_OK;
}

theo_status theo_fit_pose(const float *xyz, const float *xy, int count, const theo_intrinsics *camera,
                          const theo_ransac_options *options, theo_camera_pose *pose, uint8_t *inliers, theo_error *err) {
    THEO_TRY(check(xyz, xy, count, camera, pose, err));
    theo_ransac_options o;
    THEO_TRY(theo_ransac_check(&o, options, NULL, NULL, 0, err));
    if (!options) {
        o.threshold = 5;
        o.max_iterations = 500;
    }
    *pose = (theo_camera_pose){.found = false};
    if (inliers && count)
        memset(inliers, 0, (size_t)count);
    correspondence *points = theo_alloc((size_t)count + 1, sizeof *points);
    int *chosen = theo_alloc((size_t)count + 1, sizeof *chosen);
    theo_status status = points && chosen ? THEO_OK : theo_fail(err, THEO_MEMORY, NULL, "pose", "no memory for %d points", count);
    if (!status) {
        fit f = {.camera = *camera, .threshold2 = o.threshold * o.threshold, .points = points, .chosen = chosen};
        f.count = gather_points(points, xyz, xy, count);
        f.scored = f.count < MOST_SCORED ? f.count : MOST_SCORED;
        pose->reason = solve(&f, &o, pose);
        for (int i = 0; inliers && pose->found && i < f.chosen_count; i++)
            inliers[points[chosen[i]].index] = 1;
    }
    theo_free(points);
    theo_free(chosen);
    return status;
}
