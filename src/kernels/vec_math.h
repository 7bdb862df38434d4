/* vec_math.h - exp, erf and GELU over the vector vocabulary. Include a vec_*.h first.
 *
 * The coefficients are our own minimax fits (iteratively re-weighted least squares in double). */
#ifndef THEO_KERNELS_VEC_MATH_H
#define THEO_KERNELS_VEC_MATH_H

/* e^x, relative error below 2e-7 where the result is normal. Denormals and zero below -87.3, infinity above 88.73, NaN for NaN.
 *
 * x = n ln 2 + r with |r| <= ln 2 / 2, the ln 2 in two parts so that r is exact; e^r = 1 + r + r^2 P(r), P of degree 4. */
VEC vf v_exp(vf x) {
    x = v_max(v_set1(-110.0f), v_min(v_set1(90.0f), x));
    vf n = v_round(v_mul(x, v_set1(1.44269504f)));
    vf r = v_fnma(n, v_set1(0.693145752f), x); /* 0x3f317200: nine trailing zero bits, n * this is exact */
    r = v_fnma(n, v_set1(1.42860677e-6f), r);
    vf p = v_fma(v_set1(1.3814584e-3f), r, v_set1(8.36872402e-3f));
    p = v_fma(p, r, v_set1(4.16683887e-2f));
    p = v_fma(p, r, v_set1(0.166665206f));
    p = v_fma(p, r, v_set1(0.499999934f));
    p = v_fma(v_mul(p, r), r, r);
    return v_scale2(v_add(p, v_set1(1.0f)), n);
}

/* 2^x for x <= 0, relative error below 3e-7; below -126 it stays at 2^-126, which in a sum is nothing. NaN for NaN.
 *
 * Adding 1.5 * 2^23 rounds to a whole number that stands in the lowest bits; 2^r by a polynomial of degree 5, |r| <= 1/2. */
VEC vf v_exp2_low(vf x) {
    vf magic = v_set1(12582912.0f), y = v_max(v_set1(-126.0f), x);
    vf whole = v_add(y, magic), r = v_sub(y, v_sub(whole, magic));
    vf p = v_fma(v_set1(1.32764701e-3f), r, v_set1(9.67554096e-3f));
    p = v_fma(p, r, v_set1(5.55071346e-2f));
    p = v_fma(p, r, v_set1(0.240221202f));
    p = v_fma(p, r, v_set1(0.693146944f));
    p = v_fma(p, r, v_set1(1.00000012f));
    return v_add_exponent(p, whole);
}

/* erf(x), relative error below 5e-7, NaN for NaN. x P(x^2) / Q(x^2), both of degree 5; exactly 1 and -1 from 3.92 on, where erf
 * rounds to them, so that GELU vanishes far to the left. */
VEC vf v_erf(vf x) {
    vf u = v_mul(x, x);
    vf p = v_fma(v_set1(1.98677369e-6f), u, v_set1(2.84566251e-4f));
    p = v_fma(p, u, v_set1(3.88337217e-3f));
    p = v_fma(p, u, v_set1(5.31018028e-2f));
    p = v_fma(p, u, v_set1(0.193545768f));
    p = v_fma(p, u, v_set1(1.12837914f));
    vf q = v_fma(v_set1(3.74201022e-5f), u, v_set1(1.18557742e-3f));
    q = v_fma(q, u, v_set1(1.52073079e-2f));
    q = v_fma(q, u, v_set1(0.115350286f));
    q = v_fma(q, u, v_set1(0.504858027f));
    q = v_fma(q, u, v_set1(1.0f));
    vf y = v_div(v_mul(x, p), q); /* NaN for huge x */
    y = v_select(v_greater(x, v_set1(3.92f)), v_set1(1.0f), y);
    return v_select(v_greater(v_set1(-3.92f), x), v_set1(-1.0f), y);
}

/* x Phi(x) = x/2 (1 + erf(x / sqrt 2)): the exact GELU, not the tanh form. */
VEC vf v_gelu(vf x) {
    vf half = v_mul(x, v_set1(0.5f));
    return v_fma(half, v_erf(v_mul(x, v_set1(0.707106781f))), half);
}

#endif
