#include "depth_result.h"
#include "message.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static size_t pixels_of(const theo_geometry *g) {
    return (size_t)g->width * (size_t)g->height;
}

static bool counts(const theo_geometry *g, size_t i, bool dense) {
    return (dense || g->mask[i]) && isfinite(g->depth[i]) && g->depth[i] > 0;
}

/* ---- statistics */

/* Value number k in rising order of positive floats x[n]: their bits order as they do. The upper 16 bits are counted first, then
 * the lower ones of those that share the upper half. */
static float kth(const float *x, size_t n, size_t k) {
    enum { HALF = 1 << 16 };
    size_t *bins = memory_new(HALF, sizeof *bins);
    uint32_t prefix = 0, bits;
    for (int pass = 0; pass < 2; pass++) {
        memset(bins, 0, HALF * sizeof *bins);
        for (size_t i = 0; i < n; i++) {
            memcpy(&bits, &x[i], sizeof bits);
            if (pass == 0)
                bins[bits >> 16]++;
            else if (bits >> 16 == prefix)
                bins[bits & 0xFFFF]++;
        }
        uint32_t bin = 0;
        while (k >= bins[bin])
            k -= bins[bin++];
        prefix = prefix << 16 | bin;
    }
    free(bins);
    float value;
    memcpy(&value, &prefix, sizeof value);
    return value;
}

depth_facts depth_measure(const theo_geometry *g, bool dense) {
    depth_facts f = {.dense = dense};
    float *values = memory_new(pixels_of(g), sizeof *values);
    f.min = INFINITY;
    for (size_t i = 0; i < pixels_of(g); i++) {
        if (!counts(g, i, dense))
            continue;
        values[f.count++] = g->depth[i];
        f.min = fminf(f.min, g->depth[i]);
        f.max = fmaxf(f.max, g->depth[i]);
    }
    if (f.count) {
        f.median = kth(values, f.count, f.count / 2);
        if (f.count % 2 == 0)
            f.median = 0.5f * (f.median + kth(values, f.count, f.count / 2 - 1));
        f.png_scale = (double)f.max / 65535;
    }
    free(values);
    return f;
}

/* ---- pictures */

static theo_status picture(theo_image **image, void **pixels, const theo_geometry *g, int channels, theo_pixel type,
                           theo_error *err) {
    theo_status status = theo_image_new(image, g->width, g->height, channels, type, err);
    *pixels = status ? NULL : theo_image_pixels(*image);
    return status;
}

/* Metres are value * scale; 0 is invalid. The scale stands in a text chunk. */
static theo_status write_depth(output_files *files, const theo_geometry *g, const depth_facts *f, theo_error *err) {
    const char *path = output_path(files, "depth.png", err);
    theo_image *image;
    void *data;
    if (!path)
        return err->status;
    theo_status status = picture(&image, &data, g, 1, THEO_U16, err);
    if (status)
        return status;
    uint16_t *value = data;
    for (size_t i = 0; i < pixels_of(g); i++)
        if (f->count && counts(g, i, f->dense))
            value[i] = (uint16_t)fmin(fmax(rint((double)g->depth[i] / f->png_scale), 1), 65535);
    json_out scale = {0};
    json_double(&scale, f->png_scale);
    status = theo_image_save_png(image, path, &(theo_png_text){"theo:depth_scale", scale.text}, 1, err);
    json_free(&scale);
    theo_image_free(image);
    return status;
}

/* n * 0.5 + 0.5 in the camera's axes; 128, 128, 128 is invalid. */
static theo_status write_normal(output_files *files, const theo_geometry *g, theo_error *err) {
    theo_image *image;
    void *data;
    theo_status status = picture(&image, &data, g, 3, THEO_U8, err);
    if (status)
        return status;
    uint8_t *value = data;
    for (size_t i = 0; i < 3 * pixels_of(g); i++)
        value[i] = (uint8_t)lrintf(255 * (g->normal[i] * 0.5f + 0.5f));
    for (size_t i = 0; i < pixels_of(g); i++)
        if (!g->mask[i] && g->normal[3 * i] == 0 && g->normal[3 * i + 1] == 0 && g->normal[3 * i + 2] == 0)
            memset(value + 3 * i, 128, 3);
    status = output_png(files, "normal.png", image, err);
    theo_image_free(image);
    return status;
}

