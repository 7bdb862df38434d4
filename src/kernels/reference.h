/* reference.h - the kernels of the C level: readable, accumulating in double, what the others are proved against. */
#ifndef THEO_KERNELS_REFERENCE_H
#define THEO_KERNELS_REFERENCE_H

#include "kernels/kernels.h"

void theo_conv3x3_c(const theo_conv3x3 *conv);
void theo_max_pool2_row_c(const float *top, const float *bottom, size_t in_pixel, int out_w, int channels, float *out,
                          size_t out_pixel);
void theo_softmax_rows_c(const float *in, size_t in_pitch, float *out, size_t out_pitch, int rows, int columns);
void theo_cell_softmax_c(const float *logits, size_t pitch, int cells, float *scores, size_t score_row);
void theo_l2_norm_rows_c(const float *in, size_t in_pitch, float *out, size_t out_pitch, int rows, int columns);
void theo_layer_norm_rows_c(const theo_layer_norm *norm);
void theo_rotate_rows_c(const theo_rotation *rotation);
void theo_channel_moments_c(const theo_channel_moments *moments);
void theo_channel_map_c(const theo_channel_map *map);
void theo_resize_bilinear_c(const theo_resize *resize);
void theo_transpose_c(const float *in, size_t in_pitch, int rows, int columns, float *out, size_t out_pitch);
void theo_top2_row_c(const float *scores, int n, int32_t first, theo_top2 *top);
void theo_top2_columns_c(const float *scores, int n, int32_t row, float *best, float *second, int32_t *index);
float theo_fma_rounds_c(int64_t rounds);
#define THEO_FMA_FLOPS_C 256.0

/* One axis of theo_resize: output position x lies between the inputs low and high, weight of high in [0, 1). Shared by all
 * levels, so that they agree on the coordinates to the last bit. */
typedef struct theo_resize_tap {
    int low, high;
    float weight;
} theo_resize_tap;
theo_resize_tap theo_resize_tap_at(int x, int in, int out, bool align_corners);

#endif
