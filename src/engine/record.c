/* record.c - what the model's code calls: shapes are checked, ops are appended, nothing is computed. */
#include "base/error.h"
#include "engine/packed.h"
#include "engine/plan_state.h"
#include <limits.h>
#include <stdio.h>

enum { CELL = 8, CELL_LOGITS = CELL * CELL + 1 };

static const theo_tensor none = {.id = -1};

theo_epilogue theo_epilogue_none(void) {
    return (theo_epilogue){.residual = {.id = -1}};
}

/* Keeps the first error: what follows it is mostly its consequence. */
__attribute__((format(printf, 4, 5))) static theo_tensor refuse(theo_plan *plan, theo_status status, const char *name,
                                                                const char *format, ...) {
    if (plan->error.status == THEO_OK) {
        char sentence[512];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(sentence, sizeof sentence, format, arguments);
        va_end(arguments);
        theo_fail(&plan->error, status, NULL, name, "%s", sentence);
    }
    return none;
}

/* Room for one more element of an array that doubles. */
static bool grow(void **array, int count, int *capacity, size_t size) {
    if (count < *capacity)
        return true;
    int wanted = *capacity ? 2 * *capacity : 16;
    void *larger = theo_realloc(*array, (size_t)wanted, size);
    if (!larger)
        return false;
    *array = larger;
    *capacity = wanted;
    return true;
}

static theo_tensor append_tensor(theo_plan *plan, const char *name, theo_tensor_state t) {
    if (!grow((void **)&plan->tensors, plan->tensor_count, &plan->tensor_capacity, sizeof *plan->tensors))
        return refuse(plan, THEO_MEMORY, name, "out of memory for a plan");
    int id = plan->tensor_count++;
    plan->tensors[id] = t;
    if (t.root < 0)
        plan->tensors[id].root = id;
    return (theo_tensor){.id = id, .h = t.h, .w = t.w, .c = t.c};
}

/* Whole cache lines for each pixel, unless it is smaller than one. */
static size_t pitch_for(int c) {
    return c < 16 ? (size_t)c : ((size_t)c + 15) / 16 * 16;
}

static theo_tensor new_tensor(theo_plan *plan, const char *name, int h, int w, int c) {
    if (h < 1 || w < 1 || c < 1)
        return refuse(plan, THEO_SHAPE, name, "a map of %d x %d x %d (height, width, channels) is empty", h, w, c);
    size_t pitch = pitch_for(c), bytes;
    int pixels; /* rows of a linear layer: an int */
    if (__builtin_mul_overflow(h, w, &pixels) || __builtin_mul_overflow((size_t)pixels, pitch * sizeof(float), &bytes) ||
        bytes > SIZE_MAX / 4)
        return refuse(plan, THEO_MEMORY, name, "a map of %d x %d x %d (height, width, channels) is too large for this machine", h,
                      w, c);
    return append_tensor(plan, name, (theo_tensor_state){.h = h, .w = w, .c = c, .pitch = pitch, .root = -1, .bytes = bytes});
}

/* Is x a tensor of this plan? What an earlier error left undefined is passed over in silence. */
static bool known(theo_plan *plan, const char *name, const char *what, theo_tensor x) {
    if (plan->error.status != THEO_OK)
        return false;
    if (plan->is_finished) {
        refuse(plan, THEO_INTERNAL, name, "recorded after the plan was finished");
        return false;
    }
    if (x.id >= 0 && x.id < plan->tensor_count) {
        const theo_tensor_state *t = &plan->tensors[x.id];
        if (t->h == x.h && t->w == x.w && t->c == x.c)
            return true;
    }
    refuse(plan, THEO_INTERNAL, name, "its %s is not a tensor of this plan", what);
    return false;
}

/* The op with its output's shape (before pooling: h, w of the argument are those after it). */
static theo_tensor append_op(theo_plan *plan, const char *name, theo_op op, int h, int w, int c) {
    theo_tensor out = new_tensor(plan, name, h, w, c);
    if (out.id < 0)
        return none;
    op.out = out.id;
    op.name = theo_strdup(name);
    if (!op.name || !grow((void **)&plan->ops, plan->op_count, &plan->op_capacity, sizeof *plan->ops)) {
        theo_free(op.name);
        return refuse(plan, THEO_MEMORY, name, "out of memory for a plan");
    }
    plan->ops[plan->op_count++] = op;
    return out;
}

