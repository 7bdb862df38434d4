/* vec.h - what the vector vocabularies and the kernels over them share. */
#ifndef THEO_KERNELS_VEC_H
#define THEO_KERNELS_VEC_H

#define VEC static inline __attribute__((always_inline))

/* Before loops with constant bounds: unroll completely, early enough for arrays of vectors to become registers. THEO_NO_UNROLL:
 * for sanitizer builds, where speed does not count. */
#if defined(THEO_NO_UNROLL)
#define UNROLL
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif

#endif
