/* stages.c - a library for tests: stages of the pipeline that the public API does not show one by one. Driven by stages in
 * run.py. */
#include "base/cpu.h"
#include "base/error.h"
#include "geometry/focal.h"
#include "geometry/sample.h"
#include "geometry/select.h"
#include "models/moge_run.h"
#include "models/superpoint.h"
#include <stdio.h>
#include <string.h>

/* Declared here alone: ctypes is the only caller. */
#define STAGE THEO_API

STAGE int stage_select(const float *map, int width, int height, const int *rule, float threshold, int32_t *xy, float *scores,
                       int capacity, theo_error *err);
STAGE int stage_sample(const float *cells, int width, int height, int channels, int net_width, int net_height, int rule,
                       const float *xy, int count, float *out);
typedef void (*layer_fn)(const char *name, const float *data, int height, int width, int channels, int pitch);
STAGE theo_status stage_layers(const char *path, double bn_eps, const float *plane, int width, int height, layer_fn each,
                               theo_error *err);
STAGE theo_status stage_moge(const char *path, const theo_image *image, int fit, int tokens, int is_traced, layer_fn each,
                             theo_error *err);
STAGE void stage_focal(const float *points, const float *mask, int width, int height, double focal, double *solved);
STAGE void stage_moge_grid(int width, int height, int tokens, int *grid);
typedef void (*tensor_fn)(const char *name, int dtype, int rank, const int64_t *shape, const int64_t *stride, const void *data);
STAGE theo_status stage_tensors(const char *path, tensor_fn each, theo_error *err);

/* rule: nms, radius, border, border mode, order, max points. Returns how many were found (up to `capacity` are written), or -1.
 */
int stage_select(const float *map, int width, int height, const int *rule, float threshold, int32_t *xy, float *scores,
                 int capacity, theo_error *err) {
    theo_select_rule r = {.nms = (theo_nms)rule[0],
                          .radius = rule[1],
                          .threshold = threshold,
                          .border = rule[2],
                          .border_mode = (theo_border)rule[3],
                          .order = (theo_order)rule[4],
                          .max_points = rule[5]};
    theo_selector selector = {0};
    int count = -1;
    if (!theo_select(&selector, &r, map, width, height, (size_t)width, err)) {
        count = selector.count;
        for (int i = 0; i < count && i < capacity; i++) {
            xy[2 * i] = selector.points[i].x;
            xy[2 * i + 1] = selector.points[i].y;
            scores[i] = selector.points[i].score;
        }
    }
    theo_selector_free(&selector);
    return count;
}

/* cells [height, width, channels]: the whole map. */
int stage_sample(const float *cells, int width, int height, int channels, int net_width, int net_height, int rule,
                 const float *xy, int count, float *out) {
    theo_cells map = {.data = cells,
                      .cell_pitch = (size_t)channels,
                      .row_pitch = (size_t)channels * (size_t)width,
                      .channels = channels,
                      .width = width,
                      .height = height,
                      .whole_width = width,
                      .whole_height = height,
                      .net_width = net_width,
                      .net_height = net_height};
    theo_sample_descriptors(out, &map, (theo_sampling)rule, xy, count);
    return 0;
}

/* ---------------------------------------------------------------- every layer by itself, nothing fused */

enum { MOST_LAYERS = 16 };

typedef struct recorder {
    theo_plan *plan;
    int count;
    char names[MOST_LAYERS][32];
    theo_tensor outputs[MOST_LAYERS];
} recorder;

static theo_tensor keep(recorder *r, const char *name, theo_tensor x) {
    theo_plan_output(r->plan, x);
    snprintf(r->names[r->count], sizeof r->names[0], "%s", name);
    r->outputs[r->count++] = x;
    return x;
}

static theo_tensor conv(recorder *r, const char *name, theo_tensor x, const theo_superpoint_conv *c) {
    theo_epilogue e = theo_epilogue_none();
    e.act = THEO_ACT_RELU;
    e.scale = c->scale;
    e.shift = c->shift;
    return keep(r, name, theo_plan_conv(r->plan, name, x, c->packed, 1, THEO_PAD_ZERO, e));
}

static theo_tensor pool(recorder *r, const char *name, theo_tensor x) {
    return keep(r, name, theo_plan_max_pool2(r->plan, name, x));
}

