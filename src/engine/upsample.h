/* upsample.h - driver of bilinear x2 with align_corners. */
#ifndef THEO_ENGINE_UPSAMPLE_H
#define THEO_ENGINE_UPSAMPLE_H

#include "engine/op.h"

void theo_run_upsample2_corners(const theo_op *op, const theo_call *call);

#endif
