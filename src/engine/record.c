/* record.c - what the model's code calls: shapes are checked, ops are appended, nothing is computed. */
#include "base/error.h"
#include "engine/packed.h"
#include "engine/plan_state.h"
#include <limits.h>
#include <stdio.h>

enum { CELL = 8, CELL_LOGITS = CELL * CELL + 1 };

static const theo_tensor none = {.id = -1};

theo_epilogue theo_epilogue_none(void) {
    return theo_epilogue_add(none);
}

theo_epilogue theo_epilogue_add(theo_tensor residual) {
    return (theo_epilogue){.residual = residual};
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

/* An op that reads `in` alone, so far. */
static theo_op new_op(theo_op_kind kind, theo_tensor in) {
    return (theo_op){.kind = kind,
                     .in = in.id,
                     .residual = -1,
                     .keys = -1,
                     .values = -1,
                     .query_turn = -1,
                     .key_turn = -1,
                     .beside = -1,
                     .stride = 1};
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
    if (e.relu_input)
        return refuse(plan, THEO_INTERNAL, name, "a linear layer has no ReLU on its input");
    theo_op op = new_op(THEO_OP_LINEAR, x);
    op.layer = layer_of(weight, e);
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
    if (e.relu_input && weight->form != THEO_PACKED_WINOGRAD)
        return refuse(plan, THEO_UNSUPPORTED, name, "ReLU on the input needs a Winograd convolution: more input channels");
    theo_op op = new_op(THEO_OP_CONV, x);
    op.layer = layer_of(weight, e);
    op.stride = stride;
    op.padding = padding;
    op.relu_input = e.relu_input;
    if (stride != 1 && weight->form == THEO_PACKED_WINOGRAD)
        return refuse(plan, THEO_UNSUPPORTED, name, "its weights are packed for stride 1, not for stride %d", stride);
    if (e.pool2 && weight->form == THEO_PACKED_GATHERED)
        return refuse(plan, THEO_UNSUPPORTED, name, "pooling needs weights packed by theo_packed_conv");
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
    if (first_e.residual.id >= 0 || first_e.pool2 || first_e.relu_input || second_e.relu_input)
        return refuse(plan, THEO_INTERNAL, name,
                      "of a pair of convolutions, the first has neither residual nor pooling, and none a ReLU on its input");
    if (first->form != THEO_PACKED_DIRECT || second->form != THEO_PACKED_WINOGRAD) { /* only these two can be joined */
        char first_name[160];
        snprintf(first_name, sizeof first_name, "%s, first", name);
        theo_tensor between = theo_plan_conv(plan, first_name, x, first, 1, THEO_PAD_ZERO, first_e);
        return theo_plan_conv(plan, name, between, second, 1, THEO_PAD_ZERO, second_e);
    }
    theo_op op = new_op(THEO_OP_CONV_CONV, x);
    op.first = layer_of(first, first_e);
    op.layer = layer_of(second, second_e);
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
    theo_op op = new_op(THEO_OP_MAX_POOL2, x);
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
    theo_op op = new_op(THEO_OP_CELL_SOFTMAX, logits);
    return append_op(plan, name, op, CELL * logits.h, CELL * logits.w, 1);
}

theo_tensor theo_plan_l2_norm(theo_plan *plan, const char *name, theo_tensor x) {
    if (!known(plan, name, "input", x))
        return none;
    theo_op op = new_op(THEO_OP_L2_NORM, x);
    return append_op(plan, name, op, x.h, x.w, x.c);
}

/* ---- transformers */

theo_tensor theo_plan_rows(theo_plan *plan, theo_tensor x, int from, int h, int w) {
    if (!known(plan, "rows", "input", x))
        return none;
    int rows = x.h * x.w;
    if (from < 0 || h < 1 || w < 1 || from > rows || w > (rows - from) / h)
        return refuse(plan, THEO_SHAPE, "rows", "%d x %d pixels from number %d on, of a map of %d x %d", h, w, from, x.h, x.w);
    theo_tensor_state view = plan->tensors[x.id];
    view.h = h;
    view.w = w;
    view.from += (size_t)from * view.pitch;
    view.is_input = view.is_output = false;
    view.bytes = 0;
    return append_tensor(plan, "rows", view);
}

theo_tensor theo_plan_layer_norm(theo_plan *plan, const char *name, theo_tensor x, const float *gamma, const float *beta,
                                 float eps) {
    if (!known(plan, name, "input", x))
        return none;
    if (!gamma != !beta)
        return refuse(plan, THEO_INTERNAL, name, "has one of gamma and beta");
    theo_op op = new_op(THEO_OP_LAYER_NORM, x);
    op.layer.epilogue = (theo_channel_epilogue){.scale = gamma, .shift = beta};
    op.eps = eps;
    return append_op(plan, name, op, x.h, x.w, x.c);
}

theo_tensor theo_plan_patches(theo_plan *plan, const char *name, theo_tensor x, int size) {
    if (!known(plan, name, "input", x))
        return none;
    if (size < 1 || x.h % size || x.w % size)
        return refuse(plan, THEO_SHAPE, name, "a map of %d x %d is not made of patches of %d x %d", x.h, x.w, size, size);
    int values;
    if (__builtin_mul_overflow(size * size, x.c, &values))
        return refuse(plan, THEO_MEMORY, name, "patches of %d x %d x %d values are too large", size, size, x.c);
    theo_op op = new_op(THEO_OP_PATCHES, x);
    op.size = size;
    return append_op(plan, name, op, x.h / size, x.w / size, values);
}

theo_tensor theo_plan_embed(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *weight, const float *table) {
    theo_epilogue plain = theo_epilogue_none();
    if (!known(plan, name, "input", x) || !fits(plan, name, weight, x.c, plain))
        return none;
    if (weight->kernel != 1 || !table)
        return refuse(plan, THEO_INTERNAL, name, "needs the weights of a linear layer and a table of positions");
    theo_op op = new_op(THEO_OP_EMBED, x);
    op.layer = layer_of(weight, plain);
    op.table = table;
    op.flops = 2 * map_elements(x.h, x.w, x.c) * weight->out_c;
    return append_op(plan, name, op, 1, 1 + x.h * x.w, weight->out_c);
}

/* turns: of the queries and of the keys, or NULL. */
static theo_tensor attention(theo_plan *plan, const char *name, theo_tensor q, theo_tensor k, theo_tensor v, int heads,
                             const theo_tensor *turns) {
    if (!known(plan, name, "query", q) || !known(plan, name, "key", k) || !known(plan, name, "value", v))
        return none;
    if (heads < 1 || q.c % heads || q.c / heads % 16)
        return refuse(plan, THEO_UNSUPPORTED, name, "%d channels in %d heads; a head must have a multiple of 16 channels", q.c,
                      heads);
    if (k.c != q.c || v.c != q.c || k.h != v.h || k.w != v.w)
        return refuse(plan, THEO_SHAPE, name, "queries have %d channels, keys %d x %d x %d, values %d x %d x %d", q.c, k.h, k.w,
                      k.c, v.h, v.w, v.c);
    theo_op op = new_op(THEO_OP_ATTENTION, q);
    op.keys = k.id;
    op.values = v.id;
    op.size = heads;
    for (int i = 0; i < 2 && turns; i++) {
        theo_tensor turned = i ? k : q;
        if (!known(plan, name, i ? "turn of keys" : "turn of queries", turns[i]))
            return none;
        if (turns[i].c != q.c / heads || turns[i].h * turns[i].w != turned.h * turned.w)
            return refuse(plan, THEO_SHAPE, name, "%d x %d x %d turns for %d x %d pixels in heads of %d channels", turns[i].h,
                          turns[i].w, turns[i].c, turned.h, turned.w, q.c / heads);
    }
    op.query_turn = turns ? turns[0].id : -1;
    op.key_turn = turns ? turns[1].id : -1;
    op.flops = 4 * map_elements(q.h, q.w, q.c) * k.h * k.w;
    return append_op(plan, name, op, q.h, q.w, q.c);
}

theo_tensor theo_plan_cross_attention(theo_plan *plan, const char *name, theo_tensor q, theo_tensor k, theo_tensor v, int heads) {
    return attention(plan, name, q, k, v, heads, NULL);
}

theo_tensor theo_plan_rope_attention(theo_plan *plan, const char *name, theo_tensor q, theo_tensor k, theo_tensor v, int heads,
                                     theo_tensor turn_q, theo_tensor turn_k) {
    const theo_tensor turns[] = {turn_q, turn_k};
    return attention(plan, name, q, k, v, heads, turns);
}

theo_tensor theo_plan_attention(theo_plan *plan, const char *name, theo_tensor qkv, int heads) {
    if (!known(plan, name, "input", qkv))
        return none;
    if (qkv.c % 3)
        return refuse(plan, THEO_SHAPE, name, "%d channels are not queries, keys and values", qkv.c);
    int c = qkv.c / 3;
    theo_tensor q = theo_plan_channels(plan, qkv, 0, c), k = theo_plan_channels(plan, qkv, c, c),
                v = theo_plan_channels(plan, qkv, 2 * c, c);
    return theo_plan_cross_attention(plan, name, q, k, v, heads);
}

/* ---- larger maps */

/* Checks that so many times the sides are still whole numbers of this machine. */
static bool can_enlarge(theo_plan *plan, const char *name, theo_tensor x, int times) {
    if (x.h <= INT_MAX / times && x.w <= INT_MAX / times)
        return true;
    refuse(plan, THEO_MEMORY, name, "a map of %d x %d is too large to be enlarged %d times", x.h, x.w, times);
    return false;
}

theo_tensor theo_plan_conv_transpose(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *weight,
                                     theo_epilogue e) {
    if (!known(plan, name, "input", x) || !fits(plan, name, weight, x.c, e) || !can_enlarge(plan, name, x, weight->kernel))
        return none;
    if (weight->phases == 1 || weight->form != THEO_PACKED_LINEAR)
        return refuse(plan, THEO_SHAPE, name, "its weights are %dx%d, not those of a transposed convolution", weight->kernel,
                      weight->kernel);
    if (e.pool2 || e.relu_input)
        return refuse(plan, THEO_INTERNAL, name, "a transposed convolution has neither pooling nor ReLU on its input");
    theo_op op = new_op(THEO_OP_LINEAR, x);
    op.layer = layer_of(weight, e);
    op.flops = 2 * weight->phases * map_elements(x.h, x.w, x.c) * weight->out_c;
    return append_layer_op(plan, name, op, e, weight->kernel * x.h, weight->kernel * x.w);
}

theo_tensor theo_plan_pixel_shuffle2(theo_plan *plan, const char *name, theo_tensor x) {
    if (!known(plan, name, "input", x) || !can_enlarge(plan, name, x, 2))
        return none;
    if (x.c % 4)
        return refuse(plan, THEO_SHAPE, name, "%d channels are not four phases", x.c);
    return append_op(plan, name, new_op(THEO_OP_PIXEL_SHUFFLE2, x), 2 * x.h, 2 * x.w, x.c / 4);
}

theo_tensor theo_plan_upsample2_conv(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *weight,
                                     theo_epilogue e) {
    if (e.residual.id >= 0 || e.pool2)
        return refuse(plan, THEO_INTERNAL, name, "takes neither a residual nor pooling");
    char phases[160];
    snprintf(phases, sizeof phases, "%s, phases", name);
    return theo_plan_pixel_shuffle2(plan, name, theo_plan_conv(plan, phases, x, weight, 1, THEO_PAD_REPLICATE, e));
}

theo_tensor theo_plan_upsample2_corners(theo_plan *plan, const char *name, theo_tensor x, int h, int w, theo_tensor residual) {
    if (!known(plan, name, "input", x) || !can_enlarge(plan, name, x, 2))
        return none;
    if (h > 2 * x.h || w > 2 * x.w)
        return refuse(plan, THEO_SHAPE, name, "%d x %d pixels of a map of %d x %d enlarged twofold", h, w, x.h, x.w);
    theo_op op = new_op(THEO_OP_UPSAMPLE2_CORNERS, x);
    if (residual.id >= 0) {
        if (!known(plan, name, "residual", residual))
            return none;
        if (residual.h != h || residual.w != w || residual.c != x.c)
            return refuse(plan, THEO_SHAPE, name,
                          "its residual is %d x %d x %d, its output %d x %d x %d (height, width, channels)", residual.h,
                          residual.w, residual.c, h, w, x.c);
        op.residual = residual.id;
    }
    return append_op(plan, name, op, h, w, x.c);
}

/* x resized to h x w with `beside` behind it, a convolution, a linear layer. */
static theo_tensor resize_conv_linear(theo_plan *plan, const char *name, theo_op op, int channels, int h, int w,
                                      const theo_packed *conv, theo_epilogue conv_e, const theo_packed *linear,
                                      theo_epilogue linear_e) {
    if (!fits(plan, name, conv, channels, conv_e) || !fits(plan, name, linear, conv->out_c, linear_e))
        return none;
    if (conv->form != THEO_PACKED_WINOGRAD || linear->kernel != 1)
        return refuse(plan, THEO_SHAPE, name, "needs a 3x3 convolution packed for Winograd, then a linear layer");
    if (conv_e.residual.id >= 0 || linear_e.residual.id >= 0 || conv_e.pool2 || linear_e.pool2 || conv_e.relu_input ||
        linear_e.relu_input)
        return refuse(plan, THEO_INTERNAL, name, "takes neither residuals nor pooling nor ReLU on its input");
    op.first = layer_of(conv, conv_e);
    op.layer = layer_of(linear, linear_e);
    op.flops = 2 * map_elements(h, w, conv->out_c) * (9.0 * channels + linear->out_c);
    return append_op(plan, name, op, h, w, linear->out_c);
}

theo_tensor theo_plan_upsample2_corners_conv_linear(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *conv,
                                                    theo_epilogue conv_e, const theo_packed *linear, theo_epilogue linear_e) {
    if (!known(plan, name, "input", x) || !can_enlarge(plan, name, x, 2))
        return none;
    theo_op op = new_op(THEO_OP_RESIZE_CONV_LINEAR, x);
    op.align_corners = true;
    return resize_conv_linear(plan, name, op, x.c, 2 * x.h, 2 * x.w, conv, conv_e, linear, linear_e);
}

theo_tensor theo_plan_resize_conv_linear(theo_plan *plan, const char *name, theo_tensor x, theo_tensor beside,
                                         const theo_packed *conv, theo_epilogue conv_e, const theo_packed *linear,
                                         theo_epilogue linear_e) {
    int channels;
    if (!known(plan, name, "input", x) || !known(plan, name, "map beside it", beside))
        return none;
    if (__builtin_add_overflow(x.c, beside.c, &channels))
        return refuse(plan, THEO_MEMORY, name, "%d and %d channels are too many", x.c, beside.c);
    theo_op op = new_op(THEO_OP_RESIZE_CONV_LINEAR, x);
    op.beside = beside.id;
    op.padding = THEO_PAD_REPLICATE;
    return resize_conv_linear(plan, name, op, channels, beside.h, beside.w, conv, conv_e, linear, linear_e);
}

/* ---- norms over the map, and functions on their own */

theo_tensor theo_plan_group_norm(theo_plan *plan, const char *name, theo_tensor x, int groups, const float *gamma,
                                 const float *beta, float eps, theo_nonlinearity f) {
    if (!known(plan, name, "input", x))
        return none;
    if (groups < 1 || x.c % groups)
        return refuse(plan, THEO_SHAPE, name, "%d channels cannot be cut into %d equal groups", x.c, groups);
    if (!gamma != !beta)
        return refuse(plan, THEO_INTERNAL, name, "has one of gamma and beta");
    theo_op op = new_op(THEO_OP_GROUP_NORM, x);
    op.layer.epilogue = (theo_channel_epilogue){.scale = gamma, .shift = beta};
    op.size = groups;
    op.eps = eps;
    op.f = f;
    return append_op(plan, name, op, x.h, x.w, x.c);
}

theo_tensor theo_plan_nonlinear(theo_plan *plan, const char *name, theo_tensor x, theo_nonlinearity f) {
    if (!known(plan, name, "input", x))
        return none;
    theo_op op = new_op(THEO_OP_NONLINEAR, x);
    op.f = f;
    return append_op(plan, name, op, x.h, x.w, x.c);
}

void theo_plan_output(theo_plan *plan, theo_tensor x) {
    if (known(plan, "output", "argument", x))
        plan->tensors[x.id].is_output = true;
}
