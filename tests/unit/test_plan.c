/* The plan itself, on a backend of the test's own: random networks give the same numbers in the shared arena as with a buffer for
 * each tensor; errors say what is wrong and where; progress, cancelling, times, the report. */
#include "base/error.h"
#include "engine/packed.h"
#include "engine/plan_state.h"
#include "t.h"

/* ---- a backend whose ops mix their input's numbers: any byte that another op overwrote shows */

static void mix(theo_view out, theo_view in, theo_view residual, int salt) {
    size_t in_pixels = (size_t)in.h * (size_t)in.w;
    for (size_t i = 0; i < (size_t)out.h * (size_t)out.w; i++)
        for (int c = 0; c < out.c; c++) {
            const float *pixel = in.data + (i * 7 + (size_t)c) % in_pixels * in.pitch;
            float v = 0.25f * pixel[c % in.c] + 0.5f * pixel[in.c - 1] + (float)(salt + c) * 0.01f;
            if (residual.data)
                v += 0.25f * residual.data[i % ((size_t)residual.h * (size_t)residual.w) * residual.pitch + (size_t)c];
            out.data[i * out.pitch + (size_t)c] = v;
        }
}

static int salt_of(const theo_op *op) {
    return (int)op->kind * 10 + op->stride;
}

static void run_mix(const theo_op *op, const theo_call *call) {
    memset(call->scratch, 0x7f, op->scratch_bytes);
    mix(call->out, call->in, call->residual, salt_of(op));
}

static theo_status prepare_mix(theo_op *op, const theo_call *shapes, theo_cpu level, theo_error *err) {
    (void)level;
    if (shapes->out.h == 13)
        return theo_fail(err, THEO_UNSUPPORTED, NULL, op->name, "13 rows bring bad luck");
    op->method = "mix";
    op->scratch_bytes = 64 * (size_t)shapes->out.c;
    op->run = run_mix;
    return THEO_OK;
}

static const theo_backend mixing = {.name = "mixing", .prepare = prepare_mix};

/* ---- random networks */

enum { MAX_TENSORS = 80 };

static uint32_t state = 7;
static int random_below(int n) {
    state = state * 1664525u + 1013904223u;
    return (int)((uint64_t)state * (uint64_t)n >> 32);
}

typedef struct network {
    theo_plan *plan;
    theo_tensor tensors[MAX_TENSORS];
    int count, outputs[MAX_TENSORS], output_count;
    theo_packed weights[MAX_TENSORS]; /* shapes alone */
} network;

static const theo_packed *weights_for(network *n, int in, int kernel) {
    theo_packed *w = &n->weights[n->count];
    *w = (theo_packed){.form = THEO_PACKED_DIRECT, .in_c = in, .out_c = 1 + random_below(40), .kernel = kernel};
    return w;
}

static theo_tensor random_op(network *n) {
    theo_tensor x = n->tensors[random_below(n->count)];
    theo_epilogue e = theo_epilogue_none();
    switch (random_below(6)) {
    case 0: {
        int from = random_below(x.c);
        return theo_plan_channels(n->plan, x, from, 1 + random_below(x.c - from));
    }
    case 1:
        if (x.h > 1 && x.w > 1)
            return theo_plan_max_pool2(n->plan, "pool", x);
        return theo_plan_l2_norm(n->plan, "norm", x);
    case 2:
        return theo_plan_linear(n->plan, "linear", x, weights_for(n, x.c, 1), e);
    case 3:
        e.pool2 = x.h > 1 && x.w > 1 && random_below(2);
        return theo_plan_conv(n->plan, "conv", x, weights_for(n, x.c, 3), 1, THEO_PAD_ZERO, e);
    case 4: {
        theo_tensor between = theo_plan_conv(n->plan, "conv", x, weights_for(n, x.c, 3), 1, THEO_PAD_REPLICATE, e);
        n->tensors[n->count++] = between;
        theo_packed *w = &n->weights[n->count];
        *w = (theo_packed){.form = THEO_PACKED_DIRECT, .in_c = between.c, .out_c = x.c, .kernel = 3};
        e.residual = x;
        return theo_plan_conv(n->plan, "conv + x", between, w, 1, THEO_PAD_ZERO, e);
    }
    default:
        return theo_plan_conv(n->plan, "conv/2", x, weights_for(n, x.c, 3), 2, THEO_PAD_ZERO, e);
    }
}

