/* Kernels on rows of channels: pooling, softmax, norm, best two. */
#include "check.h"
#include <math.h>
#include <stdio.h>

/* Lengths around the vectors of all levels: 1 .. 2 * 16 + 1 and some, now and then a long one. */
static int length(check *c) {
    return check_chance(c, 0.1) ? check_between(c, 100, 400) : check_between(c, 1, 37);
}

static float *constant(check *c, float value, size_t n) {
    float *x = check_floats(c, n);
    for (size_t i = 0; i < n; i++)
        x[i] = value;
    return x;
}

/* ---- max-pool */

static void prove_pool(check *c) {
    for (int i = 0; i < 300; i++) {
        int channels = length(c), out_w = check_between(c, 1, 6);
        size_t in_pixel = (size_t)(channels + check_between(c, 0, 3)), out_pixel = (size_t)(channels + check_between(c, 0, 3));
        size_t in_n = (2 * (size_t)out_w - 1) * in_pixel + (size_t)channels,
               n = ((size_t)out_w - 1) * out_pixel + (size_t)channels;
        const float *top = check_values(c, CHECK_NASTY, in_n), *bottom = check_values(c, CHECK_NASTY, in_n);
        float *want = check_floats(c, n), *got = check_floats(c, n);
        c->c->max_pool2_row(top, bottom, in_pixel, out_w, channels, want, out_pixel);
        c->k->max_pool2_row(top, bottom, in_pixel, out_w, channels, got, out_pixel);
        check_compare(c, "out", got, want, NULL, n);
        check_end(c, "%d pixels of %d channels", out_w, channels);
    }
}

/* ---- softmax and norm: rows to rows, aside or in place */

typedef void (*rows_fn)(const float *, size_t, float *, size_t, int, int);

/* Calls fn on a copy of `in`, in place or into untouched memory. */
static float *apply(check *c, rows_fn fn, const float *in, size_t pitch, int rows, int columns, bool in_place) {
    size_t n = ((size_t)rows - 1) * pitch + (size_t)columns;
    float *out = in_place ? check_copy(c, in, n) : check_floats(c, n);
    fn(in_place ? out : in, pitch, out, pitch, rows, columns);
    return out;
}

/* Logits of networks and worse. Differences of more than 104 give zeros and denormals: half a unit of those is allowed. */
static void fill_logits(check *c, float *x, size_t n) {
    float spread = check_chance(c, 0.5) ? 3.0f : 60.0f;
    for (size_t i = 0; i < n; i++)
        x[i] = check_chance(c, 0.02) ? -INFINITY : check_chance(c, 0.05) ? -1e15f : spread * check_normal(c);
}

/* e^(l - max) sees the rounding of l - max: 2^-24 |l - max| relative, which below -104 is nothing any more. */
static void softmax_bound(float *bound, const float *in, const float *want, size_t n) {
    float max = -INFINITY;
    for (size_t i = 0; i < n; i++)
        max = in[i] > max ? in[i] : max;
    for (size_t i = 0; i < n; i++) {
        float distance = fminf(max - in[i], 104.0f);
        bound[i] = want[i] * (1e-6f + distance * 0x1p-23f) + 0x1p-140f;
    }
}

static void prove_softmax(check *c) {
    for (int i = 0; i < 300; i++) {
        int columns = length(c), rows = check_between(c, 1, 3);
        size_t pitch = (size_t)(columns + check_between(c, 0, 3)), n = ((size_t)rows - 1) * pitch + (size_t)columns;
        float *in = check_floats(c, n), *bound = constant(c, 0.0f, n);
        fill_logits(c, in, n);
        for (int r = 0; r < rows; r++) /* all -infinity would be 0 / 0 */
            in[(size_t)r * pitch + (size_t)check_between(c, 0, columns - 1)] = check_normal(c);
        bool in_place = check_chance(c, 0.5);
        float *want = apply(c, c->c->softmax_rows, in, pitch, rows, columns, in_place);
        float *got = apply(c, c->k->softmax_rows, in, pitch, rows, columns, in_place);
        for (size_t r = 0; r < (size_t)rows; r++)
            softmax_bound(bound + r * pitch, in + r * pitch, want + r * pitch, (size_t)columns);
        check_compare(c, "out", got, want, bound, n);
        check_end(c, "%d rows of %d%s", rows, columns, in_place ? ", in place" : "");
    }
}

