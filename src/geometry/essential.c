/* essential.c - robust relative pose of two calibrated cameras.
 *
 * RANSAC over five-point samples, ranked by the truncated squared Sampson distance (MSAC, Torr and Zisserman 2000), with local
 * optimisation of each new best model and a final refinement: Levenberg-Marquardt over rotation and direction of translation on
 * the Sampson distance under a redescending kernel (Geman and McClure 1987) over all pairs, whose width follows the noise. */
#include "base/error.h"
#include "geometry/fivepoint.h"
#include "geometry/linalg.h"
#include "geometry/ransac.h"

#include <math.h>
#include <string.h>

enum {
    SAMPLE = 5,
    MIN_ITERATIONS = 100, /* a lucky first sample must not end the search */
    LOCAL_PAIRS = 1000,   /* local optimisation needs no more */
    LM_STEPS = 10,
    FINAL_ROUNDS = 5,
    ROTATION_ROUNDS = 10
};

/* A pair of normalised image points (z = 1), and its place in the caller's list. */
typedef struct pair {
    double a[2], b[2];
    int index;
} pair;

typedef struct fit {
    const pair *pairs;
    int count;
    double *scratch; /* [count] */
    double pixel;    /* in normalised units: 1 / mean focal length */
    double limit2;   /* squared inlier distance in normalised units */
    double kernel2;  /* squared width of the refinement's kernel, likewise */
} fit;

/* Relative pose as one state of the minimiser: R row-major, then t. X_b = R X_a + t. */
typedef struct pose {
    double R[9], t[3];
} pose;

/* ---------------------------------------------------------------- models and distances */

/* [t]x R */
static void essential_of(double E[9], const double R[9], const double t[3]) {
    const double cross[9] = {0, -t[2], t[1], t[2], 0, -t[0], -t[1], t[0], 0};
    theo_mat3_multiply(E, cross, R);
}

/* E a (all three) and the first two of E^T b. */
static void epipolar_lines(const double E[9], const pair *p, double in_b[3], double in_a[2]) {
    for (int i = 0; i < 3; i++)
        in_b[i] = E[3 * i] * p->a[0] + E[3 * i + 1] * p->a[1] + E[3 * i + 2];
    for (int i = 0; i < 2; i++)
        in_a[i] = E[i] * p->b[0] + E[3 + i] * p->b[1] + E[6 + i];
}

/* First-order squared distance to the epipolar geometry (Hartley and Zisserman 2004, section 11.4.3). */
static double sampson2(const double E[9], const pair *p) {
    double in_b[3], in_a[2];
    epipolar_lines(E, p, in_b, in_a);
    double n = p->b[0] * in_b[0] + p->b[1] * in_b[1] + in_b[2];
    double q = in_b[0] * in_b[0] + in_b[1] * in_b[1] + in_a[0] * in_a[0] + in_a[1] * in_a[1];
    return q > 0 ? n * n / q : 0;
}

/* Truncated sum of squared distances; gives up once it exceeds `best`. */
static double msac_cost(const fit *f, const double E[9], double best) {
    double cost = 0;
    for (int i = 0; i < f->count && cost < best; i++)
        cost += fmin(sampson2(E, &f->pairs[i]), f->limit2);
    return cost;
}

static int count_inliers(const fit *f, const double E[9], uint8_t *inliers) {
    int n = 0;
    for (int i = 0; i < f->count; i++) {
        bool is_inlier = sampson2(E, &f->pairs[i]) <= f->limit2;
        if (inliers)
            inliers[f->pairs[i].index] = is_inlier;
        n += is_inlier;
    }
    return n;
}

/* The two rotations and the translation (up to sign) of an essential matrix (Hartley and Zisserman 2004, section 9.6.2). */
static void decompose(const double E[9], double R[2][9], double t[3]) {
    double U[9], s[3], V[9], Vt[9], half[9];
    theo_svd3(E, U, s, V);
    theo_mat3_transpose(Vt, V);
    for (int i = 0; i < 2; i++) {
        double sign = i ? -1 : 1;
        const double W[9] = {0, -sign, 0, sign, 0, 0, 0, 0, 1};
        theo_mat3_multiply(half, U, W);
        theo_mat3_multiply(R[i], half, Vt);
        if (theo_mat3_det(R[i]) < 0)
            for (int k = 0; k < 9; k++)
                R[i][k] = -R[i][k];
    }
    for (int i = 0; i < 3; i++)
        t[i] = U[3 * i + 2];
}

