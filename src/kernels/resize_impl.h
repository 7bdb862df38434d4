/* resize_impl.h - bilinear resizing over a vector vocabulary. */
#include "kernels/reference.h"

/* a + weight * (b - a), in the form (1 - w) a + w b that keeps constants constant and infinities in place. */
VEC vf blend(vf a, vf b, vf rest, vf weight) { return v_fma(b, weight, v_mul(a, rest)); }

/* One output pixel between four of the input. */
VEC void resize_pixel(const float *in[4], int channels, theo_resize_tap h, theo_resize_tap v, float *out) {
    vf right = v_set1(h.weight), left = v_set1(1.0f - h.weight), low = v_set1(v.weight), high = v_set1(1.0f - v.weight);
    int c = 0;
    for (; c + VW <= channels; c += VW)
        v_store(out + c, blend(blend(v_load(in[0] + c), v_load(in[1] + c), left, right),
                               blend(v_load(in[2] + c), v_load(in[3] + c), left, right), high, low));
    if (c < channels) {
        int n = channels - c;
        v_store_n(out + c, n, blend(blend(v_load_n(in[0] + c, n), v_load_n(in[1] + c, n), left, right),
                                    blend(v_load_n(in[2] + c, n), v_load_n(in[3] + c, n), left, right), high, low));
    }
}

static void resize_bilinear(const theo_resize *resize) {
    for (int y = resize->y0; y < resize->y1; y++) {
        theo_resize_tap v = theo_resize_tap_at(y, resize->in_h, resize->out_h, resize->align_corners);
        const float *top = resize->in + (size_t)v.low * resize->in_row, *bottom = resize->in + (size_t)v.high * resize->in_row;
        for (int x = 0; x < resize->out_w; x++) {
            theo_resize_tap h = theo_resize_tap_at(x, resize->in_w, resize->out_w, resize->align_corners);
            size_t left = (size_t)h.low * resize->in_pixel, right = (size_t)h.high * resize->in_pixel;
            const float *in[4] = {top + left, top + right, bottom + left, bottom + right};
            resize_pixel(in, resize->channels, h, v, resize->out + (size_t)y * resize->out_row + (size_t)x * resize->out_pixel);
        }
    }
}
