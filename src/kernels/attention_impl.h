/* attention_impl.h - the softmax of attention over the vector vocabulary. Include a vec_*.h and vec_math.h first.
 *
 * Bound by the additions and multiplications of 2^x: about 13 for each vector of scores, where the two matrix multiplications
 * have 128 at head dimension 64. */
#ifndef THEO_KERNELS_ATTENTION_IMPL_H
#define THEO_KERNELS_ATTENTION_IMPL_H

#include "kernels/attention.h"
#include <float.h>

enum { ATTENTION_CHUNK = 16, LANES = THEO_SOFTMAX_LANES };

/* The largest score of a row; pads the row up to whole chunks with the lowest number there is. */
VEC float row_largest(const theo_softmax_step *s, float *row, size_t tile) {
    int padded = (s->keys + ATTENTION_CHUNK - 1) / ATTENTION_CHUNK * ATTENTION_CHUNK;
    for (int k = s->keys; k < padded; k++)
        row[(size_t)(k / s->nr) * tile + (size_t)(k % s->nr)] = -FLT_MAX;
    vf even = v_set1(-FLT_MAX), odd = even;
    for (int left = padded; left > 0; left -= s->nr, row += tile)
        for (int c = 0; c < (left < s->nr ? left : s->nr); c += ATTENTION_CHUNK)
            UNROLL
    for (int i = 0; i < ATTENTION_CHUNK; i += VW) {
        vf x = v_load(row + c + i);
        if (i / VW % 2)
            odd = v_max(odd, x);
        else
            even = v_max(even, x);
    }
    return v_top(v_max(even, odd));
}

/* The row's weights; their sums are added to lanes. */
VEC void row_weights(const theo_softmax_step *s, const float *row, size_t tile, float largest, float *weights, float *lanes) {
    int padded = (s->keys + ATTENTION_CHUNK - 1) / ATTENTION_CHUNK * ATTENTION_CHUNK;
    vf scale = v_set1(s->scale), minus = v_set1(-largest), sum[ATTENTION_CHUNK / VW];
    UNROLL
    for (int i = 0; i < ATTENTION_CHUNK / VW; i++)
        sum[i] = v_load(lanes + i * VW);
    for (int left = padded; left > 0; left -= s->nr, row += tile)
        for (int c = 0; c < (left < s->nr ? left : s->nr); c += ATTENTION_CHUNK, weights += s->mr * ATTENTION_CHUNK)
            UNROLL
    for (int i = 0; i < ATTENTION_CHUNK / VW; i++) {
        vf weight = v_exp2_low(v_fma(v_load(row + c + i * VW), scale, minus));
        sum[i] = v_add(sum[i], weight);
        v_store(weights + i * VW, weight);
    }
    UNROLL
    for (int i = 0; i < ATTENTION_CHUNK / VW; i++)
        v_store(lanes + i * VW, sum[i]);
}

VEC void scale_floats(float *x, int n, vf factor) {
    for (int i = 0; i < n; i += VW)
        v_store(x + i, v_mul(v_load(x + i), factor));
}

static void attention_step(const theo_softmax_step *s) {
    size_t tile = (size_t)(s->rows * s->nr);
    for (int r = 0; r < s->rows; r++) {
        float *row = s->scores + r * s->nr, *lanes = s->sums + r * LANES;
        float largest = row_largest(s, row, tile) * s->scale;
        if (s->first) {
            s->largest[r] = largest;
            UNROLL
            for (int i = 0; i < LANES; i += VW)
                v_store(lanes + i, v_zero());
        } else if (largest > s->largest[r]) {
            vf factor = v_exp2_low(v_set1(s->largest[r] - largest));
            s->largest[r] = largest;
            scale_floats(lanes, LANES, factor);
            for (int p = 0; p < s->value_panels; p++)
                scale_floats(s->values + (size_t)p * tile + r * s->nr, s->nr, factor);
        }
        row_weights(s, row, tile, s->largest[r], s->weights + r * ATTENTION_CHUNK, lanes);
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