static void prove_cell_softmax(check *c) {
    for (int i = 0; i < 200; i++) {
        int cells = check_between(c, 1, 5);
        size_t pitch = (size_t)check_between(c, 65, 80), row = 8 * (size_t)cells + (size_t)check_between(c, 0, 3);
        size_t in_n = ((size_t)cells - 1) * pitch + 65, n = 7 * row + 8 * (size_t)cells;
        float *in = check_floats(c, in_n), *want = check_floats(c, n), *got = check_floats(c, n), *bound = constant(c, 0.0f, n);
        fill_logits(c, in, in_n);
        for (size_t cell = 0; cell < (size_t)cells; cell++)
            in[cell * pitch + (size_t)check_between(c, 0, 64)] = check_normal(c);
        c->c->cell_softmax(in, pitch, cells, want, row);
        c->k->cell_softmax(in, pitch, cells, got, row);
        for (size_t cell = 0; cell < (size_t)cells; cell++) {
            float probability[65], allowed[65];
            for (size_t k = 0; k < 64; k++)
                probability[k] = want[k / 8 * row + 8 * cell + k % 8];
            probability[64] = 0.0f;
            softmax_bound(allowed, in + cell * pitch, probability, 65);
            for (size_t k = 0; k < 64; k++)
                bound[k / 8 * row + 8 * cell + k % 8] = allowed[k];
        }
        check_compare(c, "scores", got, want, bound, n);
        check_end(c, "%d cells, pitch %zu", cells, pitch);
    }
}

static void prove_norm(check *c) {
    for (int i = 0; i < 300; i++) {
        int columns = length(c), rows = check_between(c, 1, 3);
        size_t pitch = (size_t)(columns + check_between(c, 0, 3)), n = ((size_t)rows - 1) * pitch + (size_t)columns;
        float *in = check_values(c, i % 2 ? CHECK_NORMAL : CHECK_NASTY, n), *bound = check_floats(c, n);
        if (i % 10 == 0) /* norms around and below the floor of 1e-12 */
            for (size_t j = 0; j < n; j++)
                in[j] *= i % 20 ? 0.0f : 1e-13f;
        bool in_place = check_chance(c, 0.5);
        float *want = apply(c, c->c->l2_norm_rows, in, pitch, rows, columns, in_place);
        float *got = apply(c, c->k->l2_norm_rows, in, pitch, rows, columns, in_place);
        for (size_t j = 0; j < n; j++) /* the sum of n squares, its root, a division */
            bound[j] = fabsf(want[j]) * ((float)columns / 2.0f + 4.0f) * 0x1p-24f + 0x1p-140f;
        check_compare(c, "out", got, want, bound, n);
        check_end(c, "%d rows of %d%s", rows, columns, in_place ? ", in place" : "");
    }
}

/* ---- rotary positions */

static void prove_rotation(check *c) {
    for (int i = 0; i < 300; i++) {
        theo_rotation r = {.rows = check_between(c, 1, 5), .half = 8 * check_between(c, 1, 9)};
        size_t columns = 2 * (size_t)r.half;
        r.in_pitch = columns + (size_t)check_between(c, 0, 3);
        r.turn_pitch = columns + (size_t)check_between(c, 0, 3);
        r.out_pitch = columns + (size_t)check_between(c, 0, 3);
        size_t rows = (size_t)r.rows - 1, n = rows * r.out_pitch + columns;
        float *in = check_values(c, i % 3 ? CHECK_NORMAL : CHECK_NASTY, rows * r.in_pitch + columns);
        float *turn = check_floats(c, rows * r.turn_pitch + columns);
        for (size_t j = 0; j < rows * r.turn_pitch + columns; j++)
            turn[j] = sinf(check_normal(c));
        float *want = check_floats(c, n), *got = check_floats(c, n), *bound = constant(c, 0.0f, n);
        r.in = in;
        r.turn = turn;
        r.out = want;
        c->c->rotate_rows(&r);
        r.out = got;
        c->k->rotate_rows(&r);
        for (size_t row = 0; row <= rows; row++)
            for (size_t d = 0; d < columns; d++) {
                size_t k = d % (size_t)r.half;
                bound[row * r.out_pitch + d] =
                    (fabsf(in[row * r.in_pitch + k]) + fabsf(in[row * r.in_pitch + k + (size_t)r.half])) * 0x1p-23f + 0x1p-145f;
            }
        check_compare(c, "out", got, want, bound, n);
        check_end(c, "%d rows of 2 x %d", r.rows, r.half);
    }
}

/* ---- best two */

/* Few different values, so that ties are common; NaN and -infinity among them. */
static void fill_scores(check *c, float *x, size_t n) {
    int values = check_between(c, 1, 40);
    for (size_t i = 0; i < n; i++)
        x[i] = check_chance(c, 0.03) ? NAN : check_chance(c, 0.03) ? -INFINITY : (float)check_between(c, -values, values) / 8.0f;
}

static void prove_top2_row(check *c) {
    for (int i = 0; i < 400; i++) {
        int n = length(c), first = 0;
        theo_top2 want = {-INFINITY, -INFINITY, -1}, got = want;
        for (int part = 0; part < 2; part++, first += n) {
            float *scores = check_floats(c, (size_t)n);
            fill_scores(c, scores, (size_t)n);
            c->c->top2_row(scores, n, first, &want);
            c->k->top2_row(scores, n, first, &got);
        }
        check_compare(c, "best", &got.best, &want.best, NULL, 1);
        check_compare(c, "second", &got.second, &want.second, NULL, 1);
        check_that(c, got.index == want.index, "index is %d, expected %d", (int)got.index, (int)want.index);
        check_end(c, "two parts of %d scores", n);
    }
}

