#include "geometry/focal_estimate.h"
#include "base/error.h"
#include "geometry/order.h"
#include <math.h>

static theo_status check(const theo_point_map *map, const double *focal, theo_error *err) {
    if (!map || !focal || !map->points)
        return theo_fail(err, THEO_ARGUMENT, NULL, "map", "map, points and focal must be given");
    if (map->width < 1 || map->height < 1 || map->width > (1 << 15) || map->height > (1 << 15))
        return theo_fail(err, THEO_ARGUMENT, NULL, "map", "has %d x %d pixels: allowed is 1 to 32768 a side", map->width,
                         map->height);
    return THEO_OK;
}

/* Adds |offset * z / x| to the votes, where it is a number. */
static size_t vote(double *votes, size_t count, double offset, double x, double z) {
    double sign = (x > 0) - (x < 0);
    double focal = fabs(offset * z / (fabs(x) < 1e-6 ? sign * 1e-6 + 1e-12 : x));
    if (isfinite(focal))
        votes[count++] = focal;
    return count;
}

double theo_focal_median_in(const theo_point_map *map, double *votes) {
    int w = map->width, h = map->height;
    size_t count = 0;
    const float *p = map->points;
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++, p += 3) {
            count = vote(votes, count, x - w / 2.0, (double)p[0], (double)p[2]);
            count = vote(votes, count, y - h / 2.0, (double)p[1], (double)p[2]);
        }
    double usual = (w > h ? w : h) / (2 * tan(30 * 3.14159265358979323846 / 180));
    double median = count ? theo_percentile(votes, count, 50) : 0;
    return fmin(fmax(median, 0.2 * usual), 8 * usual);
}

theo_status theo_focal_median(const theo_point_map *map, double *focal, theo_error *err) {
    THEO_TRY(check(map, focal, err));
    double *votes = theo_alloc((size_t)map->width * (size_t)map->height, 2 * sizeof *votes);
    if (!votes)
        return theo_fail(err, THEO_MEMORY, NULL, "map", "no memory for the votes of %d x %d pixels", map->width, map->height);
    *focal = theo_focal_median_in(map, votes);
    theo_free(votes);
    return THEO_OK;
}

/* A point on the plane at distance 1; what is not a number becomes 0. */
static void on_plane(const float *p, double a[2]) {
    for (int i = 0; i < 2; i++) {
        a[i] = (double)p[i] / (double)p[2];
        a[i] = isfinite(a[i]) ? a[i] : 0;
    }
}

theo_status theo_focal_weiszfeld(const theo_point_map *map, double *focal, theo_error *err) {
    enum { STEPS = 10 };
    THEO_TRY(check(map, focal, err));
    int w = map->width, h = map->height;
    double f = 0;
    for (int step = 0; step <= STEPS; step++) {
        double above = 0, below = 0;
        const float *p = map->points;
        for (int y = 0; y < h; y++)
            for (int x = 0; x < w; x++, p += 3) {
                double a[2], u = x - w / 2.0, v = y - h / 2.0;
                on_plane(p, a);
                double du = u - f * a[0], dv = v - f * a[1];
                double weight = step ? 1 / fmax(sqrt(du * du + dv * dv), 1e-8) : 1;
                above += weight * (a[0] * u + a[1] * v);
                below += weight * (a[0] * a[0] + a[1] * a[1]);
            }
        f = above / below;
    }
    *focal = f;
    return THEO_OK;
}
