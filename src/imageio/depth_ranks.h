/* depth_ranks.h - the k-th smallest depth of a map, without sorting it. */
#ifndef THEO_IMAGEIO_DEPTH_RANKS_H
#define THEO_IMAGEIO_DEPTH_RANKS_H

#include <theo/export.h>

typedef struct theo_depth_ranks {
    int64_t count; /* pixels that count */

    const theo_depth_map *map;
    bool with_infinite;
    theo_pool *pool;
    uint32_t *bins;         /* [threads][65536] of a pass */
    int64_t *upper, *lower; /* [65536] pixels by the upper half of their bits; by the lower half, of those with the upper half
                               lower_prefix */
    int64_t lower_prefix;   /* -1: none yet */
} theo_depth_ranks;

/* Ranks the pixels that count (theo_depth_map); with_infinite: also those of infinite depth. The map must stay. */
theo_status theo_depth_ranks_open(theo_depth_ranks *ranks, const theo_depth_map *map, bool with_infinite, theo_pool *pool,
                                  theo_error *err);
/* The depth of rank k, 0 <= k < count. */
float theo_depth_rank(theo_depth_ranks *ranks, int64_t k);
void theo_depth_ranks_close(theo_depth_ranks *ranks);

#endif
