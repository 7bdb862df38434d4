/* moge2_fold.c - the last level of the network without its maps.
 *
 * Level 4 has no ReLU: what follows the maps h (head) and n (neck) of level 3 is linear. With conv, up, Wi, Wn, Wo the 3x3
 * convolutions, the bilinear enlarging, and the 1x1 convolutions of the head's and neck's input and the head's output,
 *
 *     out = Wo (conv_h(up(h)) + Wi (conv_n(up(n)) + Wn uv + bn) + bi) + bo
 *         = (Wo conv_h)(up(h)) + (Wo Wi conv_n)(up(n)) + (Wo Wi Wn) uv + (Wo Wi bn + Wo bi + bo)         (biases of conv within)
 *
 * And a 3x3 convolution behind bilinear x2 is one of the small map with four times the output channels, one for each of the
 * places that a pixel becomes (theo_packed_upsample2_conv). So nothing larger than the small maps is ever made; the reader of the
 * result takes its pixels from the quads. */
#include "base/error.h"
#include "formats/bump.h"
#include "models/moge2.h"
#include <stdio.h>

enum { LAST = THEO_MOGE2_LEVELS - 1 }; /* level 4 */

/* Row-major numbers; a bias is a column. */
typedef struct matrix {
    int rows, columns;
    double *data; /* NULL: the identity, or after a failure */
} matrix;

typedef struct algebra {
    const theo_weights *weights;
    theo_bump memory;   /* of all matrices */
    theo_status status; /* the first failure; nothing is computed after it */
    theo_error *err;
} algebra;

static matrix new_matrix(algebra *a, int rows, int columns) {
    matrix m = {rows, columns, a->status ? NULL : theo_bump_alloc(&a->memory, (size_t)rows * (size_t)columns, sizeof(double))};
    if (!m.data && !a->status)
        a->status = theo_fail(a->err, THEO_MEMORY, theo_weights_path(a->weights), NULL, "out of memory");
    return m;
}

/* [rows, everything else] of a tensor whose shape was checked; the identity where the network has none. */
static matrix read(algebra *a, const char *stack, const char *part) {
    char name[THEO_TENSOR_NAME_BYTES];
    snprintf(name, sizeof name, "%s.%s", stack, part);
    const theo_weight *w = theo_weights_find(a->weights, name);
    if (!w)
        return (matrix){.data = NULL};
    matrix m = new_matrix(a, (int)w->shape[0], (int)(w->elements / w->shape[0]));
    float *values = theo_bump_alloc(&a->memory, (size_t)w->elements, sizeof *values);
    if (values && !a->status)
        a->status = theo_packing_read(values, a->weights, w, a->err);
    for (int64_t i = 0; values && !a->status && i < w->elements; i++)
        m.data[i] = (double)values[i];
    return m;
}

static double *at(const matrix *m, int row, int column) {
    return &m->data[(size_t)row * (size_t)m->columns + (size_t)column];
}

static matrix product(algebra *a, matrix left, matrix right) {
    if (!left.data || !right.data)
        return left.data ? left : right;
    matrix m = new_matrix(a, left.rows, right.columns);
    for (int i = 0; m.data && i < left.rows; i++)
        for (int k = 0; k < left.columns; k++)
            for (int j = 0; j < right.columns; j++)
                *at(&m, i, j) += *at(&left, i, k) * *at(&right, k, j);
    return m;
}

static matrix sum(algebra *a, matrix left, matrix right) { /* of biases: one that is not there adds nothing */
    if (!left.data || !right.data)
        return left.data ? left : right;
    matrix m = new_matrix(a, left.rows, left.columns);
    for (size_t i = 0; m.data && i < (size_t)m.rows * (size_t)m.columns; i++)
        m.data[i] = left.data[i] + right.data[i];
    return m;
}

static void to_floats(float *to, const matrix *from) {
    for (size_t i = 0; i < (size_t)from->rows * (size_t)from->columns; i++)
        to[i] = (float)from->data[i];
}

/* The neck's part of level 4, and what is put together for all heads. */
typedef struct folding {
    algebra a;
    matrix conv, uv, bias;                     /* of the neck's level 4: [D4, D3 * 9], [D4, 2], [D4, 1] */
    int width;                                 /* D3 of the neck */
    float *neck_weight, *uv_weight, *all_bias; /* [all, D3, 3, 3], [4 all, 8], [4 all] */
} folding;

