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
