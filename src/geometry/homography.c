/* homography.c - robust homography: RANSAC over exact fits to four pairs, local optimisation of each new best model, refinement.
 *
 * Samples are fitted in closed form in Hartley-normalised coordinates (Hartley and Zisserman 2004, section 4.4); models are
 * ranked by the truncated squared distance in image B (MSAC, Torr and Zisserman 2000); each new best one is optimised on its
 * inliers at once (Lebeda, Matas and Chum 2012). The refinement minimises the Sampson distance, which counts the noise of the
 * points of A as well, under a redescending kernel (Geman and McClure 1987) over all pairs, whose width follows the noise that is
 * there: no pair is in or out by a hair, so that the result does not depend on which sample happened to win. */
#include "base/error.h"
#include "geometry/linalg.h"
#include "geometry/ransac.h"

#include <math.h>
#include <string.h>

enum {
    SAMPLE = 4,
    MIN_ITERATIONS = 200, /* a lucky first sample must not end the search */
    LOCAL_PAIRS = 1000,   /* local optimisation needs no more */
    LM_STEPS = 10,
    FINAL_ROUNDS = 5
};

/* A pair in normalised coordinates, and its place in the caller's list. */
typedef struct pair {
    double a[2], b[2];
    int index;
} pair;

/* p -> (p - centre) * scale: centroid to the origin, mean distance sqrt 2. */
typedef struct frame {
    double centre[2], scale;
} frame;

typedef struct fit {
    const pair *pairs;
    int count;
    double *scratch;         /* [count] */
    double pixel_a, pixel_b; /* one pixel in normalised units */
    double limit2;           /* squared inlier distance in normalised units of B */
    double kernel2;          /* squared width of the refinement's kernel, in whitened pixels */
} fit;

static bool find_frame(frame *f, const float *xy, int count) {
    double x = 0, y = 0, distance = 0;
    for (int i = 0; i < count; i++) {
        x += (double)xy[2 * i];
        y += (double)xy[2 * i + 1];
    }
    f->centre[0] = x / count;
    f->centre[1] = y / count;
    for (int i = 0; i < count; i++)
        distance += hypot((double)xy[2 * i] - f->centre[0], (double)xy[2 * i + 1] - f->centre[1]);
    f->scale = sqrt(2) * count / distance;
    return distance > 0 && isfinite(f->scale);
}

/* ---------------------------------------------------------------- four pairs */

/* Twice the signed area of a triangle. */
static double area(const double p[2], const double q[2], const double r[2]) {
    return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]);
}

/* The four triples must be proper triangles in both images, and turn the same way in both (or all the other way): a plane seen by
 * a camera keeps the orientation of points in front of it. */
