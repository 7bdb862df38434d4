/* geometry.c - photo to geometry: options, the network, focal length and shift, results. */
#include "api/geometry.h"
#include "api/sequence.h"
#include "base/clock.h"
#include "base/finite.h"
#include "base/take_options.h"
#include "geometry/focal.h"
#include "imageio/image.h"
#include "kernels/kernels.h"
#include <math.h>
#include <string.h>
#include <theo/depth.h>

/* ---------------------------------------------------------------- options */

void theo_geometry_options_init(theo_geometry_options *o) {
    *o = (theo_geometry_options){
        .size = sizeof *o,
        .fit = THEO_DEPTH_NATIVE,
        .tokens = THEO_MOGE_CANVAS_TOKENS,
        .resolution_level = -1,
        .mask_threshold = 0.5f,
        .force_projection = true,
        .apply_mask = true,
        .invalid = THEO_INVALID_INF,
        .scale = 1,
        .normal = true,
    };
}

static theo_status wrong(theo_error *err, const char *field, double value, const char *allowed) {
    return theo_fail(err, THEO_ARGUMENT, NULL, field, "%g is out of range: allowed is %s", value, allowed);
}

static theo_status check(const theo_geometry_options *o, theo_error *err) {
    if (o->fit < THEO_DEPTH_NATIVE || o->fit > THEO_DEPTH_STRETCH)
        return wrong(err, "fit", o->fit, "0 (native) to 2 (stretch)");
    if (o->tokens < THEO_MOGE_MIN_TOKENS || o->tokens > THEO_MOGE_MAX_TOKENS)
        return wrong(err, "tokens", o->tokens, "16 to 16384");
    if (o->resolution_level != -1 && !(o->resolution_level >= 0 && o->resolution_level <= 30))
        return wrong(err, "resolution_level", o->resolution_level, "-1 (tokens holds), or 0 to 30");
    if (!(o->fov_x >= 0 && o->fov_x < 180))
        return wrong(err, "fov_x", o->fov_x, "0 (found by the network) to below 180 degrees");
    if (!(o->focal_px >= 0) || !isfinite(o->focal_px))
        return wrong(err, "focal_px", o->focal_px, "0 (not given), or a positive number");
    if ((o->fov_x > 0) + (o->focal_px > 0) + o->fov_from_exif > 1)
        return theo_fail(err, THEO_ARGUMENT, NULL, "fov_x", "of fov_x, focal_px and fov_from_exif one alone can be given");
    if (!(o->mask_threshold >= 0 && o->mask_threshold <= 1))
        return wrong(err, "mask_threshold", (double)o->mask_threshold, "0 to 1");
    if (o->invalid < THEO_INVALID_INF || o->invalid > THEO_INVALID_ZERO)
        return wrong(err, "invalid", o->invalid, "0 (inf) to 2 (zero)");
    if (!(o->metric_scale >= 0) || !isfinite(o->metric_scale))
        return wrong(err, "metric_scale", (double)o->metric_scale, "0 (the network's), or a positive number");
    if (!(o->scale > 0) || !isfinite(o->scale))
        return wrong(err, "scale", (double)o->scale, "a positive number");
    return THEO_OK;
}

/* Floats may be anything; integers are finite. */
static bool has_finite_samples(const theo_image *image) {
    const size_t samples = (size_t)image->width * (size_t)image->channels, row = theo_image_row_bytes(image);
    bool is_finite = true;
    for (int y = 0; image->type == THEO_F32 && is_finite && y < image->height; y++)
        is_finite = theo_all_finite((const float *)(const void *)((const char *)image->pixels + (size_t)y * row), samples);
    return is_finite;
}

