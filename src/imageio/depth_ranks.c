/* depth_ranks.c - see depth_ranks.h. The bits of positive floats order as they do: pixels are counted by the upper 16 bits first,
 * then, of those that share the upper half of the wanted one, by the lower 16. */
#include "imageio/depth_ranks.h"

#include "base/error.h"
#include "base/pool.h"

#include <math.h>
#include <string.h>

enum { HALF = 1 << 16, PART_ROWS = 16 };

typedef struct pass {
    const theo_depth_ranks *ranks;
    int64_t prefix; /* -1: count by the upper half, else by the lower half of those with this upper half */
} pass;

static void count_rows(void *context, int task, int worker) {
    const pass *p = context;
    const theo_depth_map *map = p->ranks->map;
    const size_t width = (size_t)map->width, first = (size_t)task * PART_ROWS;
    const size_t end = first + PART_ROWS < (size_t)map->height ? first + PART_ROWS : (size_t)map->height;
    const float limit = p->ranks->with_infinite ? INFINITY : 3.402823466e38f;
    uint32_t *bins = p->ranks->bins + (size_t)worker * HALF;
    for (size_t i = first * width; i < end * width; i++) {
        const float depth = map->depth[i];
        if ((map->valid && !map->valid[i]) || !(depth > 0 && depth <= limit))
            continue;
        uint32_t bits;
        memcpy(&bits, &depth, sizeof bits);
        if (p->prefix < 0)
            bins[bits >> 16]++;
        else if (bits >> 16 == (uint32_t)p->prefix)
            bins[bits & (HALF - 1)]++;
    }
}

/* Sums over the workers are the same whoever counted what. */
static int64_t count(theo_depth_ranks *r, int64_t prefix, int64_t *sums) {
    const int threads = theo_pool_threads(r->pool);
    memset(r->bins, 0, (size_t)threads * HALF * sizeof *r->bins);
    theo_pool_run(r->pool, (r->map->height + PART_ROWS - 1) / PART_ROWS, count_rows, &(pass){r, prefix});
    int64_t total = 0;
    for (int i = 0; i < HALF; i++) {
        sums[i] = 0;
        for (int t = 0; t < threads; t++)
            sums[i] += r->bins[t * HALF + i];
        total += sums[i];
    }
    return total;
}

theo_status theo_depth_ranks_open(theo_depth_ranks *ranks, const theo_depth_map *map, bool with_infinite, theo_pool *pool,
                                  theo_error *err) {
    *ranks = (theo_depth_ranks){.map = map, .with_infinite = with_infinite, .pool = pool, .lower_prefix = -1};
    if (!map || !map->depth || map->width < 1 || map->height < 1)
        return theo_fail(err, THEO_ARGUMENT, NULL, "map", "no depth map of at least one pixel was given");
    ranks->bins = theo_alloc((size_t)theo_pool_threads(pool) * HALF, sizeof *ranks->bins);
    ranks->upper = theo_alloc(HALF, sizeof *ranks->upper);
    ranks->lower = theo_alloc(HALF, sizeof *ranks->lower);
    if (!ranks->bins || !ranks->upper || !ranks->lower) {
        theo_depth_ranks_close(ranks);
        return theo_fail(err, THEO_MEMORY, NULL, "map", "no memory to rank its depths");
    }
    ranks->count = count(ranks, -1, ranks->upper);
    return THEO_OK;
}

/* The bin that rank *k falls into; *k becomes the rank in it. */
static uint32_t bin_of(const int64_t *bins, int64_t *k) {
    uint32_t bin = 0;
    while (*k >= bins[bin])
        *k -= bins[bin++];
    return bin;
}

float theo_depth_rank(theo_depth_ranks *ranks, int64_t k) {
    const uint32_t prefix = bin_of(ranks->upper, &k);
    if (ranks->lower_prefix != (int64_t)prefix)
        count(ranks, prefix, ranks->lower);
    ranks->lower_prefix = prefix;
    const uint32_t bits = prefix << 16 | bin_of(ranks->lower, &k);
    float depth;
    memcpy(&depth, &bits, sizeof depth);
    return depth;
}

void theo_depth_ranks_close(theo_depth_ranks *ranks) {
    theo_free(ranks->bins);
    theo_free(ranks->upper);
    theo_free(ranks->lower);
    *ranks = (theo_depth_ranks){0};
}

/* ---------------------------------------------------------------- the public call */

theo_status theo_depth_quantiles(const theo_depth_map *map, const double *quantiles, int quantile_count, double *values,
                                 int64_t *counted, theo_pool *pool, theo_error *err) {
    theo_depth_ranks ranks;
    for (int i = 0; i < quantile_count; i++)
        if (!(quantiles[i] >= 0 && quantiles[i] <= 1))
            return theo_fail(err, THEO_ARGUMENT, NULL, "quantiles", "%g is out of range: allowed is 0 to 1", quantiles[i]);
    THEO_TRY(theo_depth_ranks_open(&ranks, map, false, pool, err));
    *counted = ranks.count;
    for (int i = 0; i < quantile_count; i++) {
        values[i] = NAN;
        if (ranks.count == 0)
            continue;
        const double at = quantiles[i] * (double)(ranks.count - 1), below = floor(at);
        const double low = (double)theo_depth_rank(&ranks, (int64_t)below),
                     high = (double)theo_depth_rank(&ranks, (int64_t)ceil(at));
        values[i] = low + (high - low) * (at - below);
    }
    theo_depth_ranks_close(&ranks);
    return THEO_OK;
}
