/* resize_impl.h - bilinear resizing over a vector vocabulary. */
#include "kernels/reference.h"

/* a + weight * (b - a), in the form (1 - w) a + w b that keeps constants constant and infinities in place. */
VEC vf blend(vf a, vf b, vf rest, vf weight) {
    return v_fma(b, weight, v_mul(a, rest));
}

/* One output pixel between four of the input. */
VEC void resize_pixel(const float *in[4], int channels, theo_resize_tap h, theo_resize_tap v, const float *residual, float *out) {
    vf right = v_set1(h.weight), left = v_set1(1.0f - h.weight), low = v_set1(v.weight), high = v_set1(1.0f - v.weight);
    int c = 0;
    for (; c + VW <= channels; c += VW) {
        vf y = blend(blend(v_load(in[0] + c), v_load(in[1] + c), left, right),
                     blend(v_load(in[2] + c), v_load(in[3] + c), left, right), high, low);
        v_store(out + c, residual ? v_add(y, v_load(residual + c)) : y);
    }
    if (c < channels) {
        int n = channels - c;
        vf y = blend(blend(v_load_n(in[0] + c, n), v_load_n(in[1] + c, n), left, right),
                     blend(v_load_n(in[2] + c, n), v_load_n(in[3] + c, n), left, right), high, low);
        v_store_n(out + c, n, residual ? v_add(y, v_load_n(residual + c, n)) : y);
    }
}

enum { STRIPE = 64 }; /* columns whose taps are computed at once, for all rows */

/* Columns `from` .. from + columns - 1, counted from x0. */
static void resize_stripe(const theo_resize *resize, const theo_resize_tap *taps, int from, int columns) {
    for (int y = resize->y0; y < resize->y1; y++) {
        theo_resize_tap v = theo_resize_tap_at(y, resize->in_h, resize->out_h, resize->align_corners);
        const float *top = resize->in + (size_t)v.low * resize->in_row, *bottom = resize->in + (size_t)v.high * resize->in_row;
        size_t row = (size_t)(y - resize->y0);
        float *out = resize->out + row * resize->out_row + (size_t)from * resize->out_pixel;
        const float *residual =
            resize->residual ? resize->residual + row * resize->residual_row + (size_t)from * resize->residual_pixel : NULL;
        for (int x = 0; x < columns; x++, out += resize->out_pixel) {
            size_t left = (size_t)taps[x].low * resize->in_pixel, right = (size_t)taps[x].high * resize->in_pixel;
            const float *in[4] = {top + left, top + right, bottom + left, bottom + right};
            resize_pixel(in, resize->channels, taps[x], v, residual, out);
            if (residual)
                residual += resize->residual_pixel;
        }
    }
}

static void resize_bilinear(const theo_resize *resize) {
    theo_resize_tap taps[STRIPE];
    int width = resize->x1 - resize->x0;
    for (int from = 0; from < width; from += STRIPE) {
        int columns = width - from < STRIPE ? width - from : STRIPE;
        for (int x = 0; x < columns; x++)
            taps[x] = theo_resize_tap_at(resize->x0 + from + x, resize->in_w, resize->out_w, resize->align_corners);
        resize_stripe(resize, taps, from, columns);
    }
}
