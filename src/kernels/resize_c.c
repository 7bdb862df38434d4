#include "kernels/reference.h"

theo_resize_tap theo_resize_tap_at(int x, int in, int out, bool align_corners) {
    float at;
    if (align_corners)
        at = out > 1 ? (float)x * ((float)(in - 1) / (float)(out - 1)) : 0.0f;
    else
        at = ((float)x + 0.5f) * ((float)in / (float)out) - 0.5f;
    if (at < 0.0f)
        at = 0.0f;
    theo_resize_tap tap = {.low = (int)at};
    if (tap.low > in - 1) /* the last output with align_corners may be rounded up */
        tap.low = in - 1;
    tap.high = tap.low < in - 1 ? tap.low + 1 : tap.low;
    tap.weight = tap.high > tap.low ? at - (float)tap.low : 0.0f;
    return tap;
}

void theo_resize_bilinear_c(const theo_resize *resize) {
    for (int y = resize->y0; y < resize->y1; y++) {
        theo_resize_tap v = theo_resize_tap_at(y, resize->in_h, resize->out_h, resize->align_corners);
        const float *top = resize->in + (size_t)v.low * resize->in_row, *bottom = resize->in + (size_t)v.high * resize->in_row;
        for (int x = resize->x0; x < resize->x1; x++) {
            theo_resize_tap h = theo_resize_tap_at(x, resize->in_w, resize->out_w, resize->align_corners);
            size_t left = (size_t)h.low * resize->in_pixel, right = (size_t)h.high * resize->in_pixel;
            size_t row = (size_t)(y - resize->y0), column = (size_t)(x - resize->x0);
            float *out = resize->out + row * resize->out_row + column * resize->out_pixel;
            const float *residual =
                resize->residual ? resize->residual + row * resize->residual_row + column * resize->residual_pixel : NULL;
            double wx = (double)h.weight, wy = (double)v.weight;
            for (size_t c = 0; c < (size_t)resize->channels; c++) {
                double t = (1.0 - wx) * (double)top[left + c] + wx * (double)top[right + c];
                double b = (1.0 - wx) * (double)bottom[left + c] + wx * (double)bottom[right + c];
                out[c] = (float)((1.0 - wy) * t + wy * b + (residual ? (double)residual[c] : 0.0));
            }
        }
    }
}
