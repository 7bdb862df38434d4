/* resize_impl.h - bilinear resizing over a vector vocabulary. */
#include "kernels/reference.h"

/* a + weight * (b - a), in the form (1 - w) a + w b that keeps constants constant and infinities in place. */
VEC vf blend(vf a, vf b, vf rest, vf weight) {
    return v_fma(b, weight, v_mul(a, rest));
}

/* One output pixel between four of the input. */
VEC void resize_pixel(const float *in[4], int channels, theo_resize_tap h, theo_resize_tap v, float *out) {
    vf right = v_set1(h.weight), left = v_set1(1.0f - h.weight), low = v_set1(v.weight), high = v_set1(1.0f - v.weight);
    int c = 0;
    for (; c + VW <= channels; c += VW)
        v_store(out + c, blend(blend(v_load(in[0] + c), v_load(in[1] + c), left, right),
                               blend(v_load(in[2] + c), v_load(in[3] + c), left, right), high, low));
    if (c < channels) {
        int n = channels - c;
        v_store_n(out + c, n,
                  blend(blend(v_load_n(in[0] + c, n), v_load_n(in[1] + c, n), left, right),
                        blend(v_load_n(in[2] + c, n), v_load_n(in[3] + c, n), left, right), high, low));
    }
}

enum { STRIPE = 64 }; /* columns whose taps are computed at once, for all rows */

static void resize_stripe(const theo_resize *resize, const theo_resize_tap *taps, int x0, int columns) {
    for (int y = resize->y0; y < resize->y1; y++) {
        theo_resize_tap v = theo_resize_tap_at(y, resize->in_h, resize->out_h, resize->align_corners);
        const float *top = resize->in + (size_t)v.low * resize->in_row, *bottom = resize->in + (size_t)v.high * resize->in_row;
        float *out = resize->out + (size_t)y * resize->out_row + (size_t)x0 * resize->out_pixel;
        for (int x = 0; x < columns; x++, out += resize->out_pixel) {
            size_t left = (size_t)taps[x].low * resize->in_pixel, right = (size_t)taps[x].high * resize->in_pixel;
            const float *in[4] = {top + left, top + right, bottom + left, bottom + right};
            resize_pixel(in, resize->channels, taps[x], v, out);
        }
    }
}

static void resize_bilinear(const theo_resize *resize) {
    theo_resize_tap taps[STRIPE];
    for (int x0 = 0; x0 < resize->out_w; x0 += STRIPE) {
        int columns = resize->out_w - x0 < STRIPE ? resize->out_w - x0 : STRIPE;
        for (int x = 0; x < columns; x++)
            taps[x] = theo_resize_tap_at(x0 + x, resize->in_w, resize->out_w, resize->align_corners);
        resize_stripe(resize, taps, x0, columns);
    }
}
