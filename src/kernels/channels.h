/* channels.h - kernels on the channels (columns) of a map whose pixels are rows: the parts of a group norm, and functions between
 * layers that no matrix multiplication takes along. */
#ifndef THEO_KERNELS_CHANNELS_H
#define THEO_KERNELS_CHANNELS_H

#include <stddef.h>

typedef enum theo_nonlinearity {
    THEO_NONLINEAR_NONE,
    THEO_NONLINEAR_RELU,
    THEO_NONLINEAR_LEAKY_RELU, /* x, or x / 5 below zero */
    THEO_NONLINEAR_SILU,       /* x / (1 + exp(-x)) */
    THEO_NONLINEAR_ELU,        /* x, or exp(x) - 1 below zero */
} theo_nonlinearity;

/* Of each column: the sum of its rows, and the sum of their squared distances from the column's mean. */
typedef struct theo_channel_moments {
    const float *in;
    size_t pitch;
    int rows, columns;      /* rows >= 1 */
    float *sum, *deviation; /* [columns] each */
} theo_channel_moments;

/* out = f(in * scale[column] + shift[column]). in == out (and equal pitches) is fine. */
typedef struct theo_channel_map {
    const float *in;
    float *out;
    size_t in_pitch, out_pitch;
    int rows, columns;
    const float *scale, *shift; /* [columns] each, or both NULL: out = f(in) */
    theo_nonlinearity f;
} theo_channel_map;

#endif
