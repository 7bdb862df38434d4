#include "engine/row_ops.h"

/* Floats that one task reads, roughly: enough to hide the cost of handing it out, little enough to keep the threads even. */
enum { TASK_FLOATS = 16384 };

typedef void (*range_fn)(const theo_op *op, const theo_call *call, int from, int to);

typedef struct ranges {
    const theo_op *op;
    const theo_call *call;
    range_fn fn;
    int count, each;
} ranges;

static void run_range(void *context, int task, int worker) {
    const ranges *r = context;
    int from = task * r->each, to = r->count - from > r->each ? from + r->each : r->count;
    (void)worker;
    r->fn(r->op, r->call, from, to);
}

/* fn over 0 .. count-1 in runs; each element reads `floats` floats. */
static void run_ranges(const theo_op *op, const theo_call *call, int count, size_t floats, range_fn fn) {
    int each = floats < TASK_FLOATS ? (int)(TASK_FLOATS / floats) : 1;
    ranges r = {.op = op, .call = call, .fn = fn, .count = count, .each = each};
    theo_pool_run(call->pool, (count - 1) / each + 1, run_range, &r);
}

static float *row_of(theo_view view, int y) {
    return view.data + (size_t)y * (size_t)view.w * view.pitch;
}

static void max_pool2_rows(const theo_op *op, const theo_call *call, int from, int to) {
    for (int y = from; y < to; y++)
        op->kernels->max_pool2_row(row_of(call->in, 2 * y), row_of(call->in, 2 * y + 1), call->in.pitch, call->out.w, call->in.c,
                                   row_of(call->out, y), call->out.pitch);
}

void theo_run_max_pool2(const theo_op *op, const theo_call *call) {
    run_ranges(op, call, call->out.h, 2 * (size_t)call->in.w * call->in.pitch, max_pool2_rows);
}

static void cell_softmax_rows(const theo_op *op, const theo_call *call, int from, int to) {
    for (int y = from; y < to; y++)
        op->kernels->cell_softmax(row_of(call->in, y), call->in.pitch, call->in.w, row_of(call->out, 8 * y), (size_t)call->out.w);
}

void theo_run_cell_softmax(const theo_op *op, const theo_call *call) {
    run_ranges(op, call, call->in.h, (size_t)call->in.w * call->in.pitch, cell_softmax_rows);
}

static void l2_norm_pixels(const theo_op *op, const theo_call *call, int from, int to) {
    op->kernels->l2_norm_rows(call->in.data + (size_t)from * call->in.pitch, call->in.pitch,
                              call->out.data + (size_t)from * call->out.pitch, call->out.pitch, to - from, call->in.c);
}

void theo_run_l2_norm(const theo_op *op, const theo_call *call) {
    run_ranges(op, call, call->in.h * call->in.w, call->in.pitch, l2_norm_pixels);
}

static void layer_norm_pixels(const theo_op *op, const theo_call *call, int from, int to) {
    theo_layer_norm norm = {
        .in = call->in.data + (size_t)from * call->in.pitch,
        .out = call->out.data + (size_t)from * call->out.pitch,
        .in_pitch = call->in.pitch,
        .out_pitch = call->out.pitch,
        .rows = to - from,
        .columns = call->in.c,
        .eps = op->eps,
        .gamma = op->layer.epilogue.scale,
        .beta = op->layer.epilogue.shift,
    };
    op->kernels->layer_norm_rows(&norm);
}

void theo_run_layer_norm(const theo_op *op, const theo_call *call) {
    run_ranges(op, call, call->in.h * call->in.w, call->in.pitch, layer_norm_pixels);
}

/* Channel o * 4 + i * 2 + j of (y, x) to channel o of (2y + i, 2x + j). */
static void pixel_shuffle2_rows(const theo_op *op, const theo_call *call, int from, int to) {
    (void)op;
    for (int y = from; y < to; y++) {
        const float *in = row_of(call->in, y);
        float *above = row_of(call->out, 2 * y), *below = row_of(call->out, 2 * y + 1);
        for (int x = 0; x < call->in.w; x++, in += call->in.pitch, above += 2 * call->out.pitch, below += 2 * call->out.pitch)
            for (int o = 0; o < call->out.c; o++) {
                above[o] = in[4 * o];
                above[call->out.pitch + (size_t)o] = in[4 * o + 1];
                below[o] = in[4 * o + 2];
                below[call->out.pitch + (size_t)o] = in[4 * o + 3];
            }
    }
}

void theo_run_pixel_shuffle2(const theo_op *op, const theo_call *call) {
    run_ranges(op, call, call->in.h, (size_t)call->in.w * call->in.pitch, pixel_shuffle2_rows);
}

/* Rows of patches: patch (y, x) in the order (channel, row, column). */
static void patches_rows(const theo_op *op, const theo_call *call, int from, int to) {
    int size = op->size, c = call->in.c;
    for (int y = from; y < to; y++) {
        float *out = row_of(call->out, y);
        for (int x = 0; x < call->out.w; x++, out += call->out.pitch)
            for (int i = 0; i < size; i++) {
                const float *in = row_of(call->in, y * size + i) + (size_t)(x * size) * call->in.pitch;
                for (int j = 0; j < size; j++, in += call->in.pitch)
                    for (int k = 0; k < c; k++)
                        out[(k * size + i) * size + j] = in[k];
            }
    }
}

void theo_run_patches(const theo_op *op, const theo_call *call) {
    run_ranges(op, call, call->out.h, (size_t)call->out.w * call->out.pitch, patches_rows);
}
