/* resize_conv.h - driver of bilinear resizing, a 3x3 convolution and a linear layer, of which the last output alone is ever
 * whole.
 */
#ifndef THEO_ENGINE_RESIZE_CONV_H
#define THEO_ENGINE_RESIZE_CONV_H

#include "engine/op.h"

/* The input resized to the output's size, behind it the channels of call->beside; convolution (op->first), linear layer
 * (op->layer). Strips of output rows one after the other, each on all threads: what a strip computes does not depend on the
 * others. */
size_t theo_resize_conv_linear_scratch_bytes(const theo_op *op, const theo_call *shapes);
void theo_run_resize_conv_linear(const theo_op *op, const theo_call *call);

#endif
