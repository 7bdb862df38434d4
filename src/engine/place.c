/* Greedy by size: the largest block first, each into the smallest gap between those already placed that are alive at the same
 * time (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", arXiv:2001.03288, section 5.2). */
#include "engine/place.h"

#include <stdbool.h>
#include <stdint.h>

static size_t aligned(size_t bytes) {
    return (bytes + THEO_PLACE_ALIGNMENT - 1) / THEO_PLACE_ALIGNMENT * THEO_PLACE_ALIGNMENT;
}

static bool share_a_step(const theo_block *a, const theo_block *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* Blocks order[0 .. placed-1] have their offsets, and rising ones. */
static size_t best_gap(const theo_block *blocks, const int *order, int placed, const theo_block *block) {
    size_t need = aligned(block->bytes), end = 0; /* end of the occupied part below the gap that is looked at */
    size_t best = SIZE_MAX, best_size = SIZE_MAX;
    for (int i = 0; i < placed; i++) {
        const theo_block *other = &blocks[order[i]];
        if (!share_a_step(block, other))
            continue;
        if (other->offset > end && other->offset - end >= need && other->offset - end < best_size) {
            best = end;
            best_size = other->offset - end;
        }
        size_t other_end = other->offset + aligned(other->bytes);
        if (other_end > end)
            end = other_end;
    }
    return best != SIZE_MAX ? best : end;
}

size_t theo_place(theo_block *blocks, int count, int *order) {
    /* Insertion sorts: plans have hundreds of blocks, and equal ones keep their order, so that placement is reproducible. */
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0 && blocks[order[at - 1]].bytes < blocks[i].bytes; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    size_t arena = 0;
    for (int placed = 0; placed < count; placed++) {
        int index = order[placed];
        theo_block *block = &blocks[index];
        block->offset = best_gap(blocks, order, placed, block);
        size_t end = block->offset + aligned(block->bytes);
        arena = end > arena ? end : arena;
        int at = placed;
        for (; at > 0 && blocks[order[at - 1]].offset > block->offset; at--)
            order[at] = order[at - 1];
        order[at] = index;
    }
    return arena;
}
