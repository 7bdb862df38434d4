/* stages_dust3r.c - a library for tests: DUSt3R stage by stage, and as a session runs it. Driven by dust3r.py. */
#include "api/pair.h"
#include "base/error.h"
#include "geometry/pair_pose.h"
#include "models/dust3r_input.h"
#include "models/dust3r_run.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Declared here alone: ctypes is the only caller. */
typedef void (*layer_fn)(const char *name, const float *data, int height, int width, int channels, int pitch);
typedef struct stage_view {
    int rows, columns;
    const float *planes; /* [3, 16 rows, 16 columns] */
} stage_view;
THEO_API theo_status stage_dust3r(const char *path, int threads, const stage_view *first, const stage_view *second, int is_traced,
                                  layer_fn each, theo_error *err);
THEO_API theo_status stage_dust3r_config(const char *path, char *config, int capacity, theo_error *err);
THEO_API void stage_dust3r_activate(int depth, int conf, double conf_min, double conf_max, const float *raw, int count,
                                    float *points, float *confidence);

enum { VIEWS = THEO_DUST3R_VIEWS };

typedef struct job {
    const theo_dust3r *network;
    theo_pool *pool;
    theo_dust3r_image images[VIEWS];
    layer_fn each;
} job;

static void give_stages(const job *j, theo_plan *plan, const theo_dust3r_trace *trace, const char *prefix) {
    for (int i = 0; i < trace->count; i++) {
        int pitch;
        theo_tensor x = trace->stages[i].tensor;
        const float *data = theo_plan_data(plan, x, &pitch);
        j->each(theo_name("%s%s", prefix, trace->stages[i].name.text).text, data, x.h, x.w, x.c, pitch);
    }
}

/* Finishes the plan and gives it memory, which the caller frees. */
static theo_status ready(theo_plan *plan, void **memory, theo_error *err) {
    THEO_TRY(theo_plan_finish(plan, err));
    *memory = theo_alloc_aligned(theo_plan_memory_bytes(plan));
    if (!*memory)
        return theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory");
    theo_plan_bind(plan, *memory);
    return THEO_OK;
}

static theo_status trace_encoder(const job *j, int view, float *features, theo_error *err) {
    const theo_dust3r_image *image = &j->images[view];
    theo_plan *plan;
    void *memory = NULL;
    THEO_TRY(theo_plan_new(&plan, theo_cpu_level_in_use(), j->pool, err));
    theo_dust3r_trace trace = {.count = 0};
    theo_dust3r_encoding net = theo_dust3r_record_encoder(plan, j->network, image->grid.rows, image->grid.columns, &trace);
    theo_status status = ready(plan, &memory, err);
    if (!status) {
        int pitch;
        float *in = theo_plan_data(plan, net.image, &pitch);
        size_t pixels = (size_t)net.image.h * (size_t)net.image.w;
        for (size_t i = 0; i < pixels; i++)
            for (size_t c = 0; c < 3; c++)
                in[i * (size_t)pitch + c] = image->planes[c * pixels + i];
        theo_dust3r_fill_turn(plan, j->network, net.turn);
        status = theo_plan_run(plan, NULL, NULL, err);
    }
    if (!status) {
        int pitch;
        const float *out = theo_plan_data(plan, net.out, &pitch);
        for (int i = 0; i < net.out.h * net.out.w; i++)
            memcpy(features + (size_t)(i * net.out.c), out + (size_t)i * (size_t)pitch, (size_t)net.out.c * sizeof *out);
        give_stages(j, plan, &trace, view ? "v2." : "v1.");
    }
    theo_plan_free(plan);
    theo_free_aligned(memory);
    return status;
}

