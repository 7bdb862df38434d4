/* A small network of every op through the plan and the CPU's drivers: against plain loops in double, at every CPU level of this
 * machine; bit-equal on 1, 2, 3 and 5 threads; no allocation once it runs; two plans on one pool at once. */
#include "base/error.h"
#include "engine/plan.h"
#include "kernels/kernels.h"
#include "t.h"
#include <pthread.h>

enum { C1 = 24, C2 = 40, LOGITS = 65, DIM = 33 };

static uint32_t state = 3;
static float random_float(void) { /* in (-1, 1) */
    state = state * 1664525u + 1013904223u;
    return (float)(int32_t)state * 0x1p-31f;
}

static float *random_floats(size_t n, float scale) {
    float *x = theo_alloc(n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = scale * random_float();
    return x;
}

/* ---- the network's weights */

typedef struct layer {
    int out, in, kernel;
    float *weight, *bias, *scale, *shift; /* OIHW */
    theo_packed *packed;
} layer;

static layer make_layer(int out, int in, int kernel, bool affine) {
    size_t fan = (size_t)in * (size_t)kernel * (size_t)kernel;
    layer l = {.out = out, .in = in, .kernel = kernel};
    l.weight = random_floats((size_t)out * fan, 1.7f / sqrtf((float)fan));
    l.bias = random_floats((size_t)out, 0.3f);
    if (affine) {
        l.scale = random_floats((size_t)out, 1.5f);
        l.shift = random_floats((size_t)out, 0.5f);
    }
    return l;
}

static void pack(layer *l, theo_cpu level) {
    theo_packed_free(l->packed);
    CHECK(theo_packed_conv(&l->packed, level, l->out, l->in, l->kernel, l->weight, l->bias, NULL) == THEO_OK);
}

static void free_layer(layer *l) {
    theo_packed_free(l->packed);
    theo_free(l->weight);
    theo_free(l->bias);
    theo_free(l->scale);
    theo_free(l->shift);
}

enum { FIRST, SECOND, DOWN, WIDE, SAME, HEADS, DETECTOR, DESCRIPTOR, LAYERS };

static layer layers[LAYERS];

/* ---- in double, one map after the other */

typedef struct map {
    int h, w, c;
    double *at;
} map;

static map new_map(int h, int w, int c) {
    return (map){h, w, c, theo_alloc((size_t)h * (size_t)w * (size_t)c, sizeof(double))};
}

static double *pixel(map m, int y, int x) {
    return m.at + ((size_t)y * (size_t)m.w + (size_t)x) * (size_t)m.c;
}

static map convolve(map in, const layer *l, int stride, theo_padding padding, bool relu, const map *residual) {
    map out = new_map((in.h - 1) / stride + 1, (in.w - 1) / stride + 1, l->out);
    int k = l->kernel, r = k / 2;
    for (int y = 0; y < out.h; y++)
        for (int x = 0; x < out.w; x++)
            for (int o = 0; o < l->out; o++) {
                double sum = l->bias[o];
                for (int ky = 0; ky < k; ky++)
                    for (int kx = 0; kx < k; kx++) {
                        int sy = y * stride + ky - r, sx = x * stride + kx - r;
                        bool outside = sy < 0 || sx < 0 || sy >= in.h || sx >= in.w;
                        if (outside && padding == THEO_PAD_ZERO)
                            continue;
                        sy = sy < 0 ? 0 : sy >= in.h ? in.h - 1 : sy;
                        sx = sx < 0 ? 0 : sx >= in.w ? in.w - 1 : sx;
                        for (int i = 0; i < l->in; i++)
                            sum += pixel(in, sy, sx)[i] * (double)l->weight[((o * l->in + i) * k + ky) * k + kx];
                    }
                if (relu && sum < 0)
                    sum = 0;
                if (l->scale)
                    sum = sum * l->scale[o] + l->shift[o];
                pixel(out, y, x)[o] = sum + (residual ? pixel(*residual, y, x)[o] : 0);
            }
    return out;
}

static map pooled(map in) {
    map out = new_map(in.h / 2, in.w / 2, in.c);
    for (int y = 0; y < out.h; y++)
        for (int x = 0; x < out.w; x++)
            for (int c = 0; c < in.c; c++)
                pixel(out, y, x)[c] = fmax(fmax(pixel(in, 2 * y, 2 * x)[c], pixel(in, 2 * y, 2 * x + 1)[c]),
                                           fmax(pixel(in, 2 * y + 1, 2 * x)[c], pixel(in, 2 * y + 1, 2 * x + 1)[c]));
    return out;
}

static map channels(map in, int from, int count) {
    map out = new_map(in.h, in.w, count);
    for (int y = 0; y < in.h; y++)
        for (int x = 0; x < in.w; x++)
            memcpy(pixel(out, y, x), pixel(in, y, x) + from, (size_t)count * sizeof(double));
    return out;
}

static map cells(map in) {
    map out = new_map(8 * in.h, 8 * in.w, 1);
    for (int y = 0; y < in.h; y++)
        for (int x = 0; x < in.w; x++) {
            double sum = 0;
            for (int k = 0; k < LOGITS; k++)
                sum += exp(pixel(in, y, x)[k]);
            for (int k = 0; k < LOGITS - 1; k++)
                *pixel(out, 8 * y + k / 8, 8 * x + k % 8) = exp(pixel(in, y, x)[k]) / sum;
        }
    return out;
}

static map normalised(map in) {
    map out = new_map(in.h, in.w, in.c);
    for (int i = 0; i < in.h * in.w; i++) {
        double sum = 0;
        for (int c = 0; c < in.c; c++)
            sum += in.at[i * in.c + c] * in.at[i * in.c + c];
        for (int c = 0; c < in.c; c++)
            out.at[i * in.c + c] = in.at[i * in.c + c] / fmax(sqrt(sum), 1e-12);
    }
    return out;
}

enum { SCORES, DESCRIPTORS, HALF, OUTPUTS };

static void reference(map plane, map out[OUTPUTS]) {
    map m[12];
    m[0] = convolve(plane, &layers[FIRST], 1, THEO_PAD_ZERO, true, NULL);
    m[1] = convolve(m[0], &layers[SECOND], 1, THEO_PAD_ZERO, true, NULL);
    m[2] = pooled(m[1]);
    m[3] = convolve(m[2], &layers[WIDE], 1, THEO_PAD_REPLICATE, true, NULL);
    m[4] = convolve(m[3], &layers[SAME], 1, THEO_PAD_ZERO, true, &m[3]);
    m[5] = pooled(m[4]);
    m[6] = convolve(m[5], &layers[HEADS], 1, THEO_PAD_ZERO, true, NULL);
    m[7] = channels(m[6], 0, C1);
    m[8] = channels(m[6], C1, C2);
    m[9] = convolve(m[7], &layers[DETECTOR], 1, THEO_PAD_ZERO, false, NULL);
    m[10] = convolve(m[8], &layers[DESCRIPTOR], 1, THEO_PAD_ZERO, false, NULL);
    m[11] = convolve(plane, &layers[DOWN], 2, THEO_PAD_ZERO, true, NULL);
    out[SCORES] = cells(m[9]);
    out[DESCRIPTORS] = normalised(m[10]);
    out[HALF] = pooled(m[11]);
    for (int i = 0; i < 12; i++)
        theo_free(m[i].at);
}

/* ---- the same as a plan */

typedef struct network {
    theo_plan *plan;
    void *memory;
    theo_tensor plane, outputs[OUTPUTS];
} network;

static theo_epilogue after(const layer *l, bool pool) {
    theo_epilogue e = theo_epilogue_none();
    e.act = THEO_ACT_RELU;
    e.scale = l->scale;
    e.shift = l->shift;
    e.pool2 = pool;
    return e;
}

static network new_network(theo_cpu level, theo_pool *pool, map plane) {
    network n;
    theo_error e = {0};
    CHECK(theo_plan_new(&n.plan, level, pool, NULL) == THEO_OK);
    theo_plan *p = n.plan;
    n.plane = theo_plan_input(p, "plane", plane.h, plane.w, plane.c);
    theo_tensor x = theo_plan_conv_conv(p, "first+second+pool", n.plane, layers[FIRST].packed, after(&layers[FIRST], false),
                                        layers[SECOND].packed, after(&layers[SECOND], true));
    x = theo_plan_conv(p, "wide", x, layers[WIDE].packed, 1, THEO_PAD_REPLICATE, after(&layers[WIDE], false));
    theo_epilogue add = after(&layers[SAME], true);
    add.residual = x;
    x = theo_plan_conv(p, "same+wide+pool", x, layers[SAME].packed, 1, THEO_PAD_ZERO, add);
    x = theo_plan_conv(p, "heads", x, layers[HEADS].packed, 1, THEO_PAD_ZERO, after(&layers[HEADS], false));
    theo_tensor logits =
        theo_plan_linear(p, "detector", theo_plan_channels(p, x, 0, C1), layers[DETECTOR].packed, theo_epilogue_none());
    theo_tensor raw =
        theo_plan_linear(p, "descriptor", theo_plan_channels(p, x, C1, C2), layers[DESCRIPTOR].packed, theo_epilogue_none());
    n.outputs[SCORES] = theo_plan_cell_softmax(p, "scores", logits);
    n.outputs[DESCRIPTORS] = theo_plan_l2_norm(p, "norm", raw);
    theo_tensor down = theo_plan_conv(p, "down", n.plane, layers[DOWN].packed, 2, THEO_PAD_ZERO, after(&layers[DOWN], false));
    n.outputs[HALF] = theo_plan_max_pool2(p, "pool", down);
    for (int i = 0; i < OUTPUTS; i++)
        theo_plan_output(p, n.outputs[i]);
    CHECK_MSG(theo_plan_finish(p, &e) == THEO_OK, "%s", e.message);
    n.memory = theo_alloc_aligned(theo_plan_memory_bytes(p));
    memset(n.memory, 0xff, theo_plan_memory_bytes(p)); /* NaN: what is read before it is written shows */
    theo_plan_bind(p, n.memory);
    int pitch;
    float *at = theo_plan_data(p, n.plane, &pitch);
    for (size_t i = 0; i < (size_t)plane.h * (size_t)plane.w; i++)
        for (int c = 0; c < plane.c; c++)
            at[i * (size_t)pitch + (size_t)c] = (float)plane.at[i * (size_t)plane.c + (size_t)c];
    return n;
}

static void free_network(network *n) {
    theo_plan_free(n->plan);
    theo_free_aligned(n->memory);
}

static void compare(network *n, const map want[OUTPUTS], const char *where) {
    static const char *const names[] = {"scores", "descriptors", "half"};
    for (int i = 0; i < OUTPUTS; i++) {
        int pitch;
        const float *got = theo_plan_data(n->plan, n->outputs[i], &pitch);
        double worst = 0, squares = 0;
        size_t pixels = (size_t)want[i].h * (size_t)want[i].w, c = (size_t)want[i].c;
        CHECK(n->outputs[i].h == want[i].h && n->outputs[i].w == want[i].w && n->outputs[i].c == want[i].c);
        for (size_t k = 0; k < pixels * c; k++) {
            double error = fabs((double)got[k / c * (size_t)pitch + k % c] - want[i].at[k]);
            worst = error <= worst ? worst : error; /* NaN stays */
            squares += want[i].at[k] * want[i].at[k];
        }
        double rms = sqrt(squares / (double)(pixels * c));
        CHECK_MSG(worst <= 3e-5 * rms, "%s, %s: largest error %.3g, rms of the values %.3g", where, names[i], worst, rms);
    }
}

static bool bit_equal(network *a, network *b) {
    for (int i = 0; i < OUTPUTS; i++) {
        int pitch;
        const float *x = theo_plan_data(a->plan, a->outputs[i], &pitch), *y = theo_plan_data(b->plan, b->outputs[i], &pitch);
        for (int k = 0; k < a->outputs[i].h * a->outputs[i].w; k++)
            if (memcmp(x + (size_t)k * (size_t)pitch, y + (size_t)k * (size_t)pitch, (size_t)a->outputs[i].c * sizeof(float)) !=
                0)
                return false;
    }
    return true;
}

static void *run_often(void *argument) {
    network *n = argument;
    bool good = true;
    for (int i = 0; i < 10; i++)
        good &= theo_plan_run(n->plan, NULL, NULL, NULL) == THEO_OK;
    return good ? n : NULL;
}

static void two_at_once(theo_cpu level, map plane, network *want) {
    theo_pool *pool;
    CHECK(theo_pool_open(&pool, 2, NULL) == THEO_OK);
    network a = new_network(level, pool, plane), b = new_network(level, pool, plane);
    theo_pool_close(pool); /* the plans hold it */
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run_often, &a) == 0);
    CHECK(run_often(&b) != NULL);
    void *good = NULL;
    pthread_join(thread, &good);
    CHECK(good != NULL && bit_equal(&a, want) && bit_equal(&b, want));
    free_network(&a);
    free_network(&b);
}

