#include "engine/upsample.h"

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

/* Bands of output rows are the tasks. */
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
