/* Operations of MoGe's decoders: norms over groups of channels, functions on their own, and bilinear resizing in front of a
 * convolution and a linear layer in strips: through the plan, against plain loops in double, at every CPU level of this machine.
 */
#include "plan_op_check.h"

/* ---- functions, with and without a norm */

typedef struct norm {
    int groups; /* 0: none */
    const float *gamma, *beta;
    theo_nonlinearity f;
} norm;

static const float eps = 1e-5f;

static theo_tensor record_norm(theo_plan *plan, theo_tensor x, const void *context) {
    const norm *n = context;
    return n->groups ? theo_plan_group_norm(plan, "norm", x, n->groups, n->gamma, n->beta, eps, n->f)
                     : theo_plan_nonlinear(plan, "function", x, n->f);
}

static double nonlinear(theo_nonlinearity f, double x) {
    switch (f) {
    case THEO_NONLINEAR_NONE:
        break;
    case THEO_NONLINEAR_RELU:
        return fmax(x, 0);
    case THEO_NONLINEAR_LEAKY_RELU:
        return x > 0 ? x : 0.2 * x;
    case THEO_NONLINEAR_SILU:
        return x / (1 + exp(-x));
    case THEO_NONLINEAR_ELU:
        return x > 0 ? x : exp(x) - 1;
    }
    return x;
}

/* Normalises the channels [from, from + count) of x in place. */
static void normalise(double *x, int pixels, int c, int from, int count, const norm *n) {
    double mean = 0, variance = 0;
    for (int i = 0; i < pixels; i++)
        for (int k = from; k < from + count; k++)
            mean += x[i * c + k] / ((double)pixels * count);
    for (int i = 0; i < pixels; i++)
        for (int k = from; k < from + count; k++)
            variance += (x[i * c + k] - mean) * (x[i * c + k] - mean) / ((double)pixels * count);
    for (int i = 0; i < pixels; i++)
        for (int k = from; k < from + count; k++) {
            double y = (x[i * c + k] - mean) / sqrt(variance + (double)eps);
            x[i * c + k] = n->gamma ? y * (double)n->gamma[k] + (double)n->beta[k] : y;
        }
}

/* offset: of all values, so that the mean is far from zero in comparison with the deviation. */
static void test_norm(theo_cpu level, int h, int w, int c, norm n, float offset) {
    float *x = random_floats((size_t)(h * w * c), 2);
    double *want = theo_alloc((size_t)(h * w * c), sizeof *want);
    for (int i = 0; i < h * w * c; i++)
        want[i] = (double)(x[i] += offset * (float)(i % c));
    for (int g = 0; g < n.groups; g++)
        normalise(want, h * w, c, g * (c / n.groups), c / n.groups, &n);
    for (int i = 0; i < h * w * c; i++)
        want[i] = nonlinear(n.f, want[i]);
    check("norm", level, record_norm, &n, x, h, w, c, want, (size_t)(h * w * c), offset != 0 ? 2e-4 : 1e-5);
    theo_free(x);
    theo_free(want);
}

static void test_norms(theo_cpu level) {
    float *gamma = random_floats(96, 1), *beta = random_floats(96, 1);
    for (theo_nonlinearity f = THEO_NONLINEAR_NONE; f <= THEO_NONLINEAR_ELU; f++) {
        test_norm(level, 3, 5, 21, (norm){0, NULL, NULL, f}, 0);
        test_norm(level, 19, 17, 96, (norm){3, gamma, beta, f}, 0);
        test_norm(level, 1, 1, 96, (norm){1, gamma, beta, f}, 0);
        test_norm(level, 20, 31, 24, (norm){24, NULL, NULL, f}, 0);
    }
    test_norm(level, 40, 30, 32, (norm){1, gamma, beta, THEO_NONLINEAR_RELU}, 0);
    test_norm(level, 40, 30, 32, (norm){32, NULL, NULL, THEO_NONLINEAR_NONE}, 30);
    theo_free(gamma);
    theo_free(beta);
}

/* ---- resized, with another map beside, 3x3, ReLU, linear */

typedef struct head {
    const theo_packed *conv, *linear;
    int h, w; /* of the output: at most twice the input's */
} head;

/* The map beside is the input's first two channels, enlarged. */
static theo_tensor record_head(theo_plan *plan, theo_tensor x, const void *context) {
    const head *h = context;
    theo_epilogue relu = theo_epilogue_none();
    relu.act = THEO_ACT_RELU;
    theo_tensor beside =
        theo_plan_upsample2_corners(plan, "beside", theo_plan_channels(plan, x, 0, 2), h->h, h->w, (theo_tensor){.id = -1});
    return theo_plan_resize_conv_linear(plan, "head", x, beside, h->conv, relu, h->linear, theo_epilogue_none());
}

