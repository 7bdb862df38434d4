/* math_impl.h - the functions of vec_math.h on arrays of whole vectors, so that they can be tested by themselves. */
#include "check_math.h"
#include "kernels/vec_math.h"

static void run(check_math_fn fn, const float *x, float *y, int n) {
    for (int i = 0; i < n; i += VW) {
        vf v = v_load(x + i);
        v_store(y + i, fn == CHECK_EXP ? v_exp(v) : fn == CHECK_ERF ? v_erf(v) : v_gelu(v));
    }
}
