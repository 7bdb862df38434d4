/* scratch.h - a block that only grows: what a session needs again in every call. */
#ifndef THEO_MODELS_SCRATCH_H
#define THEO_MODELS_SCRATCH_H

#include "base/error.h"

typedef struct theo_scratch {
    void *data; /* 64-byte aligned */
    size_t bytes;
} theo_scratch; /* starts zeroed */

/* At least `bytes`, contents undefined; NULL when out of memory (the block is then empty). */
static inline void *theo_scratch_fit(theo_scratch *scratch, size_t bytes) {
    if (scratch->bytes < bytes || !scratch->data) {
        theo_free_aligned(scratch->data);
        scratch->data = theo_alloc_aligned(bytes ? bytes : 1);
        scratch->bytes = scratch->data ? bytes : 0;
    }
    return scratch->data;
}

static inline void theo_scratch_free(theo_scratch *scratch) {
    theo_free_aligned(scratch->data);
    *scratch = (theo_scratch){0};
}

#endif
