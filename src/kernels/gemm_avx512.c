#include "kernels/vec_avx512.h"
#include "kernels/vec_math.h"

/* 28 accumulators, 2 vectors of B, 2 broadcasts: all 32 registers. */
#define GEMM_MR      14
#define GEMM_NV      2
#define GEMM_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#include "kernels/gemm_impl.h"
#include "kernels/winograd_impl.h"

const theo_gemm_kernels theo_gemm_avx512 = {GEMM_MR, NR, pack_rows, tile, finish};
const theo_winograd_kernels theo_winograd_avx512 = {winograd_input, winograd_output};
