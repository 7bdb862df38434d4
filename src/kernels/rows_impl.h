/* rows_impl.h - kernels on rows of channels over a vector vocabulary: pooling, softmax, norm. */
#include "kernels/kernels.h"
#include "kernels/vec_math.h"
#include <math.h>
#include <string.h>

static void max_pool2_row(const float *top, const float *bottom, size_t in_pixel, int out_w, int channels, float *out,
                          size_t out_pixel) {
    for (int x = 0; x < out_w; x++, top += 2 * in_pixel, bottom += 2 * in_pixel, out += out_pixel) {
        int c = 0;
        for (; c + VW <= channels; c += VW) {
            vf t = v_max(v_load(top + c), v_load(top + in_pixel + c)),
               b = v_max(v_load(bottom + c), v_load(bottom + in_pixel + c));
            v_store(out + c, v_max(t, b));
        }
        if (c < channels) {
            int n = channels - c;
            vf t = v_max(v_load_n(top + c, n), v_load_n(top + in_pixel + c, n));
            vf b = v_max(v_load_n(bottom + c, n), v_load_n(bottom + in_pixel + c, n));
            v_store_n(out + c, n, v_max(t, b));
        }
    }
}

static float row_max(const float *x, int n) {
    if (n < VW) {
        float max = x[0];
        for (int i = 1; i < n; i++)
            max = x[i] > max ? x[i] : max;
        return max;
    }
    vf max = v_load(x);
    for (int i = VW; i + VW <= n; i += VW)
        max = v_max(max, v_load(x + i));
    return v_top(v_max(max, v_load(x + n - VW))); /* overlaps, which a maximum does not mind */
}

static void softmax_rows(const float *in, size_t in_pitch, float *out, size_t out_pitch, int rows, int columns) {
    for (int r = 0; r < rows; r++, in += in_pitch, out += out_pitch) {
        vf max = v_set1(row_max(in, columns)), sum = v_zero();
        int c = 0;
        for (; c + VW <= columns; c += VW) {
            vf e = v_exp(v_sub(v_load(in + c), max));
            sum = v_add(sum, e);
            v_store(out + c, e);
        }
        float tail[VW];
        int n = columns - c;
        if (n) {
            v_store(tail, v_zero());
            v_store_n(tail, n, v_exp(v_sub(v_load_n(in + c, n), max)));
            sum = v_add(sum, v_load(tail));
        }
        vf total = v_set1(v_sum(sum));
        for (int i = 0; i < c; i += VW)
            v_store(out + i, v_div(v_load(out + i), total));
        if (n)
            v_store_n(out + c, n, v_div(v_load(tail), total));
    }
}

static void cell_softmax(const float *logits, size_t pitch, int cells, float *scores, size_t score_row) {
    for (int cell = 0; cell < cells; cell++, logits += pitch) {
        float probability[64];
        vf max = v_set1(row_max(logits, 65)), sum = v_zero();
        for (int k = 0; k < 64; k += VW) {
            vf e = v_exp(v_sub(v_load(logits + k), max));
            sum = v_add(sum, e);
            v_store(probability + k, e);
        }
        float dustbin[VW];
        v_store(dustbin, v_exp(v_sub(v_set1(logits[64]), max)));
        vf total = v_set1(v_sum(sum) + dustbin[0]);
        for (int k = 0; k < 64; k += VW)
            v_store(probability + k, v_div(v_load(probability + k), total));
        for (size_t row = 0; row < 8; row++)
            memcpy(scores + row * score_row + 8 * (size_t)cell, probability + 8 * row, 8 * sizeof(float));
    }
}

static void l2_norm_rows(const float *in, size_t in_pitch, float *out, size_t out_pitch, int rows, int columns) {
    for (int r = 0; r < rows; r++, in += in_pitch, out += out_pitch) {
        vf even = v_zero(), odd = v_zero();
        int c = 0;
        for (; c + 2 * VW <= columns; c += 2 * VW) {
            vf a = v_load(in + c), b = v_load(in + c + VW);
            even = v_fma(a, a, even);
            odd = v_fma(b, b, odd);
        }
        for (; c < columns; c += VW) {
            int n = columns - c < VW ? columns - c : VW;
            vf a = v_load_n(in + c, n);
            even = v_fma(a, a, even);
        }
        float norm = sqrtf(v_sum(v_add(even, odd)));
        vf divisor = v_set1(norm > 1e-12f ? norm : 1e-12f);
        for (c = 0; c + VW <= columns; c += VW)
            v_store(out + c, v_div(v_load(in + c), divisor));
        if (c < columns)
            v_store_n(out + c, columns - c, v_div(v_load_n(in + c, columns - c), divisor));
    }
}

/* The sum of x over a row, or of (x - mean)^2. */
VEC float row_sum(const float *x, int n, const bool squares, vf mean) {
    vf sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
    int c = 0;
    for (; c + 4 * VW <= n; c += 4 * VW)
        UNROLL
    for (int i = 0; i < 4; i++) {
        vf d = v_sub(v_load(x + c + i * VW), mean);
        sum[i] = squares ? v_fma(d, d, sum[i]) : v_add(sum[i], d);
    }
    float tail = 0.0f, lanes[VW];
    for (; c < n; c += VW) {
        int count = n - c < VW ? n - c : VW;
        vf d = v_sub(v_load_n(x + c, count), mean);
        v_store(lanes, squares ? v_mul(d, d) : d);
        for (int i = 0; i < count; i++)
            tail += lanes[i];
    }
    return v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]))) + tail;
}

VEC void normalise_rows(const theo_layer_norm *n, const bool affine) {
    const float *in = n->in;
    float *out = n->out;
    for (int r = 0; r < n->rows; r++, in += n->in_pitch, out += n->out_pitch) {
        vf mean = v_set1(row_sum(in, n->columns, false, v_zero()) / (float)n->columns);
        float variance = row_sum(in, n->columns, true, mean) / (float)n->columns;
        vf factor = v_set1(1.0f / sqrtf(variance + n->eps));
        for (int c = 0; c < n->columns; c += VW) {
            int count = n->columns - c < VW ? n->columns - c : VW;
            vf y = v_mul(v_sub(v_load_n(in + c, count), mean), factor);
            if (affine)
                y = v_fma(y, v_load_n(n->gamma + c, count), v_load_n(n->beta + c, count));
            v_store_n(out + c, count, y);
        }
    }
}

static void layer_norm_rows(const theo_layer_norm *n) {
    if (n->gamma)
        normalise_rows(n, true);
    else
        normalise_rows(n, false);
}

static void rotate_rows(const theo_rotation *r) {
    const float *in = r->in, *turn = r->turn;
    float *out = r->out;
    for (int row = 0; row < r->rows; row++, in += r->in_pitch, turn += r->turn_pitch, out += r->out_pitch)
        for (int d = 0; d < r->half; d += VW) {
            int n = r->half - d < VW ? r->half - d : VW;
            vf u = v_load_n(in + d, n), w = v_load_n(in + r->half + d, n);
            vf cosine = v_load_n(turn + d, n), sine = v_load_n(turn + r->half + d, n);
            v_store_n(out + d, n, v_fnma(w, sine, v_mul(u, cosine)));
            v_store_n(out + r->half + d, n, v_fma(u, sine, v_mul(w, cosine)));
        }
}