static void at_level(theo_cpu level, int h, int w) {
    for (int i = 0; i < LAYERS; i++)
        pack(&layers[i], level);
    map plane = new_map(h, w, 1), want[OUTPUTS];
    for (int i = 0; i < h * w; i++)
        plane.at[i] = random_float();
    reference(plane, want);

    network one = new_network(level, NULL, plane);
    CHECK(theo_plan_run(one.plan, NULL, NULL, NULL) == THEO_OK);
    char where[64];
    snprintf(where, sizeof where, "%s, %d x %d", theo_cpu_name(level), h, w);
    compare(&one, want, where);

    int threads[] = {1, 2, 3, 5};
    for (int i = 0; i < 4; i++) {
        theo_pool *pool;
        CHECK(theo_pool_open(&pool, threads[i], NULL) == THEO_OK);
        network n = new_network(level, pool, plane);
        CHECK(theo_plan_run(n.plan, NULL, NULL, NULL) == THEO_OK);
        CHECK_MSG(bit_equal(&one, &n), "%s: other bits on %d threads", where, threads[i]);
        if (threads[i] == 2) {
            uint64_t before = theo_allocation_count();
            int runs = h * w < 100 ? 100 : 5;
            for (int run = 0; run < runs; run++)
                theo_plan_run(n.plan, NULL, NULL, NULL);
            CHECK(theo_allocation_count() == before);
            CHECK_MSG(bit_equal(&one, &n), "%s: other bits after %d runs", where, runs);
        }
        free_network(&n);
        theo_pool_close(pool);
    }
    if (level != THEO_CPU_C)
        two_at_once(level, plane, &one);
    free_network(&one);
    theo_free(plane.at);
    for (int i = 0; i < OUTPUTS; i++)
        theo_free(want[i].at);
}

int main(void) {
    layers[FIRST] = make_layer(C1, 1, 3, true);
    layers[SECOND] = make_layer(C1, C1, 3, false);
    layers[DOWN] = make_layer(C1, 1, 3, false);
    layers[WIDE] = make_layer(C2, C1, 3, true);
    layers[SAME] = make_layer(C2, C2, 3, true);
    layers[HEADS] = make_layer(C1 + C2, C2, 3, false);
    layers[DETECTOR] = make_layer(LOGITS, C1, 1, false);
    layers[DESCRIPTOR] = make_layer(DIM, C2, 1, false);
    for (int level = 0; level < THEO_CPU_COUNT; level++)
        if (theo_cpu_supported((theo_cpu)level) && theo_kernels_for((theo_cpu)level)->level == (theo_cpu)level) {
            at_level((theo_cpu)level, 45, 62);
            at_level((theo_cpu)level, 4, 5);
            at_level((theo_cpu)level, 32, 48);
        }
    for (int i = 0; i < LAYERS; i++)
        free_layer(&layers[i]);
    return t_done("test_plan_cpu");
}