static void record_random(network *n, int size) {
    n->tensors[n->count++] = theo_plan_input(n->plan, "a", 1 + random_below(12), 1 + random_below(20), 1 + random_below(40));
    n->tensors[n->count++] = theo_plan_input(n->plan, "b", 1 + random_below(12), 1 + random_below(20), 1 + random_below(3));
    while (n->count < size) {
        theo_tensor made = random_op(n); /* may count one more itself */
        n->tensors[n->count++] = made;
    }
    for (int i = 0; i < n->count; i++)
        if (random_below(8) == 0 || i == n->count - 1) {
            theo_plan_output(n->plan, n->tensors[i]);
            n->outputs[n->output_count++] = i;
        }
}

/* The same ops with a buffer of its own for each tensor. */
static void run_apart(const theo_plan *plan, float **buffers) {
    for (int i = 0; i < plan->op_count; i++) {
        const theo_op *op = &plan->ops[i];
        theo_view views[3];
        int ids[3] = {op->out, op->in, op->residual};
        for (int k = 0; k < 3; k++) {
            views[k] = theo_plan_view(plan, ids[k]);
            views[k].data = ids[k] < 0 ? NULL : buffers[plan->tensors[ids[k]].root] + plan->tensors[ids[k]].from;
        }
        mix(views[0], views[1], views[2], salt_of(op));
    }
}

static int same(theo_view a, const float *b) {
    for (size_t i = 0; i < (size_t)a.h * (size_t)a.w; i++)
        if (memcmp(a.data + i * a.pitch, b + i * a.pitch, sizeof(float) * (size_t)a.c) != 0)
            return 0;
    return 1;
}

static void random_network(int round) {
    network n = {0};
    float *buffers[MAX_TENSORS] = {0};
    theo_error e = {0};
    CHECK(theo_plan_new(&n.plan, THEO_CPU_C, NULL, NULL) == THEO_OK);
    n.plan->backend = &mixing;
    record_random(&n, 4 + random_below(MAX_TENSORS - 8));
    if (theo_plan_finish(n.plan, &e) == THEO_UNSUPPORTED) { /* 13 rows */
        CHECK(strstr(e.message, "bad luck"));
        theo_plan_free(n.plan);
        return;
    }
    CHECK_MSG(e.status == THEO_OK, "round %d: %s", round, e.message);

    void *memory = theo_alloc_aligned(theo_plan_memory_bytes(n.plan));
    theo_plan_bind(n.plan, memory);
    size_t separate = 0;
    for (int i = 0; i < n.plan->tensor_count; i++) {
        separate += (n.plan->tensors[i].bytes + 63) / 64 * 64;
        buffers[i] = theo_alloc(n.plan->tensors[i].bytes / sizeof(float), sizeof(float));
    }
    CHECK(theo_plan_arena_bytes(n.plan) <= separate);
    for (int input = 0; input < 2; input++) {
        theo_view view = theo_plan_view(n.plan, n.tensors[input].id);
        for (size_t k = 0; k < (size_t)view.h * (size_t)view.w * view.pitch; k++)
            view.data[k] = buffers[n.tensors[input].id][k] = (float)random_below(1000) * 0.001f;
    }
    run_apart(n.plan, buffers);
    for (int run = 0; run < 2; run++) { /* the inputs are still there for the second one */
        CHECK(theo_plan_run(n.plan, NULL, NULL, NULL) == THEO_OK);
        for (int i = 0; i < n.output_count; i++) {
            int pitch, id = n.tensors[n.outputs[i]].id;
            const theo_tensor_state *t = &n.plan->tensors[id];
            theo_view view = theo_plan_view(n.plan, id);
            CHECK(theo_plan_data(n.plan, n.tensors[n.outputs[i]], &pitch) == view.data && pitch >= t->c);
            CHECK_MSG(same(view, buffers[t->root] + t->from), "round %d, run %d: tensor %d differs", round, run, id);
        }
    }
    for (int i = 0; i < n.plan->tensor_count; i++)
        theo_free(buffers[i]);
    theo_plan_free(n.plan);
    theo_free_aligned(memory);
}

/* ---- errors */