theo_status theo_geometry_image_check(const theo_image *image, theo_error *err) {
    THEO_TRY(theo_image_check(image, "image", err));
    if (image->width < THEO_MOGE_MIN_SIDE || image->height < THEO_MOGE_MIN_SIDE)
        return theo_fail(err, THEO_ARGUMENT, NULL, "image", "has %dx%d pixels: at least 8x8 is needed", image->width,
                         image->height);
    if (image->width > THEO_MOGE_MAX_SIDE || image->height > THEO_MOGE_MAX_SIDE)
        return theo_fail(err, THEO_ARGUMENT, NULL, "image", "has %dx%d pixels: at most %d a side are possible", image->width,
                         image->height, THEO_MOGE_MAX_SIDE);
    if (!has_finite_samples(image))
        return theo_fail(err, THEO_ARGUMENT, NULL, "image",
                         "a float image holds NaN or infinity: its samples must be finite, in [0, 1]");
    return THEO_OK;
}

int theo_geometry_tokens(const theo_geometry_options *o, const theo_moge *n) {
    if (o->resolution_level < 0)
        return o->tokens;
    return (int)(n->config.min_tokens + o->resolution_level / 9 * (n->config.max_tokens - n->config.min_tokens));
}

/* ---------------------------------------------------------------- results */

/* One block: the struct, its maps, the model's name. */
typedef struct geometry_block {
    theo_geometry public;
    float *points, *depth, *normal, *probability; /* the same, writable; the mask before its threshold */
    uint8_t *mask;
} geometry_block;

static theo_status new_geometry(geometry_block **out, theo_session *s, const theo_moge_frame *f, bool has_normal,
                                theo_error *err) {
    size_t pixels = (size_t)f->width * (size_t)f->height, name = strlen(s->model->info.name) + 1;
    size_t floats = pixels * (has_normal ? 8 : 5);
    char *memory = theo_results_take(s->results, sizeof(geometry_block) + floats * sizeof(float) + pixels + name);
    if (!memory)
        return theo_fail(err, THEO_MEMORY, NULL, "geometry", "out of memory for maps of %dx%d", f->width, f->height);
    geometry_block *g = (geometry_block *)(void *)memory;
    *g = (geometry_block){.points = (float *)(g + 1)};
    g->depth = g->points + 3 * pixels;
    g->probability = g->depth + pixels;
    g->normal = has_normal ? g->probability + pixels : NULL;
    g->mask = (uint8_t *)(g->points + floats);
    char *text = (char *)(g->mask + pixels);
    memcpy(text, s->model->info.name, name);
    g->public = (theo_geometry){
        .width = f->width,
        .height = f->height,
        .points = g->points,
        .depth = g->depth,
        .normal = g->normal,
        .mask = g->mask,
        .token_rows = f->grid.rows,
        .token_columns = f->grid.columns,
        .model = text,
    };
    *out = g;
    return THEO_OK;
}

void theo_geometry_free(theo_geometry *geometry) {
    theo_results_give(geometry);
}

/* ---------------------------------------------------------------- camera */

static const double pi = 3.14159265358979323846;

/* focal is relative to half the diagonal of a picture of that aspect. */
static void set_camera(theo_geometry *g, double aspect) {
    double r = sqrt(1 + aspect * aspect), fx = (double)g->focal / 2 * r / aspect, fy = (double)g->focal / 2 * r;
    const float normalised[9] = {(float)fx, 0, 0.5f, 0, (float)fy, 0.5f, 0, 0, 1};
    memcpy(g->intrinsics, normalised, sizeof normalised);
    memcpy(g->intrinsics_pixels, normalised, sizeof normalised);
    for (int i = 0; i < 3; i++) {
        g->intrinsics_pixels[i] *= (float)g->width;
        g->intrinsics_pixels[3 + i] *= (float)g->height;
    }
    g->fov_x = (float)(2 * atan(0.5 / fx) * 180 / pi);
    g->fov_y = (float)(2 * atan(0.5 / fy) * 180 / pi);
}

/* ---------------------------------------------------------------- the maps, row by row */

typedef struct finishing {
    geometry_block *g;
    const theo_geometry_options *o;
    bool only_in_front; /* what lies behind the camera is invalid */
    float invalid;
    int *valid; /* of each row */
} finishing;

/* The network's point of column x in the unit of the result. False where an exponential, a projection or a scale leaves what
 * float32 holds. */
