#include "engine/packed.h"
#include "base/error.h"
#include <limits.h>
#include <string.h>

/* Below so many input channels the transforms of Winograd cost more than they save, and the direct form reads 3x3 pixels of few
 * values. */
enum { WINOGRAD_MIN_CHANNELS = 8 };

static theo_status packed_new(theo_packed **packed, theo_packed base, size_t floats, const float *bias, theo_error *err) {
    theo_packed *p = theo_alloc(1, sizeof *p);
    if (!p)
        return theo_fail(err, THEO_MEMORY, NULL, NULL, "no memory for packed weights");
    *p = base;
    p->data = theo_alloc_aligned(floats * sizeof(float));
    p->bias = bias ? theo_alloc((size_t)base.out_c, sizeof(float)) : NULL;
    if (!p->data || (bias && !p->bias)) {
        theo_packed_free(p);
        return theo_fail(err, THEO_MEMORY, NULL, NULL, "no memory for %zu bytes of packed weights", floats * sizeof(float));
    }
    p->bytes = floats * sizeof(float);
    if (bias) {
        memcpy(p->bias, bias, (size_t)base.out_c * sizeof(float));
        p->bytes += (size_t)base.out_c * sizeof(float);
    }
    *packed = p;
    return THEO_OK;
}

theo_status theo_packed_linear(theo_packed **packed, theo_cpu level, int out, int in, const float *weight, const float *bias,
                               theo_error *err) {
    *packed = NULL;
    if (out < 1 || in < 1)
        return theo_fail(err, THEO_SHAPE, NULL, NULL, "a weight of %d x %d: both must be at least 1", out, in);
    theo_packed base = {.kernels = theo_kernels_for(level),
                        .form = THEO_PACKED_LINEAR,
                        .out_c = out,
                        .in_c = in,
                        .kernel = 1,
                        .depth = in,
                        .phases = 1};
    int nr = base.kernels->gemm->nr;
    THEO_TRY(packed_new(packed, base, theo_gemm_packed_floats(nr, out, in), bias, err));
    theo_gemm_pack_weight(nr, base.kernels->transpose, out, in, weight, (*packed)->data);
    return THEO_OK;
}

theo_status theo_packed_conv(theo_packed **packed, theo_cpu level, int out, int in, int kernel, const float *weight,
                             const float *bias, theo_error *err) {
    *packed = NULL;
    if (kernel == 1)
        return theo_packed_linear(packed, level, out, in, weight, bias, err);
    if (kernel != 3)
        return theo_fail(err, THEO_UNSUPPORTED, NULL, NULL, "a convolution of %d x %d: 1 x 1 and 3 x 3 are implemented", kernel,
                         kernel);
    if (out < 1 || in < 1)
        return theo_fail(err, THEO_SHAPE, NULL, NULL, "a weight of %d x %d x 3 x 3: all must be at least 1", out, in);

    theo_packed base = {.kernels = theo_kernels_for(level), .form = THEO_PACKED_DIRECT, .out_c = out, .in_c = in, .kernel = 3};
    if (in < WINOGRAD_MIN_CHANNELS) {
        THEO_TRY(packed_new(packed, base, theo_conv3x3_packed_floats(out, in), bias, err));
        theo_conv3x3_pack(out, in, weight, (*packed)->data);
    } else {
        base.form = THEO_PACKED_WINOGRAD;
        int nr = base.kernels->gemm->nr;
        THEO_TRY(packed_new(packed, base, theo_winograd_packed_floats(nr, out, in), bias, err));
        theo_winograd_pack_weight(nr, out, in, weight, (*packed)->data);
    }
    return THEO_OK;
}

theo_status theo_packed_conv_gathered(theo_packed **packed, theo_cpu level, int out, int in, const float *weight,
                                      const float *bias, theo_error *err) {
    *packed = NULL;
    if (out < 1 || in < 1 || in > INT_MAX / 9)
        return theo_fail(err, THEO_SHAPE, NULL, NULL, "a weight of %d x %d x 3 x 3: all must be at least 1", out, in);
    theo_packed base = {.kernels = theo_kernels_for(level),
                        .form = THEO_PACKED_GATHERED,
                        .out_c = out,
                        .in_c = in,
                        .kernel = 3,
                        .depth = 9 * in,
                        .phases = 1};
    int nr = base.kernels->gemm->nr;
    float *rows = theo_alloc((size_t)out * 9 * (size_t)in, sizeof *rows); /* [out, ky, kx, in] */
    theo_status status = rows ? packed_new(packed, base, theo_gemm_packed_floats(nr, out, base.depth), bias, err)
                              : theo_fail(err, THEO_MEMORY, NULL, NULL, "no memory for packing weights");
    if (status == THEO_OK) {
        for (size_t o = 0; o < (size_t)out; o++)
            for (size_t i = 0; i < (size_t)in; i++)
                for (size_t k = 0; k < 9; k++)
                    rows[(o * 9 + k) * (size_t)in + i] = weight[(o * (size_t)in + i) * 9 + k];
        theo_gemm_pack_weight(nr, base.kernels->transpose, out, base.depth, rows, (*packed)->data);
    }
    theo_free(rows);
    return status;
}

