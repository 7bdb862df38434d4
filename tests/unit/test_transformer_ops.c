/* Layer norm, attention, rotary positions, transposed convolution, bilinear x2 with a 3x3 behind it, and views of rows: through
 * the plan, against plain loops in double, at every CPU level of this machine; bit-equal on 1, 2 and 3 threads. */
#include "plan_op_check.h"

/* ---- attention */

static theo_tensor record_attention(theo_plan *plan, theo_tensor x, const void *context) {
    return theo_plan_attention(plan, "attention", x, *(const int *)context);
}

static void test_attention(theo_cpu level, int tokens, int heads, int dim, float scale) {
    int c = heads * dim;
    float *qkv = random_floats((size_t)(tokens * 3 * c), scale);
    double *want = theo_alloc((size_t)(tokens * c), sizeof *want), *weight = theo_alloc((size_t)tokens, sizeof *weight);
    for (int head = 0; head < heads; head++)
        for (int i = 0; i < tokens; i++) {
            const float *q = qkv + (size_t)(i * 3 * c + head * dim);
            double largest = -INFINITY, sum = 0;
            for (int j = 0; j < tokens; j++) {
                const float *k = qkv + (size_t)(j * 3 * c + c + head * dim);
                weight[j] = 0;
                for (int d = 0; d < dim; d++)
                    weight[j] += (double)q[d] * (double)k[d];
                weight[j] /= sqrt(dim);
                largest = fmax(largest, weight[j]);
            }
            for (int j = 0; j < tokens; j++)
                sum += weight[j] = exp(weight[j] - largest);
            for (int j = 0; j < tokens; j++)
                for (int d = 0; d < dim; d++)
                    want[i * c + head * dim + d] += weight[j] / sum * (double)qkv[(size_t)(j * 3 * c + 2 * c + head * dim + d)];
        }
    /* A score of magnitude scale^2 sqrt(dim) / 3 is rounded, and its error is that of the weight; values have magnitude scale. */
    double tolerance = 2e-5 * (double)scale + 1e-6 * pow((double)scale, 3);
    char name[64];
    snprintf(name, sizeof name, "attention of %d tokens, %d x %d", tokens, heads, dim);
    check(name, level, record_attention, &heads, qkv, 1, tokens, 3 * c, want, (size_t)(tokens * c), tolerance);
    theo_free(qkv);
    theo_free(want);
    theo_free(weight);
}

/* ---- attention with rotary positions: rows 0 .. queries-1 of x attend to the others. x: q | k | v | turn */

typedef struct rope {
    int queries, keys, heads, dim;
} rope;

static theo_tensor record_rope(theo_plan *plan, theo_tensor x, const void *context) {
    const rope *r = context;
    int c = r->heads * r->dim;
    theo_tensor from = theo_plan_rows(plan, x, 0, 1, r->queries), to = theo_plan_rows(plan, x, r->queries, 1, r->keys);
    return theo_plan_rope_attention(plan, "attention", theo_plan_channels(plan, from, 0, c), theo_plan_channels(plan, to, c, c),
                                    theo_plan_channels(plan, to, 2 * c, c), r->heads,
                                    theo_plan_channels(plan, from, 3 * c, r->dim), theo_plan_channels(plan, to, 3 * c, r->dim));
}

static void turned(const float *in, const float *turn, int dim, double *out) {
    int half = dim / 2;
    for (int d = 0; d < half; d++) {
        out[d] = (double)in[d] * (double)turn[d] - (double)in[half + d] * (double)turn[half + d];
        out[half + d] = (double)in[half + d] * (double)turn[d] + (double)in[d] * (double)turn[half + d];
    }
}

