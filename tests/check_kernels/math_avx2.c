#include "kernels/vec_avx2.h"

#include "math_impl.h"

void check_math_avx2(check_math_fn fn, const float *x, float *y, int n) {
    run(fn, x, y, n);
}
