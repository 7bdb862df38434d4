/* Kernels on the channels of a map: moments, and functions with a factor and a term for each channel. */
#include "check.h"
#include <math.h>
#include <stdio.h>

static int channels_of(check *c) {
    return check_chance(c, 0.1) ? check_between(c, 60, 200) : check_between(c, 1, 37);
}

/* ---- moments */

/* The sum: (rows + 1) roundings of parts below sum |x|. The deviation sees the mean's error, e = 2^-23 sum |x|, squared once for
 * each row (the true distances sum up to zero), and its own roundings. */
static void moment_bounds(const theo_channel_moments *m, float *sum_bound, float *deviation_bound, const float *deviation) {
    for (int k = 0; k < m->columns; k++) {
        double magnitude = 0, rows = m->rows;
        for (int r = 0; r < m->rows; r++)
            magnitude += fabs((double)m->in[(size_t)r * m->pitch + (size_t)k]);
        double mean_error = magnitude / rows * (rows + 2) * 0x1p-24;
        sum_bound[k] = (float)(magnitude * (rows + 1) * 0x1p-24);
        deviation_bound[k] = (float)((double)deviation[k] * (rows + 8) * 0x1p-23 + 2 * rows * mean_error * mean_error + 0x1p-126);
    }
}

static void prove_moments(check *c) {
    for (int i = 0; i < 300; i++) {
        theo_channel_moments m = {.rows = check_chance(c, 0.2) ? check_between(c, 100, 260) : check_between(c, 1, 19),
                                  .columns = channels_of(c)};
        m.pitch = (size_t)(m.columns + check_between(c, 0, 3));
        size_t n = ((size_t)m.rows - 1) * m.pitch + (size_t)m.columns, columns = (size_t)m.columns;
        float *in = check_values(c, i % 3 ? CHECK_NORMAL : CHECK_NASTY, n), offset = i % 2 ? 50.0f : 0.0f;
        for (size_t k = 0; k < n; k++)
            in[k] += offset;
        m.in = in;
        float *sum[2], *deviation[2], *sum_bound = check_floats(c, columns), *deviation_bound = check_floats(c, columns);
        for (int side = 0; side < 2; side++) {
            m.sum = sum[side] = check_floats(c, columns);
            m.deviation = deviation[side] = check_floats(c, columns);
            (side ? c->k : c->c)->channel_moments(&m);
        }
        moment_bounds(&m, sum_bound, deviation_bound, deviation[0]);
        check_compare(c, "sum", sum[1], sum[0], sum_bound, columns);
        check_compare(c, "deviation", deviation[1], deviation[0], deviation_bound, columns);

        int from = check_between(c, 0, m.columns - 1); /* columns do not depend on their neighbours */
        m.in += from;
        m.columns -= from;
        m.sum = check_floats(c, (size_t)m.columns);
        m.deviation = check_floats(c, (size_t)m.columns);
        c->k->channel_moments(&m);
        check_compare(c, "sum of the last columns", m.sum, sum[1] + from, NULL, (size_t)m.columns);
        check_compare(c, "deviation of the last columns", m.deviation, deviation[1] + from, NULL, (size_t)m.columns);
        check_end(c, "%d rows of %d", m.rows, (int)columns);
    }
}

/* ---- functions */

/* All functions have a slope of at most 1.1; exp is good to 2e-7, of values up to 1 (ELU) or relative (SiLU). */
static void map_bound(const theo_channel_map *m, float *bound, const float *want) {
    for (int r = 0; r < m->rows; r++)
        for (int k = 0; k < m->columns; k++) {
            size_t at = (size_t)r * m->out_pitch + (size_t)k;
            float x = m->in[(size_t)r * m->in_pitch + (size_t)k];
            float affine = m->scale ? fabsf(x * m->scale[k]) + fabsf(m->shift[k]) : 0.0f;
            bound[at] = 1.2f * affine * 0x1p-23f + 5e-7f * fabsf(want[at]) + 0x1p-120f;
            if (m->f == THEO_NONLINEAR_ELU)
                bound[at] += 3e-7f;
            if (m->f == THEO_NONLINEAR_SILU) /* the exponent's rounding */
                bound[at] += fminf(fabsf(x), 100.0f) * fabsf(want[at]) * 0x1p-23f;
        }
}

