/* maker.h - checkpoints of formula weights, tensor by tensor. */
#ifndef THEO_MODELS_MAKER_H
#define THEO_MODELS_MAKER_H

#include "formats/bump.h"
#include <theo/files.h>

/* Fills a tensor by its name and shape. */
typedef void (*theo_fill_fn)(float *data, size_t elements, const char *name, int rank, const int64_t *shape);

typedef struct theo_maker {
    theo_array *arrays;
    int count, capacity;
    theo_bump *memory; /* of names and numbers */
    theo_fill_fn fill;
    bool failed; /* out of memory, or more than `capacity` tensors; nothing is made after it */
} theo_maker;

theo_maker theo_maker_new(theo_bump *memory, int capacity, theo_fill_fn fill);

void theo_make(theo_maker *m, const char *name, int rank, const int64_t *shape);
/* STEM.weight and STEM.bias: of a norm [width]; of a linear layer [out, in]; of a convolution [out, in, side, side]. */
void theo_make_norm(theo_maker *m, const char *stem, int width);
void theo_make_linear(theo_maker *m, const char *stem, int out, int in);
void theo_make_conv(theo_maker *m, const char *stem, int out, int in, int side);
/* A second name of the numbers of `of`, which was made. */
void theo_make_alias(theo_maker *m, const char *name, const char *of);
/* STEM.weight [first, second, side, side] alone; STEM.bias [out] alone. */
void theo_make_kernel(theo_maker *m, const char *stem, int first, int second, int side);
void theo_make_bias(theo_maker *m, const char *stem, int out);

#endif
