#include "geometry/focal.h"
#include "geometry/view_plane.h"
#include <math.h>
#include <stddef.h>

enum { MOST = THEO_FOCAL_SAMPLES * THEO_FOCAL_SAMPLES, MOST_EVALUATIONS = 200 };

/* MINPACK's own machine precision (dpmpar) is not quite 2^-52: the steps of the difference quotients are made of it, and where
 * the focal length is nearly free, rounding in those quotients decides the digits that the result is compared in. */
static const double epsilon = 2.22044604926e-16, ftol = 1e-3, xtol = 1e-8, gtol = 1e-8, factor = 100;

int theo_nearest_index(int o, int in, int out) {
    int index = (int)floorf((float)o * ((float)in / (float)out));
    return index < in - 1 ? index : in - 1;
}

typedef struct samples {
    int count;
    float xy[2 * MOST], uv[2 * MOST], z[MOST];
    double focal; /* 0: the best one for each shift */
    int evaluations;
} samples;

static void take_samples(samples *s, const theo_focal_problem *p) {
    theo_view_plane plane = theo_view_plane_of(p->aspect);
    for (int i = 0; i < THEO_FOCAL_SAMPLES; i++)
        for (int j = 0; j < THEO_FOCAL_SAMPLES; j++) {
            int y = theo_nearest_index(i, p->height, THEO_FOCAL_SAMPLES), x = theo_nearest_index(j, p->width, THEO_FOCAL_SAMPLES);
            size_t at = (size_t)y * (size_t)p->width + (size_t)x;
            const float *point = p->points + 3 * at;
            if ((p->mask && !(p->mask[at] > p->threshold)) || !isfinite(point[0]) || !isfinite(point[1]) || !isfinite(point[2]))
                continue;
            float *xy = s->xy + 2 * s->count, *uv = s->uv + 2 * s->count;
            xy[0] = point[0];
            xy[1] = point[1];
            uv[0] = theo_view_plane_at(plane.x, p->width, x);
            uv[1] = theo_view_plane_at(plane.y, p->height, y);
            s->z[s->count++] = point[2];
        }
}

/* The sum of a[i] * b[i], or of a[i]^2 where b is NULL, added in pairs as NumPy does: halves down to 128 elements, those in eight
 * interleaved sums. */
static double pairwise_sum(const double *a, const float *b, size_t n) {
    enum { BLOCK = 128, SUMS = 8 };
#define TERM(i) (a[i] * (b ? (double)b[i] : a[i]))
    double sum[SUMS] = {0}, total = 0;
    size_t i = 0;
    if (n > BLOCK) {
        size_t half = n / 2 / SUMS * SUMS;
        return pairwise_sum(a, b, half) + pairwise_sum(a + half, b ? b + half : NULL, n - half);
    }
    for (; n - i >= SUMS; i += SUMS)
        for (size_t k = 0; k < SUMS; k++)
            sum[k] += TERM(i + k);
    total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    for (; i < n; i++)
        total += TERM(i);
    return total;
#undef TERM
}

static double norm_of(const double *a, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * a[i];
    return sqrt(sum);
}

/* Residuals [2 * count] at that shift, with the focal length given or the least squares one; their norm. */
static double evaluate(samples *s, double shift, double *out) {
    size_t n = 2 * (size_t)s->count;
    s->evaluations++;
    for (size_t i = 0; i < n; i++)
        out[i] = (double)s->xy[i] / ((double)s->z[i / 2] + shift);
    double f = s->focal > 0 ? s->focal : pairwise_sum(out, s->uv, n) / pairwise_sum(out, NULL, n);
    for (size_t i = 0; i < n; i++)
        out[i] = f * out[i] - (double)s->uv[i];
    return norm_of(out, n);
}

/* The least squares focal length with elements of float32, as the original computes its result. */
static double best_focal_f32(const samples *s, float shift) {
    double numerator = 0, denominator = 0;
    for (int i = 0; i < 2 * s->count; i++) {
        float q = s->xy[i] / (s->z[i / 2] + shift);
        numerator += (double)(q * s->uv[i]);
        denominator += (double)(q * q);
    }
    return numerator / denominator;
}

/* The model around x: the residuals' derivative J, as its QR decomposition has it. */
typedef struct slope {
    double r; /* |J| */
    double q; /* residuals along J: J . residuals / |J| */
} slope;

