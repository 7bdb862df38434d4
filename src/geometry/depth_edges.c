/* depth_edges.c - relative depth edges, as utils3d's depth_map_edge with a relative tolerance finds them on a depth map whose
 * invalid pixels are infinite. */
#include "geometry/depth_edges.h"

#include "base/error.h"
#include "base/pool.h"

#include <math.h>

theo_status theo_depth_map_check(const theo_depth_map *map, float threshold, theo_error *err) {
    if (!map || !map->depth)
        return theo_fail(err, THEO_ARGUMENT, NULL, "map", "no depth map was given");
    if (map->width < 1 || map->height < 1 || map->height > (1 << 29) / map->width)
        return theo_fail(err, THEO_ARGUMENT, NULL, "map",
                         "the map has %d x %d pixels: both sizes are at least 1, their product at most 2^29", map->width,
                         map->height);
    if (!(threshold >= 0))
        return theo_fail(err, THEO_ARGUMENT, NULL, "threshold", "%g is out of range: allowed is 0 or more", (double)threshold);
    return THEO_OK;
}

/* Depth of a pixel; infinite where it does not count. */
static inline float depth_at(const theo_depth_map *map, size_t i) {
    const float depth = map->depth[i];
    return (!map->valid || map->valid[i]) && depth > 0 ? depth : INFINITY;
}

/* Row y into own[width]; the extremes of its column neighbours into low and high. */
static void load_rows(const theo_depth_map *map, int y, float *own, float *low, float *high) {
    const size_t width = (size_t)map->width;
    const int first = y > 0 ? y - 1 : y, last = y + 1 < map->height ? y + 1 : y;
    for (size_t x = 0; x < width; x++)
        own[x] = low[x] = high[x] = depth_at(map, (size_t)y * width + x);
    for (int row = first; row <= last; row++) {
        if (row == y)
            continue;
        for (size_t x = 0; x < width; x++) {
            const float depth = depth_at(map, (size_t)row * width + x);
            low[x] = depth < low[x] ? depth : low[x];
            high[x] = depth > high[x] ? depth : high[x];
        }
    }
}

static inline float smaller(float a, float b) {
    return a < b ? a : b;
}

static inline float larger(float a, float b) {
    return a > b ? a : b;
}

void theo_depth_edge_row(const theo_depth_map *map, float threshold, int y, uint8_t *edge, uint8_t *kept, float *scratch) {
    const size_t width = (size_t)map->width;
    float *own = scratch, *low = own + width, *high = low + width;
    load_rows(map, y, own, low, high);
    for (size_t x = 0; x < width; x++) {
        const size_t left = x > 0 ? x - 1 : x, right = x + 1 < width ? x + 1 : x;
        const float range = larger(larger(high[left], high[x]), high[right]) - smaller(smaller(low[left], low[x]), low[right]);
        /* An infinite pixel gives NaN here, which is above nothing. An infinite neighbour gives infinity, which must not be an
         * edge where no edges are wanted. */
        const bool counts = own[x] < INFINITY, is_edge = counts && range / own[x] > threshold;
        if (edge)
            edge[x] = is_edge;
        if (kept)
            kept[x] = counts && !is_edge;
    }
}

/* ---------------------------------------------------------------- the public call */

typedef struct job {
    const theo_depth_map *map;
    float threshold;
    uint8_t *edge;
    float *scratch; /* of all workers */
} job;

static void run_row(void *context, int y, int worker) {
    const job *j = context;
    const size_t width = (size_t)j->map->width;
    theo_depth_edge_row(j->map, j->threshold, y, j->edge + (size_t)y * width, NULL, j->scratch + 3 * width * (size_t)worker);
}

theo_status theo_depth_edges(const theo_depth_map *map, float threshold, uint8_t *edge, theo_pool *pool, theo_error *err) {
    THEO_TRY(theo_depth_map_check(map, threshold, err));
    if (!edge)
        return theo_fail(err, THEO_ARGUMENT, NULL, "edge", "there is no place for the result");
    float *scratch = theo_alloc(3 * (size_t)map->width * (size_t)theo_pool_threads(pool), sizeof *scratch);
    if (!scratch)
        return theo_fail(err, THEO_MEMORY, NULL, "edge", "no memory for rows of %d pixels", map->width);
    theo_pool_run(pool, map->height, run_row, &(job){map, threshold, edge, scratch});
    theo_free(scratch);
    return THEO_OK;
}
