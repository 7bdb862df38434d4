/* place.h - offsets in one arena for blocks that live for a while. */
#ifndef THEO_ENGINE_PLACE_H
#define THEO_ENGINE_PLACE_H

#include <stddef.h>

enum { THEO_PLACE_ALIGNMENT = 64 };

/* Lives from step `first` to step `last`, both included: two blocks that share a step share no byte. */
typedef struct theo_block {
    size_t bytes;
    int first, last;
    size_t offset; /* the result, a multiple of THEO_PLACE_ALIGNMENT */
} theo_block;

/* Chooses the offsets and returns the arena's size. order: scratch for `count` numbers. Takes O(count^2) time. */
size_t theo_place(theo_block *blocks, int count, int *order);

#endif
