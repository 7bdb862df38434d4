/* channels_impl.h - kernels on the channels of a map over a vector vocabulary. */
#include "kernels/channels.h"
#include <stdbool.h>

/* The sum over the rows of x, or of (x - mean)^2, for a vector of columns. */
VEC vf column_sum(const float *x, size_t pitch, int rows, int columns, const bool squares, vf mean) {
    vf sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
    int r = 0;
    for (; r + 4 <= rows; r += 4)
        UNROLL
    for (int i = 0; i < 4; i++, x += pitch) {
        vf d = v_sub(v_load_n(x, columns), mean);
        sum[i] = squares ? v_fma(d, d, sum[i]) : v_add(sum[i], d);
    }
    for (; r < rows; r++, x += pitch) {
        vf d = v_sub(v_load_n(x, columns), mean);
        sum[0] = squares ? v_fma(d, d, sum[0]) : v_add(sum[0], d);
    }
    return v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]));
}

static void channel_moments(const theo_channel_moments *m) {
    for (int c = 0; c < m->columns; c += VW) {
        int n = m->columns - c < VW ? m->columns - c : VW;
        vf sum = column_sum(m->in + c, m->pitch, m->rows, n, false, v_zero());
        vf mean = v_div(sum, v_set1((float)m->rows));
        v_store_n(m->sum + c, n, sum);
        v_store_n(m->deviation + c, n, column_sum(m->in + c, m->pitch, m->rows, n, true, mean));
    }
}

VEC vf nonlinear(const theo_nonlinearity f, vf x) {
    vf zero = v_zero(), one = v_set1(1.0f);
    switch (f) {
    case THEO_NONLINEAR_NONE:
        break;
    case THEO_NONLINEAR_RELU:
        return v_max(zero, x);
    case THEO_NONLINEAR_LEAKY_RELU:
        return v_select(v_greater(x, zero), x, v_mul(x, v_set1(0.2f)));
    case THEO_NONLINEAR_SILU:
        return v_div(x, v_add(one, v_exp(v_sub(zero, x))));
    case THEO_NONLINEAR_ELU:
        return v_select(v_greater(x, zero), x, v_sub(v_exp(x), one));
    }
    return x;
}

VEC void map_rows(const theo_channel_map *m, const theo_nonlinearity f, const bool affine) {
    const float *in = m->in;
    float *out = m->out;
    for (int r = 0; r < m->rows; r++, in += m->in_pitch, out += m->out_pitch)
        for (int c = 0; c < m->columns; c += VW) {
            int n = m->columns - c < VW ? m->columns - c : VW;
            vf x = v_load_n(in + c, n);
            if (affine)
                x = v_fma(x, v_load_n(m->scale + c, n), v_load_n(m->shift + c, n));
            v_store_n(out + c, n, nonlinear(f, x));
        }
}

static void channel_map(const theo_channel_map *m) {
#define MAP_CASE(f)                                                                                                              \
    case f:                                                                                                                      \
        m->scale ? map_rows(m, f, true) : map_rows(m, f, false);                                                                 \
        break
    switch (m->f) {
        MAP_CASE(THEO_NONLINEAR_NONE);
        MAP_CASE(THEO_NONLINEAR_RELU);
        MAP_CASE(THEO_NONLINEAR_LEAKY_RELU);
        MAP_CASE(THEO_NONLINEAR_SILU);
        MAP_CASE(THEO_NONLINEAR_ELU);
    }
#undef MAP_CASE
}