/* By Householder's reflection, in MINPACK's order of operations. ahead: the residuals at x + h; overwritten. */
static slope slope_of(const double *residual, double *ahead, double h, size_t n) {
    for (size_t i = 0; i < n; i++)
        ahead[i] = (ahead[i] - residual[i]) / h;
    double r = norm_of(ahead, n), sum = 0;
    if (r == 0)
        return (slope){0, 0};
    double signed_r = ahead[0] < 0 ? -r : r, first = ahead[0] / signed_r + 1;
    for (size_t i = 0; i < n; i++)
        sum += (i ? ahead[i] / signed_r : first) * residual[i];
    double q = residual[0] - first * (sum / first);
    return (slope){r, signed_r < 0 ? q : -q};
}

/* The Levenberg-Marquardt parameter for a step of length delta, and the step. */
static double parameter_for(const slope *j, double delta, double start, double *step) {
    double r2 = j->r * j->r, p = j->q / j->r, fp = fabs(p) - delta;
    *step = p;
    if (fp <= 0.1 * delta)
        return 0;
    double low = fp / delta * r2, high = fabs(j->q * j->r) / delta;
    double par = fmin(fmax(start, low), high);
    if (par == 0)
        par = fabs(j->q * j->r) / fabs(p);
    for (int i = 0; i < 10; i++) {
        p = j->q * j->r / (r2 + par);
        fp = fabs(p) - delta;
        *step = p;
        if (fabs(fp) <= 0.1 * delta)
            break;
        if (fp > 0)
            low = fmax(low, par);
        else
            high = fmin(high, par);
        par = fmax(low, par + fp / delta * (r2 + par));
    }
    return par;
}

/* work: [3][2 * count] */
static double minimise(samples *s, double *work) {
    size_t n = 2 * (size_t)s->count;
    double *residual = work, *next = work + n, *ahead = work + 2 * n;
    double x = 0, norm = evaluate(s, x, residual), par = 0, delta = 0;
    bool is_first = true;
    for (;;) {
        double h = x != 0 ? sqrt(epsilon) * fabs(x) : sqrt(epsilon);
        evaluate(s, x + h, ahead);
        slope j = slope_of(residual, ahead, h, n);
        if (is_first)
            delta = x != 0 ? factor * fabs(x) : factor;
        double gradient = norm == 0 || j.r == 0 ? 0 : fabs(j.q / norm);
        if (!(gradient > gtol))
            return x;
        for (double ratio = 0; ratio < 1e-4;) {
            double p;
            par = parameter_for(&j, delta, par, &p);
            double length = fabs(p);
            if (is_first)
                delta = fmin(delta, length);
            double new_norm = evaluate(s, x - p, next);
            double actual = 0.1 * new_norm < norm ? 1 - (new_norm / norm) * (new_norm / norm) : -1;
            double t1 = j.r * length / norm, t2 = sqrt(par) * length / norm;
            double predicted = t1 * t1 + 2 * t2 * t2, descent = -(t1 * t1 + t2 * t2);
            ratio = predicted != 0 ? actual / predicted : 0;
            if (!isfinite(new_norm) && !isfinite(actual))
                return x;
            if (ratio <= 0.25) {
                double t = actual >= 0 ? 0.5 : 0.5 * descent / (descent + 0.5 * actual);
                if (0.1 * new_norm >= norm || t < 0.1)
                    t = 0.1;
                delta = t * fmin(delta, 10 * length);
                par /= t;
            } else if (par == 0 || ratio >= 0.75) {
                delta = 2 * length;
                par *= 0.5;
            }
            if (ratio >= 1e-4) {
                x -= p;
                norm = new_norm;
                double *old = residual;
                residual = next;
                next = old;
                is_first = false;
            }
            if ((fabs(actual) <= ftol && predicted <= ftol && ratio <= 2) || delta <= xtol * fabs(x) ||
                s->evaluations >= MOST_EVALUATIONS || (fabs(actual) <= epsilon && predicted <= epsilon && ratio <= 2) ||
                delta <= epsilon * fabs(x) || gradient <= epsilon)
                return x;
        }
    }
}

theo_focal_result theo_focal_solve(const theo_focal_problem *problem) {
    samples s = {.focal = problem->focal};
    double work[3 * 2 * MOST];
    take_samples(&s, problem);
    theo_focal_result result = {.focal = problem->focal > 0 ? (float)problem->focal : 1};
    if (s.count < 2) {
        result.is_degenerate = true;
        return result;
    }
    double shift = minimise(&s, work);
    if (!isfinite(shift)) {
        result.is_degenerate = true;
        shift = 0;
    }
    result.evaluations = s.evaluations;
    result.shift = (float)shift;
    if (problem->focal <= 0) {
        double focal = best_focal_f32(&s, result.shift);
        result.focal = isfinite(focal) ? (float)focal : 1;
        result.is_degenerate |= !isfinite(focal);
    }
    return result;
}
