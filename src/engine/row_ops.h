/* row_ops.h - ops that treat each row of pixels, or each pixel, by itself: cut into runs of rows for the pool. */
#ifndef THEO_ENGINE_ROW_OPS_H
#define THEO_ENGINE_ROW_OPS_H

#include "engine/op.h"

void theo_run_max_pool2(const theo_op *op, const theo_call *call);
void theo_run_cell_softmax(const theo_op *op, const theo_call *call);
void theo_run_l2_norm(const theo_op *op, const theo_call *call);

void theo_run_layer_norm(const theo_op *op, const theo_call *call);
void theo_run_patches(const theo_op *op, const theo_call *call);
void theo_run_pixel_shuffle2(const theo_op *op, const theo_call *call);

#endif