static void test_rope(theo_cpu level, rope r) {
    int c = r.heads * r.dim, rows = r.queries + r.keys, width = 3 * c + r.dim;
    float *x = random_floats((size_t)(rows * width), 1);
    for (int i = 0; i < rows; i++)
        for (int d = 0; d < r.dim / 2; d++) {
            double angle = i * pow(100, -2.0 * d / r.dim);
            x[i * width + 3 * c + d] = (float)cos(angle);
            x[i * width + 3 * c + r.dim / 2 + d] = (float)sin(angle);
        }
    double *want = theo_alloc((size_t)(r.queries * c), sizeof *want), *weight = theo_alloc((size_t)r.keys, sizeof *weight);
    double *q = theo_alloc((size_t)r.dim, sizeof *q), *k = theo_alloc((size_t)r.dim, sizeof *k);
    for (int head = 0; head < r.heads; head++)
        for (int i = 0; i < r.queries; i++) {
            double sum = 0;
            turned(x + i * width + head * r.dim, x + i * width + 3 * c, r.dim, q);
            for (int j = 0; j < r.keys; j++) {
                const float *row = x + (r.queries + j) * width;
                turned(row + c + head * r.dim, row + 3 * c, r.dim, k);
                double score = 0;
                for (int d = 0; d < r.dim; d++)
                    score += q[d] * k[d];
                sum += weight[j] = exp(score / sqrt(r.dim));
            }
            for (int j = 0; j < r.keys; j++)
                for (int d = 0; d < r.dim; d++)
                    want[i * c + head * r.dim + d] +=
                        weight[j] / sum * (double)x[(r.queries + j) * width + 2 * c + head * r.dim + d];
        }
    char name[96];
    snprintf(name, sizeof name, "rotary attention of %d to %d, %d x %d", r.queries, r.keys, r.heads, r.dim);
    check(name, level, record_rope, &r, x, 1, rows, width, want, (size_t)(r.queries * c), 2e-5);
    theo_free(x);
    theo_free(want);
    theo_free(weight);
    theo_free(q);
    theo_free(k);
}

/* ---- layer norm of some rows */

typedef struct norm {
    const float *gamma, *beta;
} norm;

static theo_tensor record_norm(theo_plan *plan, theo_tensor x, const void *context) {
    const norm *n = context;
    return theo_plan_layer_norm(plan, "norm", theo_plan_rows(plan, x, 1, 2, 3), n->gamma, n->beta, 1e-6f);
}

static void test_norm(theo_cpu level, int c) {
    float *x = random_floats((size_t)(9 * c), 3), *gamma = random_floats((size_t)c, 1), *beta = random_floats((size_t)c, 1);
    double *want = theo_alloc((size_t)(6 * c), sizeof *want);
    for (int i = 0; i < 6; i++) { /* rows 1 to 6 of nine */
        const float *row = x + (size_t)((i + 1) * c);
        double mean = 0, variance = 0;
        for (int k = 0; k < c; k++)
            mean += (double)row[k] / c;
        for (int k = 0; k < c; k++)
            variance += ((double)row[k] - mean) * ((double)row[k] - mean) / c;
        for (int k = 0; k < c; k++)
            want[i * c + k] = ((double)row[k] - mean) / sqrt(variance + 1e-6) * (double)gamma[k] + (double)beta[k];
    }
    check("layer norm", level, record_norm, &(norm){gamma, beta}, x, 1, 9, c, want, (size_t)(6 * c), 1e-5);
    theo_free(x);
    theo_free(gamma);
    theo_free(beta);
    theo_free(want);
}

/* ---- twice the size */

static theo_tensor record_transpose(theo_plan *plan, theo_tensor x, const void *context) {
    return theo_plan_conv_transpose(plan, "up", x, context, theo_epilogue_none());
}

static void test_transpose(theo_cpu level, int h, int w, int in, int out, int size) {
    int phases = size * size;
    float *x = random_floats((size_t)(h * w * in), 1), *weight = random_floats((size_t)(in * out * phases), 0.3f);
    float *bias = random_floats((size_t)out, 1);
    size_t count = (size_t)(phases * h * w * out);
    double *want = theo_alloc(count, sizeof *want);
    for (int y = 0; y < size * h; y++)
        for (int z = 0; z < size * w; z++)
            for (int o = 0; o < out; o++) {
                double sum = (double)bias[o];
                for (int i = 0; i < in; i++)
                    sum += (double)x[(y / size * w + z / size) * in + i] *
                           (double)weight[((i * out + o) * size + y % size) * size + z % size];
                want[(y * size * w + z) * out + o] = sum;
            }
    theo_packed *packed;
    CHECK(theo_packed_conv_transpose(&packed, level, in, out, size, weight, bias, NULL) == THEO_OK);
    check("transposed convolution", level, record_transpose, packed, x, h, w, in, want, count, 2e-5);
    theo_packed_free(packed);
    theo_free(x);
    theo_free(weight);
    theo_free(bias);
    theo_free(want);
}

