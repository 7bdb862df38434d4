/* Matrix multiplication on packed panels: packing, tiles, epilogues; timed through the driver, as networks use it. */
#include "base/error.h"
#include "check.h"
#include "engine/linear.h"
#include <math.h>
#include <stdio.h>

/* A B^T of one tile as a level does it, from unpacked operands. The two levels have tiles of different sizes: C is cut to
 * those of `g`, which start at multiples of mr and nr. */
typedef struct product {
    int m, n, k;
    const float *a; /* [m][pitch] */
    size_t pitch;
    const float *b;      /* [n][k] */
    const float *before; /* [m][n]: added, or NULL */
} product;

static size_t up(int n, int unit) {
    return ((size_t)n + (size_t)unit - 1) / (size_t)unit * (size_t)unit;
}

static void multiply(check *c, const theo_gemm_kernels *g, const product *p, float *out) {
    size_t mr = (size_t)g->mr, nr = (size_t)g->nr, depth = up(p->k, THEO_KU);
    float *panels = check_floats(c, theo_gemm_packed_floats(g->nr, p->n, p->k));
    theo_gemm_pack_weight(g->nr, c->c->transpose, p->n, p->k, p->b, panels);
    for (int i = 0; i < p->m; i += g->mr) {
        int rows = p->m - i < g->mr ? p->m - i : g->mr;
        /* The last chunk needs no more than its own rows. */
        float *a = check_floats(c, (depth - THEO_KU) * mr + (size_t)rows * THEO_KU);
        g->pack_rows(p->a + (size_t)i * p->pitch, p->pitch, rows, p->k, a);
        for (int j = 0; j < p->n; j += g->nr) {
            int cols = p->n - j < g->nr ? p->n - j : g->nr;
            float *tile = check_floats(c, (size_t)rows * nr);
            for (int r = 0; r < rows && p->before; r++)
                for (int q = 0; q < g->nr; q++)
                    tile[r * g->nr + q] = q < cols ? p->before[(size_t)(i + r) * (size_t)p->n + (size_t)(j + q)] : 0.0f;
            theo_gemm_tile t = {.a = a,
                                .b = panels + (size_t)j * depth,
                                .ahead = a,
                                .ahead_step = 16,
                                .c = tile,
                                .rows = rows,
                                .cols = cols,
                                .chunks = (int)depth / THEO_KU,
                                .add = p->before != NULL};
            g->tile(&t);
            for (int r = 0; r < rows; r++)
                for (int q = 0; q < cols; q++)
                    out[(size_t)(i + r) * (size_t)p->n + (size_t)(j + q)] = tile[r * g->nr + q];
        }
    }
}

static void prove_tile(check *c, check_kind kind) {
    const theo_gemm_kernels *g = c->k->gemm;
    product p = {.m = check_between(c, 1, g->mr + 2), .n = check_between(c, 1, 2 * g->nr + 1), .k = check_between(c, 1, 70)};
    p.pitch = (size_t)p.k + (size_t)(check_chance(c, 0.3) ? 5 : 0);
    size_t a_n = (size_t)(p.m - 1) * p.pitch + (size_t)p.k, b_n = (size_t)p.n * (size_t)p.k, n = (size_t)p.m * (size_t)p.n;
    float *a = check_values(c, kind, a_n), *b = check_values(c, kind, b_n);
    p.a = a;
    p.b = b;
    if (check_chance(c, 0.5))
        p.before = check_values(c, kind, n);

    float *want = check_floats(c, n), *got = check_floats(c, n), *alone = check_floats(c, n), *bound = check_floats(c, n);
    multiply(c, c->c->gemm, &p, want);
    multiply(c, g, &p, got);
    /* Each element is a sum of k products and what was there: k + 1 roundings at most, each 2^-24 of the sum of magnitudes. */
    product magnitude = p;
    float *absolute[] = {check_copy(c, a, a_n), check_copy(c, b, b_n), p.before ? check_copy(c, p.before, n) : NULL};
    size_t sizes[] = {a_n, b_n, n};
    for (int i = 0; i < 3; i++)
        for (size_t j = 0; absolute[i] && j < sizes[i]; j++)
            absolute[i][j] = fabsf(absolute[i][j]);
    magnitude.a = absolute[0];
    magnitude.b = absolute[1];
    magnitude.before = absolute[2];
    multiply(c, c->c->gemm, &magnitude, bound);
    for (size_t i = 0; i < n; i++)
        bound[i] = ((float)p.k + 2.0f) * (bound[i] * 0x1p-24f + 0x1p-149f);
    check_compare(c, "C", got, want, bound, n);

    /* A row by itself, a column by itself: the same bits, whatever variant of the kernel computes them. */
    for (int i = 0; i < p.m; i++) {
        product row = p;
        row.m = 1;
        row.a = p.a + (size_t)i * p.pitch;
        row.before = p.before ? p.before + (size_t)i * (size_t)p.n : NULL;
        multiply(c, g, &row, alone + (size_t)i * (size_t)p.n);
    }
    check_compare(c, "row by row", alone, got, NULL, n);
    check_end(c, "%d x %d x %d, pitch %zu%s", p.m, p.n, p.k, p.pitch, p.before ? ", added" : "");
}

