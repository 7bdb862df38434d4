#include "kernels/reference.h"
#include "kernels/tables.h"
#include <math.h>

static float larger(float a, float b) {
    return a > b ? a : b;
}

void theo_max_pool2_row_c(const float *top, const float *bottom, size_t in_pixel, int out_w, int channels, float *out,
                          size_t out_pixel) {
    for (int x = 0; x < out_w; x++) {
        const float *t = top + 2 * (size_t)x * in_pixel, *b = bottom + 2 * (size_t)x * in_pixel;
        for (int c = 0; c < channels; c++)
            out[(size_t)x * out_pixel + (size_t)c] =
                larger(larger(t[c], t[in_pixel + (size_t)c]), larger(b[c], b[in_pixel + (size_t)c]));
    }
}

/* What softmax divides by, for logits less their maximum. */
static double exp_sum(const float *x, int n, float max) {
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += exp((double)x[i] - (double)max);
    return sum;
}

static float max_of(const float *x, int n) {
    float max = x[0];
    for (int i = 1; i < n; i++)
        max = larger(max, x[i]);
    return max;
}

void theo_softmax_rows_c(const float *in, size_t in_pitch, float *out, size_t out_pitch, int rows, int columns) {
    for (int r = 0; r < rows; r++, in += in_pitch, out += out_pitch) {
        float max = max_of(in, columns);
        double sum = exp_sum(in, columns, max);
        for (int c = 0; c < columns; c++)
            out[c] = (float)(exp((double)in[c] - (double)max) / sum);
    }
}

void theo_cell_softmax_c(const float *logits, size_t pitch, int cells, float *scores, size_t score_row) {
    for (int cell = 0; cell < cells; cell++, logits += pitch) {
        float max = max_of(logits, 65);
        double sum = exp_sum(logits, 65, max);
        for (int k = 0; k < 64; k++)
            scores[(size_t)(k / 8) * score_row + 8 * (size_t)cell + (size_t)(k % 8)] =
                (float)(exp((double)logits[k] - (double)max) / sum);
    }
}

void theo_rotate_rows_c(const theo_rotation *r) {
    for (int row = 0; row < r->rows; row++) {
        const float *u = r->in + (size_t)row * r->in_pitch, *w = u + r->half;
        const float *cosine = r->turn + (size_t)row * r->turn_pitch, *sine = cosine + r->half;
        float *out = r->out + (size_t)row * r->out_pitch;
        for (int d = 0; d < r->half; d++) {
            out[d] = (float)((double)u[d] * (double)cosine[d] - (double)w[d] * (double)sine[d]);
            out[r->half + d] = (float)((double)w[d] * (double)cosine[d] + (double)u[d] * (double)sine[d]);
        }
    }
}

void theo_l2_norm_rows_c(const float *in, size_t in_pitch, float *out, size_t out_pitch, int rows, int columns) {
    for (int r = 0; r < rows; r++, in += in_pitch, out += out_pitch) {
        double sum = 0.0;
        for (int c = 0; c < columns; c++)
            sum += (double)in[c] * (double)in[c];
        double norm = fmax(sqrt(sum), 1e-12);
        for (int c = 0; c < columns; c++)
            out[c] = (float)((double)in[c] / norm);
    }
}

void theo_transpose_c(const float *in, size_t in_pitch, int rows, int columns, float *out, size_t out_pitch) {
    for (int c = 0; c < columns; c++)
        for (int r = 0; r < rows; r++)
            out[(size_t)c * out_pitch + (size_t)r] = in[(size_t)r * in_pitch + (size_t)c];
}

static void take(float score, int32_t index, float *best, float *second, int32_t *best_index) {
    if (score > *best) {
        *second = *best;
        *best = score;
        *best_index = index;
    } else if (score > *second) {
        *second = score;
    }
}

void theo_layer_norm_rows_c(const theo_layer_norm *n) {
    const float *in = n->in;
    float *out = n->out;
    for (int r = 0; r < n->rows; r++, in += n->in_pitch, out += n->out_pitch) {
        double sum = 0.0, squares = 0.0;
        for (int c = 0; c < n->columns; c++)
            sum += (double)in[c];
        double mean = sum / n->columns;
        for (int c = 0; c < n->columns; c++)
            squares += ((double)in[c] - mean) * ((double)in[c] - mean);
        double factor = 1.0 / sqrt(squares / n->columns + (double)n->eps);
        for (int c = 0; c < n->columns; c++) {
            double y = ((double)in[c] - mean) * factor;
            out[c] = (float)(n->gamma ? y * (double)n->gamma[c] + (double)n->beta[c] : y);
        }
    }
}

void theo_top2_row_c(const float *scores, int n, int32_t first, theo_top2 *top) {
    for (int i = 0; i < n; i++)
        take(scores[i], first + i, &top->best, &top->second, &top->index);
}

void theo_top2_columns_c(const float *scores, int n, int32_t row, float *best, float *second, int32_t *index) {
    for (int i = 0; i < n; i++)
        take(scores[i], row, &best[i], &second[i], &index[i]);
}

/* The yardstick of the C level: what the compiler makes of plain code, with or without vectors. */
float theo_fma_rounds_c(int64_t rounds) {
    volatile float factor = 0.999f, term = 0.001f;
    float f = factor, t = term, chain[16];
    for (int i = 0; i < 16; i++)
        chain[i] = (float)i;
    for (int64_t r = 0; r < rounds; r++)
        for (int step = 0; step < 8; step++)
            for (int i = 0; i < 16; i++)
                chain[i] = chain[i] * f + t;
    float sum = 0.0f;
    for (int i = 0; i < 16; i++)
        sum += chain[i];
    return sum;
}

void theo_kernels_add_c(theo_kernels *table) {
    table->gemm = &theo_gemm_c;
    table->winograd = &theo_winograd_c;
    table->attention = &theo_attention_c;
    table->conv3x3 = theo_conv3x3_c;
    table->max_pool2_row = theo_max_pool2_row_c;
    table->softmax_rows = theo_softmax_rows_c;
    table->cell_softmax = theo_cell_softmax_c;
    table->l2_norm_rows = theo_l2_norm_rows_c;
    table->layer_norm_rows = theo_layer_norm_rows_c;
    table->rotate_rows = theo_rotate_rows_c;
    table->channel_moments = theo_channel_moments_c;
    table->channel_map = theo_channel_map_c;
    table->resize_bilinear = theo_resize_bilinear_c;
    table->transpose = theo_transpose_c;
    table->top2_row = theo_top2_row_c;
    table->top2_columns = theo_top2_columns_c;
    table->fma_rounds = theo_fma_rounds_c;
    table->fma_flops = THEO_FMA_FLOPS_C;
}