static theo_status fold_head(folding *f, theo_moge2 *n, theo_moge_head head, const char *name, theo_cpu level, theo_error *err) {
    algebra *a = &f->a;
    int channels = theo_moge2_head_channels(n, head), width = theo_moge2_head_config(&n->config, head)->width[LAST - 1];
    matrix out = read(a, name, "output_blocks.4.weight");
    matrix own = product(a, out, read(a, name, "resamplers.3.1.weight"));
    matrix through = product(a, out, read(a, name, "input_blocks.4.weight"));
    matrix conv = product(a, through, f->conv), uv = product(a, through, f->uv);
    matrix bias = sum(a, read(a, name, "resamplers.3.1.bias"), read(a, name, "input_blocks.4.bias"));
    bias = sum(a, product(a, out, bias), product(a, through, f->bias));
    bias = sum(a, bias, read(a, name, "output_blocks.4.bias"));
    float *kernels = theo_bump_alloc(&a->memory, (size_t)(channels * width * 9), sizeof *kernels);
    THEO_TRY(a->status);
    if (!kernels)
        return theo_fail(err, THEO_MEMORY, theo_weights_path(a->weights), NULL, "out of memory");

    to_floats(kernels, &own);
    THEO_TRY(theo_packed_upsample2_conv(&n->fold.heads[head], level, channels, width, kernels, NULL, err));
    int first = n->fold.at[head];
    to_floats(f->neck_weight + (size_t)(first / 4 * f->width * 9), &conv);
    for (int i = 0; i < 4 * channels; i++) { /* channel i / 4 of phase i % 4 */
        float *row = f->uv_weight + (size_t)(8 * (first + i) + 2 * (i % 4));
        row[0] = (float)*at(&uv, i / 4, 0);
        row[1] = (float)*at(&uv, i / 4, 1);
        f->all_bias[first + i] = (float)*at(&bias, i / 4, 0);
    }
    return THEO_OK;
}

static theo_status fold_all(folding *f, theo_moge2 *n, theo_cpu level, theo_error *err) {
    static const char *const names[THEO_MOGE_HEADS] = {"points_head", "normal_head", "mask_head"};
    algebra *a = &f->a;
    int all = 0;
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++) {
        n->fold.at[h] = all;
        all += 4 * theo_moge2_head_channels(n, h);
    }
    f->width = n->config.neck.width[LAST - 1];
    f->conv = read(a, "neck", "resamplers.3.1.weight");
    f->uv = read(a, "neck", "input_blocks.4.weight");
    f->bias = sum(a, read(a, "neck", "resamplers.3.1.bias"), read(a, "neck", "input_blocks.4.bias"));
    f->neck_weight = theo_bump_alloc(&a->memory, (size_t)(all / 4 * f->width * 9), sizeof(float));
    f->uv_weight = theo_bump_alloc(&a->memory, (size_t)(all * 8), sizeof(float));
    f->all_bias = theo_bump_alloc(&a->memory, (size_t)all, sizeof(float));
    THEO_TRY(a->status);
    if (!f->neck_weight || !f->uv_weight || !f->all_bias)
        return theo_fail(err, THEO_MEMORY, theo_weights_path(a->weights), NULL, "out of memory");
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++)
        if (theo_moge2_head_channels(n, h))
            THEO_TRY(fold_head(f, n, h, names[h], level, err));
    THEO_TRY(theo_packed_upsample2_conv(&n->fold.neck, level, all / 4, f->width, f->neck_weight, NULL, err));
    return theo_packed_linear(&n->fold.uv, level, all, 8, f->uv_weight, f->all_bias, err);
}

static bool is_possible(const theo_moge2_config *c) {
    bool fits = !c->neck.is_transposed[LAST - 1] && !c->neck.blocks[LAST] && !c->neck.out[LAST];
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++) {
        const theo_moge2_stack_config *s = theo_moge2_head_config(c, h);
        fits = fits && (!s || (!s->is_transposed[LAST - 1] && !s->blocks[LAST]));
    }
    return fits;
}

theo_status theo_moge2_make_fold(theo_moge2 *n, const theo_weights *weights, theo_cpu level, theo_error *err) {
    if (!is_possible(&n->config))
        return THEO_OK;
    folding f = {.a = {.weights = weights, .err = err}};
    theo_status status = fold_all(&f, n, level, err);
    n->fold.is_possible = status == THEO_OK;
    theo_bump_free(&f.a.memory);
    return status;
}