static bool finish_point(const finishing *f, int x, float v, float *point) {
    const theo_geometry *g = &f->g->public;
    float z = point[2] + g->shift;
    if (f->o->force_projection) {
        point[0] = (((float)x + 0.5f) / (float)g->width - 0.5f) / g->intrinsics[0] * z;
        point[1] = (v - 0.5f) / g->intrinsics[4] * z;
    }
    point[0] *= g->metric_scale;
    point[1] *= g->metric_scale;
    point[2] = z * g->metric_scale;
    return isfinite(point[0]) && isfinite(point[1]) && isfinite(point[2]);
}

static void finish_row(void *context, int y, int worker) {
    (void)worker;
    const finishing *f = context;
    const theo_geometry *g = &f->g->public;
    size_t first = (size_t)y * (size_t)g->width;
    float *point = f->g->points + 3 * first, *depth = f->g->depth + first;
    float *normal = f->g->normal ? f->g->normal + 3 * first : NULL;
    const float *probability = f->g->probability + first;
    uint8_t *mask = f->g->mask + first;
    float v = ((float)y + 0.5f) / (float)g->height;
    int valid = 0;
    for (int x = 0; x < g->width; x++, point += 3) {
        bool is_finite = finish_point(f, x, v, point);
        mask[x] = is_finite && probability[x] > f->o->mask_threshold && (point[2] > 0 || !f->only_in_front);
        valid += mask[x];
        bool is_masked = f->o->apply_mask && !mask[x];
        if (is_masked || !is_finite)
            point[0] = point[1] = point[2] = f->invalid;
        if (is_masked && normal)
            normal[3 * x] = normal[3 * x + 1] = normal[3 * x + 2] = 0;
        depth[x] = point[2];
    }
    f->valid[y] = valid;
}

static theo_status finish_maps(const theo_session *s, geometry_block *g, const theo_geometry_options *o, theo_error *err) {
    const float invalid[] = {INFINITY, NAN, 0};
    finishing f = {.g = g, .o = o, .invalid = invalid[o->invalid], .valid = theo_alloc((size_t)g->public.height, sizeof(int))};
    f.only_in_front = s->model->moge->generation == THEO_MOGE_2;
    if (!f.valid)
        return theo_fail(err, THEO_MEMORY, NULL, "geometry", "out of memory");
    theo_pool_run(s->model->pool, g->public.height, finish_row, &f);
    int64_t valid = 0;
    for (int y = 0; y < g->public.height; y++)
        valid += f.valid[y];
    g->public.mask_coverage = (float)((double)valid / ((double)g->public.width * g->public.height));
    theo_free(f.valid);
    return THEO_OK;
}

/* ---------------------------------------------------------------- photo to geometry */

/* Focal length and shift of the frame, and the view that holds for it: its own, or what its sequence shares. False where the
 * frame has too few valid points to say anything. */
static bool solve_camera(geometry_block *g, const theo_moge_frame *f, const theo_geometry_options *o, theo_sequence_view *view) {
    theo_geometry *p = &g->public;
    theo_focal_problem problem = {
        .points = g->points,
        .mask = g->probability,
        .threshold = o->mask_threshold,
        .width = f->width,
        .height = f->height,
        .aspect = f->camera_aspect,
    };
    double half = f->camera_aspect / sqrt(1 + f->camera_aspect * f->camera_aspect);
    if (o->fov_x > 0)
        problem.focal = half / tan(o->fov_x * pi / 360);
    theo_focal_result solved = theo_focal_solve(&problem);
    const theo_sequence_view own = {half / (double)solved.focal, (double)p->network_metric_scale};
    bool is_good =
        !solved.is_degenerate && own.half_width > 0 && isfinite(own.half_width) && own.scale > 0 && isfinite(own.scale);
    *view = own;
    if (o->sequence)
        theo_sequence_next(o->sequence, is_good ? &own : NULL, view);
    if (!(o->fov_x > 0) && view->half_width != own.half_width) {
        problem.focal = half / view->half_width;
        solved = theo_focal_solve(&problem);
    }
    p->focal = solved.focal;
    p->shift = solved.shift;
    p->is_degenerate = solved.is_degenerate;
    set_camera(p, f->camera_aspect);
    return is_good;
}

