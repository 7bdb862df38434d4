/* disparity_picture.c - depth in colours, for people. */
#include "base/error.h"
#include "base/pool.h"
#include "base/take_options.h"
#include "imageio/depth_ranks.h"
#include "imageio/image.h"

#include <math.h>
#include <string.h>

enum { COLORS = 256, ANCHORS = 11 };

/* "Spectral" in eleven colours: Copyright (c) 2002 Cynthia Brewer, Mark Harrower and The Pennsylvania State University, Apache
 * License 2.0, https://colorbrewer.org. */
static const uint8_t anchors[ANCHORS][3] = {
    {158, 1, 66},    {213, 62, 79},   {244, 109, 67},  {253, 174, 97}, {254, 224, 139}, {255, 255, 191},
    {230, 245, 152}, {171, 221, 164}, {102, 194, 165}, {50, 136, 189}, {94, 79, 162},
};

/* Colour i lies between the anchors around i, anchor k at 255 k/10. Written so that rounding falls as in Matplotlib's table,
 * whose truncated bytes the published pictures have. */
void theo_spectral_table(double table[3 * COLORS]) {
    int above = 1;
    for (int i = 0; i < COLORS; i++) {
        while (above < ANCHORS - 1 && above * 0.1 * 255 < i)
            above++;
        const double low = (above - 1) * 0.1 * 255, high = above * 0.1 * 255, share = (i - low) / (high - low);
        for (int k = 0; k < 3; k++) {
            const double from = anchors[above - 1][k] / 255.0, to = anchors[above][k] / 255.0;
            table[3 * i + k] = share * (to - from) + from;
        }
    }
}

void theo_disparity_options_init(theo_disparity_options *options) {
    *options = (theo_disparity_options){.size = sizeof *options, .low = 0.001, .high = 0.99};
}

typedef struct job {
    const theo_depth_map *map;
    float least, span; /* of the disparity, over the colours */
    bool infinity_is_far;
    uint8_t colors[COLORS][3];
    uint8_t *pixels;
} job;

/* 1/depth where it counts, else NaN. */
static inline float disparity_at(const job *j, size_t i) {
    const float depth = j->map->depth[i];
    const bool counts = (!j->map->valid || j->map->valid[i]) && depth > 0 && (depth < INFINITY || j->infinity_is_far);
    return counts ? 1.0f / depth : NAN;
}

static void paint_row(void *context, int y, int worker) {
    const job *j = context;
    const size_t width = (size_t)j->map->width;
    uint8_t *out = j->pixels + 3 * (size_t)y * width;
    (void)worker;
    for (size_t x = 0; x < width; x++, out += 3) {
        const float disparity = disparity_at(j, (size_t)y * width + x);
        const float t = COLORS * (1.0f - (disparity - j->least) / j->span);
        const int index = t >= COLORS - 1 ? COLORS - 1 : t > 0 ? (int)t : 0;
        static const uint8_t black[3] = {0};
        memcpy(out, disparity >= 0 ? j->colors[index] : black, 3);
    }
}

/* Quantile of the disparity: large depths are small disparities. Between two of them linear. */
static double disparity_quantile(theo_depth_ranks *ranks, double q) {
    const double at = q * (double)(ranks->count - 1), below = floor(at);
    const float far = theo_depth_rank(ranks, ranks->count - 1 - (int64_t)below);
    const float near = theo_depth_rank(ranks, ranks->count - 1 - (int64_t)ceil(at));
    const double low = (double)(1.0f / far), high = (double)(1.0f / near);
    return low + (high - low) * (at - below);
}

theo_status theo_picture_disparity(theo_image **out, const theo_depth_map *map, const theo_disparity_options *options,
                                   double range[2], theo_pool *pool, theo_error *err) {
    theo_disparity_options o;
    theo_depth_ranks ranks;
    double ends[2] = {0, 1}, table[3 * COLORS];
    *out = NULL;
    theo_disparity_options_init(&o);
    THEO_TRY(theo_options_take(&o, sizeof o, options, "theo_disparity_options", err));
    if (!(o.low >= 0 && o.low < o.high && o.high <= 1))
        return theo_fail(err, THEO_ARGUMENT, NULL, "low, high", "%g and %g: quantiles must rise, and lie from 0 to 1", o.low,
                         o.high);
    THEO_TRY(theo_depth_ranks_open(&ranks, map, o.infinity_is_far, pool, err));
    if (ranks.count) {
        ends[0] = disparity_quantile(&ranks, o.low);
        ends[1] = disparity_quantile(&ranks, o.high);
    }
    theo_depth_ranks_close(&ranks);
    if (range)
        memcpy(range, ends, sizeof ends);
    THEO_TRY(theo_image_make(out, map->width, map->height, 3, THEO_U8, NULL, err));
    job j = {.map = map,
             .least = (float)ends[0],
             .span = (float)(ends[1] - ends[0]),
             .infinity_is_far = o.infinity_is_far,
             .pixels = (*out)->owner};
    theo_spectral_table(table);
    for (int i = 0; i < 3 * COLORS; i++)
        j.colors[i / 3][i % 3] = (uint8_t)(255 * table[i]);
    theo_pool_run(pool, map->height, paint_row, &j);
    return THEO_OK;
}
