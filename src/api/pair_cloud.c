/* pair_cloud.c - the points of a pair that are worth keeping, and what its maps say in a few numbers. */
#include "base/error.h"
#include "geometry/order.h"
#include <math.h>
#include <string.h>
#include <theo/pair.h>

static size_t pixels_of(const theo_pair_view *view) {
    return (size_t)view->width * (size_t)view->height;
}

static bool is_finite(const float *point) {
    return isfinite(point[0]) && isfinite(point[1]) && isfinite(point[2]);
}

static bool is_valid(const theo_pair_view *view, size_t i, double min_conf) {
    return view->mask[i] && (double)view->confidence[i] >= min_conf && is_finite(view->points + 3 * i);
}

void theo_pair_valid(const theo_pair_view *view, double min_conf, uint8_t *valid) {
    for (size_t i = 0; i < pixels_of(view); i++)
        valid[i] = is_valid(view, i, min_conf);
}

/* ---------------------------------------------------------------- point cloud */

static int64_t count_valid(const theo_pair_view *view, double min_conf) {
    int64_t count = 0;
    for (size_t i = 0; i < pixels_of(view); i++)
        count += is_valid(view, i, min_conf);
    return count;
}

theo_status theo_pair_point_cloud(const theo_pair *pair, double min_conf, theo_point_cloud **cloud, theo_error *err) {
    if (!cloud)
        return theo_fail(err, THEO_ARGUMENT, NULL, "cloud", "is NULL");
    *cloud = NULL;
    if (!pair)
        return theo_fail(err, THEO_ARGUMENT, NULL, "pair", "is NULL");
    const int64_t first = count_valid(&pair->views[0], min_conf), count = first + count_valid(&pair->views[1], min_conf);
    theo_point_cloud *c = theo_alloc(sizeof *c + (size_t)count * (3 * sizeof(float) + 3), 1);
    if (!c)
        return theo_fail(err, THEO_MEMORY, NULL, "cloud", "out of memory for %lld points", (long long)count);
    float *point = (float *)(void *)(c + 1);
    uint8_t *color = (uint8_t *)(point + 3 * count);
    *c = (theo_point_cloud){.count = count, .first_count = first, .points = point, .colors = color};
    for (int v = 0; v < 2; v++) {
        const theo_pair_view *view = &pair->views[v];
        for (size_t i = 0; i < pixels_of(view); i++)
            if (is_valid(view, i, min_conf)) {
                memcpy(point, view->points + 3 * i, 3 * sizeof *point);
                memcpy(color, view->rgb + 3 * i, 3);
                point += 3;
                color += 3;
            }
    }
    *cloud = c;
    return THEO_OK;
}

void theo_point_cloud_free(theo_point_cloud *cloud) {
    theo_free(cloud);
}

/* ---------------------------------------------------------------- summary */

typedef struct statistics {
    double min, median, mean, max;
} statistics;

/* Of the finite values on the photo. room: [pixels]. */
static statistics measure(const theo_pair_view *view, const float *values, double *room) {
    statistics s = {NAN, NAN, NAN, NAN};
    size_t count = 0;
    double sum = 0;
    for (size_t i = 0; i < pixels_of(view); i++) {
        if (!view->mask[i] || !isfinite(values[i]))
            continue;
        const double value = (double)values[i];
        room[count++] = value;
        sum += value;
        s.min = fmin(s.min, value); /* the number, where the other is NaN */
        s.max = fmax(s.max, value);
    }
    if (count) {
        s.mean = sum / (double)count;
        s.median = theo_percentile(room, count, 50);
    }
    return s;
}

theo_status theo_pair_summarise(const theo_pair_view *view, theo_pair_summary *summary, theo_error *err) {
    if (!view || !summary)
        return theo_fail(err, THEO_ARGUMENT, NULL, view ? "summary" : "view", "is NULL");
    const size_t pixels = pixels_of(view);
    double *room = theo_alloc(pixels, sizeof *room);
    if (!room)
        return theo_fail(err, THEO_MEMORY, NULL, "summary", "out of memory for %zu values", pixels);
    const statistics conf = measure(view, view->confidence, room), depth = measure(view, view->depth, room);
    size_t photo = 0;
    for (size_t i = 0; i < pixels; i++)
        photo += view->mask[i] != 0;
    *summary = (theo_pair_summary){conf.min,  conf.median,  conf.mean, conf.max,
                                   depth.min, depth.median, depth.max, (double)photo / (double)pixels};
    theo_free(room);
    return THEO_OK;
}
