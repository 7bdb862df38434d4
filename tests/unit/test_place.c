/* Placement: blocks that live at the same time share no byte, on random and on telling sets. */
#include "engine/place.h"
#include "t.h"
#include <stdint.h>

enum { MAX_BLOCKS = 60 };

static uint32_t state = 1;
static uint32_t random_below(uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * n >> 32);
}

/* Every pair, every step: written to be obvious. */
static int clashes(const theo_block *blocks, int count, size_t arena) {
    int bad = 0;
    for (int i = 0; i < count; i++) {
        bad += blocks[i].offset % THEO_PLACE_ALIGNMENT != 0 || (blocks[i].bytes && blocks[i].offset + blocks[i].bytes > arena);
        for (int j = 0; j < i; j++) {
            int together = 0;
            for (int step = blocks[i].first; step <= blocks[i].last; step++)
                together |= step >= blocks[j].first && step <= blocks[j].last;
            bad += together && blocks[i].offset < blocks[j].offset + blocks[j].bytes &&
                   blocks[j].offset < blocks[i].offset + blocks[i].bytes;
        }
    }
    return bad;
}

/* No arena can be smaller than what lives at one step. */
static size_t largest_step(const theo_block *blocks, int count, int steps) {
    size_t largest = 0;
    for (int step = -1; step <= steps; step++) {
        size_t live = 0;
        for (int i = 0; i < count; i++)
            if (step >= blocks[i].first && step <= blocks[i].last)
                live += (blocks[i].bytes + 63) / 64 * 64;
        largest = live > largest ? live : largest;
    }
    return largest;
}

static void random_sets(void) {
    double worst = 0;
    for (int round = 0; round < 2000; round++) {
        theo_block blocks[MAX_BLOCKS];
        int order[MAX_BLOCKS], count = 1 + (int)random_below(MAX_BLOCKS), steps = 40;
        for (int i = 0; i < count; i++) {
            int first = (int)random_below((uint32_t)steps) - 1, length = (int)random_below(round % 2 ? 4 : 20);
            blocks[i] = (theo_block){.bytes = random_below(5000), .first = first, .last = first + length};
        }
        size_t arena = theo_place(blocks, count, order);
        int bad = clashes(blocks, count, arena);
        CHECK_MSG(bad == 0, "round %d: %d clashes among %d blocks", round, bad, count);
        size_t least = largest_step(blocks, count, 2 * steps);
        CHECK(arena >= least);
        if (least)
            worst = fmax(worst, (double)arena / (double)least);
    }
    CHECK_MSG(worst < 1.6, "%.2f times the least possible", worst);
}

/* A chain needs two neighbours at a time: a large and a small one alternate to the sum of both. */
static void chain(void) {
    theo_block blocks[20];
    int order[20];
    for (int i = 0; i < 20; i++)
        blocks[i] = (theo_block){.bytes = i % 2 ? 64 : 6400, .first = i, .last = i + 1};
    size_t arena = theo_place(blocks, 20, order);
    CHECK_MSG(arena == 6464, "%zu bytes", arena);
}

static void gaps(void) {
    /* Two gaps below blocks that live throughout: the last block goes into the one that it fills. */
    theo_block blocks[] = {
        {.bytes = 1024, .first = 0, .last = 1},                                        /* leaves a large gap at 0 */
        {.bytes = 512, .first = 0, .last = 3},  {.bytes = 400, .first = 0, .last = 1}, /* leaves a small gap */
        {.bytes = 390, .first = 0, .last = 3},  {.bytes = 380, .first = 2, .last = 3},
    };
    int order[5];
    size_t arena = theo_place(blocks, 5, order);
    CHECK(arena == 1024 + 512 + 448 + 448);
    CHECK(blocks[4].offset == blocks[2].offset);
    CHECK(theo_place(blocks, 0, order) == 0);
}

int main(void) {
    random_sets();
    chain();
    gaps();
    return t_done("test_place");
}
