#include "kernels/conv3x3.h"
#include "kernels/reference.h"
#include <string.h>

static size_t padded(int out_c) {
    return ((size_t)out_c + 15) / 16 * 16;
}

size_t theo_conv3x3_packed_floats(int out_c, int in_c) {
    return 9 * (size_t)in_c * padded(out_c);
}

void theo_conv3x3_pack(int out_c, int in_c, const float *weight, float *packed) {
    memset(packed, 0, theo_conv3x3_packed_floats(out_c, in_c) * sizeof(float));
    for (int o = 0; o < out_c; o++)
        for (int i = 0; i < in_c; i++)
            for (int tap = 0; tap < 9; tap++)
                packed[((size_t)tap * (size_t)in_c + (size_t)i) * padded(out_c) + (size_t)o] =
                    weight[((size_t)o * (size_t)in_c + (size_t)i) * 9 + (size_t)tap];
}

static int clamp(int x, int end) {
    return x < 0 ? 0 : x >= end ? end - 1 : x;
}

/* sum[j] += the plain sum over taps and input channels for output channel o + j of position (y, x), j = 0 .. 15. */
static void add_dots(const theo_conv3x3 *conv, int y, int x, int o, double sum[16]) {
    for (int tap = 0; tap < 9; tap++) {
        int sy = y * conv->stride + tap / 3 - 1, sx = x * conv->stride + tap % 3 - 1;
        int cy = clamp(sy, conv->in_h), cx = clamp(sx, conv->in_w);
        if (conv->padding == THEO_PAD_ZERO && (cy != sy || cx != sx))
            continue;
        const float *in = conv->in + (size_t)cy * conv->in_row + (size_t)cx * conv->in_pixel;
        const float *weight = conv->weight + (size_t)tap * (size_t)conv->in_c * padded(conv->out_c) + o;
        for (int i = 0; i < conv->in_c; i++, weight += padded(conv->out_c))
            for (int j = 0; j < 16; j++)
                sum[j] += (double)in[i] * (double)weight[j];
    }
}

static double finish(const theo_channel_epilogue *e, double v, int o) {
    if (e->bias)
        v += (double)e->bias[o];
    if (e->act == THEO_ACT_RELU && v < 0.0)
        v = 0.0;
    return e->scale ? v * (double)e->scale[o] + (double)e->shift[o] : v;
}

void theo_conv3x3_c(const theo_conv3x3 *conv) {
    int out_h = (conv->in_h - 1) / conv->stride + 1, out_w = (conv->in_w - 1) / conv->stride + 1;
    for (int y = conv->y0; y < conv->y1; y++) {
        for (int x = conv->x0; x < conv->x1; x++) {
            size_t row = (size_t)(y - conv->y0), column = (size_t)(x - conv->x0);
            float *out = conv->out + row * conv->out_row + column * conv->out_pixel;
            if (y < 0 || y >= out_h || x < 0 || x >= out_w) {
                memset(out, 0, (size_t)conv->out_c * sizeof(float));
                continue;
            }
            const float *residual =
                conv->residual ? conv->residual + row * conv->residual_row + column * conv->residual_pixel : NULL;
            for (int block = 0; block < conv->out_c; block += 16) {
                double sum[16] = {0.0};
                add_dots(conv, y, x, block, sum);
                for (int o = block; o < conv->out_c && o < block + 16; o++)
                    out[o] = (float)(finish(&conv->epilogue, sum[o - block], o) + (residual ? (double)residual[o] : 0.0));
            }
        }
    }
}
