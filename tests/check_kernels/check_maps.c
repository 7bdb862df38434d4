/* Kernels on maps: bilinear resizing, transposition; and the one that measures the peak. */
#include "check.h"
#include <math.h>
#include <stdio.h>

static void prove_resize(check *c) {
    for (int i = 0; i < 400; i++) {
        theo_resize r = {.in_h = check_between(c, 1, 9),
                         .in_w = check_between(c, 1, 9),
                         .channels = check_between(c, 1, 35),
                         .out_h = check_between(c, 1, 20),
                         .out_w = check_between(c, 1, 20),
                         .align_corners = check_chance(c, 0.5)};
        size_t channels = (size_t)r.channels;
        r.in_pixel = channels + (size_t)check_between(c, 0, 2);
        r.in_row = r.in_pixel * (size_t)r.in_w + (size_t)check_between(c, 0, 2);
        r.out_pixel = channels + (size_t)check_between(c, 0, 2);
        r.out_row = r.out_pixel * (size_t)r.out_w + (size_t)check_between(c, 0, 2);
        size_t in_n = (size_t)(r.in_h - 1) * r.in_row + (size_t)(r.in_w - 1) * r.in_pixel + channels;
        size_t n = (size_t)(r.out_h - 1) * r.out_row + (size_t)(r.out_w - 1) * r.out_pixel + channels;
        float *in = check_values(c, i % 3 ? CHECK_NORMAL : CHECK_NASTY, in_n), *magnitude = check_copy(c, in, in_n);
        float *want = check_floats(c, n), *got = check_floats(c, n), *bound = check_floats(c, n);
        for (size_t j = 0; j < in_n; j++)
            magnitude[j] = fabsf(magnitude[j]);
        r.y0 = check_between(c, 0, r.out_h - 1);
        r.y1 = check_between(c, r.y0 + 1, r.out_h);
        r.x0 = check_between(c, 0, r.out_w - 1);
        r.x1 = check_between(c, r.x0 + 1, r.out_w);
        r.residual_pixel = channels + (size_t)check_between(c, 0, 2);
        r.residual_row = r.residual_pixel * (size_t)(r.x1 - r.x0) + (size_t)check_between(c, 0, 2);
        size_t residual_n = (size_t)(r.y1 - r.y0 - 1) * r.residual_row + (size_t)(r.x1 - r.x0 - 1) * r.residual_pixel + channels;
        float *residual = check_values(c, CHECK_NORMAL, residual_n), *residual_magnitude = check_copy(c, residual, residual_n);
        for (size_t j = 0; j < residual_n; j++)
            residual_magnitude[j] = fabsf(residual[j]);
        bool adds = check_chance(c, 0.5);
        r.residual = adds ? residual : NULL;
        r.in = in;
        r.out = want;
        c->c->resize_bilinear(&r);
        r.out = got;
        c->k->resize_bilinear(&r);
        r.in = magnitude;
        r.residual = adds ? residual_magnitude : NULL;
        r.out = bound;
        c->c->resize_bilinear(&r);
        for (size_t j = 0; j < n; j++) /* two products and a sum on each axis, and 1 - weight */
            bound[j] = bound[j] * 8.0f * 0x1p-24f + 0x1p-145f;
        check_compare(c, "out", got, want, bound, n);
        check_end(c, "%dx%d to %dx%d, %d channels, rows %d..%d, columns %d..%d%s%s", r.in_w, r.in_h, r.out_w, r.out_h, r.channels,
                  r.y0, r.y1, r.x0, r.x1, r.align_corners ? ", align_corners" : "", adds ? ", residual" : "");
    }
}

static void prove_transpose(check *c) {
    for (int i = 0; i < 300; i++) {
        int rows = check_between(c, 1, 40), columns = check_between(c, 1, 40);
        size_t in_pitch = (size_t)(columns + check_between(c, 0, 3)), out_pitch = (size_t)(rows + check_between(c, 0, 3));
        size_t n = ((size_t)columns - 1) * out_pitch + (size_t)rows;
        const float *in = check_values(c, CHECK_NASTY, ((size_t)rows - 1) * in_pitch + (size_t)columns);
        float *want = check_floats(c, n), *got = check_floats(c, n);
        c->c->transpose(in, in_pitch, rows, columns, want, out_pitch);
        c->k->transpose(in, in_pitch, rows, columns, got, out_pitch);
        check_compare(c, "out", got, want, NULL, n);
        check_end(c, "%d x %d", rows, columns);
    }
}

/* What is left of the chains is term / (1 - factor) = 1 each: the sum counts them. */
static void prove_fma(check *c) {
    float sum = c->k->fma_rounds(2000), again = c->k->fma_rounds(4000), allowed = sum * 1e-3f;
    check_that(c, sum > 1.0f && c->k->fma_flops >= 2.0 * (double)sum * 0.99, "sum %g, %g FLOP a round", (double)sum,
               c->k->fma_flops);
    check_compare(c, "twice the rounds", &again, &sum, &allowed, 1);
    check_end(c, "2000 rounds");
}

/* ---- times */

typedef struct resize_job {
    const theo_kernels *k;
    theo_resize resize;
} resize_job;

static void run_resize(void *context) {
    resize_job *j = context;
    j->k->resize_bilinear(&j->resize);
}

static void time_resize(check *c, int channels, int in, int out) {
    size_t pixel = (size_t)channels, in_n = (size_t)in * (size_t)in * pixel, n = (size_t)out * (size_t)out * pixel;
    resize_job j = {c->k,
                    {.in = check_values(c, CHECK_NORMAL, in_n),
                     .in_h = in,
                     .in_w = in,
                     .channels = channels,
                     .in_row = (size_t)in * pixel,
                     .in_pixel = pixel,
                     .out = check_floats(c, n),
                     .out_h = out,
                     .out_w = out,
                     .out_row = (size_t)out * pixel,
                     .out_pixel = pixel,
                     .y1 = out,
                     .x1 = out}};
    double bytes = 4.0 * (double)(in_n + n);
    check_result result = {.bytes = bytes, .seconds = check_seconds(run_resize, &j), .c_work = bytes};
    j.k = c->c;
    result.c_seconds = check_seconds(run_resize, &j);
    char what[80];
    snprintf(what, sizeof what, "%d channels, %dx%d to %dx%d", channels, in, in, out, out);
    check_report(c, what, result);
    check_end(c, "%s", what);
}

static void bench_resize(check *c) {
    time_resize(c, 256, 32, 64);
    time_resize(c, 3, 128, 518);
}

typedef struct transpose_job {
    const theo_kernels *k;
    const float *in;
    float *out;
    int rows, columns;
} transpose_job;

static void run_transpose(void *context) {
    const transpose_job *j = context;
    j->k->transpose(j->in, (size_t)j->columns, j->rows, j->columns, j->out, (size_t)j->rows);
}

static void bench_transpose(check *c) {
    transpose_job j = {c->k, check_values(c, CHECK_NORMAL, 4800 * 256), check_floats(c, 4800 * 256), 4800, 256};
    double bytes = 2.0 * 4.0 * 4800.0 * 256.0;
    check_result result = {.bytes = bytes, .seconds = check_seconds(run_transpose, &j), .c_work = bytes};
    j.k = c->c;
    result.c_seconds = check_seconds(run_transpose, &j);
    check_report(c, "SuperPoint's descriptors, 4800 x 256", result);
    check_end(c, "4800 x 256");
}

const check_test check_map_tests[] = {
    {"resize_bilinear", prove_resize, bench_resize},
    {"transpose", prove_transpose, bench_transpose},
    {"fma_rounds", prove_fma, NULL},
    {0},
};
