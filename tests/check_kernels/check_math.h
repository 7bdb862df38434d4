/* check_math.h - vec_math.h at each level, reached from outside of the kernels. */
#ifndef THEO_TESTS_CHECK_MATH_H
#define THEO_TESTS_CHECK_MATH_H

typedef enum check_math_fn { CHECK_EXP, CHECK_ERF, CHECK_GELU } check_math_fn;

/* y[i] = fn(x[i]); n is a multiple of 16. */
typedef void check_math_run(check_math_fn fn, const float *x, float *y, int n);
check_math_run check_math_avx2, check_math_avx512, check_math_neon;

#endif
