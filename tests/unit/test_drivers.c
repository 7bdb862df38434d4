/* The drivers of GEMM and of the 3x3 convolutions: right against plain loops for odd shapes and every epilogue, and the same bits
 * for any number of threads, any way of giving the input, and any part of the picture that starts on the tiles' grid. */
#include "base/error.h"
#include "engine/conv3x3.h"
#include "engine/linear.h"
#include "t.h"
#include <theo/theo.h>

static uint32_t state = 12345;
static int between(int low, int high) {
    state = state * 1664525u + 1013904223u;
    return low + (int)((state >> 8) % (uint32_t)(high - low + 1));
}
static float uniform(void) {
    return (float)between(-1000000, 1000000) / 1000000.0f;
}
static float *values(size_t n) {
    float *x = theo_alloc_aligned((n + 16) * sizeof(float));
    for (size_t i = 0; i < n; i++)
        x[i] = uniform();
    return x;
}

static const int thread_counts[] = {1, 2, 3, 5};
static theo_pool *pools[4];

/* ---- epilogues */

typedef struct extras {
    theo_activation act;
    float *bias, *scale, *shift, *residual;
} extras;

static extras some_extras(int channels, size_t outputs) {
    static const theo_activation acts[] = {THEO_ACT_NONE, THEO_ACT_RELU, THEO_ACT_GELU};
    extras e = {.act = acts[between(0, 2)]};
    if (between(0, 1))
        e.bias = values((size_t)channels);
    if (between(0, 1)) {
        e.scale = values((size_t)channels);
        e.shift = values((size_t)channels);
    }
    if (between(0, 1))
        e.residual = values(outputs);
    return e;
}

static void free_extras(extras *e) {
    theo_free_aligned(e->bias);
    theo_free_aligned(e->scale);
    theo_free_aligned(e->shift);
    theo_free_aligned(e->residual);
}

static double finished(const extras *e, double y, int channel, size_t at) {
    if (e->bias)
        y += (double)e->bias[channel];
    if (e->act == THEO_ACT_RELU)
        y = y < 0.0 ? 0.0 : y;
    if (e->act == THEO_ACT_GELU)
        y = 0.5 * y * (1.0 + erf(y * sqrt(0.5)));
    if (e->scale)
        y = y * (double)e->scale[channel] + (double)e->shift[channel];
    return e->residual ? y + (double)e->residual[at] : y;
}

/* ---- linear */

static void run_linear(theo_linear_call call, int pool) {
    void *scratch = theo_alloc_aligned(theo_linear_scratch_bytes(call.weight, call.rows, thread_counts[pool]));
    theo_linear_run(&call, pools[pool], scratch);
    theo_free_aligned(scratch);
}

static void test_linear(theo_cpu level) {
    int m = between(1, 60), k = between(1, 2) == 1 ? between(1, 80) : between(250, 600), n = between(1, 100);
    size_t outputs = (size_t)m * (size_t)n;
    extras e = some_extras(n, outputs);
    float *in = values((size_t)m * (size_t)k), *weight = values((size_t)n * (size_t)k), *first = values(outputs),
          *out = values(outputs);
    theo_packed *packed;
    CHECK(theo_packed_linear(&packed, level, n, k, weight, e.bias, NULL) == THEO_OK);
    theo_linear_call call = {.weight = packed,
                             .rows = m,
                             .in = in,
                             .in_pitch = (size_t)k,
                             .out = first,
                             .out_pitch = (size_t)n,
                             .act = e.act,
                             .scale = e.scale,
                             .shift = e.shift,
                             .residual = e.residual,
                             .residual_pitch = (size_t)n};
    run_linear(call, 0);
    double worst = 0.0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0.0;
            for (int z = 0; z < k; z++)
                sum += (double)in[i * k + z] * (double)weight[j * k + z];
            worst = fmax(worst, fabs((double)first[i * n + j] - finished(&e, sum, j, (size_t)(i * n + j))));
        }
    CHECK_MSG(worst < 1e-4, "%d x %d -> %d: off by %g", m, k, n, worst);

    call.out = out;
    for (int p = 1; p < 4; p++) {
        memset(out, 0, outputs * sizeof(float));
        run_linear(call, p);
        CHECK_MSG(memcmp(out, first, outputs * sizeof(float)) == 0, "%d x %d -> %d differs on %d threads", m, k, n,
                  thread_counts[p]);
    }
    /* The second half of the rows alone. */
    call.rows = m - m / 2;
    call.in = in + m / 2 * k;
    call.residual = e.residual ? e.residual + m / 2 * n : NULL;
    run_linear(call, 0);
    CHECK_MSG(memcmp(out, first + m / 2 * n, (size_t)(call.rows * n) * sizeof(float)) == 0, "half of the rows differ");

    theo_packed_free(packed);
    theo_free_aligned(in);
    theo_free_aligned(weight);
    theo_free_aligned(first);
    theo_free_aligned(out);
    free_extras(&e);
}

