/* vec_avx2.h - the vector vocabulary at 8 lanes.
 *
 * Element-wise kernels are written once, in *_impl.h, over these words; a file per level includes the words of that level and
 * then the kernels. Every vec_*.h defines the same ones. */
#ifndef THEO_KERNELS_VEC_AVX2_H
#define THEO_KERNELS_VEC_AVX2_H

#include "kernels/vec.h"
#include <immintrin.h>
#include <stdint.h>

#define VW 8 /* lanes */
/* Register tile of the direct convolution: pixels x vectors of output channels. */
#define CONV_PIXELS  6
#define CONV_VECTORS 2
/* Independent chains that fill the fused multiply-add units: at least units x latency, and all in registers. */
#define FMA_CHAINS 12

typedef __m256 vf;  /* floats */
typedef __m256i vi; /* int32 */
typedef __m256 vm;  /* one truth value a lane */

/* A word a line. clang-format would take three. */
/* clang-format off */
VEC vf v_zero(void) { return _mm256_setzero_ps(); }
VEC vf v_set1(float x) { return _mm256_set1_ps(x); }
VEC vf v_load(const float *p) { return _mm256_loadu_ps(p); }
VEC void v_store(float *p, vf a) { _mm256_storeu_ps(p, a); }
/* A store past the caches, p aligned to a vector; v_stream_end before another thread may look. */
VEC void v_stream(float *p, vf a) { _mm256_stream_ps(p, a); }
VEC void v_stream_end(void) { _mm_sfence(); }

/* The first n lanes, 0 <= n <= VW: the others load as zero, and their memory is not touched. */
VEC __m256i v_first(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
VEC vf v_load_n(const float *p, int n) { return _mm256_maskload_ps(p, v_first(n)); }
VEC void v_store_n(float *p, int n, vf a) { _mm256_maskstore_ps(p, v_first(n), a); }

VEC vf v_add(vf a, vf b) { return _mm256_add_ps(a, b); }
VEC vf v_sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
VEC vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
VEC vf v_div(vf a, vf b) { return _mm256_div_ps(a, b); }
VEC vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }   /* a * b + c */
VEC vf v_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); } /* c - a * b */
/* *acc += a * b, the latter with one number for all lanes. At 16 lanes it is one instruction that reads memory, and both stay where
 * they are written: gcc would move accumulators from register to register between them. */
VEC void v_accumulate(vf *acc, vf a, vf b) { *acc = v_fma(a, b, *acc); }
VEC void v_accumulate_at(vf *acc, const float *a, vf b) { *acc = v_fma(v_set1(*a), b, *acc); }
/* A NaN in b is passed on. */
VEC vf v_max(vf a, vf b) { return _mm256_max_ps(a, b); }
VEC vf v_min(vf a, vf b) { return _mm256_min_ps(a, b); }
/* To the nearest integer, ties to even. */
VEC vf v_round(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
/* a * 2^n for whole n in -252 .. 254: two steps of half the size, so that the ends of the range come out as denormals and
 * infinity. */
VEC vf v_scale2(vf a, vf n) {
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1), rest = _mm256_sub_epi32(whole, half);
    __m256i bias = _mm256_set1_epi32(127);
    a = _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23)));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23)));
}
/* a * 2^n where the lowest nine bits of the float `bits` are n, for results that are normal. */
VEC vf v_add_exponent(vf a, vf bits) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), _mm256_slli_epi32(_mm256_castps_si256(bits), 23)));
}

/* Over the lanes: sum, largest. */
VEC float v_sum(vf a) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
VEC float v_top(vf a) {
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

/* Comparisons with NaN are false. v_select: a where m, else b. */
VEC vm v_greater(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_GT_OQ); }
VEC vf v_select(vm m, vf a, vf b) { return _mm256_blendv_ps(b, a, m); }

VEC vi vi_set1(int32_t x) { return _mm256_set1_epi32(x); }
VEC vi vi_load(const int32_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
VEC void vi_store(int32_t *p, vi a) { _mm256_storeu_si256((__m256i *)(void *)p, a); }
VEC vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
VEC vi vi_select(vm m, vi a, vi b) { return _mm256_blendv_epi8(b, a, _mm256_castps_si256(m)); }

/* VW rows of VW floats become the columns. Not in vec_avx512.h: transposing is bound by memory, and AVX2's serves it too. */
VEC void v_transpose(vf r[VW]) {
    vf pair[8], quad[8];
    for (int i = 0; i < 8; i += 2) {
        pair[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        pair[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        quad[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
        quad[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xee);
        quad[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
        quad[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(quad[i], quad[i + 4], 0x31);
    }
}
/* clang-format on */

#endif