/* Inliers in front of both cameras. */
static int count_in_front(const fit *f, const double E[9], const pose *p) {
    int n = 0;
    for (int i = 0; i < f->count; i++) {
        if (sampson2(E, &f->pairs[i]) > f->limit2)
            continue;
        const double a[3] = {f->pairs[i].a[0], f->pairs[i].a[1], 1}, b[3] = {f->pairs[i].b[0], f->pairs[i].b[1], 1};
        double turned[3], normal[3], by_b[3], by_a[3];
        theo_mat3_apply(turned, p->R, a);
        theo_vec3_cross(normal, turned, b); /* depth_b b = depth_a R a + t, multiplied by b and by R a */
        theo_vec3_cross(by_b, b, p->t);
        theo_vec3_cross(by_a, turned, p->t);
        n += theo_vec3_dot(by_b, normal) > 0 && theo_vec3_dot(by_a, normal) > 0;
    }
    return n;
}

/* The decomposition with most points in front. */
static pose choose_pose(const fit *f, const double E[9]) {
    double R[2][9], t[3];
    decompose(E, R, t);
    pose best = {{0}, {0}};
    int most = -1;
    for (int i = 0; i < 4; i++) {
        pose p;
        memcpy(p.R, R[i / 2], sizeof p.R);
        for (int k = 0; k < 3; k++)
            p.t[k] = i % 2 ? -t[k] : t[k];
        int n = count_in_front(f, E, &p);
        if (n > most) {
            most = n;
            best = p;
        }
    }
    return best;
}

/* ---------------------------------------------------------------- refinement */

/* Two unit vectors that complete t to an orthonormal base: the directions in which t may move. */
static void tangents(const double t[3], double out[2][3]) {
    double axis[3] = {0, 0, 0};
    int least = fabs(t[0]) < fabs(t[1]) ? 0 : 1;
    axis[fabs(t[2]) < fabs(t[least]) ? 2 : least] = 1;
    theo_vec3_cross(out[0], t, axis);
    theo_vec3_normalise(out[0]);
    theo_vec3_cross(out[1], t, out[0]);
}

/* Derivatives of E with respect to a rotation about each axis from the left of R, and to t along its tangents. */
static void essential_derivatives(double dE[5][9], const pose *p) {
    double base[2][3], turned[9];
    for (int k = 0; k < 3; k++) {
        double axis[3] = {k == 0, k == 1, k == 2};
        essential_of(turned, p->R, axis); /* [axis]x R */
        essential_of(dE[k], turned, p->t);
    }
    tangents(p->t, base);
    for (int k = 0; k < 2; k++)
        essential_of(dE[3 + k], p->R, base[k]);
}

/* Geman-McClure on the Sampson distance r = n / sqrt q: rho(r2) = c2 r2 / (c2 + r2). */
static double refinement_cost(const void *context, const double *state, double *JtJ, double *Jtr) {
    const fit *f = context;
    pose p;
    double E[9], dE[5][9], cost = 0, c2 = f->kernel2;
    memcpy(&p, state, sizeof p);
    essential_of(E, p.R, p.t);
    if (JtJ) {
        essential_derivatives(dE, &p);
        memset(JtJ, 0, 5 * 5 * sizeof *JtJ);
        memset(Jtr, 0, 5 * sizeof *Jtr);
    }
    for (int i = 0; i < f->count; i++) {
        const pair *x = &f->pairs[i];
        double in_b[3], in_a[2];
        epipolar_lines(E, x, in_b, in_a);
        double n = x->b[0] * in_b[0] + x->b[1] * in_b[1] + in_b[2];
        double q = in_b[0] * in_b[0] + in_b[1] * in_b[1] + in_a[0] * in_a[0] + in_a[1] * in_a[1];
        if (!(q > 0))
            continue;
        double r = n / sqrt(q), share = c2 / (c2 + r * r);
        cost += share * r * r;
        if (!JtJ)
            continue;
        double weight = share * share, J[5];
        for (int k = 0; k < 5; k++) {
            double db[3], da[2];
            epipolar_lines(dE[k], x, db, da);
            double dn = x->b[0] * db[0] + x->b[1] * db[1] + db[2];
            double half_dq = in_b[0] * db[0] + in_b[1] * db[1] + in_a[0] * da[0] + in_a[1] * da[1];
            J[k] = (dn - n / q * half_dq) / sqrt(q);
            Jtr[k] += weight * J[k] * r;
            for (int l = 0; l <= k; l++)
                JtJ[5 * k + l] += weight * J[k] * J[l];
        }
    }
    return cost;
}

static void apply_step(const void *context, const double *state, const double *step, double *moved) {
    (void)context;
    pose p, q;
    double turn[9], base[2][3];
    memcpy(&p, state, sizeof p);
    theo_rotation_exp(turn, step);
    theo_mat3_multiply(q.R, turn, p.R);
    tangents(p.t, base);
    for (int k = 0; k < 3; k++)
        q.t[k] = p.t[k] + step[3] * base[0][k] + step[4] * base[1][k];
    theo_vec3_normalise(q.t);
    memcpy(moved, &q, sizeof q);
}

