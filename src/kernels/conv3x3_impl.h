/* conv3x3_impl.h - direct 3x3 convolution over a vector vocabulary.
 *
 * A tile is CONV_PIXELS neighbouring outputs of a row x CONV_VECTORS vectors of channels, held in registers; each tap costs one
 * load of weights for all pixels and one broadcast of an input for all channels. Every output is one chain of FMAs in the order
 * (ky, kx, input channel), whatever tile computes it, so results do not depend on the region asked for. */
#include "kernels/conv3x3.h"
#include <stdbool.h>
#include <string.h>

/* What one row of output needs. */
typedef struct conv_rows {
    const float *row[3]; /* of the taps ky0 .. ky1-1, which lie inside the input or were clamped to it */
    int ky0, ky1;
    size_t weight_pitch;   /* out_c rounded up */
    float *out;            /* of column x0 */
    const float *residual; /* the same, or NULL */
} conv_rows;

/* What the compiler may know beforehand. */
typedef struct conv_shape {
    int in_c;
    size_t in_pixel;
    int stride;
} conv_shape;

/* The tile at column x, channel o. edge: taps beyond the sides are clamped or left out; whole: the last vector is
 * known to be full. */
VEC void conv_tile(const theo_conv3x3 *conv, const conv_rows *rows, conv_shape shape, int x, int o, const int pixels,
                   const int vectors, const bool whole, const bool edge) {
    const theo_channel_epilogue *e = &conv->epilogue;
    const int left = conv->out_c - o - (vectors - 1) * VW, last = left < VW ? left : VW; /* channels in the last vector */
    const size_t step = (size_t)shape.stride * shape.in_pixel;
    vf sum[CONV_PIXELS][CONV_VECTORS];

#define LOAD_CHANNELS(p, v) ((whole || (v) < vectors - 1) ? v_load((p) + (v)*VW) : v_load_n((p) + (v)*VW, last))
#define FOR_TILE(p, v)                                                                                                           \
    UNROLL                                                                                                                       \
    for (int p = 0; p < pixels; p++)                                                                                             \
        UNROLL                                                                                                                   \
    for (int v = 0; v < vectors; v++)

    FOR_TILE (p, v)
        sum[p][v] = e->bias ? LOAD_CHANNELS(e->bias + o, v) : v_zero();
    for (int ky = rows->ky0; ky < rows->ky1; ky++) {
        const float *weight = conv->weight + (size_t)(3 * ky * shape.in_c) * rows->weight_pitch + o;
        UNROLL
        for (int kx = 0; kx < 3; kx++) {
            int column = x * shape.stride - 1 + kx;
            if (edge && (column < 0 || column >= conv->in_w)) {
                if (conv->padding == THEO_PAD_ZERO) {
                    weight += (size_t)shape.in_c * rows->weight_pitch;
                    continue;
                }
                column = column < 0 ? 0 : conv->in_w - 1;
            }
            const float *in = rows->row[ky] + (size_t)column * shape.in_pixel;
            for (int i = 0; i < shape.in_c; i++, weight += rows->weight_pitch) {
                vf w[CONV_VECTORS];
                UNROLL
                for (int v = 0; v < vectors; v++)
                    w[v] = v_load(weight + v * VW);
                UNROLL
                for (int p = 0; p < pixels; p++) {
                    vf a = v_set1(in[(size_t)p * step + (size_t)i]);
                    UNROLL
                    for (int v = 0; v < vectors; v++)
                        sum[p][v] = v_fma(a, w[v], sum[p][v]);
                }
            }
        }
    }
    /* A step at a time over the whole tile, so that each question is asked once. */
    if (e->act == THEO_ACT_RELU) {
        FOR_TILE (p, v)
            sum[p][v] = v_max(v_zero(), sum[p][v]);
    }
    if (e->scale) {
        FOR_TILE (p, v)
            sum[p][v] = v_fma(sum[p][v], LOAD_CHANNELS(e->scale + o, v), LOAD_CHANNELS(e->shift + o, v));
    }
    if (rows->residual) {
        const float *residual = rows->residual + (size_t)(x - conv->x0) * conv->residual_pixel + o;
        FOR_TILE (p, v)
            sum[p][v] = v_add(sum[p][v], LOAD_CHANNELS(residual + (size_t)p * conv->residual_pixel, v));
    }
    float *out = rows->out + (size_t)(x - conv->x0) * conv->out_pixel + o;
    FOR_TILE (p, v) {
        float *to = out + (size_t)p * conv->out_pixel + v * VW;
        if (whole || v < vectors - 1)
            v_store(to, sum[p][v]);
        else
            v_store_n(to, last, sum[p][v]);
    }
#undef LOAD_CHANNELS
#undef FOR_TILE
}

enum { HALF_TILE = CONV_PIXELS / 2 };

