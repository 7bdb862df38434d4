/* Direct 3x3 convolution. */
#include "check.h"
#include <math.h>
#include <stdio.h>

/* The bound comes from the same convolution of absolute values: every output is a sum of n = 9 in_c + 4 terms at most, whose
 * rounding errors are at most n 2^-24 of the sum of magnitudes; denormals get lost one by one. */
static void error_bound(check *c, const theo_conv3x3 *conv, float *bound, size_t n) {
    theo_conv3x3 magnitude = *conv;
    size_t in_n = (size_t)(conv->in_h - 1) * conv->in_row + (size_t)(conv->in_w - 1) * conv->in_pixel + (size_t)conv->in_c;
    size_t weight_n = theo_conv3x3_packed_floats(conv->out_c, conv->in_c), out_c = (size_t)conv->out_c;
    size_t region =
        (size_t)(conv->y1 - conv->y0 - 1) * conv->residual_row + (size_t)(conv->x1 - conv->x0 - 1) * conv->residual_pixel + out_c;
    const float **arrays[] = {
        &magnitude.in,      &magnitude.weight, &magnitude.epilogue.bias, &magnitude.epilogue.scale, &magnitude.epilogue.shift,
        &magnitude.residual};
    size_t sizes[] = {in_n, weight_n, out_c, out_c, out_c, region};
    for (int i = 0; i < 6; i++) {
        if (!*arrays[i])
            continue;
        float *copy = check_copy(c, *arrays[i], sizes[i]);
        for (size_t j = 0; j < sizes[i]; j++)
            copy[j] = fabsf(copy[j]);
        *arrays[i] = copy;
    }
    magnitude.out = bound;
    c->c->conv3x3(&magnitude);
    float terms = 9.0f * (float)conv->in_c + 4.0f;
    for (size_t i = 0; i < n; i++)
        bound[i] = bound[i] * terms * 0x1p-24f + terms * 0x1p-149f;
}

static void prove_one(check *c, check_kind kind) {
    /* Tiles of all levels are at most 8 pixels x 32 channels. */
    static const int few[] = {1, 1, 2, 3, 3, 4, 17};
    theo_conv3x3 conv = {
        .in_h = check_between(c, 1, 12),
        .in_w = check_between(c, 1, 38),
        .in_c = few[check_between(c, 0, 6)],
        .out_c = check_between(c, 1, 67),
        .stride = check_between(c, 1, 2),
        .padding = check_chance(c, 0.5) ? THEO_PAD_ZERO : THEO_PAD_REPLICATE,
        .epilogue.act = check_chance(c, 0.5) ? THEO_ACT_RELU : THEO_ACT_NONE,
    };
    size_t in_c = (size_t)conv.in_c, out_c = (size_t)conv.out_c;
    conv.in_pixel = in_c + (check_chance(c, 0.3) ? 5 : 0);
    conv.in_row = conv.in_pixel * (size_t)conv.in_w + (size_t)check_between(c, 0, 3);
    conv.in = check_values(c, kind, (size_t)(conv.in_h - 1) * conv.in_row + (size_t)(conv.in_w - 1) * conv.in_pixel + in_c);
    float *weight = check_values(c, kind, out_c * in_c * 9);
    float *packed = check_floats(c, theo_conv3x3_packed_floats(conv.out_c, conv.in_c));
    theo_conv3x3_pack(conv.out_c, conv.in_c, weight, packed);
    conv.weight = packed;
    if (check_chance(c, 0.7))
        conv.epilogue.bias = check_values(c, kind, out_c);
    if (check_chance(c, 0.4)) {
        conv.epilogue.scale = check_values(c, CHECK_NORMAL, out_c);
        conv.epilogue.shift = check_values(c, kind, out_c);
    }
    /* A region that may lie partly or wholly outside. */
    int out_h = (conv.in_h - 1) / conv.stride + 1, out_w = (conv.in_w - 1) / conv.stride + 1;
    conv.y0 = check_chance(c, 0.5) ? 0 : check_between(c, -3, out_h);
    conv.x0 = check_chance(c, 0.5) ? 0 : check_between(c, -3, out_w);
    conv.y1 = check_chance(c, 0.5) && out_h > conv.y0 ? out_h : check_between(c, conv.y0 + 1, out_h + 3);
    conv.x1 = check_chance(c, 0.5) && out_w > conv.x0 ? out_w : check_between(c, conv.x0 + 1, out_w + 3);
    size_t rows = (size_t)(conv.y1 - conv.y0), columns = (size_t)(conv.x1 - conv.x0);
    conv.out_pixel = out_c + (check_chance(c, 0.3) ? 7 : 0);
    conv.out_row = columns * conv.out_pixel + (size_t)check_between(c, 0, 3);
    conv.residual_pixel = conv.out_pixel;
    conv.residual_row = conv.out_row;
    size_t n = (rows - 1) * conv.out_row + (columns - 1) * conv.out_pixel + out_c;
    if (check_chance(c, 0.3))
        conv.residual = check_values(c, kind, n);

    float *want = check_floats(c, n), *got = check_floats(c, n), *bound = check_floats(c, n);
    conv.out = want;
    c->c->conv3x3(&conv);
    conv.out = got;
    c->k->conv3x3(&conv);
    error_bound(c, &conv, bound, n);
    check_compare(c, "out", got, want, bound, n);

    /* The whole again in two parts, cut anywhere: the same bits. */
    theo_conv3x3 part = conv;
    float *parts = check_floats(c, n);
    int cut = check_between(c, conv.x0, conv.x1);
    part.out = parts;
    part.x1 = cut;
    c->k->conv3x3(&part);
    part.x0 = cut;
    part.x1 = conv.x1;
    part.out = parts + (size_t)(cut - conv.x0) * conv.out_pixel;
    if (conv.residual)
        part.residual = conv.residual + (size_t)(cut - conv.x0) * conv.residual_pixel;
    c->k->conv3x3(&part);
    check_compare(c, "in two parts", parts, got, NULL, n);
    check_end(c, "%d -> %d channels, input %dx%d, stride %d, %s, rows %d..%d, columns %d..%d%s%s%s%s", conv.in_c, conv.out_c,
              conv.in_w, conv.in_h, conv.stride, conv.padding == THEO_PAD_ZERO ? "zeros" : "replicate", conv.y0, conv.y1, conv.x0,
              conv.x1, conv.epilogue.bias ? ", bias" : "", conv.epilogue.act == THEO_ACT_RELU ? ", relu" : "",
              conv.epilogue.scale ? ", affine" : "", conv.residual ? ", residual" : "");
}

