/* conv_gathered.h - driver of 3x3 convolutions as a matrix multiplication of gathered pixels. */
#ifndef THEO_ENGINE_CONV_GATHERED_H
#define THEO_ENGINE_CONV_GATHERED_H

#include "engine/op.h"

size_t theo_gathered_conv_scratch_bytes(const theo_op *op, const theo_call *shapes);
void theo_run_gathered_conv(const theo_op *op, const theo_call *call);

#endif
