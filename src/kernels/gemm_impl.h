/* gemm_impl.h - the GEMM kernels over the vector vocabulary. Include a vec_*.h and vec_math.h first, and define
 *   GEMM_MR  rows of a tile: mr * nr / VW accumulators, nr / VW vectors of B and a broadcast fill the registers
 *   GEMM_NV  vectors in a row of a tile (even)
 *   GEMM_ROWS(X)  X(1) X(2) ... X(GEMM_MR) */
#ifndef THEO_KERNELS_GEMM_IMPL_H
#define THEO_KERNELS_GEMM_IMPL_H

#include "kernels/gemm.h"
#include <string.h>

enum { NR = GEMM_NV * VW };

/* One k of one row. Every second row takes its number straight from memory: a core whose other hardware thread is busy decodes
 * half as much, and the broadcasts are a third of the tile's instructions. (All rows would need more than two loads a cycle.) */
VEC void row_step(vf *acc, const float *a, const vf *b, const int nv, const bool from_memory) {
    vf av = from_memory ? v_zero() : v_set1(*a);
    UNROLL
    for (int v = 0; v < nv; v++)
        if (from_memory)
            v_accumulate_at(&acc[v], a, b[v]);
        else
            v_accumulate(&acc[v], av, b[v]);
}

/* rows and nv are constants where this is inlined, so that every loop below but those over k unrolls and acc lives in registers.
 */
VEC void tile_fixed(const theo_gemm_tile *t, const int rows, const int nv) {
    vf acc[GEMM_MR][GEMM_NV];
    const float *a = t->a, *b = t->b, *ahead = t->ahead, *a_ahead = a + GEMM_MR * THEO_KU;
    const size_t step = t->ahead_step;
    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < nv; v++)
        acc[r][v] = t->add ? v_load(t->c + r * NR + v * VW) : v_zero();

    for (int chunk = t->chunks; chunk > 0; chunk--) {
        for (int k = 0; k < THEO_KU; k += 4) {
            UNROLL
            for (int u = 0; u < 4; u++) {
                if (u % 2 == 0)
                    __builtin_prefetch(ahead + (u ? step : 0));
                __builtin_prefetch(a_ahead + u * 16);
                vf bv[GEMM_NV];
                UNROLL
                for (int v = 0; v < nv; v++)
                    bv[v] = v_load(b + u * NR + v * VW);
                UNROLL
                for (int r = 0; r < rows; r++)
                    row_step(acc[r], a + r * THEO_KU + u, bv, nv, r % 2 == 0);
            }
            a += 4;
            b += 4 * NR;
            ahead += 2 * step;
            a_ahead += 4 * 16;
        }
        a += (GEMM_MR - 1) * THEO_KU;
    }

    UNROLL
    for (int r = 0; r < rows; r++)
        UNROLL
    for (int v = 0; v < nv; v++)
        v_store(t->c + r * NR + v * VW, acc[r][v]);
}

#define DEFINE_TILE(rows)                                                                                                        \
    static void tile_##rows(const theo_gemm_tile *t) {                                                                           \
        tile_fixed(t, rows, GEMM_NV);                                                                                            \
    }                                                                                                                            \
    static void tile_half_##rows(const theo_gemm_tile *t) {                                                                      \
        tile_fixed(t, rows, GEMM_NV / 2);                                                                                        \
    }
GEMM_ROWS(DEFINE_TILE)
#undef DEFINE_TILE

static void tile(const theo_gemm_tile *t) {
#define NAME_TILE(rows) {tile_half_##rows, tile_##rows},
    static void (*const variant[GEMM_MR][2])(const theo_gemm_tile *) = {GEMM_ROWS(NAME_TILE)};
#undef NAME_TILE
    variant[t->rows - 1][t->cols > NR / 2](t);
}

static void pack_rows(const float *x, size_t pitch, int rows, int k, float *panel) {
    for (int k0 = 0; k0 < k; k0 += THEO_KU) {
        int n = k - k0;
        if (n >= THEO_KU) {
            for (int r = 0; r < rows; r++)
                for (int i = 0; i < THEO_KU; i += VW)
                    v_store(panel + r * THEO_KU + i, v_load(x + (size_t)r * pitch + (size_t)(k0 + i)));
        } else {
            for (int r = 0; r < rows; r++) {
                memset(panel + r * THEO_KU, 0, THEO_KU * sizeof(float));
                memcpy(panel + r * THEO_KU, x + (size_t)r * pitch + (size_t)k0, (size_t)n * sizeof(float));
            }
        }
        panel += GEMM_MR * THEO_KU;
    }
}

/* One vector of channels, n of them wanted, down all rows. */
VEC void finish_column(const theo_gemm_finish *f, int at, int n, const theo_activation act, const bool affine) {
    const theo_channel_epilogue *e = &f->epilogue;
    vf bias = e->bias ? v_load_n(e->bias + at, n) : v_zero();
    vf scale = affine ? v_load_n(e->scale + at, n) : v_zero(), shift = affine ? v_load_n(e->shift + at, n) : v_zero();
    for (int r = 0; r < f->rows; r++) {
        vf y = v_add(v_load(f->c + r * NR + at), bias);
        if (act == THEO_ACT_RELU)
            y = v_max(v_zero(), y);
        if (act == THEO_ACT_GELU)
            y = v_gelu(y);
        if (affine)
            y = v_fma(y, scale, shift);
        float *out = f->out + (size_t)r * f->out_pitch + at;
        const float *residual = f->residual ? f->residual + (size_t)r * f->residual_pitch + at : NULL;
        if (n == VW) {
            v_store(out, residual ? v_add(y, v_load(residual)) : y);
        } else {
            v_store_n(out, n, residual ? v_add(y, v_load_n(residual, n)) : y);
        }
    }
}

VEC void finish_act(const theo_gemm_finish *f, const theo_activation act) {
    for (int at = 0; at < f->cols; at += VW) {
        int n = f->cols - at < VW ? f->cols - at : VW;
        if (f->epilogue.scale)
            finish_column(f, at, n, act, true);
        else
            finish_column(f, at, n, act, false);
    }
}

static void finish(const theo_gemm_finish *f) {
    switch (f->epilogue.act) {
    case THEO_ACT_NONE:
        finish_act(f, THEO_ACT_NONE);
        break;
    case THEO_ACT_RELU:
        finish_act(f, THEO_ACT_RELU);
        break;
    case THEO_ACT_GELU:
        finish_act(f, THEO_ACT_GELU);
        break;
    }
}

#endif
