/* vec_neon.h - the vector vocabulary at 4 lanes. vec_avx2.h says what each word means. */
#ifndef THEO_KERNELS_VEC_NEON_H
#define THEO_KERNELS_VEC_NEON_H

#include "kernels/vec.h"
#include <arm_neon.h>
#include <stdint.h>
#include <string.h>

#define VW           4
#define CONV_PIXELS  6
#define CONV_VECTORS 4
#define FMA_CHAINS   24

typedef float32x4_t vf;
typedef int32x4_t vi;
typedef uint32x4_t vm;

/* A word a line. clang-format would take three. */
/* clang-format off */
VEC vf v_zero(void) { return vdupq_n_f32(0.0f); }
VEC vf v_set1(float x) { return vdupq_n_f32(x); }
VEC vf v_load(const float *p) { return vld1q_f32(p); }
VEC void v_store(float *p, vf a) { vst1q_f32(p, a); }
VEC void v_stream(float *p, vf a) { vst1q_f32(p, a); }
VEC void v_stream_end(void) {}
VEC vf v_load_n(const float *p, int n) {
    float lanes[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    memcpy(lanes, p, (size_t)n * sizeof(float));
    return vld1q_f32(lanes);
}
VEC void v_store_n(float *p, int n, vf a) {
    float lanes[4];
    vst1q_f32(lanes, a);
    memcpy(p, lanes, (size_t)n * sizeof(float));
}

VEC vf v_add(vf a, vf b) { return vaddq_f32(a, b); }
VEC vf v_sub(vf a, vf b) { return vsubq_f32(a, b); }
VEC vf v_mul(vf a, vf b) { return vmulq_f32(a, b); }
VEC vf v_div(vf a, vf b) { return vdivq_f32(a, b); }
VEC vf v_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
VEC vf v_fnma(vf a, vf b, vf c) { return vfmsq_f32(c, a, b); }
VEC void v_accumulate(vf *acc, vf a, vf b) { *acc = v_fma(a, b, *acc); }
VEC void v_accumulate_at(vf *acc, const float *a, vf b) { *acc = v_fma(v_set1(*a), b, *acc); }
VEC vf v_max(vf a, vf b) { return vmaxq_f32(a, b); }
VEC vf v_min(vf a, vf b) { return vminq_f32(a, b); }
VEC vf v_round(vf a) { return vrndnq_f32(a); }
VEC vf v_scale2(vf a, vf n) {
    int32x4_t whole = vcvtnq_s32_f32(n), half = vshrq_n_s32(whole, 1), rest = vsubq_s32(whole, half);
    int32x4_t bias = vdupq_n_s32(127);
    a = vmulq_f32(a, vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(half, bias), 23)));
    return vmulq_f32(a, vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(rest, bias), 23)));
}
VEC vf v_add_exponent(vf a, vf bits) {
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(a), vshlq_n_s32(vreinterpretq_s32_f32(bits), 23)));
}

VEC float v_sum(vf a) { return vaddvq_f32(a); }
VEC float v_top(vf a) { return vmaxvq_f32(a); }

VEC vm v_greater(vf a, vf b) { return vcgtq_f32(a, b); }
VEC vf v_select(vm m, vf a, vf b) { return vbslq_f32(m, a, b); }

VEC vi vi_set1(int32_t x) { return vdupq_n_s32(x); }
VEC vi vi_load(const int32_t *p) { return vld1q_s32(p); }
VEC void vi_store(int32_t *p, vi a) { vst1q_s32(p, a); }
VEC vi vi_add(vi a, vi b) { return vaddq_s32(a, b); }
VEC vi vi_select(vm m, vi a, vi b) { return vbslq_s32(m, a, b); }

VEC void v_transpose(vf r[VW]) {
    float32x4x2_t a = vtrnq_f32(r[0], r[1]), b = vtrnq_f32(r[2], r[3]);
    r[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
    r[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
    r[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
    r[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}
/* clang-format on */

#endif
