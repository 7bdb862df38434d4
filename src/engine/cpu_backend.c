/* cpu_backend.c - recorded ops to the drivers of this machine. */
#include "base/error.h"
#include "engine/attention.h"
#include "engine/conv3x3.h"
#include "engine/conv_gathered.h"
#include "engine/group_norm.h"
#include "engine/linear.h"
#include "engine/op.h"
#include "engine/resize_conv.h"
#include "engine/row_ops.h"
#include "engine/upsample.h"
#include <string.h>

/* ---- linear */

static theo_linear_call linear_call(const theo_op *op, const theo_call *c) {
    return (theo_linear_call){
        .weight = op->layer.weight,
        .rows = c->in.h * c->in.w,
        .in = c->in.data,
        .in_pitch = c->in.pitch,
        .out = c->out.data,
        .out_pitch = c->out.pitch,
        .act = op->layer.epilogue.act,
        .scale = op->layer.epilogue.scale,
        .shift = op->layer.epilogue.shift,
        .residual = c->residual.data,
        .residual_pitch = c->residual.pitch,
        .map_w = c->in.w,
    };
}

static void run_linear(const theo_op *op, const theo_call *c) {
    theo_linear_call call = linear_call(op, c);
    theo_linear_run(&call, c->pool, c->scratch);
}

/* Tokens: the table's first row, then the patches with their positions on top. */
static void run_embed(const theo_op *op, const theo_call *c) {
    size_t width = (size_t)c->out.c;
    theo_linear_call call = linear_call(op, c);
    memcpy(c->out.data, op->table, width * sizeof(float));
    call.out += c->out.pitch;
    call.residual = op->table + width;
    call.residual_pitch = width;
    theo_linear_run(&call, c->pool, c->scratch);
}

/* ---- attention */

static theo_attention_call attention_call(const theo_op *op, const theo_call *c) {
    return (theo_attention_call){
        .kernels = op->kernels,
        .heads = op->size,
        .dim = c->in.c / op->size,
        .queries = c->in.h * c->in.w,
        .keys = c->keys.h * c->keys.w,
        .q = c->in.data,
        .k = c->keys.data,
        .v = c->values.data,
        .q_pitch = c->in.pitch,
        .k_pitch = c->keys.pitch,
        .v_pitch = c->values.pitch,
        .q_turn = c->query_turn.data,
        .k_turn = c->key_turn.data,
        .q_turn_pitch = c->query_turn.pitch,
        .k_turn_pitch = c->key_turn.pitch,
        .out = c->out.data,
        .out_pitch = c->out.pitch,
    };
}

static void run_attention(const theo_op *op, const theo_call *c) {
    theo_attention_call call = attention_call(op, c);
    theo_attention_run(&call, c->pool, c->scratch);
}

/* ---- 3x3 convolutions */

static theo_conv3x3_call conv_call(const theo_op *op, const theo_call *c) {
    return (theo_conv3x3_call){
        .weight = op->layer.weight,
        .h = c->in.h,
        .w = c->in.w,
        .stride = op->stride,
        .padding = op->padding,
        .relu_input = op->relu_input,
        .in = c->in.data,
        .in_row = (size_t)c->in.w * c->in.pitch,
        .in_pixel = c->in.pitch,
        .act = op->layer.epilogue.act,
        .scale = op->layer.epilogue.scale,
        .shift = op->layer.epilogue.shift,
        .residual = c->residual.data,
        .residual_row = (size_t)c->residual.w * c->residual.pitch,
        .residual_pixel = c->residual.pitch,
        .pool2 = op->layer.pool2,
        .out = c->out.data,
        .out_row = (size_t)c->out.w * c->out.pitch,
        .out_pixel = c->out.pitch,
    };
}

static void run_conv(const theo_op *op, const theo_call *c) {
    theo_conv3x3_call call = conv_call(op, c);
    theo_conv3x3_run(&call, c->pool, c->scratch);
}

/* The second convolution's input is made by the first where it is wanted, tile by tile. */
static theo_region_conv3x3 first_conv(const theo_op *op, const theo_call *c) {
    return (theo_region_conv3x3){
        .kernels = op->kernels,
        .conv =
            {
                .in = c->in.data,
                .in_h = c->in.h,
                .in_w = c->in.w,
                .in_c = c->in.c,
                .in_row = (size_t)c->in.w * c->in.pitch,
                .in_pixel = c->in.pitch,
                .weight = op->first.weight->data,
                .out_c = op->first.weight->out_c,
                .stride = 1,
                .padding = THEO_PAD_ZERO,
                .epilogue = op->first.epilogue,
            },
    };
}

static theo_conv3x3_call second_conv(const theo_op *op, const theo_call *c, const theo_region_conv3x3 *first) {
    theo_conv3x3_call call = conv_call(op, c);
    call.in = NULL;
    call.region = theo_region_from_conv3x3;
    call.region_context = first;
    return call;
}