static int clamped(int i, int n) {
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* Value of the enlarged map at (y, x), clamped to it. */
static double enlarged(const float *map, int h, int w, int c, int channel, int y, int x) {
    y = clamped(y, 2 * h);
    x = clamped(x, 2 * w);
    double fy = fmax((y + 0.5) / 2 - 0.5, 0), fx = fmax((x + 0.5) / 2 - 0.5, 0), sum = 0;
    int y0 = (int)fy, x0 = (int)fx;
    for (int k = 0; k < 4; k++) {
        double share = (k / 2 ? fy - y0 : 1 - fy + y0) * (k % 2 ? fx - x0 : 1 - fx + x0);
        sum += share * (double)map[(clamped(y0 + k / 2, h) * w + clamped(x0 + k % 2, w)) * c + channel];
    }
    return sum;
}

static theo_tensor record_upsample(theo_plan *plan, theo_tensor x, const void *context) {
    return theo_plan_upsample2_conv(plan, "up", x, context, theo_epilogue_none());
}

static void test_upsample(theo_cpu level, int h, int w, int in, int out) {
    float *x = random_floats((size_t)(h * w * in), 1), *weight = random_floats((size_t)(in * out * 9), 0.2f);
    float *bias = random_floats((size_t)out, 1);
    double *want = theo_alloc((size_t)(4 * h * w * out), sizeof *want);
    for (int y = 0; y < 2 * h; y++)
        for (int z = 0; z < 2 * w; z++)
            for (int o = 0; o < out; o++) {
                double sum = (double)bias[o];
                for (int i = 0; i < in; i++)
                    for (int k = 0; k < 9; k++)
                        sum += enlarged(x, h, w, in, i, y + k / 3 - 1, z + k % 3 - 1) * (double)weight[(o * in + i) * 9 + k];
                want[(y * 2 * w + z) * out + o] = sum;
            }
    theo_packed *packed;
    CHECK(theo_packed_upsample2_conv(&packed, level, out, in, weight, bias, NULL) == THEO_OK);
    check("bilinear x2 and 3x3", level, record_upsample, packed, x, h, w, in, want, (size_t)(4 * h * w * out), 5e-5);
    theo_packed_free(packed);
    theo_free(x);
    theo_free(weight);
    theo_free(bias);
    theo_free(want);
}

int main(void) {
    for (theo_cpu level = THEO_CPU_C; level <= theo_cpu_level_in_use(); level++) {
        if (theo_kernels_for(level)->level != level)
            continue;
        static const int tokens[] = {1, 2, 15, 16, 17, 47, 49, 191, 192, 193, 385};
        for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++)
            test_attention(level, tokens[i], 2, 64, 1);
        test_attention(level, 100, 3, 16, 1);
        test_attention(level, 70, 1, 96, 1);
        test_attention(level, 400, 1, 64, 30); /* weights of almost one and almost zero, and a maximum that rises late */
        test_rope(level, (rope){1, 1, 1, 16});
        test_rope(level, (rope){50, 33, 3, 16});
        test_rope(level, (rope){29, 200, 2, 64});
        test_rope(level, (rope){197, 49, 1, 96});
        test_norm(level, 5);
        test_norm(level, 64);
        test_norm(level, 100);
        test_transpose(level, 1, 1, 3, 2, 2);
        test_transpose(level, 3, 5, 40, 33, 2);
        test_transpose(level, 9, 20, 16, 70, 2);
        test_transpose(level, 2, 7, 24, 17, 4);
        test_transpose(level, 5, 3, 16, 9, 3);
        test_upsample(level, 1, 1, 8, 3);
        test_upsample(level, 2, 5, 16, 7);
        test_upsample(level, 9, 6, 20, 5);
    }
    return t_done("test_transformer_ops");
}
