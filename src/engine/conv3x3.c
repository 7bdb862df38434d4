#include "engine/conv3x3.h"
#include "engine/winograd.h"

/* ---- direct: bands of output rows are the tasks */

enum { BAND = 8 }; /* even: pooling takes pairs */

typedef struct job {
    const theo_conv3x3_call *call;
    theo_conv3x3 conv; /* all but the region */
    int out_h, out_w;
    float *scratch;
    size_t scratch_floats; /* of one worker: two rows before pooling, and nothing otherwise */
} job;

static int min_int(int a, int b) {
    return a < b ? a : b;
}

static job plan_job(const theo_conv3x3_call *call) {
    job j = {.call = call, .out_h = (call->h - 1) / call->stride + 1, .out_w = (call->w - 1) / call->stride + 1};
    if (call->pool2)
        j.scratch_floats = ((size_t)2 * (size_t)j.out_w * (size_t)call->weight->out_c + 15) / 16 * 16;
    return j;
}

static void run_rows(const job *j, int y0, int y1, float *out, size_t out_row, size_t out_pixel) {
    const theo_conv3x3_call *call = j->call;
    theo_conv3x3 conv = j->conv;
    conv.y0 = y0;
    conv.y1 = y1;
    conv.x1 = j->out_w;
    conv.residual = call->residual ? call->residual + (size_t)y0 * call->residual_row : NULL;
    conv.out = out;
    conv.out_row = out_row;
    conv.out_pixel = out_pixel;
    call->weight->kernels->conv3x3(&conv);
}

static void run_band(void *context, int task, int worker) {
    const job *j = context;
    const theo_conv3x3_call *call = j->call;
    int y0 = task * BAND, y1 = min_int(y0 + BAND, j->out_h);
    if (!call->pool2) {
        run_rows(j, y0, y1, call->out + (size_t)y0 * call->out_row, call->out_row, call->out_pixel);
        return;
    }
    size_t channels = (size_t)call->weight->out_c, row = (size_t)j->out_w * channels;
    float *pair = j->scratch + (size_t)worker * j->scratch_floats;
    for (int y = y0; y + 1 < y1; y += 2) {
        run_rows(j, y, y + 2, pair, row, channels);
        call->weight->kernels->max_pool2_row(pair, pair + row, channels, j->out_w / 2, (int)channels,
                                             call->out + (size_t)(y / 2) * call->out_row, call->out_pixel);
    }
}

static void run_direct(const theo_conv3x3_call *call, theo_pool *pool, void *scratch) {
    const theo_packed *weight = call->weight;
    job j = plan_job(call);
    j.scratch = scratch;
    j.conv = (theo_conv3x3){
        .in = call->in,
        .in_h = call->h,
        .in_w = call->w,
        .in_c = weight->in_c,
        .in_row = call->in_row,
        .in_pixel = call->in_pixel,
        .weight = weight->data,
        .out_c = weight->out_c,
        .stride = call->stride,
        .padding = call->padding,
        .epilogue = {.bias = weight->bias, .act = call->act, .scale = call->scale, .shift = call->shift},
        .residual_row = call->residual_row,
        .residual_pixel = call->residual_pixel,
    };
    theo_pool_run(pool, (j.out_h + BAND - 1) / BAND, run_band, &j);
}

/* ---- both forms */

size_t theo_conv3x3_scratch_bytes(const theo_conv3x3_call *call, int threads) {
    if (call->weight->form == THEO_PACKED_WINOGRAD)
        return theo_winograd_scratch_bytes(call, threads);
    return plan_job(call).scratch_floats * (size_t)threads * sizeof(float);
}

void theo_conv3x3_run(const theo_conv3x3_call *call, theo_pool *pool, void *scratch) {
    if (call->weight->form == THEO_PACKED_WINOGRAD)
        theo_winograd_run(call, pool, scratch);
    else
        run_direct(call, pool, scratch);
}

void theo_region_from_conv3x3(const void *context, int y0, int y1, int x0, int x1, float *out, size_t row, size_t pixel) {
    const theo_region_conv3x3 *region = context;
    theo_conv3x3 conv = region->conv;
    conv.y0 = y0;
    conv.y1 = y1;
    conv.x0 = x0;
    conv.x1 = x1;
    conv.out = out;
    conv.out_row = row;
    conv.out_pixel = pixel;
    region->kernels->conv3x3(&conv);
}