/* ---- 3x3 */

static void run_conv(theo_conv3x3_call call, int pool) {
    void *scratch = theo_alloc_aligned(theo_conv3x3_scratch_bytes(&call, thread_counts[pool]));
    theo_conv3x3_run(&call, pools[pool], scratch);
    theo_free_aligned(scratch);
}

static double conv_at(const theo_conv3x3_call *c, const float *weight, int y, int x, int o) {
    double sum = 0.0;
    int in_c = c->weight->in_c;
    for (int i = 0; i < 9; i++) {
        int py = y * c->stride + i / 3 - 1, px = x * c->stride + i % 3 - 1;
        bool inside = py >= 0 && px >= 0 && py < c->h && px < c->w;
        if (!inside && c->padding == THEO_PAD_ZERO)
            continue;
        py = py < 0 ? 0 : py >= c->h ? c->h - 1 : py;
        px = px < 0 ? 0 : px >= c->w ? c->w - 1 : px;
        for (int z = 0; z < in_c; z++) {
            float value = c->in[(size_t)py * c->in_row + (size_t)px * c->in_pixel + (size_t)z];
            sum += (double)(c->relu_input && value < 0.0f ? 0.0f : value) * (double)weight[(o * in_c + z) * 9 + i];
        }
    }
    return sum;
}

/* Largest difference from plain loops, or -1 where pooling differs from pooling the unpooled values. */
static double conv_error(const theo_conv3x3_call *c, const extras *e, const float *weight) {
    int out_h = (c->h - 1) / c->stride + 1, out_w = (c->w - 1) / c->stride + 1, channels = c->weight->out_c,
        side = c->pool2 ? 2 : 1;
    double worst = 0.0;
    for (int y = 0; y < out_h / side; y++)
        for (int x = 0; x < out_w / side; x++)
            for (int o = 0; o < channels; o++) {
                double best = -1e30;
                for (int i = 0; i < side * side; i++) {
                    int py = y * side + i / side, px = x * side + i % side;
                    best = fmax(best, finished(e, conv_at(c, weight, py, px, o), o, (size_t)((py * out_w + px) * channels + o)));
                }
                double got = (double)c->out[(size_t)y * c->out_row + (size_t)x * c->out_pixel + (size_t)o];
                worst = fmax(worst, fabs(got - best));
            }
    return worst;
}

/* A theo_region_fn that copies from a call's input. */
static void copy_region(const void *context, int y0, int y1, int x0, int x1, float *out, size_t row, size_t pixel) {
    const theo_conv3x3_call *c = context;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            bool inside = y >= 0 && x >= 0 && y < c->h && x < c->w;
            for (int z = 0; z < c->weight->in_c; z++)
                out[(size_t)(y - y0) * row + (size_t)(x - x0) * pixel + (size_t)z] =
                    inside ? c->in[(size_t)y * c->in_row + (size_t)x * c->in_pixel + (size_t)z] : 0.0f;
        }
}