/* Variance of the noise from the median squared distance of the inliers (that of a chi-square with one degree of freedom is
 * 0.455), not below a twentieth of a pixel. 0 when there are too few to tell. */
static double noise2(const fit *f, const double E[9]) {
    int n = 0;
    for (int i = 0; i < f->count; i++) {
        double d2 = sampson2(E, &f->pairs[i]);
        if (d2 <= f->limit2)
            f->scratch[n++] = d2;
    }
    if (n <= SAMPLE)
        return 0;
    double freedom = (double)(n - SAMPLE) / n, least = 0.05 * f->pixel;
    return fmax(theo_median(f->scratch, n) / 0.455 / freedom, least * least);
}

static void refine(fit *f, pose *p, int rounds) {
    const theo_minimisation problem = {
        .parameters = 5, .state_size = 12, .context = f, .evaluate = refinement_cost, .move = apply_step};
    for (int round = 0; round < rounds; round++) {
        double E[9], state[12];
        essential_of(E, p->R, p->t);
        double variance = noise2(f, E);
        if (variance == 0)
            return;
        f->kernel2 = 9 * variance; /* three sigma */
        memcpy(state, p, sizeof state);
        theo_minimise(&problem, state, LM_STEPS);
        memcpy(p, state, sizeof state);
    }
}

/* ---------------------------------------------------------------- search */

/* Optimises a new best model on the spot; keeps what is better. Returns its cost. */
static double optimise(const fit *f, double E[9], double cost) {
    fit local = *f;
    if (local.count > LOCAL_PAIRS)
        local.count = LOCAL_PAIRS;
    double R[2][9], optimised[9];
    pose p;
    decompose(E, R, p.t); /* any of the four poses has this E, up to sign */
    memcpy(p.R, R[0], sizeof p.R);
    refine(&local, &p, 1);
    essential_of(optimised, p.R, p.t);
    double lower = msac_cost(f, optimised, cost);
    if (!(lower < cost))
        return cost;
    memcpy(E, optimised, sizeof optimised);
    return lower;
}

static bool search(const fit *f, const theo_ransac_options *o, theo_random *random, double best[9]) {
    double least = INFINITY;
    for (int i = 0, limit = o->max_iterations; i < limit; i++) {
        int index[SAMPLE];
        double a[SAMPLE][2], b[SAMPLE][2], models[THEO_FIVE_POINT_MOST][9];
        theo_random_sample(random, f->count, SAMPLE, index);
        for (int k = 0; k < SAMPLE; k++) {
            memcpy(a[k], f->pairs[index[k]].a, sizeof a[k]);
            memcpy(b[k], f->pairs[index[k]].b, sizeof b[k]);
        }
        bool is_new = false;
        for (int m = theo_five_point(a, b, models) - 1; m >= 0; m--) {
            double cost = msac_cost(f, models[m], least);
            if (!(cost < least))
                continue;
            least = cost;
            memcpy(best, models[m], sizeof models[m]);
            is_new = true;
        }
        if (!is_new)
            continue;
        least = optimise(f, best, least);
        double share = (double)count_inliers(f, best, NULL) / f->count;
        limit = theo_ransac_iterations(o->confidence, share, SAMPLE, MIN_ITERATIONS, o->max_iterations);
    }
    return isfinite(least);
}

/* ---------------------------------------------------------------- a camera that only turned */

/* Do the inliers of E move as under a rotation alone, within their noise? Then E fits with any translation. The rotation that
 * maps the rays best (Kabsch 1976), reweighted a few times, goes to R. */
static bool is_rotation_only(const fit *f, const double E[9], double R[9]) {
    double variance = noise2(f, E), width2 = INFINITY, median = 0;
    if (variance == 0)
        return false;
    memset(R, 0, 9 * sizeof *R);
    for (int k = 0; k < 3; k++)
        R[4 * k] = 1;
    for (int round = 0; round < ROTATION_ROUNDS; round++) {
        double moment[9] = {0}, U[9], s[3], V[9], Vt[9];
        int n = 0;
        for (int i = 0; i < f->count; i++) {
            const pair *x = &f->pairs[i];
            if (sampson2(E, x) > f->limit2)
                continue;
            double a[3] = {x->a[0], x->a[1], 1}, b[3] = {x->b[0], x->b[1], 1}, moved[3];
            theo_mat3_apply(moved, R, a);
            double dx = moved[0] / moved[2] - b[0], dy = moved[1] / moved[2] - b[1], d2 = dx * dx + dy * dy;
            if (!(moved[2] > 0))
                d2 = INFINITY;
            f->scratch[n++] = d2;
            double weight = round ? 1 / (1 + d2 / width2) : 1;
            theo_vec3_normalise(a);
            theo_vec3_normalise(b);
            for (int k = 0; k < 9; k++)
                moment[k] += weight * b[k / 3] * a[k % 3];
        }
        median = theo_median(f->scratch, n);
        width2 = fmax(median, variance);
        theo_svd3(moment, U, s, V);
        theo_mat3_transpose(Vt, V);
        double sign = theo_mat3_det(U) * theo_mat3_det(V) < 0 ? -1 : 1;
        for (int k = 0; k < 3; k++)
            U[3 * k + 2] *= sign;
        theo_mat3_multiply(R, U, Vt);
    }
    /* Noise of both points counts fully here: variance 2 sigma2 in each direction, median 1.386 times that. Half as much again:
     * parallax that small carries no direction. */
    return median <= 1.5 * 1.386 * 2 * variance;
}

