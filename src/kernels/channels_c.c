#include "kernels/reference.h"
#include <math.h>

void theo_channel_moments_c(const theo_channel_moments *m) {
    for (size_t c = 0; c < (size_t)m->columns; c++) {
        double sum = 0, deviation = 0;
        for (size_t r = 0; r < (size_t)m->rows; r++)
            sum += (double)m->in[r * m->pitch + c];
        for (size_t r = 0; r < (size_t)m->rows; r++) {
            double d = (double)m->in[r * m->pitch + c] - sum / m->rows;
            deviation += d * d;
        }
        m->sum[c] = (float)sum;
        m->deviation[c] = (float)deviation;
    }
}

static double nonlinear(theo_nonlinearity f, double x) {
    switch (f) {
    case THEO_NONLINEAR_NONE:
        break;
    case THEO_NONLINEAR_RELU:
        return x > 0 ? x : 0;
    case THEO_NONLINEAR_LEAKY_RELU:
        return x > 0 ? x : 0.2 * x;
    case THEO_NONLINEAR_SILU:
        return x / (1 + exp(-x));
    case THEO_NONLINEAR_ELU:
        return x > 0 ? x : expm1(x);
    }
    return x;
}

void theo_channel_map_c(const theo_channel_map *m) {
    for (size_t r = 0; r < (size_t)m->rows; r++)
        for (size_t c = 0; c < (size_t)m->columns; c++) {
            double x = (double)m->in[r * m->in_pitch + c];
            if (m->scale)
                x = x * (double)m->scale[c] + (double)m->shift[c];
            m->out[r * m->out_pitch + c] = (float)nonlinear(m->f, x);
        }
}