static void test_conv(theo_cpu level, int in_c) {
    int out_c = between(1, 70), h = between(1, 21), w = between(1, 37);
    size_t pixels = (size_t)h * (size_t)w, outputs = pixels * (size_t)out_c;
    extras e = some_extras(out_c, outputs);
    float *in = values(pixels * (size_t)in_c), *weight = values((size_t)(out_c * in_c * 9)), *first = values(outputs),
          *out = values(outputs);
    theo_packed *packed;
    CHECK(theo_packed_conv(&packed, level, out_c, in_c, 3, weight, e.bias, NULL) == THEO_OK);
    bool winograd = packed->form == THEO_PACKED_WINOGRAD;
    if (!winograd && e.act == THEO_ACT_GELU)
        e.act = THEO_ACT_RELU;
    theo_conv3x3_call call = {.weight = packed,
                              .h = h,
                              .w = w,
                              .stride = winograd ? 1 : between(1, 2),
                              .padding = between(0, 1) ? THEO_PAD_ZERO : THEO_PAD_REPLICATE,
                              .relu_input = winograd && between(0, 3) == 0,
                              .in = in,
                              .in_row = (size_t)(w * in_c),
                              .in_pixel = (size_t)in_c,
                              .act = e.act,
                              .scale = e.scale,
                              .shift = e.shift,
                              .pool2 = between(0, 1) == 1,
                              .out = first,
                              .out_pixel = (size_t)out_c};
    int out_w = (w - 1) / call.stride + 1, out_h = (h - 1) / call.stride + 1, side = call.pool2 ? 2 : 1;
    call.residual = e.residual;
    call.residual_row = (size_t)(out_w * out_c);
    call.residual_pixel = (size_t)out_c;
    call.out_row = (size_t)(out_w / side * out_c);
    size_t written = (size_t)(out_h / side * (out_w / side) * out_c) * sizeof(float);
    run_conv(call, 0);
    double worst = conv_error(&call, &e, weight);
    CHECK_MSG(worst < 1e-4, "%d -> %d @ %dx%d: off by %g", in_c, out_c, w, h, worst);

    call.out = out;
    for (int p = 1; p < 4; p++) {
        memset(out, 0, written);
        run_conv(call, p);
        CHECK_MSG(memcmp(out, first, written) == 0, "%d -> %d @ %dx%d differs on %d threads", in_c, out_c, w, h,
                  thread_counts[p]);
    }
    if (winograd && call.padding == THEO_PAD_ZERO) {
        theo_conv3x3_call made = call;
        made.region = copy_region;
        made.region_context = &call;
        memset(out, 0, written);
        run_conv(made, 1);
        CHECK_MSG(memcmp(out, first, written) == 0, "%d -> %d @ %dx%d differs with a made input", in_c, out_c, w, h);
    }
    theo_packed_free(packed);
    theo_free_aligned(in);
    theo_free_aligned(weight);
    theo_free_aligned(first);
    theo_free_aligned(out);
    free_extras(&e);
}

/* A part of a picture, cut along the grid of tiles: inside of its border of one pixel it has the bits of the whole. */
static void test_part(theo_cpu level) {
    enum { C = 24, O = 40, H = 40, W = 56, Y = 8, X = 12, PART_H = 20, PART_W = 28 };
    float *in = values(H * W * C), *weight = values(O * C * 9), *whole = values(H * W * O), *part = values(PART_H * PART_W * O);
    theo_packed *packed;
    CHECK(theo_packed_conv(&packed, level, O, C, 3, weight, NULL, NULL) == THEO_OK);
    theo_conv3x3_call call = {.weight = packed,
                              .h = H,
                              .w = W,
                              .stride = 1,
                              .in = in,
                              .in_row = W * C,
                              .in_pixel = C,
                              .act = THEO_ACT_RELU,
                              .out = whole,
                              .out_row = W * O,
                              .out_pixel = O};
    run_conv(call, 1);
    call.in = in + (Y * W + X) * C;
    call.h = PART_H;
    call.w = PART_W;
    call.out = part;
    call.out_row = PART_W * O;
    run_conv(call, 2);
    int differing = 0;
    for (int y = 1; y < PART_H - 1; y++)
        for (int x = 1; x < PART_W - 1; x++)
            differing += memcmp(part + (y * PART_W + x) * O, whole + ((Y + y) * W + X + x) * O, O * sizeof(float)) != 0;
    CHECK_MSG(differing == 0, "%d pixels of a part differ", differing);
    theo_packed_free(packed);
    theo_free_aligned(in);
    theo_free_aligned(weight);
    theo_free_aligned(whole);
    theo_free_aligned(part);
}

static void test_refusals(void) {
    theo_packed *packed;
    theo_error error;
    float weight[25] = {0};
    CHECK(theo_packed_conv(&packed, THEO_CPU_C, 1, 1, 5, weight, NULL, &error) == THEO_UNSUPPORTED && !packed);
    CHECK(theo_packed_conv(&packed, THEO_CPU_C, 0, 1, 3, weight, NULL, &error) == THEO_SHAPE && !packed);
    CHECK(theo_packed_linear(&packed, THEO_CPU_C, 1, 0, weight, NULL, &error) == THEO_SHAPE && !packed);
}

int main(void) {
    for (int i = 1; i < 4; i++)
        CHECK(theo_pool_open(&pools[i], thread_counts[i], NULL) == THEO_OK);
    for (theo_cpu level = THEO_CPU_C; level < THEO_CPU_COUNT; level++) {
        if (!theo_cpu_supported(level) || theo_kernels_for(level)->level != level)
            continue;
        for (int i = 0; i < 12; i++) {
            test_linear(level);
            test_conv(level, between(1, 7));
            test_conv(level, between(8, 50));
        }
        test_conv(level, 150); /* more than one slice of input channels */
        test_part(level);
    }
    test_refusals();
    for (int i = 1; i < 4; i++)
        theo_pool_close(pools[i]);
    return t_done("test_drivers");
}