static void prove_map(check *c) {
    for (int i = 0; i < 400; i++) {
        theo_channel_map m = {
            .rows = check_between(c, 1, 5), .columns = channels_of(c), .f = (theo_nonlinearity)check_between(c, 0, 4)};
        m.in_pitch = (size_t)(m.columns + check_between(c, 0, 3));
        bool in_place = check_chance(c, 0.3);
        m.out_pitch = in_place ? m.in_pitch : (size_t)(m.columns + check_between(c, 0, 3));
        size_t in_n = ((size_t)m.rows - 1) * m.in_pitch + (size_t)m.columns;
        size_t n = ((size_t)m.rows - 1) * m.out_pitch + (size_t)m.columns;
        const float *in = m.in = check_values(c, i % 2 ? CHECK_NORMAL : CHECK_NASTY, in_n);
        if (check_chance(c, 0.5)) {
            m.scale = check_values(c, CHECK_NORMAL, (size_t)m.columns);
            m.shift = check_values(c, CHECK_NORMAL, (size_t)m.columns);
        }
        float *want = check_floats(c, n), *bound = check_floats(c, n),
              *got = in_place ? check_copy(c, in, n) : check_floats(c, n);
        m.out = want;
        c->c->channel_map(&m);
        for (size_t k = 0; k < n; k++)
            bound[k] = 0.0f;
        map_bound(&m, bound, want);
        for (int r = 0; in_place && r + 1 < m.rows; r++) /* the gaps keep what they had */
            for (size_t k = (size_t)m.columns; k < m.in_pitch; k++)
                want[(size_t)r * m.in_pitch + k] = in[(size_t)r * m.in_pitch + k];
        m.out = got;
        m.in = in_place ? got : in;
        c->k->channel_map(&m);
        check_compare(c, "out", got, want, bound, n);
        check_end(c, "function %d of %d rows of %d%s%s", (int)m.f, m.rows, m.columns, m.scale ? ", affine" : "",
                  in_place ? ", in place" : "");
    }
}

/* ---- times */

enum { ROWS = 256, COLUMNS = 128 };

typedef struct job {
    const theo_kernels *k;
    theo_channel_moments moments;
    theo_channel_map map;
} job;

static void run_moments(void *context) {
    const job *j = context;
    j->k->channel_moments(&j->moments);
}

static void run_map(void *context) {
    const job *j = context;
    j->k->channel_map(&j->map);
}

static void time_it(check *c, void (*run)(void *), theo_nonlinearity f, double written, const char *what) {
    size_t n = (size_t)ROWS * COLUMNS;
    float *vectors = check_values(c, CHECK_NORMAL, 4 * COLUMNS), *in = check_values(c, CHECK_NORMAL, n);
    job j = {.k = c->k,
             .moments = {in, COLUMNS, ROWS, COLUMNS, vectors, vectors + COLUMNS},
             .map = {in, check_copy(c, in, n), COLUMNS, COLUMNS, ROWS, COLUMNS, vectors + 2 * COLUMNS, vectors + 3 * COLUMNS, f}};
    check_result result = {.bytes = 4.0 * (double)n * (1 + written), .seconds = check_seconds(run, &j)};
    result.c_work = result.bytes;
    j.k = c->c;
    result.c_seconds = check_seconds(run, &j);
    check_report(c, what, result);
    check_end(c, "%s", what);
}

static void bench_moments(check *c) {
    time_it(c, run_moments, THEO_NONLINEAR_NONE, 0, "moments 256 x 128");
}

static void bench_map(check *c) {
    time_it(c, run_map, THEO_NONLINEAR_RELU, 1, "affine, ReLU 256 x 128");
    time_it(c, run_map, THEO_NONLINEAR_SILU, 1, "affine, SiLU 256 x 128");
}

const check_test check_channel_tests[] = {
    {"channel_moments", prove_moments, bench_moments},
    {"channel_map", prove_map, bench_map},
    {0},
};