static bool is_plausible(const pair s[SAMPLE]) {
    static const int triples[4][3] = {{0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {1, 2, 3}};
    const double smallest = 1e-4;
    int same = 0;
    for (int i = 0; i < 4; i++) {
        const int *t = triples[i];
        double a = area(s[t[0]].a, s[t[1]].a, s[t[2]].a), b = area(s[t[0]].b, s[t[1]].b, s[t[2]].b);
        if (fabs(a) < smallest || fabs(b) < smallest)
            return false;
        same += (a > 0) == (b > 0);
    }
    return same == 0 || same == 4;
}

/* Columns l_i p_i with the sum of all three equal to p_3: maps the projective base to the four points. */
static void base_to_points(double M[9], const double p0[2], const double p1[2], const double p2[2], const double p3[2]) {
    double whole = area(p0, p1, p2);
    double weights[3] = {area(p3, p1, p2) / whole, area(p0, p3, p2) / whole, area(p0, p1, p3) / whole};
    const double *points[3] = {p0, p1, p2};
    for (int i = 0; i < 3; i++) {
        M[i] = weights[i] * points[i][0];
        M[3 + i] = weights[i] * points[i][1];
        M[6 + i] = weights[i];
    }
}

/* The homography through four pairs, with positive depth at them. */
static bool solve_sample(double H[9], const pair s[SAMPLE]) {
    double to_a[9], to_b[9], from_a[9];
    base_to_points(to_a, s[0].a, s[1].a, s[2].a, s[3].a);
    base_to_points(to_b, s[0].b, s[1].b, s[2].b, s[3].b);
    if (!theo_mat3_invert(from_a, to_a))
        return false;
    theo_mat3_multiply(H, to_b, from_a);
    double sign = H[6] * s[0].a[0] + H[7] * s[0].a[1] + H[8] < 0 ? -1 : 1, size = 0;
    for (int i = 0; i < 9; i++)
        size += H[i] * H[i];
    if (!(size > 0) || !isfinite(size))
        return false;
    for (int i = 0; i < 9; i++)
        H[i] *= sign / sqrt(size);
    return true;
}

/* ---------------------------------------------------------------- judging models */

/* Squared distance in B; infinite for a point at or beyond the model's horizon. */
static double distance2(const double H[9], const pair *p) {
    double w = H[6] * p->a[0] + H[7] * p->a[1] + H[8];
    if (!(w > 1e-12))
        return INFINITY;
    double x = (H[0] * p->a[0] + H[1] * p->a[1] + H[2]) / w - p->b[0], y = (H[3] * p->a[0] + H[4] * p->a[1] + H[5]) / w - p->b[1];
    return x * x + y * y;
}

/* Truncated sum of squared distances; gives up once it exceeds `best`. */
static double msac_cost(const fit *f, const double H[9], double best) {
    double cost = 0;
    for (int i = 0; i < f->count && cost < best; i++)
        cost += fmin(distance2(H, &f->pairs[i]), f->limit2);
    return cost;
}

static int count_inliers(const fit *f, const double H[9], uint8_t *inliers) {
    int n = 0;
    for (int i = 0; i < f->count; i++) {
        bool is_inlier = distance2(H, &f->pairs[i]) <= f->limit2;
        if (inliers)
            inliers[f->pairs[i].index] = is_inlier;
        n += is_inlier;
    }
    return n;
}

/* ---------------------------------------------------------------- refinement */

/* Whitened residual of a pair in pixels and, unless NULL, its derivatives with respect to the eight elements of D in H (I + D),
 * D[2][2] = 0. Noise of one pixel in both images: the residual's covariance is J J^T + I, J the derivative of the mapping. */
static bool whitened_residual(const fit *f, const double H[9], const pair *p, double r[2], double (*jacobian)[8]) {
    double h[3], x[3] = {p->a[0], p->a[1], 1};
    theo_mat3_apply(h, H, x);
    if (!(h[2] > 1e-12))
        return false;
    double u = h[0] / h[2], v = h[1] / h[2];
    r[0] = (u - p->b[0]) / f->pixel_b;
    r[1] = (v - p->b[1]) / f->pixel_b;
    /* d(u, v) for a change of h by column k of H. */
    double du[3], dv[3];
    for (int k = 0; k < 3; k++) {
        du[k] = (H[k] - u * H[6 + k]) / h[2] / f->pixel_b;
        dv[k] = (H[3 + k] - v * H[6 + k]) / h[2] / f->pixel_b;
    }
    double s2 = f->pixel_a * f->pixel_a;
    double xx = 1 + s2 * (du[0] * du[0] + du[1] * du[1]), xy = s2 * (du[0] * dv[0] + du[1] * dv[1]);
    double yy = 1 + s2 * (dv[0] * dv[0] + dv[1] * dv[1]);
    /* Covariance = L L^T; whitening is L^-1. */
    double l00 = sqrt(xx), l10 = xy / l00, l11 = sqrt(yy - l10 * l10);
    r[0] /= l00;
    r[1] = (r[1] - l10 * r[0]) / l11;
    if (jacobian)
        for (int k = 0; k < 8; k++) {
            double d0 = du[k / 3] * x[k % 3], d1 = dv[k / 3] * x[k % 3];
            jacobian[0][k] = d0 / l00;
            jacobian[1][k] = (d1 - l10 * jacobian[0][k]) / l11;
        }
    return true;
}

/* Geman-McClure: rho(e2) = c2 e2 / (c2 + e2). A pair beyond the horizon costs as much as one infinitely far off. */
static double refinement_cost(const void *context, const double *H, double *JtJ, double *Jtr) {
    const fit *f = context;
    double cost = 0, c2 = f->kernel2, r[2], J[2][8] = {{0}};
    if (JtJ) {
        memset(JtJ, 0, 8 * 8 * sizeof *JtJ);
        memset(Jtr, 0, 8 * sizeof *Jtr);
    }
    for (int i = 0; i < f->count; i++) {
        if (!whitened_residual(f, H, &f->pairs[i], r, JtJ ? J : NULL)) {
            cost += c2;
            continue;
        }
        double e2 = r[0] * r[0] + r[1] * r[1], share = c2 / (c2 + e2);
        cost += share * e2;
        if (!JtJ)
            continue;
        double weight = share * share;
        for (int k = 0; k < 8; k++) {
            Jtr[k] += weight * (J[0][k] * r[0] + J[1][k] * r[1]);
            for (int l = 0; l <= k; l++)
                JtJ[8 * k + l] += weight * (J[0][k] * J[0][l] + J[1][k] * J[1][l]);
        }
    }
    return cost;
}

/* moved = H (I + D), scaled to unit norm. */
static void apply_step(const void *context, const double *H, const double *step, double *moved) {
    (void)context;
    double change[9], size = 0;
    for (int k = 0; k < 9; k++)
        change[k] = (k < 8 ? step[k] : 0) + (k % 4 == 0);
    theo_mat3_multiply(moved, H, change);
    for (int k = 0; k < 9; k++)
        size += moved[k] * moved[k];
    for (int k = 0; k < 9; k++)
        moved[k] /= sqrt(size);
}

/* Noise of the inliers from the median of their squared residuals (that of a chi-square with two degrees of freedom is 1.386),
 * not below a tenth of a pixel. 0 when there are too few to tell. */
static double noise2(const fit *f, const double H[9]) {
    int n = 0;
    for (int i = 0; i < f->count; i++) {
        double r[2];
        if (distance2(H, &f->pairs[i]) <= f->limit2 && whitened_residual(f, H, &f->pairs[i], r, NULL))
            f->scratch[n++] = r[0] * r[0] + r[1] * r[1];
    }
    if (n <= SAMPLE)
        return 0;
    double freedom = (double)(n - SAMPLE) / n; /* eight of 2 n numbers are spent on the model */
    return fmax(theo_median(f->scratch, n) / 1.386 / freedom, 0.01);
}

static void refine(fit *f, double H[9], int rounds) {
    const theo_minimisation problem = {
        .parameters = 8, .state_size = 9, .context = f, .evaluate = refinement_cost, .move = apply_step};
    for (int round = 0; round < rounds; round++) {
        double variance = noise2(f, H);
        if (variance == 0)
            return;
        f->kernel2 = 4 * variance; /* two sigma */
        theo_minimise(&problem, H, LM_STEPS);
    }
}

/* ---------------------------------------------------------------- search */

static bool search(const fit *f, const theo_ransac_options *o, theo_random *random, double best[9]) {
    double least = INFINITY;
    fit local = *f;
    if (local.count > LOCAL_PAIRS)
        local.count = LOCAL_PAIRS;
    for (int i = 0, limit = o->max_iterations; i < limit; i++) {
        int index[SAMPLE];
        pair sample[SAMPLE];
        double H[9], optimised[9];
        theo_random_sample(random, f->count, SAMPLE, index);
        for (int k = 0; k < SAMPLE; k++)
            sample[k] = f->pairs[index[k]];
        if (!is_plausible(sample) || !solve_sample(H, sample))
            continue;
        double cost = msac_cost(f, H, least);
        if (!(cost < least))
            continue;
        memcpy(optimised, H, sizeof optimised);
        refine(&local, optimised, 1);
        double lower = msac_cost(f, optimised, cost);
        bool is_better = lower < cost;
        memcpy(best, is_better ? optimised : H, sizeof optimised);
        least = is_better ? lower : cost;
        double share = (double)count_inliers(f, best, NULL) / f->count;
        limit = theo_ransac_iterations(o->confidence, share, SAMPLE, MIN_ITERATIONS, o->max_iterations);
    }
    return isfinite(least);
}

/* Normalised pairs in random order: sums that stop early then see all parts of the picture, whatever the caller's order. */
static void fill_pairs(pair *pairs, const float *xy_a, const float *xy_b, int count, const frame *a, const frame *b,
                       theo_random *random) {
    for (int i = 0; i < count; i++) {
        int place = theo_random_below(random, i + 1);
        pairs[i] = pairs[place];
        pair *p = &pairs[place];
        p->index = i;
        for (int k = 0; k < 2; k++) {
            p->a[k] = ((double)xy_a[2 * i + k] - a->centre[k]) * a->scale;
            p->b[k] = ((double)xy_b[2 * i + k] - b->centre[k]) * b->scale;
        }
    }
}

/* H = Tb^-1 N Ta with H[2][2] = 1; false if it cannot be scaled so. */
static bool to_pixels(double H[9], const double N[9], const frame *a, const frame *b) {
    const double Ta[9] = {a->scale, 0, -a->scale * a->centre[0], 0, a->scale, -a->scale * a->centre[1], 0, 0, 1};
    const double Tb_inverse[9] = {1 / b->scale, 0, b->centre[0], 0, 1 / b->scale, b->centre[1], 0, 0, 1};
    double half[9], whole[9];
    theo_mat3_multiply(half, N, Ta);
    theo_mat3_multiply(whole, Tb_inverse, half);
    for (int i = 0; i < 9; i++) {
        half[i] = whole[i] / whole[8];
        if (!isfinite(half[i]))
            return false;
    }
    memcpy(H, half, sizeof half);
    return true;
}

/* The fit proper; NULL, or the reason why there is none. */
static const char *fit_pairs(fit *f, const theo_ransac_options *o, theo_random *random, const frame *a, const frame *b,
                             double H[9], uint8_t *inliers, int *inlier_count) {
    double best[9], refined[9];
    if (!search(f, o, random, best))
        return "no four pairs span a proper quadrangle in both images";
    memcpy(refined, best, sizeof refined);
    refine(f, refined, FINAL_ROUNDS);
    const double *N = count_inliers(f, refined, NULL) >= SAMPLE ? refined : best;
    if (count_inliers(f, N, NULL) < SAMPLE)
        return "no model has 4 inliers";
    if (!to_pixels(H, N, a, b))
        return "the model sends the corner of image A to infinity";
    *inlier_count = count_inliers(f, N, inliers);
    return NULL;
}

theo_status theo_fit_homography(const float *xy_a, const float *xy_b, int count, const theo_ransac_options *options, double H[9],
                                uint8_t *inliers, int *inlier_count, bool *found, const char **reason, theo_error *err) {
    theo_ransac_options o;
    if (!H || !inlier_count || !found)
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "H, inlier_count and found must not be NULL");
    *found = false;
    *inlier_count = 0;
    THEO_TRY(theo_ransac_check(&o, options, xy_a, xy_b, count, err));
    memset(H, 0, 9 * sizeof *H);
    if (inliers && count)
        memset(inliers, 0, (size_t)count);

    const char *why = NULL;
    frame a, b;
    if (count < SAMPLE) {
        why = "fewer than 4 pairs";
    } else if (!find_frame(&a, xy_a, count) || !find_frame(&b, xy_b, count)) {
        why = "all points of an image coincide";
    } else {
        pair *pairs = theo_alloc((size_t)count, sizeof *pairs);
        double *scratch = theo_alloc((size_t)count, sizeof *scratch);
        if (!pairs || !scratch) {
            theo_free(pairs);
            theo_free(scratch);
            return theo_fail(err, THEO_MEMORY, NULL, "homography", "no memory for %d pairs", count);
        }
        theo_random random = {o.seed};
        fill_pairs(pairs, xy_a, xy_b, count, &a, &b, &random);
        fit f = {.pairs = pairs, .count = count, .scratch = scratch, .pixel_a = a.scale, .pixel_b = b.scale};
        f.limit2 = o.threshold * b.scale * o.threshold * b.scale;
        why = fit_pairs(&f, &o, &random, &a, &b, H, inliers, inlier_count);
        theo_free(pairs);
        theo_free(scratch);
    }
    *found = why == NULL;
    if (reason)
        *reason = why;
    return THEO_OK;
}
