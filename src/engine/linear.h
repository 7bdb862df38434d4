/* linear.h - driver of the GEMM kernels: rows of activations times packed weights, on the pool. */
#ifndef THEO_ENGINE_LINEAR_H
#define THEO_ENGINE_LINEAR_H

#include "engine/packed.h"

typedef struct theo_linear_call {
    const theo_packed *weight; /* form LINEAR or GATHERED */
    int rows;
    const float *in; /* [rows] of in_pitch floats, weight->depth count */
    size_t in_pitch;
    float *out; /* [rows] of out_pitch floats, out_c count */
    size_t out_pitch;
    theo_activation act;
    const float *scale, *shift; /* [out_c] each, or both NULL */
    const float *residual;      /* [rows] of residual_pitch floats, or NULL; may be out itself */
    size_t residual_pitch;
    /* Of transposed weights the rows are a map of so many columns, out and residual are maps `kernel` times as large: pixel (y,
     * x) gives (kernel y + i, kernel x + j). */
    int map_w;
} theo_linear_call;

/* Bytes of scratch for all threads together, a multiple of 64. */
size_t theo_linear_scratch_bytes(const theo_packed *weight, int rows, int threads);
/* scratch: 64-byte aligned. The result does not depend on the pool; a row's does not depend on the other rows. */
void theo_linear_run(const theo_linear_call *call, theo_pool *pool, void *scratch);

#endif
