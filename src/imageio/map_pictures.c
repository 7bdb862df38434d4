/* map_pictures.c - maps of numbers as pictures that keep the numbers: depth in 16 bits, normals, masks. */
#include "base/error.h"
#include "base/pool.h"
#include "imageio/image.h"

#include <math.h>
#include <theo/export.h>

static theo_status check_map(const theo_depth_map *map, theo_error *err) {
    if (!map || !map->depth)
        return theo_fail(err, THEO_ARGUMENT, NULL, "map", "no depth map was given");
    return THEO_OK;
}

static inline bool counts(const theo_depth_map *map, size_t i) {
    return (!map->valid || map->valid[i]) && map->depth[i] > 0 && map->depth[i] < INFINITY;
}

/* ---------------------------------------------------------------- depth */

typedef struct depth_job {
    const theo_depth_map *map;
    float *largest; /* [height] of each row */
    double scale;
    uint16_t *pixels;
} depth_job;

static void find_largest(void *context, int y, int worker) {
    const depth_job *j = context;
    const size_t width = (size_t)j->map->width, first = (size_t)y * width;
    float largest = 0;
    (void)worker;
    for (size_t i = first; i < first + width; i++)
        if (counts(j->map, i) && j->map->depth[i] > largest)
            largest = j->map->depth[i];
    j->largest[y] = largest;
}

static void paint_depth(void *context, int y, int worker) {
    const depth_job *j = context;
    const size_t width = (size_t)j->map->width, first = (size_t)y * width;
    (void)worker;
    for (size_t i = first; i < first + width; i++) {
        const double value = counts(j->map, i) ? rint((double)j->map->depth[i] / j->scale) : 0;
        j->pixels[i] = (uint16_t)(!counts(j->map, i) ? 0 : value < 1 ? 1 : value > 65535 ? 65535 : value);
    }
}

theo_status theo_picture_depth(theo_image **out, const theo_depth_map *map, double *scale, theo_pool *pool, theo_error *err) {
    *out = NULL;
    THEO_TRY(check_map(map, err));
    THEO_TRY(theo_image_make(out, map->width, map->height, 1, THEO_U16, NULL, err));
    depth_job j = {.map = map, .pixels = (*out)->owner, .largest = theo_alloc((size_t)map->height, sizeof *j.largest)};
    if (!j.largest) {
        theo_image_free(*out);
        *out = NULL;
        return theo_fail(err, THEO_MEMORY, NULL, "map", "no memory for %d rows", map->height);
    }
    theo_pool_run(pool, map->height, find_largest, &j);
    float largest = 0;
    for (int y = 0; y < map->height; y++)
        largest = j.largest[y] > largest ? j.largest[y] : largest;
    theo_free(j.largest);
    j.scale = (double)largest / 65535;
    theo_pool_run(pool, map->height, paint_depth, &j);
    if (scale)
        *scale = j.scale;
    return THEO_OK;
}

/* ---------------------------------------------------------------- normals */

typedef struct normal_job {
    const float *normals;
    size_t row; /* numbers in a row */
    uint8_t *pixels;
} normal_job;

/* v in 0..255; what rounding let pass is cut, NaN is the middle. */
static inline float clamp(float v) {
    return v >= 0 && v <= 255 ? v : v < 0 ? 0 : v > 255 ? 255 : 128;
}

static void paint_normals(void *context, int y, int worker) {
    const normal_job *j = context;
    const float *in = j->normals + (size_t)y * j->row;
    uint8_t *out = j->pixels + (size_t)y * j->row;
    (void)worker;
    for (size_t i = 0; i < j->row; i++)
        out[i] = (uint8_t)lrintf(clamp(255 * (in[i] * 0.5f + 0.5f)));
}

static void paint_published_normals(void *context, int y, int worker) {
    static const float half[3] = {0.5f, -0.5f, -0.5f};
    const normal_job *j = context;
    const float *in = j->normals + (size_t)y * j->row;
    uint8_t *out = j->pixels + (size_t)y * j->row;
    (void)worker;
    for (size_t i = 0; i < j->row; i++)
        out[i] = (uint8_t)clamp((in[i] * half[i % 3] + 0.5f) * 255);
}

theo_status theo_picture_normal(theo_image **out, const float *normals, int width, int height, theo_normal_axes axes,
                                theo_pool *pool, theo_error *err) {
    *out = NULL;
    if (!normals)
        return theo_fail(err, THEO_ARGUMENT, NULL, "normals", "no normals were given");
    if (axes != THEO_NORMAL_CAMERA && axes != THEO_NORMAL_PUBLISHED)
        return theo_fail(err, THEO_ARGUMENT, NULL, "axes", "%d is out of range: allowed is 0 (camera) or 1 (published)",
                         (int)axes);
    THEO_TRY(theo_image_make(out, width, height, 3, THEO_U8, NULL, err));
    normal_job job = {normals, 3 * (size_t)width, (*out)->owner};
    theo_pool_run(pool, height, axes == THEO_NORMAL_CAMERA ? paint_normals : paint_published_normals, &job);
    return THEO_OK;
}

/* ---------------------------------------------------------------- masks */

theo_status theo_picture_mask(theo_image **out, const uint8_t *mask, int width, int height, theo_error *err) {
    *out = NULL;
    if (!mask)
        return theo_fail(err, THEO_ARGUMENT, NULL, "mask", "no mask was given");
    THEO_TRY(theo_image_make(out, width, height, 1, THEO_U8, NULL, err));
    uint8_t *pixels = (*out)->owner;
    for (size_t i = 0; i < (size_t)width * (size_t)height; i++)
        pixels[i] = mask[i] ? 255 : 0;
    return THEO_OK;
}