/* ---------------------------------------------------------------- the call */

/* Normalised pairs in random order: sums that stop early then see all parts of the picture, whatever the caller's order. */
static void fill_pairs(pair *pairs, const float *xy_a, const float *xy_b, int count, const theo_intrinsics c[2],
                       theo_random *random) {
    for (int i = 0; i < count; i++) {
        int place = theo_random_below(random, i + 1);
        pairs[i] = pairs[place];
        pairs[place] = (pair){.a = {((double)xy_a[2 * i] - c[0].cx) / c[0].fx, ((double)xy_a[2 * i + 1] - c[0].cy) / c[0].fy},
                              .b = {((double)xy_b[2 * i] - c[1].cx) / c[1].fx, ((double)xy_b[2 * i + 1] - c[1].cy) / c[1].fy},
                              .index = i};
    }
}

/* The fit proper; NULL, or the reason why there is none. */
static const char *fit_pairs(fit *f, const theo_ransac_options *o, theo_random *random, theo_relative_pose *out,
                             uint8_t *inliers) {
    double E[9];
    if (!search(f, o, random, E) || count_inliers(f, E, NULL) < SAMPLE)
        return "no model has 5 inliers";
    if (is_rotation_only(f, E, out->R))
        return "the points move as under a rotation alone: the direction of translation is undetermined";
    pose p = choose_pose(f, E);
    refine(f, &p, FINAL_ROUNDS);
    essential_of(E, p.R, p.t);
    p = choose_pose(f, E); /* the refinement may have carried the baseline across zero parallax */
    essential_of(out->E, p.R, p.t);
    memcpy(out->R, p.R, sizeof p.R);
    memcpy(out->t, p.t, sizeof p.t);
    out->inlier_count = count_inliers(f, out->E, inliers);
    return NULL;
}

static theo_status check_cameras(const theo_intrinsics cameras[2], theo_error *err) {
    for (int i = 0; i < 2; i++) {
        const theo_intrinsics *c = &cameras[i];
        if (!(c->fx > 0 && c->fy > 0) || !isfinite(c->fx) || !isfinite(c->fy) || !isfinite(c->cx) || !isfinite(c->cy))
            return theo_fail(err, THEO_ARGUMENT, NULL, i ? "cameras[1]" : "cameras[0]",
                             "fx %g, fy %g, cx %g, cy %g: focal lengths must be positive, all finite", c->fx, c->fy, c->cx,
                             c->cy);
    }
    return THEO_OK;
}

theo_status theo_fit_essential(const float *xy_a, const float *xy_b, int count, const theo_intrinsics cameras[2],
                               const theo_ransac_options *options, theo_relative_pose *out, uint8_t *inliers, theo_error *err) {
    theo_ransac_options o;
    if (!out || !cameras)
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "cameras and pose must not be NULL");
    *out = (theo_relative_pose){.R = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    THEO_TRY(theo_ransac_check(&o, options, xy_a, xy_b, count, err));
    THEO_TRY(check_cameras(cameras, err));
    if (inliers && count)
        memset(inliers, 0, (size_t)count);
    if (count < SAMPLE) {
        out->reason = "fewer than 5 pairs";
        return THEO_OK;
    }
    pair *pairs = theo_alloc((size_t)count, sizeof *pairs);
    double *scratch = theo_alloc((size_t)count, sizeof *scratch);
    if (!pairs || !scratch) {
        theo_free(pairs);
        theo_free(scratch);
        return theo_fail(err, THEO_MEMORY, NULL, "essential matrix", "no memory for %d pairs", count);
    }
    theo_random random = {o.seed};
    fill_pairs(pairs, xy_a, xy_b, count, cameras, &random);
    double pixel = 4 / (cameras[0].fx + cameras[0].fy + cameras[1].fx + cameras[1].fy);
    fit f = {
        .pairs = pairs, .count = count, .scratch = scratch, .pixel = pixel, .limit2 = o.threshold * pixel * o.threshold * pixel};
    out->reason = fit_pairs(&f, &o, &random, out, inliers);
    out->found = out->reason == NULL;
    theo_free(pairs);
    theo_free(scratch);
    return THEO_OK;
}
