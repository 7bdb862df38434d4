/* attention.h - the part of attention that is not matrix multiplication: softmax on the way from scores to weights, a block of
 * keys at a time, so that no matrix of queries times keys is ever needed.
 *
 * Milakov and Gimelshein, Online normalizer calculation for softmax, arXiv:1805.02867. A query keeps the largest score seen so
 * far, the sum of its weights e^(score - largest), and the sum of its weighted values; when a block raises the largest score,
 * both sums shrink by e^(old - new). */
#ifndef THEO_KERNELS_ATTENTION_H
#define THEO_KERNELS_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>

enum { THEO_SOFTMAX_LANES = 16 }; /* a query's sum of weights is kept in so many parts */

/* One block of keys for the queries of one A panel. */
typedef struct theo_softmax_step {
    float
        *scores; /* tiles side by side, as gemm->tile leaves them: [ceil(keys / nr)][rows][nr]. What lies beyond `keys` is lost */
    int rows, mr, nr; /* rows <= mr */
    int keys;         /* >= 1 */
    float scale;      /* scores * scale are the exponents of 2 */
    bool first;       /* block: largest, sums and values are undefined yet */
    float *weights;   /* A panel, [ceil(keys / 16)][mr][16]: 2^(score * scale - largest), zero or as good as zero beyond `keys` */
    float *largest;   /* [rows], of score * scale */
    float *sums;      /* [rows][16] */
    float *values;    /* [value_panels][rows][nr]: brought to the new largest score; left alone when `first` */
    int value_panels;
} theo_softmax_step;

/* Divides by the sums of the weights. */
typedef struct theo_softmax_finish {
    const float *values; /* [ceil(columns / nr)][rows][nr] */
    const float *sums;   /* [rows][16] */
    int rows, nr, columns;
    float *out; /* [rows] of out_pitch floats, columns of them written */
    size_t out_pitch;
} theo_softmax_finish;

typedef struct theo_attention_kernels {
    void (*step)(const theo_softmax_step *step);
    void (*finish)(const theo_softmax_finish *finish);
} theo_attention_kernels;

extern const theo_attention_kernels theo_attention_c, theo_attention_avx2, theo_attention_avx512,
    theo_attention_neon; /* those compiled in */

#endif