static int clamped(int i, int n) {
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static double between(const float *map, int h, int w, int c, int channel, double fy, double fx) {
    fy = fmax(fy, 0);
    fx = fmax(fx, 0);
    int y0 = clamped((int)fy, h), x0 = clamped((int)fx, w), y1 = clamped(y0 + 1, h), x1 = clamped(x0 + 1, w);
    double ty = fy - y0, tx = fx - x0;
#define AT(y, x) (double)map[((y)*w + (x)) * c + channel]
    return (1 - ty) * ((1 - tx) * AT(y0, x0) + tx * AT(y0, x1)) + ty * ((1 - tx) * AT(y1, x0) + tx * AT(y1, x1));
#undef AT
}

/* [oh, ow, in + 2]: what the convolution reads. */
static double *joined(const float *x, int h, int w, int in, int oh, int ow) {
    double *map = theo_alloc((size_t)(oh * ow * (in + 2)), sizeof *map), *p = map;
    for (int i = 0; i < oh * ow; i++) {
        int y = i / ow, z = i % ow;
        for (int c = 0; c < in; c++)
            *p++ = between(x, h, w, in, c, (y + 0.5) * h / oh - 0.5, (z + 0.5) * w / ow - 0.5);
        for (int c = 0; c < 2; c++) /* corners aligned */
            *p++ = between(x, h, w, in, c, (double)y * (h - 1) / (2 * h - 1), (double)z * (w - 1) / (2 * w - 1));
    }
    return map;
}

static void test_head(theo_cpu level, int h, int w, int in, int oh, int ow, int middle, int out) {
    int all = in + 2;
    float *x = random_floats((size_t)(h * w * in), 1), *first = random_floats((size_t)(all * middle * 9), 0.2f);
    float *last = random_floats((size_t)(middle * out), 0.3f), *bias = random_floats((size_t)(middle + out), 1);
    double *map = joined(x, h, w, in, oh, ow), *want = theo_alloc((size_t)(oh * ow * out), sizeof *want);
    for (int y = 0; y < oh; y++)
        for (int z = 0; z < ow; z++)
            for (int m = 0; m < middle; m++) {
                double sum = (double)bias[m];
                for (int k = 0; k < 9; k++) {
                    int py = clamped(y + k / 3 - 1, oh), px = clamped(z + k % 3 - 1, ow);
                    for (int i = 0; i < all; i++)
                        sum += map[(py * ow + px) * all + i] * (double)first[(m * all + i) * 9 + k];
                }
                for (int o = 0; o < out; o++)
                    want[(y * ow + z) * out + o] +=
                        fmax(sum, 0) * (double)last[o * middle + m] + (m ? 0 : (double)bias[middle + o]);
            }
    theo_packed *conv, *linear;
    CHECK(theo_packed_conv(&conv, level, middle, all, 3, first, bias, NULL) == THEO_OK);
    CHECK(theo_packed_linear(&linear, level, out, middle, last, bias + middle, NULL) == THEO_OK);
    check("resized, 3x3, linear", level, record_head, &(head){conv, linear, oh, ow}, x, h, w, in, want, (size_t)(oh * ow * out),
          2e-4);
    theo_packed_free(conv);
    theo_packed_free(linear);
    theo_free(x);
    theo_free(first);
    theo_free(last);
    theo_free(bias);
    theo_free(map);
    theo_free(want);
}

/* ---- what is refused */

static void refused(const char *words, theo_tensor (*record)(theo_plan *plan, theo_tensor x)) {
    theo_plan *plan;
    theo_error err;
    CHECK(theo_plan_new(&plan, THEO_CPU_C, NULL, NULL) == THEO_OK);
    record(plan, theo_plan_input(plan, "x", 4, 4, 12));
    CHECK(theo_plan_finish(plan, &err) != THEO_OK);
    CHECK_MSG(strstr(err.message, words), "\"%s\" says nothing of \"%s\"", err.message, words);
    theo_plan_free(plan);
}

static theo_tensor record_uneven_groups(theo_plan *plan, theo_tensor x) {
    return theo_plan_group_norm(plan, "norm", x, 5, NULL, NULL, eps, THEO_NONLINEAR_NONE);
}

static theo_tensor record_half_an_affine(theo_plan *plan, theo_tensor x) {
    static const float gamma[12] = {1};
    return theo_plan_group_norm(plan, "norm", x, 4, gamma, NULL, eps, THEO_NONLINEAR_NONE);
}

static theo_tensor record_without_weights(theo_plan *plan, theo_tensor x) {
    return theo_plan_resize_conv_linear(plan, "head", x, x, NULL, theo_epilogue_none(), NULL, theo_epilogue_none());
}

int main(void) {
    for (theo_cpu level = THEO_CPU_C; level <= theo_cpu_level_in_use(); level++) {
        if (theo_kernels_for(level)->level != level)
            continue;
        test_norms(level);
        test_head(level, 1, 1, 8, 2, 1, 5, 4);
        test_head(level, 5, 6, 12, 7, 11, 12, 4);
        test_head(level, 17, 4, 16, 34, 5, 24, 4); /* a strip and two rows */
    }
    refused("5 equal groups", record_uneven_groups);
    refused("one of gamma and beta", record_half_an_affine);
    refused("no weights", record_without_weights);
    return t_done("test_map_ops");
}