static void prove_tiles(check *c) {
    for (int i = 0; i < 300; i++)
        prove_tile(c, i % 3 ? CHECK_NORMAL : CHECK_NASTY);
}

/* Runs a level's epilogue on values that are given as [rows][cols]. */
static void finish(check *c, const theo_gemm_kernels *g, const theo_gemm_finish *job, const float *values, float *out) {
    float *tile = check_floats(c, (size_t)job->rows * (size_t)g->nr);
    for (int r = 0; r < job->rows; r++)
        for (int q = 0; q < job->cols; q++)
            tile[r * g->nr + q] = values[r * job->cols + q];
    theo_gemm_finish f = *job;
    f.c = tile;
    f.out = out;
    g->finish(&f);
}

static void prove_finish(check *c, check_kind kind) {
    const theo_gemm_kernels *g = c->k->gemm;
    int width = g->nr < c->c->gemm->nr ? g->nr : c->c->gemm->nr;
    theo_gemm_finish f = {.rows = check_between(c, 1, 4), .cols = check_between(c, 1, width)};
    size_t cols = (size_t)f.cols;
    f.out_pitch = cols + (size_t)check_between(c, 0, 3);
    f.residual_pitch = f.out_pitch;
    size_t n = (size_t)(f.rows - 1) * f.out_pitch + cols;
    static const theo_activation acts[] = {THEO_ACT_NONE, THEO_ACT_RELU, THEO_ACT_GELU};
    f.epilogue.act = acts[check_between(c, 0, 2)];
    if (check_chance(c, 0.7))
        f.epilogue.bias = check_values(c, kind, cols);
    if (check_chance(c, 0.4)) {
        f.epilogue.scale = check_values(c, CHECK_NORMAL, cols);
        f.epilogue.shift = check_values(c, kind, cols);
    }
    if (check_chance(c, 0.4))
        f.residual = check_values(c, kind, n);
    float *values = check_values(c, kind, (size_t)f.rows * cols);

    float *want = check_floats(c, n), *got = check_floats(c, n), *bound = check_floats(c, n);
    finish(c, c->c->gemm, &f, values, want);
    finish(c, g, &f, values, got);
    for (size_t i = 0; i < n; i++) {
        size_t r = i / f.out_pitch, q = i % f.out_pitch;
        bound[i] = 0.0f;
        if (q >= cols)
            continue;
        float largest = fabsf(values[r * cols + q]) + (f.epilogue.bias ? fabsf(f.epilogue.bias[q]) : 0.0f);
        if (f.epilogue.scale)
            largest = largest * fabsf(f.epilogue.scale[q]) + fabsf(f.epilogue.shift[q]);
        if (f.residual)
            largest += fabsf(f.residual[i]);
        bound[i] = largest * (f.epilogue.act == THEO_ACT_GELU ? 1e-6f : 0x1p-22f) + 0x1p-147f;
    }
    check_compare(c, "out", got, want, bound, n);
    if (f.residual) { /* which may be the output itself */
        float *both = check_copy(c, f.residual, n);
        theo_gemm_finish in_place = f;
        in_place.residual = both;
        finish(c, g, &in_place, values, both);
        for (int r = 0; r < f.rows; r++)
            check_compare(c, "in place", both + (size_t)r * f.out_pitch, got + (size_t)r * f.out_pitch, NULL, cols);
    }
    check_end(c, "%d x %d, pitch %zu, act %d%s%s%s", f.rows, f.cols, f.out_pitch, (int)f.epilogue.act,
              f.epilogue.bias ? ", bias" : "", f.epilogue.scale ? ", affine" : "", f.residual ? ", residual" : "");
}