theo_status theo_packed_conv_transpose(theo_packed **packed, theo_cpu level, int in, int out, int size, const float *weight,
                                       const float *bias, theo_error *err) {
    *packed = NULL;
    if (out < 1 || in < 1 || size < 2 || size > 16)
        return theo_fail(err, THEO_SHAPE, NULL, NULL, "a weight of %d x %d x %d x %d: channels must be at least 1, sides 2 to 16",
                         in, out, size, size);
    int phases = size * size;
    theo_packed base = {.kernels = theo_kernels_for(level),
                        .form = THEO_PACKED_LINEAR,
                        .out_c = out,
                        .in_c = in,
                        .kernel = size,
                        .depth = in,
                        .phases = phases};
    int nr = base.kernels->gemm->nr;
    size_t phase_floats = theo_gemm_packed_floats(nr, out, in);
    float *phase = theo_alloc((size_t)out * (size_t)in, sizeof *phase); /* [out, in] of one of the pixels */
    theo_status status = phase ? packed_new(packed, base, (size_t)phases * phase_floats, bias, err)
                               : theo_fail(err, THEO_MEMORY, NULL, NULL, "no memory for packing weights");
    for (size_t p = 0; p < (size_t)phases && status == THEO_OK; p++) {
        for (size_t o = 0; o < (size_t)out; o++)
            for (size_t i = 0; i < (size_t)in; i++)
                phase[o * (size_t)in + i] = weight[(i * (size_t)out + o) * (size_t)phases + p];
        theo_gemm_pack_weight(nr, base.kernels->transpose, out, in, phase, (*packed)->data + p * phase_floats);
    }
    theo_free(phase);
    return status;
}

/* Row p: what the enlarged map at 2y + p - 1 takes of the small one at y - 1, y, y + 1. */
static const double up[4][3] = {{0.75, 0.25, 0}, {0.25, 0.75, 0}, {0, 0.75, 0.25}, {0, 0.25, 0.75}};

/* g [3][3] applied after enlarging gives pixel (2y + i, 2x + j) like `phase` applied to the small map at (y, x). At the edges
 * too: clamping before and after enlarging are the same. */
static void enlarge_first(const float *g, int i, int j, float *phase) {
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 3; x++) {
            double sum = 0;
            for (int ky = 0; ky < 3; ky++)
                for (int kx = 0; kx < 3; kx++)
                    sum += (double)g[ky * 3 + kx] * up[i + ky][y] * up[j + kx][x];
            phase[y * 3 + x] = (float)sum;
        }
}

theo_status theo_packed_upsample2_conv(theo_packed **packed, theo_cpu level, int out, int in, const float *weight,
                                       const float *bias, theo_error *err) {
    *packed = NULL;
    if (out < 1 || in < 1 || out > INT_MAX / 4)
        return theo_fail(err, THEO_SHAPE, NULL, NULL, "a weight of %d x %d x 3 x 3: all must be at least 1", out, in);
    float *phases = theo_alloc((size_t)out * (size_t)in, 4 * 9 * sizeof *phases),
          *biases = theo_alloc((size_t)out, 4 * sizeof *biases);
    theo_status status = phases && biases ? THEO_OK : theo_fail(err, THEO_MEMORY, NULL, NULL, "no memory for packing weights");
    for (size_t o = 0; o < (size_t)out && status == THEO_OK; o++)
        for (size_t p = 0; p < 4; p++) {
            biases[o * 4 + p] = bias ? bias[o] : 0.0f;
            for (size_t i = 0; i < (size_t)in; i++)
                enlarge_first(weight + (o * (size_t)in + i) * 9, (int)p / 2, (int)p % 2,
                              phases + ((o * 4 + p) * (size_t)in + i) * 9);
        }
    if (status == THEO_OK)
        status = theo_packed_conv(packed, level, 4 * out, in, 3, phases, bias ? biases : NULL, err);
    theo_free(phases);
    theo_free(biases);
    return status;
}

void theo_packed_free(theo_packed *packed) {
    if (!packed)
        return;
    theo_free_aligned(packed->data);
    theo_free(packed->bias);
    theo_free(packed);
}

size_t theo_packed_bytes(const theo_packed *packed) {
    return packed->bytes;
}
