#include "kernels/vec_neon.h"

#include "math_impl.h"

void check_math_neon(check_math_fn fn, const float *x, float *y, int n) {
    run(fn, x, y, n);
}
