/* vec_avx512.h - the vector vocabulary at 16 lanes. vec_avx2.h says what each word means. */
#ifndef THEO_KERNELS_VEC_AVX512_H
#define THEO_KERNELS_VEC_AVX512_H

#include "kernels/vec.h"
#include <immintrin.h>
#include <stdint.h>

#define VW           16
#define CONV_PIXELS  8
#define CONV_VECTORS 2
#define FMA_CHAINS   16

typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;

/* A word a line. clang-format would take three. */
/* clang-format off */
VEC vf v_zero(void) { return _mm512_setzero_ps(); }
VEC vf v_set1(float x) { return _mm512_set1_ps(x); }
VEC vf v_load(const float *p) { return _mm512_loadu_ps(p); }
VEC void v_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
VEC void v_stream(float *p, vf a) { _mm512_stream_ps(p, a); }
VEC void v_stream_end(void) { _mm_sfence(); }
VEC __mmask16 v_first(int n) { return (__mmask16)((1u << n) - 1u); }
VEC vf v_load_n(const float *p, int n) { return _mm512_maskz_loadu_ps(v_first(n), p); }
VEC void v_store_n(float *p, int n, vf a) { _mm512_mask_storeu_ps(p, v_first(n), a); }

VEC vf v_add(vf a, vf b) { return _mm512_add_ps(a, b); }
VEC vf v_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
VEC vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
VEC vf v_div(vf a, vf b) { return _mm512_div_ps(a, b); }
VEC vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
VEC vf v_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
VEC vf v_max(vf a, vf b) { return _mm512_max_ps(a, b); }
VEC vf v_min(vf a, vf b) { return _mm512_min_ps(a, b); }
VEC vf v_round(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
VEC vf v_scale2(vf a, vf n) { return _mm512_scalef_ps(a, n); }
VEC vf v_add_exponent(vf a, vf bits) {
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_slli_epi32(_mm512_castps_si512(bits), 23)));
}

VEC void v_accumulate(vf *acc, vf a, vf b) { __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(*acc) : "v"(b), "v"(a)); }
VEC void v_accumulate_at(vf *acc, const float *a, vf b) { __asm__ volatile("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(*acc) : "v"(b), "m"(*a)); }

VEC float v_sum(vf a) { return _mm512_reduce_add_ps(a); }
VEC float v_top(vf a) { return _mm512_reduce_max_ps(a); }

VEC vm v_greater(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
VEC vf v_select(vm m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }

VEC vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
VEC vi vi_load(const int32_t *p) { return _mm512_loadu_si512(p); }
VEC void vi_store(int32_t *p, vi a) { _mm512_storeu_si512(p, a); }
VEC vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
VEC vi vi_select(vm m, vi a, vi b) { return _mm512_mask_blend_epi32(m, b, a); }
/* clang-format on */

#endif
