/* Attention: the softmax between its two matrix multiplications; timed through the driver, as networks use it. Layer norm, which
 * stands in front of it. */
#include "base/error.h"
#include "check.h"
#include "engine/attention.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CHUNK = 16, LANES = THEO_SOFTMAX_LANES };

/* What one side of the comparison works on. */
typedef struct softmax {
    float *scores, *weights, *largest, *sums, *values;
} softmax;

static void run_step(const theo_kernels *k, theo_softmax_step step, const softmax *own) {
    step.scores = own->scores;
    step.weights = own->weights;
    step.largest = own->largest;
    step.sums = own->sums;
    step.values = own->values;
    k->attention->step(&step);
}

static float sum_of(const float *lanes) {
    double sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += (double)lanes[i];
    return (float)sum;
}

/* Two blocks of keys, one after the other, for one panel of queries in the level's own layout. */
static void prove_step(check *c) {
    const theo_gemm_kernels *g = c->k->gemm;
    for (int i = 0; i < 200; i++) {
        theo_softmax_step s = {.rows = check_between(c, 1, g->mr), .mr = g->mr, .nr = g->nr, .scale = 0.18f};
        s.value_panels = check_between(c, 1, 3);
        float spread = check_chance(c, 0.5) ? 3.0f : 60.0f;
        size_t rows = (size_t)s.rows, values = (size_t)s.value_panels * rows * (size_t)s.nr;
        softmax want = {
            .largest = check_floats(c, rows), .sums = check_floats(c, rows * LANES), .values = check_floats(c, values)};
        softmax got = {
            .largest = check_floats(c, rows), .sums = check_floats(c, rows * LANES), .values = check_floats(c, values)};
        for (int block = 0; block < 2; block++) {
            s.first = block == 0;
            s.keys = check_between(c, 1, 3 * s.nr + 1);
            size_t tiles = ((size_t)s.keys + (size_t)s.nr - 1) / (size_t)s.nr;
            size_t scores = tiles * rows * (size_t)s.nr, chunks = ((size_t)s.keys + CHUNK - 1) / CHUNK;
            size_t weights = (chunks - 1) * (size_t)s.mr * CHUNK + rows * CHUNK;
            want.scores = check_floats(c, scores);
            for (size_t j = 0; j < scores; j++)
                want.scores[j] = spread * check_normal(c);
            got.scores = check_copy(c, want.scores, scores);
            want.weights = check_floats(c, weights);
            got.weights = check_floats(c, weights);
            for (size_t j = 0; j < values && !s.first; j++) /* what the products of the first block left */
                want.values[j] = got.values[j] = check_normal(c);
            run_step(c->c, s, &want);
            run_step(c->k, s, &got);
            float *bound = check_floats(c, weights);
            for (size_t j = 0; j < weights; j++) /* the exponent is rounded, and its error is that of the weight */
                bound[j] = 4e-7f * (1.0f + spread) * fabsf(want.weights[j]) + 0x1p-125f;
            check_compare(c, "weights", got.weights, want.weights, bound, weights);
            for (size_t r = 0; r < rows; r++) {
                float total = sum_of(got.sums + r * LANES), expected = sum_of(want.sums + r * LANES);
                float allowed = 2e-6f * (1.0f + spread) * expected, top = 0x1p-22f * fabsf(want.largest[r]);
                check_compare(c, "sum", &total, &expected, &allowed, 1);
                check_compare(c, "largest", &got.largest[r], &want.largest[r], &top, 1);
            }
            if (s.first)
                continue;
            bound = check_floats(c, values);
            for (size_t j = 0; j < values; j++)
                bound[j] = 4e-7f * (1.0f + spread) * fabsf(want.values[j]) + 0x1p-125f;
            check_compare(c, "values", got.values, want.values, bound, values);
        }
        check_end(c, "%d queries, spread %g, %d value panels", s.rows, (double)spread, s.value_panels);
    }
}

