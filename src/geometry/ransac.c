/* ransac.c - what the robust fits share (Fischler and Bolles 1981). */
#include "geometry/ransac.h"

#include "base/error.h"
#include "base/take_options.h"

#include <math.h>
#include <stdlib.h>

void theo_ransac_options_init(theo_ransac_options *options) {
    *options = (theo_ransac_options){.size = sizeof *options, .threshold = 3, .max_iterations = 10000, .confidence = 0.9999};
}

static theo_status check_points(const float *xy, int count, const char *name, theo_error *err) {
    if (count && !xy)
        return theo_fail(err, THEO_ARGUMENT, NULL, name, "is NULL, but count is %d", count);
    for (size_t i = 0; i < (size_t)count; i++)
        if (!isfinite(xy[2 * i]) || !isfinite(xy[2 * i + 1]))
            return theo_fail(err, THEO_ARGUMENT, NULL, name, "point %zu is (%g, %g): coordinates must be finite", i,
                             (double)xy[2 * i], (double)xy[2 * i + 1]);
    return THEO_OK;
}

theo_status theo_ransac_check(theo_ransac_options *checked, const theo_ransac_options *options, const float *xy_a,
                              const float *xy_b, int count, theo_error *err) {
    theo_ransac_options_init(checked);
    THEO_TRY(theo_options_take(checked, sizeof *checked, options, "theo_ransac_options", err));
    if (!(checked->threshold > 0) || !isfinite(checked->threshold))
        return theo_fail(err, THEO_ARGUMENT, NULL, "theo_ransac_options.threshold", "is %g: must be positive and finite",
                         checked->threshold);
    if (checked->max_iterations < 1)
        return theo_fail(err, THEO_ARGUMENT, NULL, "theo_ransac_options.max_iterations", "is %d: must be at least 1",
                         checked->max_iterations);
    if (!(checked->confidence > 0 && checked->confidence < 1))
        return theo_fail(err, THEO_ARGUMENT, NULL, "theo_ransac_options.confidence", "is %g: must lie between 0 and 1",
                         checked->confidence);
    if (count < 0)
        return theo_fail(err, THEO_ARGUMENT, NULL, "count", "is %d: must not be negative", count);
    THEO_TRY(check_points(xy_a, count, "xy_a", err));
    return check_points(xy_b, count, "xy_b", err);
}

int theo_random_below(theo_random *random, int bound) {
    uint64_t z = random->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (int)((z >> 32) * (uint64_t)bound >> 32); /* the bias of at most bound / 2^32 does not matter here */
}

void theo_random_sample(theo_random *random, int count, int size, int *sample) {
    for (int i = 0; i < size; i++) {
        bool is_new;
        do {
            sample[i] = theo_random_below(random, count);
            is_new = true;
            for (int k = 0; k < i; k++)
                is_new &= sample[k] != sample[i];
        } while (!is_new);
    }
}

int theo_ransac_iterations(double confidence, double inlier_share, int sample_size, int floor, int most) {
    double clean = pow(inlier_share, sample_size), wanted = most;
    if (clean >= 1)
        wanted = 1;
    else if (clean > 0)
        wanted = ceil(log(1 - confidence) / log1p(-clean));
    if (!(wanted < most))
        return most;
    return wanted > floor ? (int)wanted : floor < most ? floor : most;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double theo_median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}
