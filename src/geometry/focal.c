#include "geometry/focal.h"
#include <math.h>
#include <stddef.h>

enum { MOST = THEO_FOCAL_SAMPLES * THEO_FOCAL_SAMPLES, MOST_EVALUATIONS = 200 };

static const double epsilon = 0x1p-52, ftol = 1e-3, xtol = 1e-8, gtol = 1e-8, factor = 100;

int theo_nearest_index(int o, int in, int out) {
    int index = (int)floorf((float)o * ((float)in / (float)out));
    return index < in - 1 ? index : in - 1;
}

typedef struct samples {
    int count;
    float x[MOST], y[MOST], z[MOST], u[MOST], v[MOST];
    double focal; /* 0: the best one for each shift */
    int evaluations;
} samples;

static void take_samples(samples *s, const theo_focal_problem *p) {
    double r = sqrt(1 + p->aspect * p->aspect);
    for (int i = 0; i < THEO_FOCAL_SAMPLES; i++)
        for (int j = 0; j < THEO_FOCAL_SAMPLES; j++) {
            int y = theo_nearest_index(i, p->height, THEO_FOCAL_SAMPLES), x = theo_nearest_index(j, p->width, THEO_FOCAL_SAMPLES);
            size_t at = (size_t)y * (size_t)p->width + (size_t)x;
            const float *point = p->points + 3 * at;
            if ((p->mask && !(p->mask[at] > p->threshold)) || !isfinite(point[0]) || !isfinite(point[1]) || !isfinite(point[2]))
                continue;
            s->x[s->count] = point[0];
            s->y[s->count] = point[1];
            s->z[s->count] = point[2];
            s->u[s->count] = (float)(p->aspect / r * (2 * x + 1 - p->width) / p->width);
            s->v[s->count++] = (float)(1 / r * (2 * y + 1 - p->height) / p->height);
        }
}

/* The least squares focal length at that shift. */
static double best_focal(const samples *s, double shift) {
    double numerator = 0, denominator = 0;
    for (int i = 0; i < s->count; i++) {
        double z = (double)s->z[i] + shift, x = (double)s->x[i] / z, y = (double)s->y[i] / z;
        numerator += x * (double)s->u[i] + y * (double)s->v[i];
        denominator += x * x + y * y;
    }
    return numerator / denominator;
}

/* The same with elements of float32, as the original computes its result. */
static double best_focal_f32(const samples *s, float shift) {
    double numerator = 0, denominator = 0;
    for (int i = 0; i < s->count; i++) {
        float z = s->z[i] + shift, x = s->x[i] / z, y = s->y[i] / z;
        numerator += (double)(x * s->u[i]) + (double)(y * s->v[i]);
        denominator += (double)(x * x) + (double)(y * y);
    }
    return numerator / denominator;
}

/* Residuals [2 * count]; their norm. */
static double evaluate(samples *s, double shift, double *out) {
    double f = s->focal > 0 ? s->focal : best_focal(s, shift), sum = 0;
    s->evaluations++;
    for (int i = 0; i < s->count; i++) {
        double z = (double)s->z[i] + shift;
        out[2 * i] = f * ((double)s->x[i] / z) - (double)s->u[i];
        out[2 * i + 1] = f * ((double)s->y[i] / z) - (double)s->v[i];
        sum += out[2 * i] * out[2 * i] + out[2 * i + 1] * out[2 * i + 1];
    }
    return sqrt(sum);
}

/* The Levenberg-Marquardt parameter for a step of length delta: g, r as in minimise(), p the full step. */
static double parameter_for(double g, double r, double delta, double start, double *step) {
    double p = g / (r * r), fp = fabs(p) - delta;
    *step = p;
    if (fp <= 0.1 * delta)
        return 0;
    double low = fp / delta * r * r, high = fabs(g) / delta;
    double par = fmin(fmax(start, low), high);
    if (par == 0)
        par = fabs(g) / fabs(p);
    for (int i = 0; i < 10; i++) {
        p = g / (r * r + par);
        fp = fabs(p) - delta;
        *step = p;
        if (fabs(fp) <= 0.1 * delta)
            break;
        if (fp > 0)
            low = fmax(low, par);
        else
            high = fmin(high, par);
        par = fmax(low, par + fp / delta * (r * r + par));
    }
    return par;
}

/* work: [3][2 * count] */
static double minimise(samples *s, double *work) {
    size_t n = 2 * (size_t)s->count;
    double *residual = work, *next = work + n, *jacobian = work + 2 * n;
    double x = 0, norm = evaluate(s, x, residual), par = 0, delta = 0;
    bool is_first = true;
    for (;;) {
        double h = x != 0 ? sqrt(epsilon) * fabs(x) : sqrt(epsilon), g = 0, r = 0;
        evaluate(s, x + h, jacobian);
        for (size_t i = 0; i < n; i++) {
            double d = (jacobian[i] - residual[i]) / h;
            r += d * d;
            g += d * residual[i];
        }
        r = sqrt(r);
        if (is_first)
            delta = x != 0 ? factor * fabs(x) : factor;
        double gradient = norm == 0 || r == 0 ? 0 : fabs(g) / (norm * r);
        if (!(gradient > gtol))
            return x;
        for (double ratio = 0; ratio < 1e-4;) {
            double p;
            par = parameter_for(g, r, delta, par, &p);
            double length = fabs(p);
            if (is_first)
                delta = fmin(delta, length);
            double new_norm = evaluate(s, x - p, next);
            double actual = 0.1 * new_norm < norm ? 1 - (new_norm / norm) * (new_norm / norm) : -1;
            double t1 = r * length / norm, t2 = sqrt(par) * length / norm;
            double predicted = t1 * t1 + 2 * t2 * t2, slope = -(t1 * t1 + t2 * t2);
            ratio = predicted != 0 ? actual / predicted : 0;
            if (!isfinite(new_norm) && !isfinite(actual))
                return x;
            if (ratio <= 0.25) {
                double t = actual >= 0 ? 0.5 : 0.5 * slope / (slope + 0.5 * actual);
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