static theo_status trace_decoder(const job *j, const theo_dust3r_features features[VIEWS], theo_error *err) {
    theo_plan *plan;
    void *memory = NULL;
    THEO_TRY(theo_plan_new(&plan, theo_cpu_level_in_use(), j->pool, err));
    theo_dust3r_trace trace = {.count = 0};
    const theo_dust3r_grid grids[VIEWS] = {features[0].grid, features[1].grid};
    theo_dust3r_decoding net = theo_dust3r_record_decoder(plan, j->network, grids, 3, &trace);
    theo_status status = ready(plan, &memory, err);
    for (int v = 0; v < VIEWS && !status; v++) {
        int pitch;
        float *in = theo_plan_data(plan, net.features[v], &pitch);
        size_t width = (size_t)net.features[v].c;
        for (size_t i = 0; i < (size_t)(net.features[v].h * net.features[v].w); i++)
            memcpy(in + i * (size_t)pitch, features[v].data + i * width, width * sizeof *in);
        theo_dust3r_fill_turn(plan, j->network, net.turn[v]);
    }
    if (!status)
        status = theo_plan_run(plan, NULL, NULL, err);
    if (!status)
        give_stages(j, plan, &trace, "");
    theo_plan_free(plan);
    theo_free_aligned(memory);
    return status;
}

/* Features of both views, to be freed. */
static theo_status new_features(const job *j, theo_dust3r_features features[VIEWS], theo_error *err) {
    for (int v = 0; v < VIEWS; v++) {
        features[v].grid = j->images[v].grid;
        features[v].data = theo_alloc(theo_dust3r_feature_floats(j->network, features[v].grid), sizeof(float));
        if (!features[v].data)
            return theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory");
    }
    return THEO_OK;
}

static theo_status give_view(const job *j, const theo_dust3r_runner *r, int view, theo_error *err) {
    int h = 16 * j->images[view].grid.rows, w = 16 * j->images[view].grid.columns;
    float *data = theo_alloc((size_t)(4 * h * w), sizeof *data);
    if (!data)
        return theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory");
    theo_dust3r_raw_map(r, view, data);
    j->each(theo_name("raw%d", view + 1).text, data, 4, h, w, w);
    theo_dust3r_points(r, view, data, data + 3 * h * w);
    j->each(theo_name("pts%d", view + 1).text, data, h, w, 3, 3);
    j->each(theo_name("conf%d", view + 1).text, data + 3 * h * w, 1, h, w, w);
    theo_free(data);
    return THEO_OK;
}

/* Both orders: raw, pts and conf 1 and 2, then "swapped" and the same of the other order. */
static theo_status run_session(const job *j, theo_dust3r_features features[VIEWS], theo_error *err) {
    theo_dust3r_runner *r;
    theo_dust3r_runner_options options = {.level = theo_cpu_level_in_use(), .pool = j->pool};
    THEO_TRY(theo_dust3r_runner_new(&r, j->network, &options, err));
    theo_status status = THEO_OK;
    for (int v = 0; v < VIEWS && !status; v++)
        status = theo_dust3r_encode(r, &j->images[v], &features[v], err);
    if (!status)
        status = theo_dust3r_decode(r, features, 3, err);
    for (int v = 0; v < VIEWS && !status; v++)
        status = give_view(j, r, v, err);
    theo_dust3r_runner_free(r);
    return status;
}

theo_status stage_dust3r(const char *path, int threads, const stage_view *first, const stage_view *second, int is_traced,
                         layer_fn each, theo_error *err) {
    theo_weights *weights;
    theo_dust3r *network = NULL;
    theo_pool *pool;
    THEO_TRY(theo_weights_open(&weights, path, NULL, err));
    theo_status status = theo_pool_open(&pool, threads, err);
    if (!status)
        status = theo_dust3r_load(&network, weights, theo_cpu_level_in_use(), pool, err);
    theo_weights_close(weights);
    const stage_view *const views[VIEWS] = {first, second};
    job j = {.network = network, .pool = pool, .each = each};
    theo_dust3r_features features[VIEWS] = {{.data = NULL}};
    for (int v = 0; v < VIEWS; v++)
        j.images[v] = (theo_dust3r_image){.grid = {views[v]->rows, views[v]->columns}, .planes = views[v]->planes};
    if (!status)
        status = new_features(&j, features, err);
    for (int v = 0; v < VIEWS && !status && is_traced; v++)
        status = trace_encoder(&j, v, features[v].data, err);
    if (!status)
        status = is_traced ? trace_decoder(&j, features, err) : run_session(&j, features, err);
    for (int v = 0; v < VIEWS; v++)
        theo_free(features[v].data);
    theo_dust3r_free(network);
    theo_pool_close(pool);
    return status;
}