static theo_tensor record(recorder *r, const theo_superpoint *n, int width, int height) {
    theo_tensor plane = theo_plan_input(r->plan, "plane", height, width, 1);
    theo_tensor x = conv(r, "conv1a+relu", plane, &n->conv1a);
    x = pool(r, "pool1", conv(r, "conv1b+relu", x, &n->conv1b));
    x = conv(r, "conv2a+relu", x, &n->conv2a);
    x = pool(r, "pool2", conv(r, "conv2b+relu", x, &n->conv2b));
    x = conv(r, "conv3a+relu", x, &n->conv3a);
    x = pool(r, "pool3", conv(r, "conv3b+relu", x, &n->conv3b));
    x = conv(r, "conv4b+relu", conv(r, "conv4a+relu", x, &n->conv4a), &n->conv4b);
    keep(r, "convPb",
         theo_plan_linear(r->plan, "convPb", conv(r, "convPa+relu", x, &n->convPa), n->convPb.packed, theo_epilogue_none()));
    if (n->descriptor_dim) {
        x = conv(r, "heads+relu", x, &n->heads);
        x = keep(r, "convDa+relu", theo_plan_channels(r->plan, x, n->convPa.out, n->convDb.in));
        keep(r, "convDb", theo_plan_linear(r->plan, "convDb", x, n->convDb.packed, theo_epilogue_none()));
    }
    return plane;
}

static theo_status run_layers(recorder *r, const theo_superpoint *n, const float *plane, int width, int height, layer_fn each,
                              theo_error *err) {
    THEO_TRY(theo_plan_new(&r->plan, theo_cpu_level_in_use(), NULL, err));
    theo_tensor input = record(r, n, width, height);
    THEO_TRY(theo_plan_finish(r->plan, err));
    void *memory = theo_alloc_aligned(theo_plan_memory_bytes(r->plan));
    if (!memory)
        return theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory");
    theo_plan_bind(r->plan, memory);
    int pitch;
    float *in = theo_plan_data(r->plan, input, &pitch);
    for (size_t i = 0; i < (size_t)width * (size_t)height; i++)
        in[i * (size_t)pitch] = plane[i];
    theo_status status = theo_plan_run(r->plan, NULL, NULL, err);
    for (int i = 0; i < r->count && !status; i++) {
        theo_tensor x = r->outputs[i];
        const float *data = theo_plan_data(r->plan, x, &pitch);
        each(r->names[i], data, x.h, x.w, x.c, pitch);
    }
    theo_free_aligned(memory);
    return status;
}

theo_status stage_layers(const char *path, double bn_eps, const float *plane, int width, int height, layer_fn each,
                         theo_error *err) {
    theo_weights *weights;
    theo_superpoint *network;
    recorder r = {.plan = NULL};
    theo_status status = theo_weights_open(&weights, path, NULL, err);
    if (status)
        return status;
    status = theo_superpoint_load(&network, weights, theo_cpu_level_in_use(), bn_eps, err);
    theo_weights_close(weights);
    if (status)
        return status;
    status = run_layers(&r, network, plane, width, height, each, err);
    theo_plan_free(r.plan);
    theo_superpoint_free(network);
    return status;
}

/* ---------------------------------------------------------------- MoGe */

/* The network with nothing folded: each stage, and the picture that it reads. */
static theo_status run_trace(const theo_moge *n, const theo_image *image, const theo_moge_frame *f, theo_pool *threads,
                             layer_fn each, theo_error *err) {
    theo_plan *plan;
    theo_moge_trace *trace = theo_alloc(1, sizeof *trace);
    theo_status status = theo_plan_new(&plan, theo_cpu_level_in_use(), threads, err);
    if (status || !trace) {
        theo_free(trace);
        return status ? status : theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory");
    }
    theo_moge_net net = theo_moge_record(plan, n, &f->grid, ~0u, trace);
    status = theo_plan_finish(plan, err);
    void *memory = status ? NULL : theo_alloc_aligned(theo_plan_memory_bytes(plan));
    if (!status && !memory)
        status = theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory");
    if (!status) {
        theo_moge_input input = {.canvas = {.data = NULL}};
        int pitch;
        theo_plan_bind(plan, memory);
        theo_moge_fill_constants(plan, n, &net, f->net_aspect);
        float *patches = theo_plan_data(plan, net.patches, &pitch);
        status = theo_moge_input_fill(&input, image, false, f, n->mean, n->deviation, threads, patches, (size_t)pitch, err);
        theo_moge_input_free(&input);
        if (!status)
            each("patches", patches, 1, net.patches.w, net.patches.c, pitch);
    }
    if (!status)
        status = theo_plan_run(plan, NULL, NULL, err);
    for (int i = 0; i < trace->count && !status; i++) {
        int pitch;
        theo_tensor x = trace->stages[i].tensor;
        const float *data = theo_plan_data(plan, x, &pitch);
        each(trace->stages[i].name, data, x.h, x.w, x.c, pitch);
    }
    theo_free_aligned(memory);
    theo_plan_free(plan);
    theo_free(trace);
    return status;
}