static void run_conv_conv(const theo_op *op, const theo_call *c) {
    theo_region_conv3x3 first = first_conv(op, c);
    theo_conv3x3_call call = second_conv(op, c, &first);
    theo_conv3x3_run(&call, c->pool, c->scratch);
}

/* ---- choosing */

static void prepare_linear(theo_op *op, const theo_call *shapes) {
    op->method = op->layer.weight->phases > 1 ? "transposed conv" : "linear";
    op->scratch_bytes = theo_linear_scratch_bytes(op->layer.weight, shapes->in.h * shapes->in.w, theo_pool_threads(shapes->pool));
    op->run = run_linear;
}

static void prepare_attention(theo_op *op, const theo_call *shapes) {
    theo_attention_call call = attention_call(op, shapes);
    op->method = "attention";
    op->scratch_bytes = theo_attention_scratch_bytes(&call, theo_pool_threads(shapes->pool));
    op->run = run_attention;
}

static void prepare_conv(theo_op *op, const theo_call *shapes) {
    if (op->layer.weight->form == THEO_PACKED_GATHERED) {
        op->method = "conv3x3 gathered";
        op->scratch_bytes = theo_gathered_conv_scratch_bytes(op, shapes);
        op->run = theo_run_gathered_conv;
        return;
    }
    theo_conv3x3_call call = conv_call(op, shapes);
    op->method = op->layer.weight->form == THEO_PACKED_WINOGRAD ? "conv3x3 winograd" : "conv3x3 direct";
    op->scratch_bytes = theo_conv3x3_scratch_bytes(&call, theo_pool_threads(shapes->pool));
    op->run = run_conv;
}

static void prepare_conv_conv(theo_op *op, const theo_call *shapes) {
    theo_region_conv3x3 first = first_conv(op, shapes);
    theo_conv3x3_call call = second_conv(op, shapes, &first);
    op->method = "conv3x3 direct + winograd";
    op->scratch_bytes = theo_conv3x3_scratch_bytes(&call, theo_pool_threads(shapes->pool));
    op->run = run_conv_conv;
}

static theo_status prepare(theo_op *op, const theo_call *shapes, theo_cpu level, theo_error *err) {
    op->kernels = theo_kernels_for(level);
    switch (op->kind) {
    case THEO_OP_LINEAR:
        prepare_linear(op, shapes);
        return THEO_OK;
    case THEO_OP_CONV:
        prepare_conv(op, shapes);
        return THEO_OK;
    case THEO_OP_CONV_CONV:
        prepare_conv_conv(op, shapes);
        return THEO_OK;
    case THEO_OP_MAX_POOL2:
        op->method = "max-pool 2x2";
        op->run = theo_run_max_pool2;
        return THEO_OK;
    case THEO_OP_CELL_SOFTMAX:
        op->method = "softmax of cells";
        op->run = theo_run_cell_softmax;
        return THEO_OK;
    case THEO_OP_L2_NORM:
        op->method = "l2 norm";
        op->run = theo_run_l2_norm;
        return THEO_OK;
    case THEO_OP_LAYER_NORM:
        op->method = "layer norm";
        op->run = theo_run_layer_norm;
        return THEO_OK;
    case THEO_OP_ATTENTION:
        prepare_attention(op, shapes);
        return THEO_OK;
    case THEO_OP_PATCHES:
        op->method = "patches";
        op->run = theo_run_patches;
        return THEO_OK;
    case THEO_OP_EMBED:
        prepare_linear(op, shapes);
        op->method = "embedding";
        op->run = run_embed;
        return THEO_OK;
    case THEO_OP_PIXEL_SHUFFLE2:
        op->method = "pixel shuffle";
        op->run = theo_run_pixel_shuffle2;
        return THEO_OK;
    case THEO_OP_UPSAMPLE2_CORNERS:
        op->method = "bilinear x2";
        op->run = theo_run_upsample2_corners;
        return THEO_OK;
    case THEO_OP_RESIZE_CONV_LINEAR:
        op->method = "bilinear + conv3x3 winograd + linear";
        op->scratch_bytes = theo_resize_conv_linear_scratch_bytes(op, shapes);
        op->run = theo_run_resize_conv_linear;
        return THEO_OK;
    case THEO_OP_GROUP_NORM:
        op->method = "group norm";
        op->scratch_bytes = theo_group_norm_scratch_bytes(shapes);
        op->run = theo_run_group_norm;
        return THEO_OK;
    case THEO_OP_NONLINEAR:
        op->method = "nonlinearity";
        op->run = theo_run_nonlinear;
        return THEO_OK;
    }
    return theo_fail(err, THEO_UNSUPPORTED, NULL, op->name, "the CPU backend has no operation number %d", (int)op->kind);
}

const theo_backend theo_backend_cpu = {.name = "cpu", .prepare = prepare};