theo_status stage_dust3r_config(const char *path, char *config, int capacity, theo_error *err) {
    theo_weights *weights;
    theo_dust3r *network;
    theo_pool *pool;
    THEO_TRY(theo_weights_open(&weights, path, NULL, err));
    theo_status status = theo_pool_open(&pool, 1, err);
    if (!status)
        status = theo_dust3r_load(&network, weights, theo_cpu_level_in_use(), pool, err);
    theo_weights_close(weights);
    theo_pool_close(pool);
    if (status)
        return status;
    snprintf(config, (size_t)capacity, "%s", network->config_json);
    theo_dust3r_free(network);
    return THEO_OK;
}

void stage_dust3r_activate(int depth, int conf, double conf_min, double conf_max, const float *raw, int count, float *points,
                           float *confidence) {
    theo_dust3r_output rule = {(theo_depth_mode)depth, (theo_conf_mode)conf, conf_min, conf_max};
    for (int i = 0; i < count; i++)
        theo_dust3r_activate(&rule, raw + 4 * i, points + 3 * i, &confidence[i]);
}

/* ---------------------------------------------------------------- before the network */

typedef struct stage_frame {
    int fit, size, patch, square_ok;                                                                              /* in */
    int net_width, net_height, filter, offset_x, offset_y, square, resized_width, resized_height, crop_x, crop_y; /* out */
} stage_frame;
THEO_API theo_status stage_dust3r_frame(stage_frame *frame, int width, int height, theo_error *err);
THEO_API theo_status stage_dust3r_input(const stage_frame *frame, const theo_image *image, uint8_t *rgb, uint8_t *mask,
                                        theo_error *err);
THEO_API theo_status stage_dust3r_map(const stage_frame *frame, int width, int height, const double *camera, const double *xy,
                                      double *camera_out, double *xy_out, theo_error *err);

THEO_API void stage_dust3r_bytes(float *table);
void stage_dust3r_bytes(float *table) {
    theo_dust3r_byte_table(table);
}

static theo_status frame_of(theo_dust3r_frame *f, const stage_frame *s, int width, int height, theo_error *err) {
    theo_dust3r_frame_options o = {
        .fit = (theo_dust3r_fit)s->fit, .size = s->size, .patch = s->patch, .square_ok = s->square_ok != 0};
    return theo_dust3r_frame_of(f, width, height, &o, err);
}

theo_status stage_dust3r_frame(stage_frame *s, int width, int height, theo_error *err) {
    theo_dust3r_frame f;
    THEO_TRY(frame_of(&f, s, width, height, err));
    s->net_width = f.net_width;
    s->net_height = f.net_height;
    s->filter = (int)f.filter;
    s->offset_x = f.offset_x;
    s->offset_y = f.offset_y;
    s->square = f.square;
    s->resized_width = f.resized_width;
    s->resized_height = f.resized_height;
    s->crop_x = f.crop_x;
    s->crop_y = f.crop_y;
    return THEO_OK;
}

theo_status stage_dust3r_input(const stage_frame *s, const theo_image *image, uint8_t *rgb, uint8_t *mask, theo_error *err) {
    theo_dust3r_frame f;
    theo_dust3r_input input = {.workspace = {.data = NULL}};
    THEO_TRY(frame_of(&f, s, image->width, image->height, err));
    theo_status status = theo_dust3r_input_fill(&input, image, false, &f, rgb, err);
    theo_dust3r_frame_mask(&f, mask);
    theo_dust3r_input_free(&input);
    return status;
}