static void prove(check *c) {
    for (int i = 0; i < 600; i++)
        prove_one(c, i % 3 ? CHECK_NORMAL : CHECK_NASTY);
}

/* ---- times */

typedef struct job {
    const theo_kernels *k;
    theo_conv3x3 conv;
    int rows, columns; /* of a region; the output of all goes to the same place, as in a fused pair of layers */
    int h, w;          /* of the part of the output that is computed */
} job;

static void run(void *context) {
    job *j = context;
    for (int y = 0; y < j->h; y += j->rows) {
        for (int x = 0; x < j->w; x += j->columns) {
            j->conv.y0 = y;
            j->conv.y1 = y + j->rows < j->h ? y + j->rows : j->h;
            j->conv.x0 = x;
            j->conv.x1 = x + j->columns < j->w ? x + j->columns : j->w;
            j->k->conv3x3(&j->conv);
        }
    }
}

static double flops(const job *j) {
    return 18.0 * j->conv.in_c * j->conv.out_c * j->h * j->w;
}

static void time_one(check *c, int in_c, int out_c, int h, int w, int stride, int rows, int columns) {
    job j = {.k = c->k, .rows = rows, .columns = columns, .h = (h - 1) / stride + 1, .w = (w - 1) / stride + 1};
    size_t i = (size_t)in_c, o = (size_t)out_c;
    float *weight = check_values(c, CHECK_NORMAL, o * i * 9), *packed = check_floats(c, theo_conv3x3_packed_floats(out_c, in_c));
    theo_conv3x3_pack(out_c, in_c, weight, packed);
    j.conv = (theo_conv3x3){.in = check_values(c, CHECK_NORMAL, (size_t)h * (size_t)w * i),
                            .in_h = h,
                            .in_w = w,
                            .in_c = in_c,
                            .in_row = (size_t)w * i,
                            .in_pixel = i,
                            .weight = packed,
                            .out_c = out_c,
                            .stride = stride,
                            .epilogue = {.bias = check_values(c, CHECK_NORMAL, o), .act = THEO_ACT_RELU},
                            .out = check_floats(c, (size_t)rows * (size_t)columns * o),
                            .out_row = (size_t)columns * o,
                            .out_pixel = o};
    check_result result = {.flops = flops(&j), .seconds = check_seconds(run, &j)};
    j.k = c->c;
    j.h = 1; /* of the C level, one row tells enough */
    result.c_work = flops(&j);
    result.c_seconds = check_seconds(run, &j);
    char what[80];
    snprintf(what, sizeof what, "%d -> %d @ %dx%d, stride %d, by %dx%d", in_c, out_c, h, w, stride, rows, columns);
    check_report(c, what, result);
    check_end(c, "%s", what);
}

static void bench(check *c) {
    time_one(c, 1, 64, 480, 640, 1, 6, 34); /* SuperPoint's conv1a */
    time_one(c, 3, 64, 480, 640, 1, 6, 34);
    time_one(c, 64, 64, 120, 160, 1, 120, 160);
    time_one(c, 128, 128, 120, 160, 1, 120, 160);
    time_one(c, 64, 64, 240, 320, 2, 120, 160);
}

const check_test check_conv3x3_tests[] = {{"conv3x3", prove, bench}, {0}};
