/* winograd_impl.h - Winograd's transforms over the vector vocabulary. gemm_impl.h comes first (NR).
 *
 * Both transforms are two passes of a one-dimensional transform. A full 6x6 of vectors does not fit the registers: the input
 * transform makes three of the six rows at a time, from five loaded rows, and stores nothing in between; the output transform
 * narrows 6x6 to 4x6 on the way in. */
#ifndef THEO_KERNELS_WINOGRAD_IMPL_H
#define THEO_KERNELS_WINOGRAD_IMPL_H

#include "kernels/winograd.h"

/* Hides where a value comes from. Without it gcc turns each of the 72 addresses of a transform into a pointer of its own that it
 * keeps on the stack across the loop over channels (48 ns a vector instead of 31). clang does better left alone. */
#ifdef __clang__
#define OPAQUE(x) (void)(x)
#else
#define OPAQUE(x) __asm__("" : "+r"(x))
#endif

#define ROOT_HALF 0.70710678f /* a, the smaller point; the other is b = 2 a, and a b = 1 */
#define ROOT_TWO  1.41421356f

/* The rows of B^T, d[0..5] -> [0], [1..2], [3..4], [5]. */
VEC vf row_zero(vf d0, vf d2, vf d4) {
    return v_fnma(v_set1(2.5f), d2, v_add(d0, d4));
}
VEC void rows_small(vf d1, vf d2, vf d3, vf d4, vf *plus, vf *minus) {
    vf even = v_fnma(v_set1(2.0f), d2, d4), odd = v_fnma(v_set1(2.0f), d1, d3);
    *plus = v_fma(v_set1(ROOT_HALF), odd, even);
    *minus = v_fnma(v_set1(ROOT_HALF), odd, even);
}
VEC void rows_large(vf d1, vf d2, vf d3, vf d4, vf *plus, vf *minus) {
    vf even = v_fnma(v_set1(0.5f), d2, d4), odd = v_fnma(v_set1(0.5f), d1, d3);
    *plus = v_fma(v_set1(ROOT_TWO), odd, even);
    *minus = v_fnma(v_set1(ROOT_TWO), odd, even);
}
VEC vf row_infinity(vf d1, vf d3, vf d5) {
    return row_zero(d1, d3, d5);
}

VEC vf input_load(const float *p, int n, const bool relu) {
    vf d = n >= VW ? v_load(p) : v_load_n(p, n);
    return relu ? v_max(v_zero(), d) : d;
}

/* Second pass: B^T along a row, stored. */
VEC void input_store_row(const vf d[6], float *v, size_t position) {
    vf p1, p2, p3, p4;
    rows_small(d[1], d[2], d[3], d[4], &p1, &p2);
    rows_large(d[1], d[2], d[3], d[4], &p3, &p4);
    v_store(v, row_zero(d[0], d[2], d[4]));
    v_store(v + position, p1);
    v_store(v + 2 * position, p2);
    v_store(v + 3 * position, p3);
    v_store(v + 4 * position, p4);
    v_store(v + 5 * position, row_infinity(d[1], d[3], d[5]));
}

/* One vector of channels, n of which exist. */
VEC void input_vector(const float *in, size_t row, size_t pixel, int n, const bool relu, float *v, size_t position) {
    vf w[3][6];
    UNROLL
    for (int x = 0; x < 6; x++) {
        const float *p = in + (size_t)x * pixel;
        vf d0 = input_load(p, n, relu), d1 = input_load(p + row, n, relu), d2 = input_load(p + 2 * row, n, relu);
        vf d3 = input_load(p + 3 * row, n, relu), d4 = input_load(p + 4 * row, n, relu);
        w[0][x] = row_zero(d0, d2, d4);
        rows_small(d1, d2, d3, d4, &w[1][x], &w[2][x]);
    }
    UNROLL
    for (int y = 0; y < 3; y++)
        input_store_row(w[y], v + (size_t)(6 * y) * position, position);

    UNROLL
    for (int x = 0; x < 6; x++) {
        const float *p = in + (size_t)x * pixel;
        vf d1 = input_load(p + row, n, relu), d2 = input_load(p + 2 * row, n, relu), d3 = input_load(p + 3 * row, n, relu);
        vf d4 = input_load(p + 4 * row, n, relu), d5 = input_load(p + 5 * row, n, relu);
        rows_large(d1, d2, d3, d4, &w[0][x], &w[1][x]);
        w[2][x] = row_infinity(d1, d3, d5);
    }
    UNROLL
    for (int y = 0; y < 3; y++)
        input_store_row(w[y], v + (size_t)(18 + 6 * y) * position, position);
}