static double map_elements(int h, int w, int c) {
    return (double)h * (double)w * (double)c;
}

/* ---- layers with weights */

/* Checks what can be said of one layer by itself: weights there, for `in` channels, a complete affine. */
static bool fits(theo_plan *plan, const char *name, const theo_packed *weight, int in, theo_epilogue e) {
    if (!weight) {
        refuse(plan, THEO_INTERNAL, name, "has no weights");
        return false;
    }
    if (weight->in_c != in) {
        refuse(plan, THEO_SHAPE, name, "its weights are for %d input channels, its input has %d", weight->in_c, in);
        return false;
    }
    if (!e.scale != !e.shift) {
        refuse(plan, THEO_INTERNAL, name, "has a %s without a %s", e.scale ? "scale" : "shift", e.scale ? "shift" : "scale");
        return false;
    }
    return true;
}

static theo_layer layer_of(const theo_packed *weight, theo_epilogue e) {
    return (theo_layer){
        .weight = weight,
        .epilogue = {.bias = weight->bias, .act = e.act, .scale = e.scale, .shift = e.shift},
        .pool2 = e.pool2,
    };
}

/* The last layer of an op: residual and pooling. h, w: the output's size before pooling. */
static theo_tensor append_layer_op(theo_plan *plan, const char *name, theo_op op, theo_epilogue e, int h, int w) {
    int c = op.layer.weight->out_c;
    op.residual = -1;
    if (e.residual.id >= 0) {
        if (!known(plan, name, "residual", e.residual))
            return none;
        if (e.residual.h != h || e.residual.w != w || e.residual.c != c)
            return refuse(plan, THEO_SHAPE, name,
                          "its residual is %d x %d x %d, its output %d x %d x %d (height, width, channels)", e.residual.h,
                          e.residual.w, e.residual.c, h, w, c);
        op.residual = e.residual.id;
    }
    if (e.pool2 && (h < 2 || w < 2))
        return refuse(plan, THEO_SHAPE, name, "a map of %d x %d is too small for 2x2 pooling", h, w);
    return append_op(plan, name, op, e.pool2 ? h / 2 : h, e.pool2 ? w / 2 : w, c);
}

theo_tensor theo_plan_linear(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *weight, theo_epilogue e) {
    if (!known(plan, name, "input", x) || !fits(plan, name, weight, x.c, e))
        return none;
    if (weight->kernel != 1)
        return refuse(plan, THEO_SHAPE, name, "its weights are %dx%d, a linear layer needs 1x1", weight->kernel, weight->kernel);
    if (e.pool2)
        return refuse(plan, THEO_INTERNAL, name, "a linear layer cannot pool");
    theo_op op = {.kind = THEO_OP_LINEAR, .in = x.id, .layer = layer_of(weight, e), .stride = 1};
    op.flops = 2 * map_elements(x.h, x.w, x.c) * weight->out_c;
    return append_layer_op(plan, name, op, e, x.h, x.w);
}

theo_tensor theo_plan_conv(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *weight, int stride,
                           theo_padding padding, theo_epilogue e) {
    if (!known(plan, name, "input", x) || !fits(plan, name, weight, x.c, e))
        return none;
    int kernel = weight->kernel;
    if (kernel == 1 && stride == 1)
        return theo_plan_linear(plan, name, x, weight, e);
    if (kernel != 3 || stride < 1 || stride > 2)
        return refuse(plan, THEO_UNSUPPORTED, name,
                      "a %dx%d convolution with stride %d; 3x3 with stride 1 or 2 and 1x1 with stride 1 can be done", kernel,
                      kernel, stride);
    theo_op op = {.kind = THEO_OP_CONV, .in = x.id, .layer = layer_of(weight, e), .stride = stride, .padding = padding};
    if (stride != 1 && weight->form != THEO_PACKED_DIRECT)
        return refuse(plan, THEO_UNSUPPORTED, name, "its weights are packed for stride 1, not for stride %d", stride);
    int h = (x.h - 1) / stride + 1, w = (x.w - 1) / stride + 1;
    op.flops = 2 * 9.0 * x.c * map_elements(h, w, weight->out_c);
    return append_layer_op(plan, name, op, e, h, w);
}

