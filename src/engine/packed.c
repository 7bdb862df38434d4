#include "engine/packed.h"
#include "base/error.h"
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
    theo_packed base = {.kernels = theo_kernels_for(level), .form = THEO_PACKED_LINEAR, .out_c = out, .in_c = in, .kernel = 1};
    int nr = base.kernels->gemm->nr;
    THEO_TRY(packed_new(packed, base, theo_gemm_packed_floats(nr, out, in), bias, err));
    theo_gemm_pack_weight(nr, out, in, weight, (*packed)->data);
    return THEO_OK;
}

theo_status theo_packed_conv(theo_packed **packed, theo_cpu level, int out, int in, int kernel, const float *weight, const float *bias,
                             theo_error *err) {
    *packed = NULL;
    if (kernel == 1)
        return theo_packed_linear(packed, level, out, in, weight, bias, err);
    if (kernel != 3)
        return theo_fail(err, THEO_UNSUPPORTED, NULL, NULL, "a convolution of %d x %d: 1 x 1 and 3 x 3 are implemented", kernel, kernel);
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

void theo_packed_free(theo_packed *packed) {
    if (!packed)
        return;
    theo_free_aligned(packed->data);
    theo_free(packed->bias);
    theo_free(packed);
}

size_t theo_packed_bytes(const theo_packed *packed) { return packed->bytes; }
