/* The readable reference of the GEMM kernels, and the packing of weights for all levels. Sums are kept in double. */
#include "kernels/gemm.h"
#include <math.h>
#include <string.h>

enum { MR = 4, NR = 16 };

static void pack_rows(const float *x, size_t pitch, int rows, int k, float *panel) {
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < (k + THEO_KU - 1) / THEO_KU * THEO_KU; i++)
            panel[i / THEO_KU * (MR * THEO_KU) + r * THEO_KU + i % THEO_KU] = i < k ? x[(size_t)r * pitch + (size_t)i] : 0.0f;
}

static void tile(const theo_gemm_tile *t) {
    for (int r = 0; r < t->rows; r++) {
        double sum[NR];
        for (int c = 0; c < NR; c++)
            sum[c] = t->add ? (double)t->c[r * NR + c] : 0.0;
        for (int k = 0; k < t->chunks * THEO_KU; k++) {
            double a = (double)t->a[k / THEO_KU * (MR * THEO_KU) + r * THEO_KU + k % THEO_KU];
            for (int c = 0; c < NR; c++)
                sum[c] += a * (double)t->b[k * NR + c];
        }
        for (int c = 0; c < (t->cols > NR / 2 ? NR : NR / 2); c++)
            t->c[r * NR + c] = (float)sum[c];
    }
}

static void finish(const theo_gemm_finish *f) {
    const theo_channel_epilogue *e = &f->epilogue;
    for (int r = 0; r < f->rows; r++) {
        for (int c = 0; c < f->cols; c++) {
            double y = (double)f->c[r * NR + c];
            if (e->bias)
                y += (double)e->bias[c];
            if (e->act == THEO_ACT_RELU)
                y = y < 0.0 ? 0.0 : y;
            if (e->act == THEO_ACT_GELU)
                y = 0.5 * y * (1.0 + erf(y * 0.70710678118654752));
            if (e->scale)
                y = y * (double)e->scale[c] + (double)e->shift[c];
            if (f->residual)
                y += (double)f->residual[(size_t)r * f->residual_pitch + (size_t)c];
            f->out[(size_t)r * f->out_pitch + (size_t)c] = (float)y;
        }
    }
}

const theo_gemm_kernels theo_gemm_c = {MR, NR, pack_rows, tile, finish};

static size_t round_up(int n, int unit) {
    return ((size_t)n + (size_t)unit - 1) / (size_t)unit * (size_t)unit;
}

size_t theo_gemm_packed_floats(int nr, int n, int k) {
    return round_up(n, nr) * round_up(k, THEO_KU);
}

void theo_gemm_pack_weight(int nr, theo_transpose_fn transpose, int n, int k, const float *weight, float *panels) {
    size_t used = (size_t)k * (size_t)nr, panel = round_up(k, THEO_KU) * (size_t)nr;
    for (int j = 0; j < n; j += nr, panels += panel) {
        int columns = n - j < nr ? n - j : nr;
        if (columns < nr)
            memset(panels, 0, panel * sizeof(float));
        else
            memset(panels + used, 0, (panel - used) * sizeof(float));
        transpose(weight + (size_t)j * (size_t)k, (size_t)k, columns, k, panels, (size_t)nr);
    }
}