/* camera: fx, fy, cx, cy. Both go to the network's pixels, and back into the arguments' copies within 1e-9, which is checked. */
theo_status stage_dust3r_map(const stage_frame *s, int width, int height, const double *camera, const double *xy,
                             double *camera_out, double *xy_out, theo_error *err) {
    theo_dust3r_frame f;
    THEO_TRY(frame_of(&f, s, width, height, err));
    const theo_pair_record r = theo_pair_record_of(&f);
    theo_intrinsics c = theo_pair_intrinsics_to_grid(&r, (theo_intrinsics){camera[0], camera[1], camera[2], camera[3]});
    theo_intrinsics back = theo_pair_intrinsics_to_photo(&r, c);
    const double there[4] = {c.fx, c.fy, c.cx, c.cy}, again[4] = {back.fx, back.fy, back.cx, back.cy};
    double xy_again[2];
    theo_pair_to_grid(&r, xy, 1, xy_out);
    theo_pair_to_photo(&r, xy_out, 1, xy_again);
    for (int i = 0; i < 4; i++) {
        camera_out[i] = there[i];
        if (fabs(again[i] - camera[i]) > 1e-9 * (1 + fabs(camera[i])) ||
            (i < 2 && fabs(xy_again[i] - xy[i]) > 1e-9 * (1 + fabs(xy[i]))))
            return theo_fail(err, THEO_INTERNAL, NULL, NULL, "a map to the network's pixels and back does not return");
    }
    return THEO_OK;
}

/* ---------------------------------------------------------------- poses */

typedef struct stage_pose {
    int found;
    double R[9], t[3], focal[2];
    int inlier_count;
    double inlier_rms;
    int is_swapped, used;
    double threshold;
    const char *reason;
} stage_pose;
typedef struct stage_viewer {
    double scores[2];
    int used[2], reference;
    int found[2];
    double R[2][9], t[2][3];
} stage_viewer;
THEO_API theo_status stage_dust3r_pose(const theo_pair_maps *maps, double confident_percent, const theo_intrinsics *camera2,
                                       int is_viewer, stage_pose *pose, stage_viewer *viewer, theo_error *err);

theo_status stage_dust3r_pose(const theo_pair_maps *maps, double confident_percent, const theo_intrinsics *camera2, int is_viewer,
                              stage_pose *out, stage_viewer *viewer, theo_error *err) {
    theo_pair_pose_options o = {confident_percent, {NULL, camera2}};
    theo_pair_solution p;
    theo_pair_view_facts facts;
    if (is_viewer) {
        THEO_TRY(theo_pair_pose_pairviewer(maps, &o, &p, &facts, err));
        for (int v = 0; v < VIEWS; v++) {
            viewer->scores[v] = facts.scores[v];
            viewer->used[v] = facts.used[v];
            viewer->found[v] = facts.cameras[v].found;
            memcpy(viewer->R[v], facts.cameras[v].R, sizeof viewer->R[v]);
            memcpy(viewer->t[v], facts.cameras[v].t, sizeof viewer->t[v]);
        }
        viewer->reference = facts.reference;
    } else {
        THEO_TRY(theo_pair_pose_port(maps, &o, &p, err));
    }
    *out = (stage_pose){.found = p.found,
                        .inlier_count = p.inlier_count,
                        .inlier_rms = p.inlier_rms,
                        .is_swapped = p.is_swapped,
                        .used = p.used,
                        .threshold = p.threshold,
                        .reason = p.reason};
    memcpy(out->R, p.R, sizeof p.R);
    memcpy(out->t, p.t, sizeof p.t);
    memcpy(out->focal, p.focal, sizeof p.focal);
    return THEO_OK;
}
