/* exp, erf and GELU of vec_math.h against the C library in double. */
#include "check_math.h"
#include "check.h"
#include <math.h>

enum { N = 1 << 14 };

/* NULL: the level has no vectors. */
static check_math_run *run_of(theo_cpu level) {
    switch (level) {
#ifdef __x86_64__
    case THEO_CPU_AVX2:
        return check_math_avx2;
    case THEO_CPU_AVX512:
        return check_math_avx512;
#endif
#ifdef __aarch64__
    case THEO_CPU_NEON:
        return check_math_neon;
#endif
    default:
        return NULL;
    }
}

/* Even steps over low .. high, every eighth value drawn from there instead, and the special ones. */
static float *arguments(check *c, float low, float high) {
    static const float special[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-40f, -1e-40f, 3e38f, -3e38f, 1e-10f, -1e-10f};
    float *x = check_floats(c, N);
    for (int i = 0; i < N; i++) {
        int step = i % 8 ? i : check_between(c, 0, N - 1);
        x[i] = low + (high - low) * (float)step / (float)N;
    }
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        x[i] = special[i];
    return x;
}

static double exact(check_math_fn fn, double x) {
    switch (fn) {
    case CHECK_EXP:
        return exp(x);
    case CHECK_ERF:
        return erf(x);
    default:
        return isinf(x) && x < 0.0 ? NAN : x / 2.0 * erfc(-x / sqrt(2.0)); /* 0 times infinity, as everywhere */
    }
}

/* |y - exact| <= relative |exact| + absolute |x| + a denormal. */
static void prove(check *c, check_math_fn fn, float low, float high, double relative, double absolute) {
    check_math_run *run = run_of(c->k->level);
    if (!run)
        return;
    float *x = arguments(c, low, high), *y = check_floats(c, N), *want = check_floats(c, N), *bound = check_floats(c, N);
    for (int i = 0; i < N; i++) {
        double value = exact(fn, (double)x[i]);
        want[i] = (float)value;
        bound[i] = (float)(relative * fabs(value) + absolute * fabs((double)x[i]) + 0x1p-148);
    }
    run(fn, x, y, N);
    check_compare(c, "y", y, want, bound, N);
    check_end(c, "%g .. %g", (double)low, (double)high);
}

static void prove_exp(check *c) {
    prove(c, CHECK_EXP, -87.3f, 88.7f, 2e-7, 0.0);
    prove(c, CHECK_EXP, -1.0f, 1.0f, 1.3e-7, 0.0);
    prove(c, CHECK_EXP, -120.0f, 120.0f, 2e-7, 0.0);
}

static void prove_erf(check *c) {
    prove(c, CHECK_ERF, -6.0f, 6.0f, 5e-7, 0.0);
    prove(c, CHECK_ERF, -0.01f, 0.01f, 5e-7, 0.0);
}

static void prove_gelu(check *c) {
    prove(c, CHECK_GELU, -8.0f, 8.0f, 5e-7, 3e-7);
    prove(c, CHECK_GELU, -0.1f, 0.1f, 5e-7, 0.0);
}

const check_test check_math_tests[] = {
    {"vec_exp", prove_exp, NULL},
    {"vec_erf", prove_erf, NULL},
    {"vec_gelu", prove_gelu, NULL},
    {0},
};
