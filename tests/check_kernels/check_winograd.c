/* Winograd's transforms; timed through the driver, as networks use them. */
#include "base/error.h"
#include "check.h"
#include "engine/conv3x3.h"
#include <math.h>
#include <stdio.h>

enum { SIDE = THEO_WINOGRAD_TILE + 2, POSITIONS = THEO_WINOGRAD_POSITIONS };

static void prove_input_one(check *c, check_kind kind) {
    theo_winograd_input t = {.channels = check_between(c, 1, 70), .relu = check_chance(c, 0.3)};
    size_t channels = (size_t)t.channels, chunks = (channels + 15) / 16;
    t.pixel = channels + (size_t)(check_chance(c, 0.3) ? 3 : 0);
    t.row = SIDE * t.pixel + (size_t)check_between(c, 0, 3);
    size_t in_n = (SIDE - 1) * (t.row + t.pixel) + channels;
    t.in = check_values(c, kind, in_n);
    t.chunk = 16 * (size_t)check_between(c, 1, 3); /* what lies between two chunks is another row's */
    t.position = (chunks - 1) * t.chunk + 16 + 16 * (size_t)check_between(c, 0, 2);
    size_t n = (POSITIONS - 1) * t.position + (chunks - 1) * t.chunk + 16;
    float *want = check_floats(c, n), *got = check_floats(c, n), *bound = check_floats(c, n);
    t.v = want;
    c->c->winograd->input(&t);
    t.v = got;
    c->k->winograd->input(&t);
    /* A value is a sum of 36 pixels, each times up to 2.5^2. */
    for (size_t i = 0; i < n; i++) {
        size_t channel = i % t.position / t.chunk * 16 + i % t.position % t.chunk;
        float sum = 0.0f;
        for (size_t p = 0; p < POSITIONS && channel < channels; p++)
            sum += fabsf(t.in[p / SIDE * t.row + p % SIDE * t.pixel + channel]);
        bound[i] = 6.25f * 8.0f * (sum * 0x1p-24f + 36.0f * 0x1p-149f);
    }
    check_compare(c, "V", got, want, bound, n);
    check_end(c, "%d channels, pixel %zu, row %zu%s", t.channels, t.pixel, t.row, t.relu ? ", relu" : "");
}

static void prove_input(check *c) {
    for (int i = 0; i < 200; i++)
        prove_input_one(c, i % 3 ? CHECK_NORMAL : CHECK_NASTY);
}

/* Runs a level's output transform on m given as [36][tiles][channels]: nr differs between levels. */
static void output(check *c, const theo_kernels *k, const theo_winograd_output *job, const float *m, float *out) {
    size_t nr = (size_t)k->gemm->nr, tiles = ((size_t)job->w + 3) / 4, channels = (size_t)job->channels;
    theo_winograd_output o = *job;
    o.position = tiles * nr + 16;
    float *wide = check_floats(c, (POSITIONS - 1) * o.position + tiles * nr);
    for (size_t p = 0; p < POSITIONS; p++)
        for (size_t t = 0; t < tiles; t++)
            for (size_t i = 0; i < channels; i++)
                wide[p * o.position + t * nr + i] = m[(p * tiles + t) * channels + i];
    o.m = wide;
    o.out = out;
    k->winograd->output(&o);
}