/* Columns begin .. end-1, all inside the output, of one block of channels. */
VEC void conv_block(const theo_conv3x3 *conv, const conv_rows *rows, conv_shape shape, int begin, int end, int o,
                    const int vectors, const bool whole) {
    /* Columns inner .. inner_end-1 have all three taps inside the input. */
    int inner = begin > 1 ? begin : 1, inner_end = conv->in_w < 2 ? 0 : (conv->in_w - 2) / shape.stride + 1;
    inner_end = inner_end < end ? inner_end : end;
    if (inner_end - inner < HALF_TILE)
        inner = inner_end = end;
    int x = begin;
    for (; x < inner; x++)
        conv_tile(conv, rows, shape, x, o, 1, vectors, whole, true);
    while (x < inner_end) {
        /* The last tile steps back over pixels already done rather than leave single ones. */
        if (x + HALF_TILE >= inner_end || inner + CONV_PIXELS > inner_end) {
            x = x + HALF_TILE < inner_end ? x : inner_end - HALF_TILE;
            conv_tile(conv, rows, shape, x, o, HALF_TILE, vectors, whole, false);
            x += HALF_TILE;
        } else {
            x = x + CONV_PIXELS < inner_end ? x : inner_end - CONV_PIXELS;
            conv_tile(conv, rows, shape, x, o, CONV_PIXELS, vectors, whole, false);
            x += CONV_PIXELS;
        }
    }
    for (; x < end; x++)
        conv_tile(conv, rows, shape, x, o, 1, vectors, whole, true);
}

VEC void conv_row(const theo_conv3x3 *conv, const conv_rows *rows, conv_shape shape, int begin, int end) {
    int o = 0;
    for (; o + CONV_VECTORS * VW <= conv->out_c; o += CONV_VECTORS * VW)
        conv_block(conv, rows, shape, begin, end, o, CONV_VECTORS, true);
    /* Packed weights are padded to 16 channels, so vectors that begin there may be loaded whole. */
    for (; o < conv->out_c; o += VW)
        conv_block(conv, rows, shape, begin, end, o, 1, false);
}

static void zero_pixels(const theo_conv3x3 *conv, float *out, int begin, int end) {
    for (int x = begin; x < end; x++)
        memset(out + (size_t)(x - conv->x0) * conv->out_pixel, 0, (size_t)conv->out_c * sizeof(float));
}

VEC void conv_region(const theo_conv3x3 *conv, conv_shape shape) {
    int out_h = (conv->in_h - 1) / conv->stride + 1, out_w = (conv->in_w - 1) / conv->stride + 1;
    int begin = conv->x0 > 0 ? conv->x0 : 0, end = conv->x1 < out_w ? conv->x1 : out_w;
    if (end < begin)
        begin = end = conv->x1;
    conv_rows rows = {.weight_pitch = ((size_t)conv->out_c + 15) / 16 * 16};
    for (int y = conv->y0; y < conv->y1; y++) {
        rows.out = conv->out + (size_t)(y - conv->y0) * conv->out_row;
        if (y < 0 || y >= out_h) {
            zero_pixels(conv, rows.out, conv->x0, conv->x1);
            continue;
        }
        rows.residual = conv->residual ? conv->residual + (size_t)(y - conv->y0) * conv->residual_row : NULL;
        rows.ky0 = 3;
        rows.ky1 = 0;
        for (int ky = 0; ky < 3; ky++) {
            int row = y * conv->stride - 1 + ky, inside = row < 0 ? 0 : row >= conv->in_h ? conv->in_h - 1 : row;
            if (row != inside && conv->padding == THEO_PAD_ZERO)
                continue;
            rows.row[ky] = conv->in + (size_t)inside * conv->in_row;
            rows.ky0 = ky < rows.ky0 ? ky : rows.ky0;
            rows.ky1 = ky + 1;
        }
        zero_pixels(conv, rows.out, conv->x0, begin);
        conv_row(conv, &rows, shape, begin, end);
        zero_pixels(conv, rows.out, end, conv->x1);
    }
}

/* First layers get code of their own: with so few multiplications a tap, computing addresses would cost as much. */
static void conv_1_channel(const theo_conv3x3 *conv) {
    conv_region(conv, (conv_shape){1, 1, 1});
}
static void conv_3_channels(const theo_conv3x3 *conv) {
    conv_region(conv, (conv_shape){3, 3, 1});
}
static void conv_any(const theo_conv3x3 *conv) {
    conv_region(conv, (conv_shape){conv->in_c, conv->in_pixel, conv->stride});
}

static void conv3x3(const theo_conv3x3 *conv) {
    if (conv->in_c == 1 && conv->in_pixel == 1 && conv->stride == 1)
        conv_1_channel(conv);
    else if (conv->in_c == 3 && conv->in_pixel == 3 && conv->stride == 1)
        conv_3_channels(conv);
    else
        conv_any(conv);
}
