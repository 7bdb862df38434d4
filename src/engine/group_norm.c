#include "engine/group_norm.h"
#include <math.h>

/* Pixels of a task. A vector of channels of so many pixels is read twice while it stays in the first-level cache; and the mean
 * and the variance are those of blocks of this size put together in double, whatever the number of threads. */
enum { BLOCK = 256 };

typedef struct job {
    const theo_op *op;
    const theo_call *call;
    float *sum, *deviation; /* [blocks, channels] */
    float *scale, *shift;   /* [channels] */
} job;

static int pixels_of(const theo_call *call) {
    return call->in.h * call->in.w;
}

static int blocks_of(const theo_call *call) {
    return (pixels_of(call) - 1) / BLOCK + 1;
}

static int block_pixels(const theo_call *call, int block) {
    int left = pixels_of(call) - block * BLOCK;
    return left < BLOCK ? left : BLOCK;
}

size_t theo_group_norm_scratch_bytes(const theo_call *shapes) {
    return (size_t)(2 * blocks_of(shapes) + 2) * (size_t)shapes->in.c * sizeof(float);
}

static void measure_block(void *context, int block, int worker) {
    (void)worker;
    const job *j = context;
    const theo_view *in = &j->call->in;
    theo_channel_moments m = {
        .in = in->data + (size_t)(block * BLOCK) * in->pitch,
        .pitch = in->pitch,
        .rows = block_pixels(j->call, block),
        .columns = in->c,
        .sum = j->sum + (size_t)block * (size_t)in->c,
        .deviation = j->deviation + (size_t)block * (size_t)in->c,
    };
    j->op->kernels->channel_moments(&m);
}

/* Mean and variance of channels [from, from + count). A block's squared distances from its own mean become those from the common
 * one by pixels * (difference of means)^2. */
static void put_together(const job *j, int from, int count, double *mean, double *variance) {
    int blocks = blocks_of(j->call), channels = j->call->in.c;
    double sum = 0, squares = 0, values = (double)pixels_of(j->call) * count;
    for (int b = 0; b < blocks; b++)
        for (int c = from; c < from + count; c++)
            sum += (double)j->sum[(size_t)b * (size_t)channels + (size_t)c];
    *mean = sum / values;
    for (int b = 0; b < blocks; b++) {
        double pixels = block_pixels(j->call, b);
        for (int c = from; c < from + count; c++) {
            size_t at = (size_t)b * (size_t)channels + (size_t)c;
            double distance = (double)j->sum[at] / pixels - *mean;
            squares += (double)j->deviation[at] + pixels * distance * distance;
        }
    }
    *variance = squares / values;
}

static void find_scales(void *context, int group, int worker) {
    (void)worker;
    const job *j = context;
    const float *gamma = j->op->layer.epilogue.scale, *beta = j->op->layer.epilogue.shift;
    int count = j->call->in.c / j->op->size, from = group * count;
    double mean, variance;
    put_together(j, from, count, &mean, &variance);
    double factor = 1 / sqrt(variance + (double)j->op->eps);
    for (int c = from; c < from + count; c++) {
        double scale = gamma ? (double)gamma[c] * factor : factor;
        j->scale[c] = (float)scale;
        j->shift[c] = (float)((beta ? (double)beta[c] : 0) - mean * scale);
    }
}

static void map_block(void *context, int block, int worker) {
    (void)worker;
    const job *j = context;
    const theo_view *in = &j->call->in, *out = &j->call->out;
    theo_channel_map m = {
        .in = in->data + (size_t)(block * BLOCK) * in->pitch,
        .out = out->data + (size_t)(block * BLOCK) * out->pitch,
        .in_pitch = in->pitch,
        .out_pitch = out->pitch,
        .rows = block_pixels(j->call, block),
        .columns = in->c,
        .scale = j->scale,
        .shift = j->shift,
        .f = j->op->f,
    };
    j->op->kernels->channel_map(&m);
}

void theo_run_group_norm(const theo_op *op, const theo_call *call) {
    int blocks = blocks_of(call);
    size_t floats = (size_t)blocks * (size_t)call->in.c;
    job j = {.op = op, .call = call, .sum = call->scratch};
    j.deviation = j.sum + floats;
    j.scale = j.deviation + floats;
    j.shift = j.scale + call->in.c;
    theo_pool_run(call->pool, blocks, measure_block, &j);
    theo_pool_run(call->pool, op->size, find_scales, &j);
    theo_pool_run(call->pool, blocks, map_block, &j);
}

void theo_run_nonlinear(const theo_op *op, const theo_call *call) {
    job j = {.op = op, .call = call};
    theo_pool_run(call->pool, blocks_of(call), map_block, &j);
}
