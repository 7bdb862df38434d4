#include "kernels/vec_neon.h"

#include "kernels/vec_math.h"

#include "kernels/attention_impl.h"
#include "kernels/channels_impl.h"
#include "kernels/conv3x3_impl.h"
#include "kernels/peak_impl.h"
#include "kernels/resize_impl.h"
#include "kernels/rows_impl.h"
#include "kernels/tables.h"
#include "kernels/top2_impl.h"
#include "kernels/transpose_impl.h"

const theo_attention_kernels theo_attention_neon = {attention_step, attention_finish};

void theo_kernels_add_neon(theo_kernels *table) {
    table->gemm = &theo_gemm_neon;
    table->winograd = &theo_winograd_neon;
    table->attention = &theo_attention_neon;
    table->conv3x3 = conv3x3;
    table->max_pool2_row = max_pool2_row;
    table->softmax_rows = softmax_rows;
    table->cell_softmax = cell_softmax;
    table->l2_norm_rows = l2_norm_rows;
    table->layer_norm_rows = layer_norm_rows;
    table->rotate_rows = rotate_rows;
    table->channel_moments = channel_moments;
    table->channel_map = channel_map;
    table->resize_bilinear = resize_bilinear;
    table->transpose = transpose;
    table->top2_row = top2_row;
    table->top2_columns = top2_columns;
    table->fma_rounds = fma_rounds;
    table->fma_flops = fma_flops;
}
