/* winograd.h - driver of the Winograd kernels. */
#ifndef THEO_ENGINE_WINOGRAD_H
#define THEO_ENGINE_WINOGRAD_H

#include "engine/conv3x3.h"

size_t theo_winograd_scratch_bytes(const theo_conv3x3_call *call, int threads);
void theo_winograd_run(const theo_conv3x3_call *call, theo_pool *pool, void *scratch);

#endif
