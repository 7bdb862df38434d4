#include "engine/resize_conv.h"
#include "engine/conv3x3.h"
#include "engine/linear.h"
#include <string.h>

/* Rows of a strip: enough that the halo of two rows and the pauses between strips cost little, and that both maps of a strip stay
 * near the last-level cache. A multiple of the four rows of a Winograd tile. */
enum { STRIP = 32 };

/* ---- the convolution's input, made where it is wanted */

typedef struct resized {
    const theo_kernels *kernels;
    theo_resize resize; /* all but the region */
    theo_view beside;   /* data == NULL: nothing */
    theo_padding padding;
    int first_row; /* of the strip */
} resized;

static resized input_of(const theo_op *op, const theo_call *call) {
    return (resized){
        .kernels = op->kernels,
        .resize =
            {
                .in = call->in.data,
                .in_h = call->in.h,
                .in_w = call->in.w,
                .channels = call->in.c,
                .in_row = (size_t)call->in.w * call->in.pitch,
                .in_pixel = call->in.pitch,
                .out_h = call->out.h,
                .out_w = call->out.w,
                .align_corners = op->align_corners,
            },
        .beside = call->beside,
        .padding = op->padding,
    };
}

/* Pixels x0 .. x1-1 of row y, all inside of the resized map. */
static void make_pixels(const resized *e, int y, int x0, int x1, float *out, size_t pixel) {
    theo_resize r = e->resize;
    r.y0 = y;
    r.y1 = y + 1;
    r.x0 = x0;
    r.x1 = x1;
    r.out = out;
    r.out_pixel = pixel;
    r.out_row = (size_t)(x1 - x0) * pixel;
    e->kernels->resize_bilinear(&r);
    if (!e->beside.data)
        return;
    const float *beside = e->beside.data + ((size_t)y * (size_t)e->beside.w + (size_t)x0) * e->beside.pitch;
    out += r.channels;
    for (int x = x0; x < x1; x++, out += pixel, beside += e->beside.pitch)
        memcpy(out, beside, (size_t)e->beside.c * sizeof *out);
}

static void zero_pixels(const resized *e, float *out, int pixels, size_t pixel) {
    for (int i = 0; i < pixels; i++, out += pixel)
        memset(out, 0, (size_t)(e->resize.channels + e->beside.c) * sizeof *out);
}

/* Pixels beyond the edge pixel `edge`. */
static void pad_pixels(const resized *e, float *out, int pixels, size_t pixel, const float *edge) {
    if (e->padding == THEO_PAD_ZERO) {
        zero_pixels(e, out, pixels, pixel);
        return;
    }
    for (int i = 0; i < pixels; i++, out += pixel)
        memcpy(out, edge, (size_t)(e->resize.channels + e->beside.c) * sizeof *out);
}

static int clamp(int x, int limit) {
    return x < 0 ? 0 : x >= limit ? limit - 1 : x;
}

/* A theo_region_fn: rows count from the strip's first. At least one column is inside. */
static void make_region(const void *context, int y0, int y1, int x0, int x1, float *out, size_t row, size_t pixel) {
    const resized *e = context;
    int h = e->resize.out_h, w = e->resize.out_w, left = x0 > 0 ? x0 : 0, right = x1 < w ? x1 : w;
    for (int y = y0 + e->first_row; y < y1 + e->first_row; y++, out += row) {
        float *inside = out + (size_t)(left - x0) * pixel, *last = out + (size_t)(right - 1 - x0) * pixel;
        if (e->padding == THEO_PAD_ZERO && (y < 0 || y >= h)) {
            zero_pixels(e, out, x1 - x0, pixel);
            continue;
        }
        make_pixels(e, clamp(y, h), left, right, inside, pixel);
        pad_pixels(e, out, left - x0, pixel, inside);
        pad_pixels(e, last + pixel, x1 - right, pixel, last);
    }
}

/* ---- strips */

typedef struct strip {
    theo_conv3x3_call conv;
    theo_linear_call linear;
    size_t map_bytes; /* the convolution's output */
    size_t conv_bytes, linear_bytes;
} strip;

static size_t conv_pitch(const theo_op *op) {
    return ((size_t)op->first.weight->out_c + 15) / 16 * 16;
}

static strip plan_strip(const theo_op *op, const theo_call *call, int rows, const resized *input) {
    const theo_layer *first = &op->first, *last = &op->layer;
    int w = call->out.w, threads = theo_pool_threads(call->pool);
    size_t pitch = conv_pitch(op);
    strip s = {
        .conv =
            {
                .weight = first->weight,
                .h = rows,
                .w = w,
                .stride = 1,
                .region = make_region,
                .region_context = input,
                .act = first->epilogue.act,
                .scale = first->epilogue.scale,
                .shift = first->epilogue.shift,
                .out_pixel = pitch,
                .out_row = pitch * (size_t)w,
            },
        .linear =
            {
                .weight = last->weight,
                .rows = rows * w,
                .in_pitch = pitch,
                .out_pitch = call->out.pitch,
                .act = last->epilogue.act,
                .scale = last->epilogue.scale,
                .shift = last->epilogue.shift,
            },
    };
    s.map_bytes = (size_t)rows * s.conv.out_row * sizeof(float);
    s.conv_bytes = theo_conv3x3_scratch_bytes(&s.conv, threads);
    s.linear_bytes = theo_linear_scratch_bytes(last->weight, rows * w, threads);
    return s;
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static int strip_rows(const theo_call *call, int y) {
    return call->out.h - y < STRIP ? call->out.h - y : STRIP;
}

size_t theo_resize_conv_linear_scratch_bytes(const theo_op *op, const theo_call *shapes) {
    size_t bytes = 0;
    for (int i = 0; i < 2; i++) { /* a whole strip, and the last one */
        int h = shapes->out.h, rows = i ? (h - 1) % STRIP + 1 : strip_rows(shapes, 0);
        strip s = plan_strip(op, shapes, rows, NULL);
        bytes = larger(bytes, s.map_bytes + larger(s.conv_bytes, s.linear_bytes));
    }
    return bytes;
}

void theo_run_resize_conv_linear(const theo_op *op, const theo_call *call) {
    resized input = input_of(op, call);
    for (int y = 0; y < call->out.h; y += STRIP) {
        input.first_row = y;
        strip s = plan_strip(op, call, strip_rows(call, y), &input);
        float *map = call->scratch;
        void *scratch = (char *)call->scratch + s.map_bytes;
        s.conv.out = map;
        theo_conv3x3_run(&s.conv, call->pool, scratch);
        s.linear.in = map;
        s.linear.out = call->out.data + (size_t)y * (size_t)call->out.w * call->out.pitch;
        theo_linear_run(&s.linear, call->pool, scratch);
    }
}
