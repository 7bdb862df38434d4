/* Operations of DPT's decoder: 3x3 convolutions of gathered pixels, bilinear x2 with align_corners, and in front of a convolution
 * and a linear layer in strips: through the plan, against plain loops in double, at every CPU level of this machine. */
#include "plan_op_check.h"

/* ---- gathered 3x3 */

typedef struct gathered {
    const theo_packed *packed;
    int stride;
    theo_padding padding;
} gathered;

static theo_tensor record_gathered(theo_plan *plan, theo_tensor x, const void *context) {
    const gathered *g = context;
    return theo_plan_conv(plan, "conv", x, g->packed, g->stride, g->padding, theo_epilogue_none());
}

static int clamped(int i, int n) {
    return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static void test_gathered(theo_cpu level, int h, int w, int in, int out, int stride, theo_padding padding) {
    float *x = random_floats((size_t)(h * w * in), 1), *weight = random_floats((size_t)(in * out * 9), 0.2f);
    float *bias = random_floats((size_t)out, 1);
    int oh = (h - 1) / stride + 1, ow = (w - 1) / stride + 1;
    size_t count = (size_t)(oh * ow * out);
    double *want = theo_alloc(count, sizeof *want);
    for (int y = 0; y < oh; y++)
        for (int z = 0; z < ow; z++)
            for (int o = 0; o < out; o++) {
                double sum = (double)bias[o];
                for (int k = 0; k < 9; k++) {
                    int py = y * stride + k / 3 - 1, px = z * stride + k % 3 - 1, cy = clamped(py, h), cx = clamped(px, w);
                    for (int i = 0; i < in && (padding == THEO_PAD_REPLICATE || (py == cy && px == cx)); i++)
                        sum += (double)x[(cy * w + cx) * in + i] * (double)weight[(o * in + i) * 9 + k];
                }
                want[(y * ow + z) * out + o] = sum;
            }
    theo_packed *packed;
    CHECK(theo_packed_conv_gathered(&packed, level, out, in, weight, bias, NULL) == THEO_OK);
    check("gathered 3x3", level, record_gathered, &(gathered){packed, stride, padding}, x, h, w, in, want, count, 5e-5);
    theo_packed_free(packed);
    theo_free(x);
    theo_free(weight);
    theo_free(bias);
    theo_free(want);
}

/* ---- bilinear x2 with align_corners */

static double at(const float *map, int w, int c, int channel, int y, int x) {
    return (double)map[(y * w + x) * c + channel];
}

static double enlarged(const float *map, int h, int w, int c, int channel, int y, int x) {
    double fy = h > 1 ? (double)y * (h - 1) / (2 * h - 1) : 0, fx = w > 1 ? (double)x * (w - 1) / (2 * w - 1) : 0;
    int y0 = clamped((int)fy, h), x0 = clamped((int)fx, w), y1 = clamped(y0 + 1, h), x1 = clamped(x0 + 1, w);
    double ty = fy - y0, tx = fx - x0;
    return (1 - ty) * ((1 - tx) * at(map, w, c, channel, y0, x0) + tx * at(map, w, c, channel, y0, x1)) +
           ty * ((1 - tx) * at(map, w, c, channel, y1, x0) + tx * at(map, w, c, channel, y1, x1));
}

typedef struct corners { /* size of the output; the input's channels are the map and, where it `adds`, nothing else */
    int h, w;
    bool adds; /* the map itself, enlarged once more to the right size by an op before, is added */
} corners;

static theo_tensor record_corners(theo_plan *plan, theo_tensor x, const void *context) {
    const corners *c = context;
    theo_tensor residual = {.id = -1};
    if (c->adds)
        residual = theo_plan_upsample2_corners(plan, "residual", x, c->h, c->w, residual);
    return theo_plan_upsample2_corners(plan, "up", x, c->h, c->w, residual);
}

static void test_corners(theo_cpu level, int h, int w, int c, corners size) {
    float *x = random_floats((size_t)(h * w * c), 1);
    double *want = theo_alloc((size_t)(size.h * size.w * c), sizeof *want);
    for (int y = 0; y < size.h; y++)
        for (int z = 0; z < size.w; z++)
            for (int k = 0; k < c; k++)
                want[(y * size.w + z) * c + k] = (size.adds ? 2 : 1) * enlarged(x, h, w, c, k, y, z);
    check("x2 with align_corners", level, record_corners, &size, x, h, w, c, want, (size_t)(size.h * size.w * c), 1e-5);
    theo_free(x);
    theo_free(want);
}

/* ---- in front of a 3x3 convolution, ReLU, a linear layer */

typedef struct head {
    const theo_packed *conv, *linear;
} head;

static theo_tensor record_head(theo_plan *plan, theo_tensor x, const void *context) {
    const head *h = context;
    theo_epilogue relu = theo_epilogue_none();
    relu.act = THEO_ACT_RELU;
    return theo_plan_upsample2_corners_conv_linear(plan, "head", x, h->conv, relu, h->linear, theo_epilogue_none());
}

static void test_head(theo_cpu level, int h, int w, int in, int middle, int out) {
    float *x = random_floats((size_t)(h * w * in), 1), *first = random_floats((size_t)(in * middle * 9), 0.2f);
    float *last = random_floats((size_t)(middle * out), 0.3f), *bias = random_floats((size_t)(middle + out), 1);
    int oh = 2 * h, ow = 2 * w;
    double *map = theo_alloc((size_t)(oh * ow * in), sizeof *map), *want = theo_alloc((size_t)(oh * ow * out), sizeof *want);
    for (int i = 0; i < oh * ow * in; i++)
        map[i] = enlarged(x, h, w, in, i % in, i / in / ow, i / in % ow);
    for (int y = 0; y < oh; y++)
        for (int z = 0; z < ow; z++)
            for (int m = 0; m < middle; m++) {
                double sum = (double)bias[m];
                for (int k = 0; k < 9; k++) {
                    int py = y + k / 3 - 1, px = z + k % 3 - 1;
                    for (int i = 0; i < in && py >= 0 && py < oh && px >= 0 && px < ow; i++)
                        sum += map[(py * ow + px) * in + i] * (double)first[(m * in + i) * 9 + k];
                }
                for (int o = 0; o < out; o++)
                    want[(y * ow + z) * out + o] +=
                        fmax(sum, 0) * (double)last[o * middle + m] + (m ? 0 : (double)bias[middle + o]);
            }
    theo_packed *conv, *linear;
    CHECK(theo_packed_conv(&conv, level, middle, in, 3, first, bias, NULL) == THEO_OK);
    CHECK(theo_packed_linear(&linear, level, out, middle, last, bias + middle, NULL) == THEO_OK);
    check("x2, 3x3, linear", level, record_head, &(head){conv, linear}, x, h, w, in, want, (size_t)(oh * ow * out), 2e-4);
    theo_packed_free(conv);
    theo_packed_free(linear);
    theo_free(x);
    theo_free(first);
    theo_free(last);
    theo_free(bias);
    theo_free(map);
    theo_free(want);
}

int main(void) {
    for (theo_cpu level = THEO_CPU_C; level <= theo_cpu_level_in_use(); level++) {
        if (theo_kernels_for(level)->level != level)
            continue;
        test_gathered(level, 1, 1, 8, 3, 2, THEO_PAD_ZERO);
        test_gathered(level, 7, 5, 20, 33, 2, THEO_PAD_ZERO);
        test_gathered(level, 8, 6, 40, 16, 2, THEO_PAD_REPLICATE);
        test_gathered(level, 6, 9, 17, 50, 1, THEO_PAD_ZERO);
        test_corners(level, 1, 1, 3, (corners){2, 2, false});
        test_corners(level, 1, 4, 16, (corners){1, 8, true});
        test_corners(level, 5, 7, 33, (corners){10, 14, false});
        test_corners(level, 4, 3, 24, (corners){7, 5, true});
        test_head(level, 1, 1, 8, 5, 4);
        test_head(level, 5, 6, 12, 12, 4);
        test_head(level, 17, 3, 16, 24, 4); /* a strip and two rows */
    }
    return t_done("test_decoder_ops");
}