static void prove_output_one(check *c, check_kind kind) {
    int width = c->k->gemm->nr < c->c->gemm->nr ? c->k->gemm->nr : c->c->gemm->nr;
    theo_winograd_output o = {
        .channels = check_chance(c, 0.5) ? width : check_between(c, 1, width),
        .h = check_chance(c, 0.5) ? 4 : check_between(c, 1, 4),
        .w = check_chance(c, 0.5) ? 4 * check_between(c, 1, 4) : check_between(c, 1, 16),
        .pool2 = check_chance(c, 0.4),
    };
    static const theo_activation acts[] = {THEO_ACT_NONE, THEO_ACT_RELU, THEO_ACT_RELU, THEO_ACT_GELU};
    o.epilogue.act = acts[check_between(c, 0, 3)];
    size_t channels = (size_t)o.channels, tiles = ((size_t)o.w + 3) / 4;
    if (check_chance(c, 0.7))
        o.epilogue.bias = check_values(c, kind, channels);
    if (check_chance(c, 0.4)) {
        o.epilogue.scale = check_values(c, CHECK_NORMAL, channels);
        o.epilogue.shift = check_values(c, kind, channels);
    }
    o.out_pixel = channels + (check_chance(c, 0.3) ? 5 : 0);
    o.out_row = o.out_pixel * (size_t)o.w + (size_t)check_between(c, 0, 2);
    o.stream = check_chance(c, 0.3);
    if (o.stream) { /* whole cache lines, which check_floats gives when sizes are whole lines */
        o.out_pixel = (channels + 15) / 16 * 16;
        o.out_row = o.out_pixel * (size_t)o.w;
    }
    o.residual_pixel = channels;
    o.residual_row = channels * (size_t)o.w;
    if (check_chance(c, 0.3))
        o.residual = check_values(c, kind, (size_t)o.h * o.residual_row);
    float *m = check_values(c, kind, POSITIONS * tiles * channels);

    size_t n = (size_t)o.h * o.out_row;
    float *want = check_floats(c, n), *got = check_floats(c, n);
    output(c, c->c, &o, m, want);
    output(c, c->k, &o, m, got);
    /* A value is a sum of 36, each times up to b^6 = 8. One bound for all: the largest. */
    float largest = 0.0f, most = 1.0f;
    for (size_t i = 0; i < tiles * channels; i++) {
        float sum = o.epilogue.bias ? fabsf(o.epilogue.bias[i % channels]) : 0.0f;
        for (size_t p = 0; p < POSITIONS; p++)
            sum += fabsf(m[p * tiles * channels + i]);
        largest = fmaxf(largest, 8.0f * sum);
    }
    for (size_t i = 0; o.epilogue.scale && i < channels; i++) {
        most = fmaxf(most, fabsf(o.epilogue.scale[i]));
        largest = fmaxf(largest, fabsf(o.epilogue.shift[i]));
    }
    for (size_t i = 0; o.residual && i < (size_t)o.h * o.residual_row; i++)
        largest = fmaxf(largest, fabsf(o.residual[i]));
    float *bound = check_floats(c, n);
    for (size_t i = 0; i < n; i++)
        bound[i] = largest * most * 16.0f * 0x1p-24f;
    check_compare(c, "out", got, want, bound, n);
    check_end(c, "%d channels, %d x %d, act %d%s%s%s%s%s", o.channels, o.w, o.h, (int)o.epilogue.act,
              o.epilogue.bias ? ", bias" : "", o.epilogue.scale ? ", affine" : "", o.residual ? ", residual" : "",
              o.pool2 ? ", pool" : "", o.stream ? ", stream" : "");
}

static void prove_output(check *c) {
    for (int i = 0; i < 400; i++)
        prove_output_one(c, i % 3 ? CHECK_NORMAL : CHECK_NASTY);
}

/* ---- times */

typedef struct job {
    theo_conv3x3_call call;
    theo_pool *pool;
    void *scratch;
} job;

static void run(void *context) {
    job *j = context;
    theo_conv3x3_run(&j->call, j->pool, j->scratch);
}

typedef struct shape {
    int in_c, out_c, h, w;
    bool pool2;
} shape;

static double flops(shape s) {
    return 18.0 * s.in_c * s.out_c * s.h * s.w;
}