static theo_status give_head(theo_moge_runner *r, const theo_moge *n, const theo_moge_frame *f, theo_moge_head head,
                             layer_fn each, theo_error *err) {
    static const char *const names[THEO_MOGE_HEADS] = {"points", "normal", "mask"};
    int channels = theo_moge_head_channels(n, head), h = f->grid.map_h, w = f->grid.map_w;
    size_t pixels = (size_t)f->width * (size_t)f->height, raw = (size_t)h * (size_t)w;
    char name[32];
    float *data = theo_alloc((pixels > raw ? pixels : raw) * (size_t)channels, sizeof *data);
    if (!data)
        return theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory");
    theo_moge_raw_map(r, head, data);
    snprintf(name, sizeof name, "%s_raw_planes", names[head]);
    each(name, data, channels, h, w, w);
    theo_status status = theo_moge_sample_raw(r, f, head, data, err);
    snprintf(name, sizeof name, "%s_resized", names[head]);
    if (!status)
        each(name, data, f->height, f->width, channels, channels);
    theo_moge_maps maps = {.points = head == THEO_MOGE_POINTS ? data : NULL,
                           .normal = head == THEO_MOGE_NORMAL ? data : NULL,
                           .mask = head == THEO_MOGE_MASK ? data : NULL};
    if (!status)
        status = theo_moge_sample(r, f, &maps, err);
    snprintf(name, sizeof name, "%s_final", names[head]);
    if (!status)
        each(name, data, f->height, f->width, channels, channels);
    theo_free(data);
    return status;
}

/* As a session runs it. */
static theo_status run_session(const theo_moge *n, const theo_image *image, const theo_moge_frame *f, theo_pool *threads,
                               layer_fn each, theo_error *err) {
    theo_moge_runner *r;
    theo_moge_runner_options options = {.level = theo_cpu_level_in_use(), .pool = threads};
    THEO_TRY(theo_moge_runner_new(&r, n, &options, err));
    theo_status status = theo_moge_run(r, image, false, f, ~0u, err);
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS && !status; h++)
        if (theo_moge_head_channels(n, h))
            status = give_head(r, n, f, h, each, err);
    float scale = status ? 0 : theo_moge_metric_scale(r);
    if (!status && theo_moge_has_scale(n))
        each("metric_scale", &scale, 1, 1, 1, 1);
    theo_moge_runner_free(r);
    return status;
}

/* is_traced: 1 each stage with nothing folded, 0 the maps as a session makes them. */
theo_status stage_moge(const char *path, const theo_image *image, int fit, int tokens, int is_traced, layer_fn each,
                       theo_error *err) {
    theo_weights *weights;
    theo_moge *network;
    theo_pool *threads;
    THEO_TRY(theo_weights_open(&weights, path, NULL, err));
    theo_status status = theo_pool_open(&threads, 0, err);
    if (!status)
        status = theo_moge_load(&network, weights, theo_cpu_level_in_use(), threads, err);
    theo_weights_close(weights);
    if (!status) {
        theo_moge_frame f = theo_moge_frame_of(network->generation, image->width, image->height, (theo_moge_fit)fit, tokens);
        status = (is_traced ? run_trace : run_session)(network, image, &f, threads, each, err);
        theo_moge_free(network);
    }
    theo_pool_close(threads);
    return status;
}

/* solved: focal, shift, evaluations. */
void stage_focal(const float *points, const float *mask, int width, int height, double focal, double *solved) {
    theo_focal_problem problem = {.points = points,
                                  .mask = mask,
                                  .threshold = 0.5f,
                                  .width = width,
                                  .height = height,
                                  .aspect = (double)width / height,
                                  .focal = focal};
    theo_focal_result r = theo_focal_solve(&problem);
    solved[0] = (double)r.focal;
    solved[1] = (double)r.shift;
    solved[2] = r.evaluations;
}

/* rows, columns of MoGe-2's grid; height and width of MoGe-1's maps. */
void stage_moge_grid(int width, int height, int tokens, int *grid) {
    theo_moge_grid two = theo_moge_grid_of(THEO_MOGE_2, width, height, tokens);
    theo_moge_grid one = theo_moge_grid_of(THEO_MOGE_1, width, height, tokens);
    const int sizes[] = {two.rows, two.columns, one.map_h, one.map_w};
    memcpy(grid, sizes, sizeof sizes);
}

/* ---------------------------------------------------------------- what a checkpoint holds */

theo_status stage_tensors(const char *path, tensor_fn each, theo_error *err) {
    theo_weights *weights;
    theo_status status = theo_weights_open(&weights, path, &(theo_weights_options){.verify_checksums = true}, err);
    if (status)
        return status;
    for (int i = 0; i < theo_weights_count(weights); i++) {
        const theo_weight *w = theo_weights_at(weights, i);
        each(w->name, (int)w->dtype, w->rank, w->shape, w->stride, w->data);
    }
    theo_weights_close(weights);
    return THEO_OK;
}