VEC void input_channels(const theo_winograd_input *t, const bool relu) {
    int padded = (t->channels + 15) & ~15;
    for (int c = 0; c < padded; c += VW) {
        size_t row = t->row, pixel = t->pixel, position = t->position;
        OPAQUE(row);
        OPAQUE(pixel);
        OPAQUE(position);
        float *v = t->v + (size_t)(c / 16) * t->chunk + c % 16;
        int n = t->channels - c;
        if (n >= VW)
            input_vector(t->in + c, row, pixel, VW, relu, v, position);
        else
            input_vector(t->in + c, row, pixel, n > 0 ? n : 0, relu, v, position);
    }
}

static void winograd_input(const theo_winograd_input *t) {
    if (t->relu)
        input_channels(t, true);
    else
        input_channels(t, false);
}

/* A^T: six values to four. */
VEC void narrow(vf m0, vf m1, vf m2, vf m3, vf m4, vf m5, vf y[4]) {
    vf s1 = v_add(m1, m2), d1 = v_sub(m1, m2), s2 = v_add(m3, m4), d2 = v_sub(m3, m4);
    y[0] = v_add(v_add(m0, s1), s2);
    y[1] = v_fma(v_set1(ROOT_HALF), d1, v_mul(v_set1(ROOT_TWO), d2));
    y[2] = v_fma(v_set1(0.5f), s1, v_add(s2, s2));
    y[3] = v_fma(v_set1(0.5f * ROOT_HALF), d1, v_fma(v_set1(2.0f * ROOT_TWO), d2, m5));
}

/* Where a vector of channels of one tile goes; h, w: pixels of it that exist, n: channels. */
typedef struct theo_winograd_target {
    const float *residual;
    float *out;
    int h, w, n;
} target;

VEC vf add_residual(const theo_winograd_output *o, const target *to, int y, int x, vf value) {
    const float *p = to->residual + (size_t)y * o->residual_row + (size_t)x * o->residual_pixel;
    return v_add(value, to->n == VW ? v_load(p) : v_load_n(p, to->n));
}

/* Past the caches only where a vector is a whole cache line: halves of lines, whose other halves come sixteen stores later, are
 * written to memory one by one, which made the whole convolution three times slower at 8 lanes. */
VEC void output_store(const theo_winograd_output *o, float *p, vf value) {
    if (VW == 16 && o->stream)
        v_stream(p, value);
    else
        v_store(p, value);
}

/* Rows y and y + 1 of a tile, epilogue done. */
VEC void output_rows(const theo_winograd_output *o, const target *to, int y, vf pair[2][4], const bool whole) {
    if (o->residual) {
        UNROLL
        for (int i = 0; i < 2; i++)
            UNROLL
        for (int x = 0; x < 4; x++)
            if (whole || (y + i < to->h && x < to->w))
                pair[i][x] = add_residual(o, to, y + i, x, pair[i][x]);
    }
    if (o->pool2) {
        UNROLL
        for (int x = 0; x < 4; x += 2) {
            vf top = v_max(v_max(pair[0][x], pair[0][x + 1]), v_max(pair[1][x], pair[1][x + 1]));
            float *p = to->out + (size_t)(y / 2) * o->out_row + (size_t)(x / 2) * o->out_pixel;
            if (whole)
                output_store(o, p, top);
            else if (y + 1 < to->h && x + 1 < to->w)
                v_store_n(p, to->n, top);
        }
    } else {
        UNROLL
        for (int i = 0; i < 2; i++)
            UNROLL
        for (int x = 0; x < 4; x++) {
            float *p = to->out + (size_t)(y + i) * o->out_row + (size_t)x * o->out_pixel;
            if (whole)
                output_store(o, p, pair[i][x]);
            else if (y + i < to->h && x < to->w)
                v_store_n(p, to->n, pair[i][x]);
        }
    }
}