static theo_status postprocess(theo_session *s, geometry_block *g, const theo_moge_frame *f, const theo_geometry_options *o,
                               theo_error *err) {
    theo_geometry *p = &g->public;
    theo_moge_maps maps = {.points = g->points, .normal = g->normal, .mask = g->probability};
    if (!theo_moge_head_channels(s->model->moge, THEO_MOGE_MASK)) {
        maps.mask = NULL;
        for (size_t i = 0; i < (size_t)f->width * (size_t)f->height; i++)
            g->probability[i] = 2; /* valid at every threshold */
    }
    THEO_TRY(theo_moge_sample(s->moge, f, &maps, err));
    p->network_metric_scale = theo_moge_metric_scale(s->moge);
    p->network_is_metric = theo_moge_has_scale(s->model->moge);
    p->is_metric = p->network_is_metric || o->metric_scale > 0;
    theo_sequence_view shared;
    bool is_good = solve_camera(g, f, o, &shared);
    p->metric_scale = (o->metric_scale > 0 ? o->metric_scale : (float)shared.scale) * o->scale;
    THEO_TRY(finish_maps(s, g, o, err));
    if (is_good && o->sequence)
        theo_sequence_advance(o->sequence, f->width, f->height, &shared);
    return THEO_OK;
}

theo_status theo_geometry_options_of(theo_geometry_options *out, const theo_geometry_options *given, theo_error *err) {
    theo_geometry_options_init(out);
    THEO_TRY(theo_options_take(out, sizeof *out, given, "theo_geometry_options", err));
    return check(out, err);
}

/* Of the photo, in degrees; 0: the network's. EXIF's focal length is for film of 36 mm on the longer side. */
static double field_of_view(const theo_geometry_options *o, const theo_image *image) {
    double focal = o->focal_px;
    int longer = image->width > image->height ? image->width : image->height;
    if (o->fov_from_exif)
        focal = image->exif_focal_35mm / 36.0 * longer;
    return focal > 0 ? 2 * atan(image->width / (2 * focal)) * 180 / pi : o->fov_x;
}

theo_status theo_geometry_entered(theo_session *s, const theo_image *image, const theo_geometry_options *options,
                                  theo_geometry **geometry, theo_error *err) {
    theo_geometry_options o = *options;
    THEO_TRY(theo_geometry_image_check(image, err));
    o.fov_x = field_of_view(&o, image);
    if (o.sequence)
        THEO_TRY(theo_sequence_check(o.sequence, image->width, image->height, err));
    const theo_moge *n = s->model->moge;
    double start = theo_clock_ms();
    theo_moge_frame f =
        theo_moge_frame_of(n->generation, image->width, image->height, (theo_moge_fit)o.fit, theo_geometry_tokens(&o, n));
    unsigned heads = theo_moge_heads(n) & (o.normal ? ~0u : ~(1u << THEO_MOGE_NORMAL));
    THEO_TRY(theo_moge_run(s->moge, image, o.bgr, &f, heads, err));
    double ran = theo_clock_ms();
    geometry_block *g = NULL;
    THEO_TRY(new_geometry(&g, s, &f, heads & 1u << THEO_MOGE_NORMAL, err));
    theo_status status = postprocess(s, g, &f, &o, err);
    if (status) {
        theo_results_give(g);
        return status;
    }
    double end = theo_clock_ms();
    g->public.timing = (theo_timing){theo_moge_preprocess_ms(s->moge), theo_moge_forward_ms(s->moge), end - ran, end - start};
    *geometry = &g->public;
    return THEO_OK;
}

theo_status theo_geometry_run(theo_session *session, const theo_image *image, const theo_geometry_options *options,
                              theo_geometry **geometry, theo_error *err) {
    if (!geometry)
        return theo_fail(err, THEO_ARGUMENT, NULL, "geometry", "is NULL");
    *geometry = NULL;
    theo_geometry_options o;
    THEO_TRY(theo_session_enter_for(session, THEO_TASK_DEPTH, err));
    theo_status status = theo_geometry_options_of(&o, options, err);
    if (!status)
        status = theo_geometry_entered(session, image, &o, geometry, err);
    theo_session_leave(session);
    return status;
}