static void prove_finishes(check *c) {
    for (int i = 0; i < 300; i++)
        prove_finish(c, i % 3 ? CHECK_NORMAL : CHECK_NASTY);
}

/* ---- times */

typedef struct job {
    theo_linear_call call;
    theo_pool *pool;
    void *scratch;
} job;

static void run(void *context) {
    job *j = context;
    theo_linear_run(&j->call, j->pool, j->scratch);
}

static double flops(int m, int k, int n) {
    return 2.0 * m * k * n;
}

/* One call of so many rows, at a level, on so many threads. */
static double time_at(check *c, theo_cpu level, int threads, int m, int k, int n) {
    float *weight = check_values(c, CHECK_NORMAL, (size_t)n * (size_t)k), *bias = check_values(c, CHECK_NORMAL, (size_t)n);
    theo_packed *packed;
    if (theo_packed_linear(&packed, level, n, k, weight, bias, NULL) != THEO_OK)
        return 0.0;
    job j = {.call = {.weight = packed, .rows = m, .in_pitch = (size_t)k, .out_pitch = (size_t)n},
             .pool = threads > 1 ? c->pool : NULL,
             .scratch = theo_alloc_aligned(theo_linear_scratch_bytes(packed, m, threads))};
    /* Large pages, as a plan's memory. */
    float *in = theo_alloc_aligned((size_t)m * (size_t)k * sizeof(float)),
          *out = theo_alloc_aligned((size_t)m * (size_t)n * sizeof(float));
    double seconds = 0.0;
    if (j.scratch && in && out) {
        check_fill(c, CHECK_NORMAL, in, (size_t)m * (size_t)k);
        j.call.in = in;
        j.call.out = out;
        run(&j);
        seconds = check_seconds(run, &j);
    }
    theo_free_aligned(in);
    theo_free_aligned(out);
    theo_free_aligned(j.scratch);
    theo_packed_free(packed);
    return seconds;
}

static void time_one(check *c, int m, int k, int n) {
    char what[80];
    snprintf(what, sizeof what, "%d x %d -> %d", m, k, n);
    double c_seconds = time_at(c, THEO_CPU_C, 1, 8, k, n);
    for (int threads = 1; threads <= c->threads; threads += c->threads - 1) {
        check_report(c, what,
                     (check_result){.flops = flops(m, k, n),
                                    .seconds = time_at(c, c->k->level, threads, m, k, n),
                                    .c_work = flops(8, k, n),
                                    .c_seconds = c_seconds,
                                    .threads = threads});
        if (c->threads == 1)
            break;
    }
    check_end(c, "%s", what);
}

static void bench(check *c) {
    static const int shapes[][3] = {
        {1024, 1024, 3072}, {1369, 1024, 3072}, {1825, 1024, 3072}, /* qkv of ViT-L */
        {1024, 1024, 1024}, {1369, 1024, 1024}, {1825, 1024, 1024}, /* its projection */
        {1024, 1024, 4096}, {1369, 1024, 4096}, {1825, 1024, 4096}, /* its MLP */
        {1024, 4096, 1024}, {1369, 4096, 1024}, {1825, 4096, 1024}, {1024, 768, 2304},
        {1024, 768, 768},   {1024, 768, 3072},  {1024, 3072, 768}, /* DUSt3R's decoder */
        {4800, 256, 65},    {4800, 256, 256},                      /* SuperPoint's heads at 480x640 */
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        time_one(c, shapes[i][0], shapes[i][1], shapes[i][2]);
}

const check_test check_gemm_tests[] = {{"gemm", prove_tiles, bench}, {"gemm_finish", prove_finishes, NULL}, {0}};