static theo_packed weight(int out, int in, int kernel) {
    return (theo_packed){.form = THEO_PACKED_WINOGRAD, .out_c = out, .in_c = in, .kernel = kernel};
}

/* Finishes, frees, and compares. */
static void refused(theo_plan *plan, theo_status status, const char *message) {
    theo_error e = {0};
    CHECK(theo_plan_finish(plan, &e) == status);
    CHECK_STR(e.message, message);
    theo_plan_free(plan);
}

static theo_plan *with_input(theo_tensor *x, int h, int w, int c) {
    theo_plan *plan;
    CHECK(theo_plan_new(&plan, THEO_CPU_C, NULL, NULL) == THEO_OK);
    plan->backend = &mixing;
    *x = theo_plan_input(plan, "image", h, w, c);
    return plan;
}

static void errors(void) {
    theo_packed w64_1 = weight(64, 1, 3), w1x1 = weight(8, 64, 1);
    theo_epilogue e = theo_epilogue_none();
    theo_tensor x;

    theo_plan *plan = with_input(&x, 8, 8, 3);
    theo_tensor y = theo_plan_conv(plan, "conv1a", x, &w64_1, 1, THEO_PAD_ZERO, e);
    CHECK(y.id < 0);
    theo_plan_output(plan, theo_plan_linear(plan, "later", y, &w1x1, e)); /* the first error is kept */
    refused(plan, THEO_SHAPE, "conv1a: its weights are for 1 input channels, its input has 3");

    plan = with_input(&x, 8, 8, 1);
    theo_plan_linear(plan, "head", x, &w64_1, e);
    refused(plan, THEO_SHAPE, "head: its weights are 3x3, a linear layer needs 1x1");

    plan = with_input(&x, 8, 8, 1);
    theo_plan_conv(plan, "down", x, &w64_1, 2, THEO_PAD_ZERO, e);
    refused(plan, THEO_UNSUPPORTED, "down: its weights are packed for stride 1, not for stride 2");

    plan = with_input(&x, 8, 8, 1);
    theo_plan_conv(plan, "down", x, &w64_1, 3, THEO_PAD_ZERO, e);
    refused(plan, THEO_UNSUPPORTED,
            "down: a 3x3 convolution with stride 3; 3x3 with stride 1 or 2 and 1x1 with stride 1 can be done");

    plan = with_input(&x, 1, 5, 1);
    theo_plan_max_pool2(plan, "pool", x);
    refused(plan, THEO_SHAPE, "pool: a map of 1 x 5 is too small for 2x2 pooling");

    plan = with_input(&x, 8, 8, 1);
    e.residual = x;
    theo_plan_conv(plan, "add", x, &w64_1, 1, THEO_PAD_ZERO, e);
    refused(plan, THEO_SHAPE, "add: its residual is 8 x 8 x 1, its output 8 x 8 x 64 (height, width, channels)");
    e = theo_epilogue_none();

    plan = with_input(&x, 8, 8, 64);
    theo_plan_cell_softmax(plan, "scores", x);
    refused(plan, THEO_SHAPE, "scores: its input has 64 channels; cells of 8 x 8 pixels and one for \"no point\" need 65");

    plan = with_input(&x, 8, 8, 64);
    theo_plan_channels(plan, x, 60, 5);
    refused(plan, THEO_SHAPE, "channels: 5 channels from number 60 on, of a map that has 64");

    plan = with_input(&x, 0, 8, 1);
    refused(plan, THEO_SHAPE, "image: a map of 0 x 8 x 1 (height, width, channels) is empty");

    plan = with_input(&x, 1 << 20, 1 << 20, 64);
    refused(plan, THEO_MEMORY, "image: a map of 1048576 x 1048576 x 64 (height, width, channels) is too large for this machine");

    plan = with_input(&x, 8, 8, 1);
    theo_plan_l2_norm(plan, "norm", (theo_tensor){.id = 5, .h = 8, .w = 8, .c = 1});
    refused(plan, THEO_INTERNAL, "norm: its input is not a tensor of this plan");

    float scale = 1;
    plan = with_input(&x, 8, 8, 1);
    e.scale = &scale;
    theo_plan_conv(plan, "affine", x, &w64_1, 1, THEO_PAD_ZERO, e);
    refused(plan, THEO_INTERNAL, "affine: has a scale without a shift");

    theo_error err;
    plan = with_input(&x, 8, 8, 1);
    CHECK(theo_plan_run(plan, NULL, NULL, &err) == THEO_INTERNAL);
    CHECK_STR(err.message, "the plan is not finished");
    CHECK(theo_plan_finish(plan, NULL) == THEO_OK);
    CHECK(theo_plan_run(plan, NULL, NULL, &err) == THEO_INTERNAL);
    CHECK_STR(err.message, "the plan is not bound to memory");
    theo_plan_free(plan);
    theo_plan_free(NULL);
}