static void prove_finish(check *c) {
    const theo_gemm_kernels *g = c->k->gemm;
    for (int i = 0; i < 200; i++) {
        theo_softmax_finish f = {.rows = check_between(c, 1, g->mr), .nr = g->nr, .columns = 16 * check_between(c, 1, 7)};
        size_t rows = (size_t)f.rows, panels = ((size_t)f.columns + (size_t)f.nr - 1) / (size_t)f.nr;
        f.values = check_values(c, CHECK_NORMAL, panels * rows * (size_t)f.nr);
        float *sums = check_values(c, CHECK_NORMAL, rows * LANES);
        for (size_t j = 0; j < rows * LANES; j++)
            sums[j] = fabsf(sums[j]) + 0.01f;
        f.sums = sums;
        f.out_pitch = (size_t)f.columns + (size_t)check_between(c, 0, 3);
        size_t n = (rows - 1) * f.out_pitch + (size_t)f.columns;
        float *want = check_floats(c, n), *got = check_floats(c, n), *bound = check_floats(c, n);
        f.out = want;
        c->c->attention->finish(&f);
        f.out = got;
        c->k->attention->finish(&f);
        for (size_t j = 0; j < n; j++)
            bound[j] = fabsf(want[j]) * (LANES + 2) * 0x1p-24f + 0x1p-140f;
        check_compare(c, "out", got, want, bound, n);
        check_end(c, "%d rows of %d", f.rows, f.columns);
    }
}

/* ---- layer norm */

static void prove_layer_norm(check *c) {
    for (int i = 0; i < 300; i++) {
        theo_layer_norm l = {.rows = check_between(c, 1, 3), .eps = 1e-6f};
        l.columns = check_chance(c, 0.1) ? check_between(c, 100, 1100) : check_between(c, 1, 70);
        size_t columns = (size_t)l.columns, rows = (size_t)l.rows - 1;
        l.in_pitch = columns + (size_t)check_between(c, 0, 3);
        bool in_place = check_chance(c, 0.5);
        l.out_pitch = in_place ? l.in_pitch : columns + (size_t)check_between(c, 0, 3);
        size_t in_n = rows * l.in_pitch + columns, n = rows * l.out_pitch + columns;
        float offset = check_chance(c, 0.3) ? 5.0f : 0.0f, *in = check_values(c, CHECK_NORMAL, in_n);
        for (size_t j = 0; j < in_n; j++)
            in[j] = in[j] * 2.0f + offset;
        if (check_chance(c, 0.7)) {
            l.gamma = check_values(c, CHECK_NORMAL, columns);
            l.beta = check_values(c, CHECK_NORMAL, columns);
        }
        float *out[2], *bound = check_floats(c, n);
        for (int side = 0; side < 2; side++) {
            out[side] = in_place ? check_copy(c, in, in_n) : check_floats(c, n);
            l.in = in_place ? out[side] : in;
            l.out = out[side];
            (side ? c->k : c->c)->layer_norm_rows(&l);
        }
        for (size_t j = 0; j < n; j++) { /* rounding of the mean moves all of a row; one column alone leaves 0 / sqrt(eps) */
            float gain = l.gamma && j % l.out_pitch < columns ? fabsf(l.gamma[j % l.out_pitch]) : 1.0f;
            bound[j] = gain * (columns > 1 ? 4e-6f * (1.0f + offset) : 2e-3f) + fabsf(out[0][j]) * 1e-5f;
        }
        check_compare(c, "out", out[1], out[0], bound, n);
        check_end(c, "%d rows of %d%s%s", l.rows, l.columns, l.gamma ? ", affine" : "", in_place ? ", in place" : "");
    }
}

/* ---- times */

typedef struct job {
    theo_attention_call call;
    theo_pool *pool;
    void *scratch;
} job;

static void run(void *context) {
    job *j = context;
    theo_attention_run(&j->call, j->pool, j->scratch);
}

