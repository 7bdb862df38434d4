#include "engine/upsample.h"
#include "engine/conv3x3.h"
#include "engine/linear.h"
#include <string.h>

static theo_resize resize_of(const theo_call *call) {
    return (theo_resize){
        .in = call->in.data,
        .in_h = call->in.h,
        .in_w = call->in.w,
        .channels = call->in.c,
        .in_row = (size_t)call->in.w * call->in.pitch,
        .in_pixel = call->in.pitch,
        .out_h = 2 * call->in.h,
        .out_w = 2 * call->in.w,
        .align_corners = true,
    };
}

/* ---- alone: bands of output rows are the tasks */

enum { BAND = 4 };

typedef struct job {
    const theo_op *op;
    const theo_call *call;
} job;

static void run_band(void *context, int task, int worker) {
    (void)worker;
    const job *j = context;
    const theo_call *call = j->call;
    theo_resize r = resize_of(call);
    r.y0 = task * BAND;
    r.y1 = call->out.h - r.y0 < BAND ? call->out.h : r.y0 + BAND;
    r.x1 = call->out.w;
    r.out_pixel = call->out.pitch;
    r.out_row = (size_t)call->out.w * call->out.pitch;
    r.out = call->out.data + (size_t)r.y0 * r.out_row;
    if (call->residual.data) {
        r.residual_pixel = call->residual.pitch;
        r.residual_row = (size_t)call->residual.w * call->residual.pitch;
        r.residual = call->residual.data + (size_t)r.y0 * r.residual_row;
    }
    j->op->kernels->resize_bilinear(&r);
}

void theo_run_upsample2_corners(const theo_op *op, const theo_call *call) {
    job j = {op, call};
    theo_pool_run(call->pool, (call->out.h - 1) / BAND + 1, run_band, &j);
}

/* ---- in front of a convolution */

/* Rows of a strip: enough that the halo of two rows and the pauses between strips cost little, and that both maps of a strip stay
 * near the last-level cache. A multiple of the four rows of a Winograd tile. */
enum { STRIP = 32 };

typedef struct enlarged {
    const theo_kernels *kernels;
    theo_resize resize; /* all but the region */
    int first_row;      /* of the strip */
} enlarged;

static void zero_pixels(float *out, int pixels, size_t pixel, int channels) {
    for (int i = 0; i < pixels; i++, out += pixel)
        memset(out, 0, (size_t)channels * sizeof *out);
}

/* A theo_region_fn: rows count from the strip's first. */
static void enlarge_region(const void *context, int y0, int y1, int x0, int x1, float *out, size_t row, size_t pixel) {
    const enlarged *e = context;
    theo_resize r = e->resize;
    y0 += e->first_row;
    y1 += e->first_row;
    r.x0 = x0 > 0 ? x0 : 0;
    r.x1 = x1 < r.out_w ? x1 : r.out_w;
    r.out_row = row;
    r.out_pixel = pixel;
    for (int y = y0; y < y1; y++, out += row) {
        if (y < 0 || y >= r.out_h || r.x0 >= r.x1) {
            zero_pixels(out, x1 - x0, pixel, r.channels);
            continue;
        }
        r.y0 = y;
        r.y1 = y + 1;
        r.out = out + (size_t)(r.x0 - x0) * pixel;
        zero_pixels(out, r.x0 - x0, pixel, r.channels);
        e->kernels->resize_bilinear(&r);
        zero_pixels(out + (size_t)(r.x1 - x0) * pixel, x1 - r.x1, pixel, r.channels);
    }
}

typedef struct strip {
    theo_conv3x3_call conv;
    theo_linear_call linear;
    size_t map_bytes; /* the convolution's output */
    size_t conv_bytes, linear_bytes;
} strip;

static size_t conv_pitch(const theo_op *op) {
    return ((size_t)op->first.weight->out_c + 15) / 16 * 16;
}

static strip plan_strip(const theo_op *op, const theo_call *call, int rows, const enlarged *input) {
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
                .padding = THEO_PAD_ZERO,
                .region = enlarge_region,
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

size_t theo_upsample2_conv_linear_scratch_bytes(const theo_op *op, const theo_call *shapes) {
    size_t bytes = 0;
    for (int i = 0; i < 2; i++) { /* a whole strip, and the last one */
        int h = shapes->out.h, rows = i ? (h - 1) % STRIP + 1 : strip_rows(shapes, 0);
        strip s = plan_strip(op, shapes, rows, NULL);
        bytes = larger(bytes, s.map_bytes + larger(s.conv_bytes, s.linear_bytes));
    }
    return bytes;
}

void theo_run_upsample2_conv_linear(const theo_op *op, const theo_call *call) {
    enlarged input = {.kernels = op->kernels, .resize = resize_of(call)};
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