theo_tensor theo_plan_conv_conv(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *first, theo_epilogue first_e,
                                const theo_packed *second, theo_epilogue second_e) {
    if (!known(plan, name, "input", x) || !fits(plan, name, first, x.c, first_e) ||
        !fits(plan, name, second, first->out_c, second_e))
        return none;
    if (first->kernel != 3 || second->kernel != 3)
        return refuse(plan, THEO_SHAPE, name, "both convolutions must be 3x3");
    if (first_e.residual.id >= 0 || first_e.pool2)
        return refuse(plan, THEO_INTERNAL, name, "the first convolution of a pair has neither residual nor pooling");
    if (first->form != THEO_PACKED_DIRECT || second->form != THEO_PACKED_WINOGRAD) { /* only these two can be joined */
        char first_name[160];
        snprintf(first_name, sizeof first_name, "%s, first", name);
        theo_tensor between = theo_plan_conv(plan, first_name, x, first, 1, THEO_PAD_ZERO, first_e);
        return theo_plan_conv(plan, name, between, second, 1, THEO_PAD_ZERO, second_e);
    }
    theo_op op = {.kind = THEO_OP_CONV_CONV,
                  .in = x.id,
                  .first = layer_of(first, first_e),
                  .layer = layer_of(second, second_e),
                  .stride = 1};
    op.flops = 2 * 9.0 * first->out_c * (map_elements(x.h, x.w, x.c) + map_elements(x.h, x.w, second->out_c));
    return append_layer_op(plan, name, op, second_e, x.h, x.w);
}

/* ---- the others */

theo_tensor theo_plan_input(theo_plan *plan, const char *name, int h, int w, int c) {
    if (plan->error.status != THEO_OK)
        return none;
    theo_tensor x = new_tensor(plan, name, h, w, c);
    if (x.id >= 0)
        plan->tensors[x.id].is_input = true;
    return x;
}

theo_tensor theo_plan_max_pool2(theo_plan *plan, const char *name, theo_tensor x) {
    if (!known(plan, name, "input", x))
        return none;
    if (x.h < 2 || x.w < 2)
        return refuse(plan, THEO_SHAPE, name, "a map of %d x %d is too small for 2x2 pooling", x.h, x.w);
    theo_op op = {.kind = THEO_OP_MAX_POOL2, .in = x.id, .residual = -1};
    return append_op(plan, name, op, x.h / 2, x.w / 2, x.c);
}

theo_tensor theo_plan_channels(theo_plan *plan, theo_tensor x, int from, int count) {
    if (!known(plan, "channels", "input", x))
        return none;
    if (from < 0 || count < 1 || from > x.c || count > x.c - from)
        return refuse(plan, THEO_SHAPE, "channels", "%d channels from number %d on, of a map that has %d", count, from, x.c);
    theo_tensor_state view = plan->tensors[x.id];
    view.c = count;
    view.from += (size_t)from;
    view.is_input = view.is_output = false;
    view.bytes = 0;
    return append_tensor(plan, "channels", view);
}

theo_tensor theo_plan_cell_softmax(theo_plan *plan, const char *name, theo_tensor logits) {
    if (!known(plan, name, "input", logits))
        return none;
    if (logits.c != CELL_LOGITS)
        return refuse(plan, THEO_SHAPE, name,
                      "its input has %d channels; cells of %d x %d pixels and one for \"no point\" need %d", logits.c, CELL, CELL,
                      CELL_LOGITS);
    if (logits.h > INT_MAX / CELL || logits.w > INT_MAX / CELL)
        return refuse(plan, THEO_MEMORY, name, "a map of %d x %d cells is too large", logits.h, logits.w);
    theo_op op = {.kind = THEO_OP_CELL_SOFTMAX, .in = logits.id, .residual = -1};
    return append_op(plan, name, op, CELL * logits.h, CELL * logits.w, 1);
}

theo_tensor theo_plan_l2_norm(theo_plan *plan, const char *name, theo_tensor x) {
    if (!known(plan, name, "input", x))
        return none;
    theo_op op = {.kind = THEO_OP_L2_NORM, .in = x.id, .residual = -1};
    return append_op(plan, name, op, x.h, x.w, x.c);
}

void theo_plan_output(theo_plan *plan, theo_tensor x) {
    if (known(plan, "output", "argument", x))
        plan->tensors[x.id].is_output = true;
}