typedef struct top_columns {
    float *best, *second;
    int32_t *index;
} top_columns;

static top_columns columns_begin(check *c, size_t n) {
    top_columns x = {constant(c, -INFINITY, n), constant(c, -INFINITY, n), check_buffer(c, n, sizeof(int32_t))};
    for (size_t i = 0; i < n; i++)
        x.index[i] = -1;
    return x;
}

static void prove_top2_columns(check *c) {
    for (int i = 0; i < 200; i++) {
        int n = length(c);
        top_columns want = columns_begin(c, (size_t)n), got = columns_begin(c, (size_t)n);
        float *scores = check_floats(c, (size_t)n);
        for (int row = 0; row < 5; row++) {
            fill_scores(c, scores, (size_t)n);
            c->c->top2_columns(scores, n, row, want.best, want.second, want.index);
            c->k->top2_columns(scores, n, row, got.best, got.second, got.index);
        }
        check_compare(c, "best", got.best, want.best, NULL, (size_t)n);
        check_compare(c, "second", got.second, want.second, NULL, (size_t)n);
        for (int j = 0; j < n; j++)
            check_that(c, got.index[j] == want.index[j], "index[%d] is %d, expected %d", j, (int)got.index[j],
                       (int)want.index[j]);
        check_end(c, "%d columns", n);
    }
}

/* ---- times */

typedef struct job {
    const theo_kernels *k;
    const float *in;
    float *out;
    int rows, columns;
} job;

static void run_pool(void *context) {
    const job *j = context;
    size_t pixel = (size_t)j->columns;
    for (size_t y = 0; y < 2; y++)
        j->k->max_pool2_row(j->in, j->in + (size_t)j->rows * pixel / 2, pixel, j->rows / 4, j->columns, j->out, pixel);
}

static void run_softmax(void *context) {
    const job *j = context;
    j->k->softmax_rows(j->in, (size_t)j->columns, j->out, (size_t)j->columns, j->rows, j->columns);
}

static void run_cell_softmax(void *context) {
    const job *j = context;
    j->k->cell_softmax(j->in, 65, j->rows, j->out, 8 * (size_t)j->rows);
}

static void run_norm(void *context) {
    const job *j = context;
    j->k->l2_norm_rows(j->in, (size_t)j->columns, j->out, (size_t)j->columns, j->rows, j->columns);
}

static void run_top2_row(void *context) {
    const job *j = context;
    for (int r = 0; r < j->rows; r++) {
        theo_top2 top = {-INFINITY, -INFINITY, -1};
        j->k->top2_row(j->in + (size_t)r * (size_t)j->columns, j->columns, 0, &top);
        j->out[r] = top.best;
    }
}

/* rows x columns floats in; `written` of them out. */
static void time_rows(check *c, void (*run)(void *), int rows, int columns, double written, const char *what) {
    size_t n = (size_t)rows * (size_t)columns;
    job j = {c->k, check_values(c, CHECK_NORMAL, n), constant(c, 0.0f, n), rows, columns};
    double bytes = 4.0 * (double)n * (1.0 + written);
    check_result result = {.bytes = bytes, .seconds = check_seconds(run, &j), .c_work = bytes};
    j.k = c->c;
    result.c_seconds = check_seconds(run, &j);
    char line[80];
    snprintf(line, sizeof line, "%s %d x %d", what, rows, columns);
    check_report(c, line, result);
    check_end(c, "%s", line);
}

static void bench_pool(check *c) {
    time_rows(c, run_pool, 640, 64, 0.25, "two rows of pixels");
}
static void bench_softmax(check *c) {
    time_rows(c, run_softmax, 64, 1024, 1.0, "rows");
}
static void bench_cell_softmax(check *c) {
    time_rows(c, run_cell_softmax, 80, 65, 1.0, "cells");
}
static void bench_norm(check *c) {
    time_rows(c, run_norm, 80, 256, 1.0, "rows");
}
static void bench_top2_row(check *c) {
    time_rows(c, run_top2_row, 64, 1024, 0.0, "rows");
}

const check_test check_row_tests[] = {
    {"max_pool2_row", prove_pool, bench_pool},
    {"softmax_rows", prove_softmax, bench_softmax},
    {"cell_softmax", prove_cell_softmax, bench_cell_softmax},
    {"l2_norm_rows", prove_norm, bench_norm},
    {"rotate_rows", prove_rotation, NULL},
    {"top2_row", prove_top2_row, bench_top2_row},
    {"top2_columns", prove_top2_columns, NULL},
    {0},
};
