/* ransac.h - what the robust fits share: argument checks, random samples, the number of iterations. */
#ifndef THEO_GEOMETRY_RANSAC_H
#define THEO_GEOMETRY_RANSAC_H

#include <theo/geometry.h>

/* Checks options and points (finite, count >= 0, pointers); NULL options become the defaults in *checked. */
theo_status theo_ransac_check(theo_ransac_options *checked, const theo_ransac_options *options, const float *xy_a,
                              const float *xy_b, int count, theo_error *err);

/* A generator of its own (splitmix64), so that results depend on the seed alone. */
typedef struct theo_random {
    uint64_t state;
} theo_random;

/* 0..bound-1, bound >= 1. */
int theo_random_below(theo_random *random, int bound);
/* `size` distinct numbers of 0..count-1; size <= count, size small. */
void theo_random_sample(theo_random *random, int count, int size, int *sample);

/* Iterations after which, with that confidence, one sample was free of outliers; at least `floor`, at most `most`. */
int theo_ransac_iterations(double confidence, double inlier_share, int sample_size, int floor, int most);

/* Median (the upper one of an even count); reorders the values. count >= 1. */
double theo_median(double *values, int count);

#endif
