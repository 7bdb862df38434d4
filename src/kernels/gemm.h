/* gemm.h - matrix multiplication on packed panels: C[m][n] = sum over k of A[m][k] * B[n][k].
 *
 * The driver cuts C into tiles of at most mr x nr. Panel formats: kernels.h. A tile is computed raw into a small buffer
 * (`tile`), and goes from there through the epilogue to memory (`finish`): the buffer is in the first-level cache, so that the
 * detour costs under 1 % from K = 512 on, and the inner kernel stays free of masks and cases.
 *
 * An element is summed in the order of k, chunk after chunk, whatever rows and cols are: results do not depend on how the
 * driver cuts. */
#ifndef THEO_KERNELS_GEMM_H
#define THEO_KERNELS_GEMM_H

#include "kernels/epilogue.h"
#include <stdbool.h>
#include <stddef.h>

#define THEO_KU 16 /* k per chunk of a panel */

typedef struct theo_gemm_tile {
    const float *a;     /* A panel: [chunks][mr][16], 64-byte aligned */
    const float *b;     /* B panel: [chunks * 16][nr], 64-byte aligned */
    const float *ahead; /* what the caller will want next: fetched from here on, ahead_step floats for two k. Any address */
    size_t ahead_step;  /* 1 .. 16: a slow stream leaves the fill buffers to the misses of this tile */
    float *c;           /* [rows][nr], 64-byte aligned. Where cols <= nr / 2 the right half is left alone */
    int rows, cols;     /* 1 .. mr, 1 .. nr */
    int chunks;         /* of 16 k, >= 1 */
    bool add;           /* C += A B instead of C = A B */
} theo_gemm_tile;

typedef struct theo_gemm_finish {
    const float *c; /* [rows][nr] */
    int rows, cols;
    theo_channel_epilogue epilogue; /* of these cols */
    const float *residual;          /* added last; NULL, or [rows] of residual_pitch. May be `out` itself */
    size_t residual_pitch;
    float *out;
    size_t out_pitch;
} theo_gemm_finish;

typedef struct theo_gemm_kernels {
    int mr, nr;
    /* x [rows][pitch], k values each, into an A panel. rows <= mr; rows beyond are left alone. */
    void (*pack_rows)(const float *x, size_t pitch, int rows, int k, float *panel);
    void (*tile)(const theo_gemm_tile *tile);
    void (*finish)(const theo_gemm_finish *finish);
} theo_gemm_kernels;

extern const theo_gemm_kernels theo_gemm_c, theo_gemm_avx2, theo_gemm_avx512, theo_gemm_neon; /* those compiled in */

/* Floats of the B panels of a weight [n][k]: [ceil(n / nr)] panels, one behind the other. */
size_t theo_gemm_packed_floats(int nr, int n, int k);
/* out[c * out_pitch + r] = in[r * in_pitch + c]: the level's, or theo_transpose_c. */
typedef void (*theo_transpose_fn)(const float *in, size_t in_pitch, int rows, int columns, float *out, size_t out_pitch);
/* weight [n][k] row-major. */
void theo_gemm_pack_weight(int nr, theo_transpose_fn transpose, int n, int k, const float *weight, float *panels);

#endif
