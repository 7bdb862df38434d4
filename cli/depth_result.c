#include "depth_result.h"

theo_status depth_measure(depth_facts *f, const theo_geometry *g, bool dense, theo_pool *pool, theo_error *err) {
    static const double quantiles[3] = {0, 0.5, 1};
    double values[3];
    *f = (depth_facts){.map = {g->width, g->height, g->depth, dense ? NULL : g->mask}};
    theo_status status = theo_depth_quantiles(&f->map, quantiles, 3, values, &f->count, pool, err);
    if (!status && f->count) {
        f->min = (float)values[0];
        f->median = (float)values[1];
        f->max = (float)values[2];
        f->png_scale = values[2] / 65535;
    }
    return status;
}

/* ---- JSON */

static void member_float(json_out *json, const char *key, float value) {
    json_key(json, key);
    json_float(json, value);
}

/* null: there is no such scale. */
static void member_scale(json_out *json, const char *key, float value, bool is_there) {
    json_key(json, key);
    if (is_there)
        json_float(json, value);
    else
        json_null(json);
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
    json_member_string(json, "unit", g->is_metric ? "m" : "relative");
    member_scale(json, "metric_scale", g->metric_scale, g->is_metric);
    member_scale(json, "network_metric_scale", g->network_metric_scale, g->network_is_metric);
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