/* Seconds of one call; q, k and v lie side by side, as a network has them. */
static double time_at(check *c, const theo_kernels *k, int threads, int tokens, int heads, bool turned) {
    enum { DIM = 64 };
    size_t width = (size_t)heads * DIM, pitch = 3 * width, rows = (size_t)tokens;
    float *qkv = theo_alloc_aligned(rows * pitch * sizeof(float)), *out = theo_alloc_aligned(rows * width * sizeof(float));
    float *turn = check_values(c, CHECK_NORMAL, rows * DIM);
    job j = {.call = {.kernels = k,
                      .heads = heads,
                      .dim = DIM,
                      .queries = tokens,
                      .keys = tokens,
                      .q = qkv,
                      .k = qkv + width,
                      .v = qkv + 2 * width,
                      .q_pitch = pitch,
                      .k_pitch = pitch,
                      .v_pitch = pitch,
                      .q_turn = turned ? turn : NULL,
                      .k_turn = turned ? turn : NULL,
                      .q_turn_pitch = DIM,
                      .k_turn_pitch = DIM,
                      .out = out,
                      .out_pitch = width},
             .pool = threads > 1 ? c->pool : NULL};
    j.scratch = theo_alloc_aligned(theo_attention_scratch_bytes(&j.call, threads));
    double seconds = 0.0;
    if (qkv && out && j.scratch) {
        check_fill(c, CHECK_NORMAL, qkv, rows * pitch);
        run(&j);
        seconds = check_seconds(run, &j);
    }
    theo_free_aligned(qkv);
    theo_free_aligned(out);
    theo_free_aligned(j.scratch);
    return seconds;
}

static void time_attention(check *c, const char *net, int tokens, bool turned) {
    enum { HEADS = 16 };
    double flops = 4.0 * tokens * (double)tokens * 64;
    for (int threads = 1; threads <= c->threads; threads += c->threads > 1 ? c->threads - 1 : 1) {
        check_result r = {.flops = HEADS * flops, .c_work = flops, .threads = threads};
        r.seconds = time_at(c, c->k, threads, tokens, HEADS, turned);
        r.c_seconds = threads == 1 && c->k != c->c ? time_at(c, c->c, 1, 256, 1, turned) * tokens / 256.0 * tokens / 256.0 : 0;
        char what[96];
        snprintf(what, sizeof what, "%s, %d heads of 64, N = %d", net, HEADS, tokens);
        if (r.seconds > 0)
            check_report(c, what, r);
        check_end(c, "%s", what);
    }
}

static void bench_attention(check *c) {
    time_attention(c, "ViT-L, 512x512 pixels of 16", 1025, false);
    time_attention(c, "ViT-L, 1800 tokens", 1825, false);
    time_attention(c, "DUSt3R, rotary", 1024, true);
}

typedef struct norm_job {
    const theo_kernels *k;
    theo_layer_norm norm;
} norm_job;

static void run_norm(void *context) {
    norm_job *j = context;
    j->k->layer_norm_rows(&j->norm);
}

static void bench_layer_norm(check *c) {
    enum { ROWS = 1825, COLUMNS = 1024 };
    float *vectors = check_values(c, CHECK_NORMAL, 2 * COLUMNS);
    norm_job j = {c->k,
                  {.in = check_values(c, CHECK_NORMAL, (size_t)ROWS * COLUMNS),
                   .out = check_floats(c, (size_t)ROWS * COLUMNS),
                   .in_pitch = COLUMNS,
                   .out_pitch = COLUMNS,
                   .rows = ROWS,
                   .columns = COLUMNS,
                   .eps = 1e-6f,
                   .gamma = vectors,
                   .beta = vectors + COLUMNS}};
    double bytes = 2.0 * 4.0 * ROWS * COLUMNS;
    check_result result = {.bytes = bytes, .seconds = check_seconds(run_norm, &j), .c_work = bytes};
    j.k = c->c;
    result.c_seconds = check_seconds(run_norm, &j);
    check_report(c, "1825 tokens of 1024", result);
    check_end(c, "1825 x 1024");
}

const check_test check_attention_tests[] = {
    {"softmax_step", prove_step, bench_attention},
    {"softmax_finish", prove_finish, NULL},
    {"layer_norm_rows", prove_layer_norm, bench_layer_norm},
    {0},
};
