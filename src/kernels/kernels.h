/* kernels.h - the table of computing kernels: plain functions on pointers. They know nothing of threads, memory or models.
 *
 * One table per CPU level; a level overrides what it implements and keeps the rest of the level below. The C level is the
 * readable reference, accumulating in double. `check_kernels` proves every entry against it.
 *
 * Strides and pitches count floats. Unless said otherwise no pointer needs alignment, nothing outside of the stated elements is
 * read or written, and input and output do not overlap. Every result is independent of how the caller divides the work.
 *
 * Panel formats. KU = 16 everywhere.
 *   A panel: MR rows, K cut into chunks of 16:  [ceil(K/16)][MR][16], zero padded. A row's 16 values are contiguous, so packing
 *            is copying, and every address inside a chunk is a compile-time displacement.
 *   B panel: NR columns:  [K rounded up to 16][NR], zero padded.
 * MR and NR belong to the level (gemm->mr, gemm->nr). */
#ifndef THEO_KERNELS_KERNELS_H
#define THEO_KERNELS_KERNELS_H

#include "base/cpu.h"
#include "kernels/attention.h"
#include "kernels/channels.h"
#include "kernels/conv3x3.h"
#include "kernels/gemm.h"
#include "kernels/winograd.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bilinear resizing of a map [in_h, in_w, channels] to [out_h, out_w, channels]: rows y0 .. y1-1 and columns x0 .. x1-1 of the
 * output, 0 <= x0 <= x1 <= out_w. Output centre x reads the input at (x + 0.5) * in_w / out_w - 0.5, clamped to the map, or, with
 * align_corners, at x * (in_w - 1) / (out_w - 1). No antialiasing. Coordinates and weights are float32, as in PyTorch. */
typedef struct theo_resize {
    const float *in;
    int in_h, in_w, channels;
    size_t in_row, in_pixel;
    float *out; /* element (y0, x0, 0) */
    int out_h, out_w;
    size_t out_row, out_pixel;
    bool align_corners;
    int y0, y1, x0, x1;
    const float *residual; /* NULL, or element (y0, x0, 0) of a map that is added */
    size_t residual_row, residual_pixel;
} theo_resize;

/* Running best and second best of a set of scores. Begin with { -INFINITY, -INFINITY, -1 }. */
typedef struct theo_top2 {
    float best, second; /* second == best when the maximum occurs twice */
    int32_t index;      /* of the best; the lowest of equal ones; -1 before any score above -infinity */
} theo_top2;

/* out[r] = (in[r] - mean) / sqrt(variance + eps) * gamma + beta, mean and variance over the columns of the row. in == out (and
 * equal pitches) is fine. */
typedef struct theo_layer_norm {
    const float *in;
    float *out;
    size_t in_pitch, out_pitch;
    int rows, columns;
    float eps;
    const float *gamma, *beta; /* [columns] each, or both NULL */
} theo_layer_norm;

/* Rotary positions: in [rows, 2 * half] = u | w; turn [rows, 2 * half] = cos | sin; out = u cos - w sin | w cos + u sin. half is
 * a multiple of 8. */
typedef struct theo_rotation {
    const float *in, *turn;
    float *out;
    size_t in_pitch, turn_pitch, out_pitch;
    int rows, half;
} theo_rotation;

typedef struct theo_kernels {
    theo_cpu level; /* that the table belongs to */

    /* Matrix multiplication on packed panels, and Winograd's transforms around it. */
    const theo_gemm_kernels *gemm;
    const theo_winograd_kernels *winograd;

    /* Softmax of attention, between two matrix multiplications. */
    const theo_attention_kernels *attention;

    /* 3x3 convolution, direct. */
    void (*conv3x3)(const theo_conv3x3 *conv);

    /* Row of out_w pixels: maximum of 2x2 pixels of the rows top and bottom. An odd last column is not read. */
    void (*max_pool2_row)(const float *top, const float *bottom, size_t in_pixel, int out_w, int channels, float *out,
                          size_t out_pixel);

    /* out[r] = softmax of the row in[r]; in == out (and equal pitches) is fine. columns >= 1. */
    void (*softmax_rows)(const float *in, size_t in_pitch, float *out, size_t out_pitch, int rows, int columns);

    /* SuperPoint's detector for one row of cells: softmax over the 65 logits of each; the last is dropped, probability k goes
     * to scores[(k / 8) * score_row + 8 * cell + k % 8]. */
    void (*cell_softmax)(const float *logits, size_t pitch, int cells, float *scores, size_t score_row);

    /* out[r] = in[r] / max(||in[r]||, 1e-12); in == out (and equal pitches) is fine. */
    void (*l2_norm_rows)(const float *in, size_t in_pitch, float *out, size_t out_pitch, int rows, int columns);

    void (*layer_norm_rows)(const theo_layer_norm *norm);

    void (*rotate_rows)(const theo_rotation *rotation);

    void (*channel_moments)(const theo_channel_moments *moments);
    void (*channel_map)(const theo_channel_map *map);

    void (*resize_bilinear)(const theo_resize *resize);

    /* out[c * out_pitch + r] = in[r * in_pitch + c]: NHWC to NCHW with rows = pixels, and back with rows = channels. */
    theo_transpose_fn transpose;

    /* Takes scores[0 .. n-1], which have the indices first, first + 1, ... (all above those seen before), into *top. NaN never
     * wins. */
    void (*top2_row)(const float *scores, int n, int32_t first, theo_top2 *top);
    /* The same for n running columns at once: score[i] of row `row` into best[i], second[i], index[i]. */
    void (*top2_columns)(const float *scores, int n, int32_t row, float *best, float *second, int32_t *index);

    /* Runs `rounds` rounds of independent fused multiply-adds on registers, fma_flops FLOP each: the level's peak. The value
     * returned only keeps the compiler from dropping the work. */
    float (*fma_rounds)(int64_t rounds);
    double fma_flops;
} theo_kernels;

/* The table of a level, capped to what was compiled in. Never NULL, immutable. Whether this machine can run it is the caller's
 * question (theo_cpu_supported). */
const theo_kernels *theo_kernels_for(theo_cpu level);

#endif