static theo_status write_mask(output_files *files, const theo_geometry *g, theo_error *err) {
    theo_image *image;
    void *data;
    theo_status status = picture(&image, &data, g, 1, THEO_U8, err);
    if (status)
        return status;
    uint8_t *value = data;
    for (size_t i = 0; i < pixels_of(g); i++)
        value[i] = g->mask[i] ? 255 : 0;
    status = output_png(files, "mask.png", image, err);
    theo_image_free(image);
    return status;
}

static theo_status write_npz(output_files *files, const theo_geometry *g, bool deflate, theo_error *err) {
    const int64_t h = g->height, w = g->width;
    const theo_array arrays[] = {
        {.name = "points", .dtype = THEO_DTYPE_F32, .rank = 3, .shape = {h, w, 3}, .data = g->points},
        {.name = "depth", .dtype = THEO_DTYPE_F32, .rank = 2, .shape = {h, w}, .data = g->depth},
        {.name = "mask", .dtype = THEO_DTYPE_U8, .rank = 2, .shape = {h, w}, .data = g->mask},
        {.name = "intrinsics", .dtype = THEO_DTYPE_F32, .rank = 2, .shape = {3, 3}, .data = g->intrinsics},
        {.name = "intrinsics_pixels", .dtype = THEO_DTYPE_F32, .rank = 2, .shape = {3, 3}, .data = g->intrinsics_pixels},
        {.name = "metric_scale", .dtype = THEO_DTYPE_F32, .rank = 0, .data = &g->metric_scale},
        {.name = "normal", .dtype = THEO_DTYPE_F32, .rank = 3, .shape = {h, w, 3}, .data = g->normal},
    };
    return output_npz(files, "npz", arrays, g->normal ? 7 : 6, deflate, err);
}

theo_status depth_write_files(output_files *files, const theo_geometry *g, const depth_facts *f, bool deflate, theo_error *err) {
    theo_status status = write_depth(files, g, f, err);
    if (!status && g->normal)
        status = write_normal(files, g, err);
    if (!status)
        status = write_mask(files, g, err);
    return status ? status : write_npz(files, g, deflate, err);
}

/* ---- JSON */

static void member_float(json_out *json, const char *key, float value) {
    json_key(json, key);
    json_float(json, value);
}

static void member_3x3(json_out *json, const char *key, const float values[9]) {
    json_key(json, key);
    json_open(json, '[');
    for (int i = 0; i < 9; i++) {
        if (i % 3 == 0)
            json_open(json, '[');
        json_float(json, values[i]);
        if (i % 3 == 2)
            json_close(json, ']');
    }
    json_close(json, ']');
}

void depth_json_members(json_out *json, const theo_geometry *g, const depth_facts *f, const char *fit) {
    json_member_string(json, "unit", "m");
    member_float(json, "metric_scale", g->metric_scale);
    member_float(json, "network_metric_scale", g->network_metric_scale);
    member_float(json, "fov_x_deg", g->fov_x);
    member_float(json, "fov_y_deg", g->fov_y);
    member_3x3(json, "intrinsics", g->intrinsics);
    member_3x3(json, "intrinsics_pixels", g->intrinsics_pixels);
    json_member_double(json, "pixel_center", 0.5);
    member_float(json, "shift", g->shift);
    member_float(json, "mask_coverage", g->mask_coverage);
    json_key(json, "depth");
    if (f->count) {
        json_open(json, '{');
        member_float(json, "min", f->min);
        member_float(json, "median", f->median);
        member_float(json, "max", f->max);
        json_close(json, '}');
    } else {
        json_null(json);
    }
    json_member_double(json, "depth_png_scale", f->png_scale);
    json_member_string(json, "fit", fit);
    json_key(json, "tokens");
    json_open(json, '[');
    json_int(json, g->token_rows);
    json_int(json, g->token_columns);
    json_close(json, ']');
}