/* ---- progress, times, report */

typedef struct watch {
    int calls, stop_at;
    double last;
    int fell;
} watch;

static int see(void *user, double done) {
    watch *w = user;
    w->fell += done < w->last || done > 1;
    w->last = done;
    return ++w->calls == w->stop_at;
}

static void progress_and_report(void) {
    theo_packed w1 = weight(64, 1, 3), w2 = weight(80, 64, 3), w3 = weight(65, 80, 1);
    theo_epilogue e = theo_epilogue_none();
    theo_tensor x;
    theo_plan *plan = with_input(&x, 16, 24, 1);
    e.pool2 = true;
    theo_tensor a = theo_plan_conv(plan, "conv1+pool", x, &w1, 1, THEO_PAD_ZERO, e);
    e.pool2 = false;
    theo_tensor b = theo_plan_conv(plan, "conv2", a, &w2, 1, THEO_PAD_ZERO, e);
    theo_tensor c = theo_plan_linear(plan, "head", b, &w3, e);
    theo_plan_output(plan, c);
    CHECK(theo_plan_finish(plan, NULL) == THEO_OK);
    void *memory = theo_alloc_aligned(theo_plan_memory_bytes(plan));
    theo_plan_bind(plan, memory);
    int pitch;
    memset(theo_plan_data(plan, x, &pitch), 0, 16 * 24 * sizeof(float));

    theo_plan_report *report;
    CHECK(theo_plan_describe(&(theo_plan_part){plan, 1}, 1, &report, NULL) == THEO_OK);
    CHECK(report->count == 3 && report->ops[0].last_ms == 0 && report->ops[0].min_ms == 0);
    theo_plan_report_free(report);

    watch w = {0};
    CHECK(theo_plan_run(plan, see, &w, NULL) == THEO_OK);
    CHECK(w.calls == 3 && w.fell == 0);
    CHECK_NEAR(w.last, 1, 1e-12);
    w = (watch){.stop_at = 2};
    theo_error err;
    CHECK(theo_plan_run(plan, see, &w, &err) == THEO_CANCELLED);
    CHECK_STR(err.message, "cancelled after conv2, step 2 of 3");
    CHECK(w.calls == 2);
    CHECK(theo_plan_run(plan, NULL, NULL, NULL) == THEO_OK);

    CHECK(theo_plan_describe(&(theo_plan_part){plan, 1}, 1, &report, NULL) == THEO_OK);
    theo_plan_free(plan); /* the report stands alone */
    theo_free_aligned(memory);
    const theo_op_report *op = &report->ops[0];
    CHECK_STR(op->name, "conv1+pool");
    CHECK_STR(op->kind, "mix");
    CHECK(op->out_shape[0] == 1 && op->out_shape[1] == 8 && op->out_shape[2] == 12 && op->out_shape[3] == 64);
    CHECK(op->in_bytes == 16 * 24 * 4 && op->out_bytes == 8 * 12 * 64 * 4);
    CHECK_NEAR(op->flops, 2.0 * 9 * 64 * 16 * 24, 0);
    CHECK_NEAR(report->flops, op->flops + 2.0 * 9 * 64 * 80 * 8 * 12 + 2.0 * 80 * 65 * 8 * 12, 0);
    CHECK(op->min_ms > 0 && op->last_ms >= op->min_ms);
    CHECK(report->scratch_bytes == 64 * 80); /* the largest op's */
    CHECK(report->arena_bytes >= 16 * 24 * 4 + 8 * 12 * (80 + 80) * 4);
    CHECK(report->ops[2].arena_offset != report->ops[1].arena_offset);
    theo_plan_report_free(report);
}

int main(void) {
    for (int round = 0; round < 300; round++)
        random_network(round);
    errors();
    progress_and_report();
    return t_done("test_plan");
}
