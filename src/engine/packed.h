/* packed.h - weights in the form that the drivers of one CPU level want. Made by theo_packed_* (plan.h). */
#ifndef THEO_ENGINE_PACKED_H
#define THEO_ENGINE_PACKED_H

#include "engine/plan.h"
#include "kernels/kernels.h"

typedef enum theo_packed_form {
    THEO_PACKED_LINEAR,   /* B panels of [out, in]: linear layers and 1x1 convolutions */
    THEO_PACKED_WINOGRAD, /* 3x3, stride 1 */
    THEO_PACKED_DIRECT    /* 3x3 with few input channels: theo_conv3x3_pack */
} theo_packed_form;

struct theo_packed {
    const theo_kernels *kernels;
    theo_packed_form form;
    int out_c, in_c;
    int kernel;   /* 1 or 3; 2: transposed, four linear layers behind one another */
    float *data;  /* as the form says */
    float *bias;  /* [out_c], or NULL */
    size_t bytes; /* of data and bias */
};

#endif
