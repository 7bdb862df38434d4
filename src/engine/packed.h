/* packed.h - weights in the form that the drivers of one CPU level want. Made by theo_packed_* (plan.h). */
#ifndef THEO_ENGINE_PACKED_H
#define THEO_ENGINE_PACKED_H

#include "engine/plan.h"
#include "kernels/kernels.h"

typedef enum theo_packed_form {
    THEO_PACKED_LINEAR,   /* B panels of [out, depth]: linear layers, 1x1 and transposed convolutions */
    THEO_PACKED_GATHERED, /* the same of 3x3 convolutions whose input pixels are gathered into rows (ky, kx, in) */
    THEO_PACKED_WINOGRAD, /* 3x3, stride 1 */
    THEO_PACKED_DIRECT    /* 3x3 with few input channels: theo_conv3x3_pack */
} theo_packed_form;

struct theo_packed {
    const theo_kernels *kernels;
    theo_packed_form form;
    int out_c, in_c;
    int kernel;   /* pixels a side */
    int depth;    /* of the matrix multiplication, forms LINEAR and GATHERED: in_c, or 9 in_c */
    int phases;   /* form LINEAR: so many linear layers behind one another. Transposed convolution: kernel^2, else 1 */
    float *data;  /* as the form says */
    float *bias;  /* [out_c], or NULL */
    size_t bytes; /* of data and bias */
};

#endif