/* Against the direct form at some pixels: prints the error in units of the output's rms. */
static void accuracy(check *c, const theo_conv3x3_call *call, const float *weight) {
    double squares = 0.0, errors = 0.0, largest = 0.0;
    const int samples = 2000;
    int in_c = call->weight->in_c;
    for (int i = 0; i < samples; i++) {
        int y = check_between(c, 0, call->h - 1), x = check_between(c, 0, call->w - 1),
            o = check_between(c, 0, call->weight->out_c - 1);
        double want = (double)call->weight->bias[o];
        for (int k = 0; k < 9; k++) {
            int py = y + k / 3 - 1, px = x + k % 3 - 1;
            if (py < 0 || px < 0 || py >= call->h || px >= call->w)
                continue;
            const float *pixel = call->in + (size_t)py * call->in_row + (size_t)px * call->in_pixel;
            for (int z = 0; z < in_c; z++)
                want += (double)pixel[z] * (double)weight[((size_t)o * (size_t)in_c + (size_t)z) * 9 + (size_t)k];
        }
        double error = fabs((double)call->out[(size_t)y * call->out_row + (size_t)x * call->out_pixel + (size_t)o] - want);
        squares += want * want;
        errors += error * error;
        largest = fmax(largest, error);
    }
    double rms = sqrt(squares / samples);
    printf("      error: rms %.1e, largest %.1e of the output's rms\n", sqrt(errors / samples) / rms, largest / rms);
    check_that(c, sqrt(errors / samples) <= 5e-6 * rms && largest <= 1e-4 * rms, "error too large");
}

static double time_at(check *c, theo_cpu level, int threads, shape s, bool check_accuracy) {
    size_t in_c = (size_t)s.in_c, out_c = (size_t)s.out_c, h = (size_t)s.h, w = (size_t)s.w;
    float *weight = check_values(c, CHECK_NORMAL, out_c * in_c * 9), *bias = check_values(c, CHECK_NORMAL, out_c);
    theo_packed *packed;
    if (theo_packed_conv(&packed, level, s.out_c, s.in_c, 3, weight, bias, NULL) != THEO_OK)
        return 0.0;
    size_t side = s.pool2 ? 2 : 1;
    job j = {.call = {.weight = packed,
                      .h = s.h,
                      .w = s.w,
                      .stride = 1,
                      .in_row = w * in_c,
                      .in_pixel = in_c,
                      .pool2 = s.pool2,
                      .out_row = w / side * out_c,
                      .out_pixel = out_c},
             .pool = threads > 1 ? c->pool : NULL};
    float *in = theo_alloc_aligned(h * w * in_c * sizeof(float)); /* large pages, as a plan's memory */
    j.call.in = in;
    j.scratch = theo_alloc_aligned(theo_conv3x3_scratch_bytes(&j.call, threads));
    j.call.out = theo_alloc_aligned(h * w * out_c * sizeof(float));
    double seconds = 0.0;
    if (in && j.scratch && j.call.out) {
        check_fill(c, CHECK_NORMAL, in, h * w * in_c);
        run(&j);
        seconds = check_seconds(run, &j);
        if (check_accuracy)
            accuracy(c, &j.call, weight);
    }
    theo_free_aligned(in);
    theo_free_aligned(j.call.out);
    theo_free_aligned(j.scratch);
    theo_packed_free(packed);
    return seconds;
}

static void time_one(check *c, shape s) {
    char what[80];
    snprintf(what, sizeof what, "%d -> %d @ %dx%d%s", s.in_c, s.out_c, s.h, s.w, s.pool2 ? ", pool" : "");
    shape few = {s.in_c, s.out_c, 8, 16, s.pool2};
    double c_seconds = time_at(c, THEO_CPU_C, 1, few, false);
    for (int threads = 1; threads <= c->threads; threads += c->threads - 1) {
        check_report(c, what,
                     (check_result){.flops = flops(s),
                                    .seconds = time_at(c, c->k->level, threads, s, threads == 1 && !s.pool2),
                                    .c_work = flops(few),
                                    .c_seconds = c_seconds,
                                    .threads = threads});
        if (c->threads == 1)
            break;
    }
    check_end(c, "%s", what);
}

static void bench(check *c) {
    static const shape shapes[] = {
        {64, 64, 480, 640, false}, {128, 128, 120, 160, false}, {256, 256, 128, 128, false}, {128, 128, 512, 512, false},
        {64, 64, 480, 640, true},  {64, 64, 240, 320, false},   {64, 128, 120, 160, false},  {128, 128, 60, 80, false},
        {128, 512, 60, 80, false}, /* SuperPoint's, beyond those above; the last: both heads at once */
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        time_one(c, shapes[i]);
}

const check_test check_winograd_tests[] = {{"winograd_input", prove_input, NULL}, {"winograd_output", prove_output, bench}, {0}};
