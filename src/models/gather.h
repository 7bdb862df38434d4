/* gather.h - tensors of a checkpoint by name: what is found is noted for packing, what is missing or mis-shaped as a problem. */
#ifndef THEO_MODELS_GATHER_H
#define THEO_MODELS_GATHER_H

#include "models/packing.h"
#include "models/problems.h"

/* Where tensors are looked for, and where what is found goes. */
typedef struct theo_gather {
    const theo_weights *weights;
    theo_packing *packing;
    theo_problems *problems;
    const char *prefix; /* of every name, may be "" */
    int largest;        /* size of a dimension */
} theo_gather;

/* Gain and offset of a norm, [C] each. */
typedef struct theo_norm {
    float *gamma, *beta;
} theo_norm;

typedef struct theo_tensor_name {
    char text[THEO_TENSOR_NAME_BYTES];
} theo_tensor_name;
theo_tensor_name theo_name(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* PREFIX NAME of this shape (0: any size), else NULL and a note. */
const theo_weight *theo_gather_expect(const theo_gather *g, const char *name, int rank, const int64_t *shape);
/* As floats, row-major, into *out. */
void theo_gather_floats(const theo_gather *g, float **out, const char *name, int rank, const int64_t *shape);
/* STEM.weight and STEM.bias [width]. */
void theo_gather_norm(const theo_gather *g, theo_norm *norm, const char *stem, int width);
/* STEM.weight of that shape and STEM.bias [biases] (0: none), packed as the job says. */
void theo_gather_layer(const theo_gather *g, theo_packed **packed, theo_packing_job job, const char *stem, int rank,
                       const int64_t *shape, int biases);
/* A linear layer with bias whose first `turned` outputs are in heads of so many that rotary positions turn (theo_turned_row);
 * head 0: none are. */
void theo_gather_turned(const theo_gather *g, theo_packed **packed, const char *stem, int out, int in, int turned, int head);
/* The usual ones: a linear layer, a convolution of 1x1 and of 3x3 pixels, each with bias. */
void theo_gather_linear(const theo_gather *g, theo_packed **packed, const char *stem, int out, int in);
void theo_gather_1x1(const theo_gather *g, theo_packed **packed, const char *stem, int out, int in);
void theo_gather_3x3(const theo_gather *g, theo_packed **packed, const char *stem, int out, int in);

void theo_norm_free(theo_norm *norm);

/* What is done with each packed layer of a network; packed may be NULL. */
typedef void (*theo_packed_visitor)(theo_packed *packed, void *context);
void theo_packed_visit_free(theo_packed *packed, void *unused);
/* bytes: a size_t that theirs are added to. */
void theo_packed_visit_bytes(theo_packed *packed, void *bytes);

#endif
