#include "kernels/vec_avx2.h"
#include "kernels/vec_math.h"

/* 12 accumulators, 2 vectors of B, 1 broadcast of 16 registers. */
#define GEMM_MR      6
#define GEMM_NV      2
#define GEMM_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#include "kernels/gemm_impl.h"
#include "kernels/winograd_impl.h"

const theo_gemm_kernels theo_gemm_avx2 = {GEMM_MR, NR, pack_rows, tile, finish};
const theo_winograd_kernels theo_winograd_avx2 = {winograd_input, winograd_output};
