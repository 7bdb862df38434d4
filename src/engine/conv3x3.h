/* conv3x3.h - driver of the 3x3 convolutions: Winograd and direct, on the pool. */
#ifndef THEO_ENGINE_CONV3X3_H
#define THEO_ENGINE_CONV3X3_H

#include "engine/packed.h"

/* Makes rows y0 .. y1-1, columns x0 .. x1-1 of a convolution's input when they are wanted, instead of reading them from a
 * tensor: pixel (y0, x0) at out, in_c values each. Positions outside of the input (y < 0, x >= w ...) get what the padding
 * wants there. Called by several threads at once; regions overlap by two pixels, and every call must give a pixel the same value.
 */
typedef void (*theo_region_fn)(const void *context, int y0, int y1, int x0, int x1, float *out, size_t row, size_t pixel);

typedef struct theo_conv3x3_call {
    const theo_packed *weight; /* kernel 3 */
    int h, w;                  /* of the input */
    int stride;                /* 1 or 2; 2 for the form DIRECT alone */
    theo_padding padding;
    const float *in; /* pixel (y, x) at in + y * in_row + x * in_pixel; not read when `region` is given */
    size_t in_row, in_pixel;
    bool relu_input;       /* ReLU on the input first (Winograd) */
    theo_region_fn region; /* NULL, or makes the input (Winograd); `padding` is then its business */
    const void *region_context;

    theo_activation act;
    const float *scale, *shift; /* [out_c] each, or both NULL */
    const float *residual;      /* of the unpooled output's shape, or NULL; not `out` */
    size_t residual_row, residual_pixel;
    bool pool2; /* 2x2 maximum, stride 2, floor */
    float *out; /* pixel (y, x) at out + y * out_row + x * out_pixel */
    size_t out_row, out_pixel;
} theo_conv3x3_call;

/* Bytes of scratch for all threads together, a multiple of 64, for any input of w columns or fewer. Reads shapes, weights and
 * `region`, no other address: those may still be NULL. */
size_t theo_conv3x3_scratch_bytes(const theo_conv3x3_call *call, int threads);
/* scratch: 64-byte aligned. The result does not depend on the pool, and tiles of the output lie on multiples of four pixels. */
void theo_conv3x3_run(const theo_conv3x3_call *call, theo_pool *pool, void *scratch);

/* A theo_region_fn whose context is a theo_conv3x3 (kernels/conv3x3.h) with input, weight and epilogue filled in: the first
 * convolution of theo_plan_conv_conv. region_context must be a theo_region_conv3x3. */
typedef struct theo_region_conv3x3 {
    const theo_kernels *kernels;
    theo_conv3x3 conv;
} theo_region_conv3x3;
void theo_region_from_conv3x3(const void *context, int y0, int y1, int x0, int x1, float *out, size_t row, size_t pixel);

#endif
