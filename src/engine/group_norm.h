/* group_norm.h - drivers of group norms, and of functions on their own. */
#ifndef THEO_ENGINE_GROUP_NORM_H
#define THEO_ENGINE_GROUP_NORM_H

#include "engine/op.h"

size_t theo_group_norm_scratch_bytes(const theo_call *shapes);
void theo_run_group_norm(const theo_op *op, const theo_call *call);
void theo_run_nonlinear(const theo_op *op, const theo_call *call);

#endif
