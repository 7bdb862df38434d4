/* upsample.h - driver of bilinear x2 with align_corners, alone and in front of a convolution. */
#ifndef THEO_ENGINE_UPSAMPLE_H
#define THEO_ENGINE_UPSAMPLE_H

#include "engine/op.h"

void theo_run_upsample2_corners(const theo_op *op, const theo_call *call);

/* x2, 3x3 convolution (op->first), linear layer (op->layer). Strips of output rows one after the other, each on all threads: what
 * a strip computes does not depend on the others. */
size_t theo_upsample2_conv_linear_scratch_bytes(const theo_op *op, const theo_call *shapes);
void theo_run_upsample2_conv_linear(const theo_op *op, const theo_call *call);

#endif
