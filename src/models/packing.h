/* packing.h - the layers of a checkpoint made ready all at once: read, checked for finite numbers, folded and packed on the pool,
 * the pages of the file given back on the way. */
#ifndef THEO_MODELS_PACKING_H
#define THEO_MODELS_PACKING_H

#include "engine/plan.h"
#include "formats/weights.h"

typedef enum theo_packing_kind {
    THEO_PACKING_FLOATS,     /* as it is, row-major */
    THEO_PACKING_LINEAR,     /* [out, ...]: everything behind the first dimension is input */
    THEO_PACKING_CONV,       /* [out, in, 3, 3] */
    THEO_PACKING_UPSAMPLED,  /* [out, in, 3, 3] behind bilinear x2 */
    THEO_PACKING_GATHERED,   /* [out, in, 3, 3] for strides above 1 */
    THEO_PACKING_TRANSPOSED, /* [in, out, size, size] */
} theo_packing_kind;

typedef struct theo_packing_job {
    theo_packing_kind kind;
    const theo_weight *weight;
    const theo_weight *bias;  /* [out], or NULL */
    const theo_weight *scale; /* [out] factors of the outputs (LayerScale), or NULL. LINEAR */
    int from, count;          /* LINEAR, TRANSPOSED: these inputs alone; count 0: all */
    int turned, head;         /* LINEAR: the first `turned` outputs are in heads of so many; see theo_turned_row */
    theo_packed **packed;     /* where the result goes */
    float **floats;           /* the same for FLOATS, released by theo_free_aligned */
} theo_packing_job;

typedef struct theo_packing {
    theo_packing_job *jobs;
    int count, capacity;
    bool is_out_of_memory; /* while jobs were added: theo_packing_run tells */
} theo_packing;            /* starts zeroed */

void theo_packing_add(theo_packing *packing, theo_packing_job job);
/* THEO_BOUNDS where the tensors claim many times what the file holds. What failed jobs leave is NULL; what others made stays for
 * the caller to free. */
theo_status theo_packing_run(const theo_packing *packing, const theo_weights *weights, theo_cpu level, theo_pool *pool,
                             theo_error *err);
void theo_packing_free(theo_packing *packing);

/* Rotary positions turn a head in four quarters, (y, y', x, x'); the engine wants its halves, (y x, y' x'). Row `row` of turned
 * weights is this one of the file's. */
int theo_turned_row(int row, int head);

/* One tensor as floats into out[elements]. THEO_STRUCTURE where a number is not finite. */
theo_status theo_packing_read(float *out, const theo_weights *weights, const theo_weight *weight, theo_error *err);

#endif
