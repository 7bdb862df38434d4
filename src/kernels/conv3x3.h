/* conv3x3.h - direct 3x3 convolution, NHWC: the twin of Winograd, and the first layers with few input channels. */
#ifndef THEO_KERNELS_CONV3X3_H
#define THEO_KERNELS_CONV3X3_H

#include "kernels/epilogue.h"
#include <stddef.h>

/* A region of the output of one convolution. Strides count floats. The whole output is [out_h, out_w] with
 * out_h = (in_h - 1) / stride + 1: padding 1 on every side. */
typedef struct theo_conv3x3 {
    const float *in; /* pixel (y, x) at in + y * in_row + x * in_pixel, in_c values */
    int in_h, in_w, in_c;
    size_t in_row, in_pixel;
    const float *weight; /* theo_conv3x3_pack */
    int out_c;
    int stride; /* 1 or 2 */
    theo_padding padding;
    theo_channel_epilogue epilogue; /* act: none or ReLU */
    const float *residual;          /* added last; NULL, or laid out as out with its own strides: residual of (y0, x0) */
    size_t residual_row, residual_pixel;

    /* Rows y0 .. y1-1, columns x0 .. x1-1. Positions outside of the output get zeros (no residual): they are the zero
     * padding of the convolution that follows, when the two are fused. */
    int y0, y1, x0, x1;
    float *out; /* element (y0, x0, 0) */
    size_t out_row, out_pixel;
} theo_conv3x3;

/* Floats of a packed weight: [3][3][in_c][out_c rounded up to 16], the same at every level. */
size_t theo_conv3x3_packed_floats(int out_c, int in_c);
/* weight: OIHW [out_c, in_c, 3, 3]. */
void theo_conv3x3_pack(int out_c, int in_c, const float *weight, float *packed);

#endif
