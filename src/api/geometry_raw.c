/* geometry_raw.c - the network's own outputs for planes, and the planes that a photo becomes. */
#include "api/geometry.h"
#include "base/clock.h"
#include "base/finite.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- raw */

static theo_status raw_entered(theo_session *s, const float *planes, int rows, int columns, double aspect,
                               theo_geometry_maps **out, theo_error *err) {
    const theo_moge *n = s->model->moge;
    double start = theo_clock_ms();
    theo_moge_grid grid = theo_moge_grid_of_patches(n->generation, rows, columns);
    THEO_TRY(theo_moge_run_planes(s->moge, planes, &grid, aspect, theo_moge_heads(n), err));
    size_t pixels = (size_t)grid.map_h * (size_t)grid.map_w;
    theo_geometry_maps *maps = theo_results_take(s->results, sizeof *maps + 64 + 7 * pixels * sizeof(float));
    if (!maps)
        return theo_fail(err, THEO_MEMORY, NULL, "maps", "out of memory");
    float *data = (float *)(void *)(maps + 1), *made[THEO_MOGE_HEADS] = {NULL};
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++)
        if (theo_moge_head_channels(n, h)) {
            theo_moge_raw_map(s->moge, h, data);
            made[h] = data;
            data += (size_t)theo_moge_head_channels(n, h) * pixels;
        }
    *maps = (theo_geometry_maps){
        .rows = rows,
        .columns = columns,
        .height = grid.map_h,
        .width = grid.map_w,
        .points = made[THEO_MOGE_POINTS],
        .normal = made[THEO_MOGE_NORMAL],
        .mask = made[THEO_MOGE_MASK],
        .metric_scale = theo_moge_metric_scale(s->moge),
    };
    maps->timing = (theo_timing){theo_moge_preprocess_ms(s->moge), theo_moge_forward_ms(s->moge), 0, theo_clock_ms() - start};
    *out = maps;
    return THEO_OK;
}

enum { PATCH_VALUES = 3 * THEO_MOGE_PATCH * THEO_MOGE_PATCH, MOST_RAW_PATCHES = 4 * THEO_MOGE_MAX_TOKENS };

theo_status theo_geometry_raw(theo_session *session, const float *planes, int rows, int columns, double aspect,
                              theo_geometry_maps **maps, theo_error *err) {
    if (!maps)
        return theo_fail(err, THEO_ARGUMENT, NULL, "maps", "is NULL");
    *maps = NULL;
    if (!planes)
        return theo_fail(err, THEO_ARGUMENT, NULL, "planes", "is NULL");
    if (rows < 1 || columns < 1 || (int64_t)rows * columns > MOST_RAW_PATCHES)
        return theo_fail(err, THEO_ARGUMENT, NULL, "planes", "%d x %d patches are out of range: allowed is 1x1 to %d in all",
                         rows, columns, MOST_RAW_PATCHES);
    if (!(aspect > 0) || !isfinite(aspect))
        return theo_fail(err, THEO_ARGUMENT, NULL, "aspect", "%g is out of range: allowed is a positive number", aspect);
    if (!theo_all_finite(planes, (size_t)rows * (size_t)columns * PATCH_VALUES))
        return theo_fail(err, THEO_ARGUMENT, NULL, "planes", "holds a number that is not finite");
    THEO_TRY(theo_session_enter_for(session, THEO_TASK_DEPTH, err));
    theo_status status = raw_entered(session, planes, rows, columns, aspect, maps, err);
    theo_session_leave(session);
    return status;
}

void theo_geometry_maps_free(theo_geometry_maps *maps) {
    theo_results_give(maps);
}

/* ---------------------------------------------------------------- the network's input */

/* Patches in the order (channel, y, x), one behind the other, to planes. */
static void planes_of_patches(const float *patches, int rows, int columns, float *planes) {
    enum { P = THEO_MOGE_PATCH };
    size_t width = (size_t)columns * P, plane = (size_t)rows * P * width;
    for (int n = 0; n < rows * columns; n++)
        for (int i = 0; i < 3 * P; i++) {
            size_t y = (size_t)(n / columns * P + i % P), x = (size_t)(n % columns * P);
            memcpy(planes + (size_t)(i / P) * plane + y * width + x, patches + ((size_t)n * 3 * P + (size_t)i) * P,
                   P * sizeof(float));
        }
}

theo_status theo_geometry_planes(const theo_model *model, const theo_image *image, const theo_geometry_options *options,
                                 theo_geometry_input *input, theo_error *err) {
    theo_geometry_options o;
    if (!input)
        return theo_fail(err, THEO_ARGUMENT, NULL, "input", "is NULL");
    *input = (theo_geometry_input){.planes = NULL};
    if (!model || model->kind->task != THEO_TASK_DEPTH)
        return theo_fail(err, THEO_ARGUMENT, NULL, "model", "must be a model for depth");
    THEO_TRY(theo_geometry_options_of(&o, options, err));
    THEO_TRY(theo_geometry_image_check(image, err));
    const theo_moge *n = model->moge;
    theo_moge_frame f =
        theo_moge_frame_of(n->generation, image->width, image->height, (theo_moge_fit)o.fit, theo_geometry_tokens(&o, n));
    size_t values = (size_t)f.grid.rows * (size_t)f.grid.columns * PATCH_VALUES;
    float *patches = theo_alloc(values + PATCH_VALUES, sizeof *patches), *planes = theo_alloc(values, sizeof *planes);
    theo_moge_input memory = {.canvas = {.data = NULL}};
    theo_status status = patches && planes ? THEO_OK : theo_fail(err, THEO_MEMORY, NULL, "planes", "out of memory");
    if (!status)
        status = theo_moge_input_fill(&memory, image, o.bgr, &f, n->mean, n->deviation, model->pool, patches, PATCH_VALUES, err);
    theo_moge_input_free(&memory);
    if (!status)
        planes_of_patches(patches + PATCH_VALUES, f.grid.rows, f.grid.columns, planes);
    theo_free(patches);
    if (status) {
        theo_free(planes);
        return status;
    }
    *input = (theo_geometry_input){f.grid.rows, f.grid.columns, f.net_aspect, planes};
    return THEO_OK;
}
