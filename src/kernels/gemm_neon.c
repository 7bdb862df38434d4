#include "kernels/vec_neon.h"

#include "kernels/vec_math.h"

/* 20 accumulators, 4 vectors of B, 1 broadcast of 32 registers. */
#define GEMM_MR      5
#define GEMM_NV      4
#define GEMM_ROWS(X) X(1) X(2) X(3) X(4) X(5)
#include "kernels/gemm_impl.h"
#include "kernels/winograd_impl.h"

const theo_gemm_kernels theo_gemm_neon = {GEMM_MR, NR, pack_rows, tile, finish};
const theo_winograd_kernels theo_winograd_neon = {winograd_input, winograd_output};
