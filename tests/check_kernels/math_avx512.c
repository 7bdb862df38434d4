#include "kernels/vec_avx512.h"

#include "math_impl.h"

void check_math_avx512(check_math_fn fn, const float *x, float *y, int n) {
    run(fn, x, y, n);
}
