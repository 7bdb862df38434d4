/* attention_impl.h - the softmax of attention over the vector vocabulary. Include a vec_*.h and vec_math.h first.
 *
 * Bound by the additions and multiplications of 2^x: about 13 for each vector of scores, where the two matrix multiplications
 * have 128 at head dimension 64. */
#ifndef THEO_KERNELS_ATTENTION_IMPL_H
#define THEO_KERNELS_ATTENTION_IMPL_H

#include "kernels/attention.h"
#include <float.h>

enum { ATTENTION_CHUNK = 16, LANES = THEO_SOFTMAX_LANES };

/* Where a row's scores lie: chunks of 16, `in_tile` of them beside one another, then on to the next tile. Counted here once: the
 * kernels' stores might alias the step's members for all that the compiler knows. */
typedef struct row_walk {
    int chunks, in_tile;
    size_t tile; /* floats from one tile to the next */
} row_walk;

/* The largest score of a row; pads the row up to whole chunks with the lowest number there is. */
VEC float row_largest(const theo_softmax_step *s, float *row, row_walk w) {
    for (int k = s->keys; k < w.chunks * ATTENTION_CHUNK; k++)
        row[(size_t)(k / s->nr) * w.tile + (size_t)(k % s->nr)] = -FLT_MAX;
    vf top[4] = {v_set1(-FLT_MAX), v_set1(-FLT_MAX), v_set1(-FLT_MAX), v_set1(-FLT_MAX)};
    int left = w.chunks;
    if (w.in_tile == 2)
        for (; left >= 4; left -= 4, row += 2 * w.tile) /* two tiles of two chunks at a time: independent maxima */
            UNROLL
    for (int i = 0; i < 2 * ATTENTION_CHUNK; i += VW) {
        top[i / VW % 2] = v_max(top[i / VW % 2], v_load(row + i));
        top[2 + i / VW % 2] = v_max(top[2 + i / VW % 2], v_load(row + w.tile + i));
    }
    for (; left > 0; left -= w.in_tile, row += w.tile)
        for (int c = 0; c < (left < w.in_tile ? left : w.in_tile) * ATTENTION_CHUNK; c += VW)
            top[0] = v_max(top[0], v_load(row + c));
    return v_top(v_max(v_max(top[0], top[1]), v_max(top[2], top[3])));
}

/* Weights of one chunk; their sums are added. */
VEC void chunk_weights(const float *scores, vf scale, vf minus, float *weights, vf sum[ATTENTION_CHUNK / VW]) {
    UNROLL
    for (int i = 0; i < ATTENTION_CHUNK / VW; i++) {
        vf weight = v_exp2_low(v_fma(v_load(scores + i * VW), scale, minus));
        sum[i] = v_add(sum[i], weight);
        v_store(weights + i * VW, weight);
    }
}

/* The row's weights, chunks of them `step` floats apart; their sums are added to lanes. */
VEC void row_weights(const float *row, row_walk w, float factor, float largest, float *weights, size_t step, float *lanes) {
    vf scale = v_set1(factor), minus = v_set1(-largest), sum[ATTENTION_CHUNK / VW];
    UNROLL
    for (int i = 0; i < ATTENTION_CHUNK / VW; i++)
        sum[i] = v_load(lanes + i * VW);
    int left = w.chunks;
    if (w.in_tile == 2)
        for (; left >= 4; left -= 4, row += 2 * w.tile, weights += 4 * step) {
            chunk_weights(row, scale, minus, weights, sum);
            chunk_weights(row + ATTENTION_CHUNK, scale, minus, weights + step, sum);
            chunk_weights(row + w.tile, scale, minus, weights + 2 * step, sum);
            chunk_weights(row + w.tile + ATTENTION_CHUNK, scale, minus, weights + 3 * step, sum);
        }
    for (; left > 0; left -= w.in_tile, row += w.tile)
        for (int c = 0; c < (left < w.in_tile ? left : w.in_tile); c++, weights += step)
            chunk_weights(row + c * ATTENTION_CHUNK, scale, minus, weights, sum);
    UNROLL
    for (int i = 0; i < ATTENTION_CHUNK / VW; i++)
        v_store(lanes + i * VW, sum[i]);
}

VEC void scale_floats(float *x, int n, vf factor) {
    for (int i = 0; i < n; i += VW)
        v_store(x + i, v_mul(v_load(x + i), factor));
}

static void attention_step(const theo_softmax_step *s) {
    const int rows = s->rows, nr = s->nr, panels = s->value_panels;
    const row_walk w = {(s->keys + ATTENTION_CHUNK - 1) / ATTENTION_CHUNK, nr / ATTENTION_CHUNK, (size_t)(rows * nr)};
    const size_t step = (size_t)(s->mr * ATTENTION_CHUNK);
    const float scale = s->scale;
    for (int r = 0; r < rows; r++) {
        float *row = s->scores + r * nr, *lanes = s->sums + r * LANES;
        float largest = row_largest(s, row, w) * scale;
        if (s->first) {
            s->largest[r] = largest;
            UNROLL
            for (int i = 0; i < LANES; i += VW)
                v_store(lanes + i, v_zero());
        } else if (largest > s->largest[r]) {
            vf factor = v_exp2_low(v_set1(s->largest[r] - largest));
            s->largest[r] = largest;
            scale_floats(lanes, LANES, factor);
            for (int p = 0; p < panels; p++)
                scale_floats(s->values + (size_t)p * w.tile + r * nr, nr, factor);
        }
        row_weights(row, w, scale, s->largest[r], s->weights + r * ATTENTION_CHUNK, step, lanes);
    }
}

static void attention_finish(const theo_softmax_finish *f) {
    for (int r = 0; r < f->rows; r++) {
        vf lanes = v_zero();
        UNROLL
        for (int i = 0; i < LANES; i += VW)
            lanes = v_add(lanes, v_load(f->sums + r * LANES + i));
        vf sum = v_set1(v_sum(lanes));
        float *out = f->out + (size_t)r * f->out_pitch;
        for (int c = 0; c < f->columns; c += VW) {
            vf y = v_div(v_load(f->values + (c / f->nr * f->rows + r) * f->nr + c % f->nr), sum);
            v_store_n(out + c, f->columns - c < VW ? f->columns - c : VW, y);
        }
    }
}

#endif