VEC void output_vector(const theo_winograd_output *o, const float *m, int channel, const target *to, const theo_activation act,
                       const bool affine) {
    const theo_channel_epilogue *e = &o->epilogue;
    vf bias = e->bias ? v_load_n(e->bias + channel, to->n) : v_zero();
    vf scale = affine ? v_load_n(e->scale + channel, to->n) : v_zero();
    vf shift = affine ? v_load_n(e->shift + channel, to->n) : v_zero();
    size_t position = o->position, row = 6 * position;
    OPAQUE(position);
    OPAQUE(row);
    vf t[6][4];
    UNROLL
    for (int x = 0; x < 6; x++) {
        const float *p = m + (size_t)x * position;
        narrow(v_load(p), v_load(p + row), v_load(p + 2 * row), v_load(p + 3 * row), v_load(p + 4 * row), v_load(p + 5 * row),
               t[x]);
    }
    bool whole = to->h == 4 && to->w == 4 && to->n == VW;
    UNROLL
    for (int y = 0; y < 4; y += 2) {
        vf pair[2][4];
        UNROLL
        for (int i = 0; i < 2; i++) {
            narrow(t[0][y + i], t[1][y + i], t[2][y + i], t[3][y + i], t[4][y + i], t[5][y + i], pair[i]);
            UNROLL
            for (int x = 0; x < 4; x++) {
                vf value = v_add(pair[i][x], bias);
                if (act == THEO_ACT_RELU)
                    value = v_max(v_zero(), value);
                if (act == THEO_ACT_GELU)
                    value = v_gelu(value);
                pair[i][x] = affine ? v_fma(value, scale, shift) : value;
            }
        }
        if (whole)
            output_rows(o, to, y, pair, true);
        else
            output_rows(o, to, y, pair, false);
    }
}

VEC void output_run(const theo_winograd_output *o, const theo_activation act, const bool affine) {
    size_t shrink = o->pool2 ? 2 : 1;
    for (int x = 0; x < o->w; x += THEO_WINOGRAD_TILE) {
        for (int c = 0; c < o->channels; c += VW) {
            target to = {
                .residual = o->residual ? o->residual + (size_t)x * o->residual_pixel + c : NULL,
                .out = o->out + (size_t)x / shrink * o->out_pixel + c,
                .h = o->h,
                .w = o->w - x < THEO_WINOGRAD_TILE ? o->w - x : THEO_WINOGRAD_TILE,
                .n = o->channels - c < VW ? o->channels - c : VW,
            };
            output_vector(o, o->m + (size_t)(x / THEO_WINOGRAD_TILE) * NR + c, c, &to, act, affine);
        }
    }
}

static void winograd_output(const theo_winograd_output *o) {
    bool affine = o->epilogue.scale != NULL;
    switch (o->epilogue.act) {
    case THEO_ACT_NONE:
        affine ? output_run(o, THEO_ACT_NONE, true) : output_run(o, THEO_ACT_NONE, false);
        break;
    case THEO_ACT_RELU:
        affine ? output_run(o, THEO_ACT_RELU, true) : output_run(o, THEO_ACT_RELU, false);
        break;
    case THEO_ACT_GELU:
        affine ? output_run(o, THEO_ACT_GELU, true) : output_run(o, THEO_ACT_GELU, false);
        break;
    }
    if (o->stream)
        v_stream_end();
}

#endif
