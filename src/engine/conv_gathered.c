#include "engine/conv_gathered.h"
#include "engine/linear.h"
#include <string.h>

static size_t row_floats(const theo_op *op) {
    return ((size_t)op->layer.weight->depth + 15) / 16 * 16;
}

static size_t rows_bytes(const theo_op *op, const theo_call *call) {
    return (size_t)call->out.h * (size_t)call->out.w * row_floats(op) * sizeof(float);
}

size_t theo_gathered_conv_scratch_bytes(const theo_op *op, const theo_call *shapes) {
    int rows = shapes->out.h * shapes->out.w;
    return rows_bytes(op, shapes) + theo_linear_scratch_bytes(op->layer.weight, rows, theo_pool_threads(shapes->pool));
}

typedef struct job {
    const theo_op *op;
    const theo_call *call;
} job;

static int clamp(int x, int limit) {
    return x < 0 ? 0 : x >= limit ? limit - 1 : x;
}

/* The nine pixels around each one of a row of the output. */
static void gather_row(void *context, int row, int worker) {
    (void)worker;
    const job *j = context;
    const theo_op *op = j->op;
    const theo_view *in = &j->call->in;
    size_t channels = (size_t)in->c, floats = row_floats(op);
    float *out = (float *)j->call->scratch + (size_t)row * (size_t)j->call->out.w * floats;
    for (int x = 0; x < j->call->out.w; x++, out += floats)
        for (int k = 0; k < 9; k++) {
            int py = row * op->stride + k / 3 - 1, px = x * op->stride + k % 3 - 1, cy = clamp(py, in->h), cx = clamp(px, in->w);
            float *pixel = out + (size_t)k * channels;
            if (op->padding == THEO_PAD_REPLICATE || (cy == py && cx == px))
                memcpy(pixel, in->data + ((size_t)cy * (size_t)in->w + (size_t)cx) * in->pitch, channels * sizeof(float));
            else
                memset(pixel, 0, channels * sizeof(float));
        }
}

void theo_run_gathered_conv(const theo_op *op, const theo_call *call) {
    job j = {op, call};
    theo_pool_run(call->pool, call->out.h, gather_row, &j);
    theo_linear_call linear = {
        .weight = op->layer.weight,
        .rows = call->out.h * call->out.w,
        .in = call->scratch,
        .in_pitch = row_floats(op),
        .out = call->out.data,
        .out_pitch = call->out.pitch,
        .act = op->layer.epilogue.act,
        .scale = op->layer.epilogue.scale,
        .shift = op->layer.epilogue.shift,
        .residual = call->residual.data,
        .residual_pitch = call->residual.pitch,
    };
    theo_linear_run(&linear, call->pool, (char *)call->scratch + rows_bytes(op, call));
}
