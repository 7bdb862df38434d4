#include "bench_run.h"
#include "clock.h"
#include "depth_result.h"
#include "message.h"
#include <math.h>
#include <stdlib.h>
#include <theo/files.h>
#include <theo/image.h>

static void set_network_times(bench_times *times, const theo_timing *network) {
    times->ms[STAGE_PREPROCESS] = network->preprocess;
    times->ms[STAGE_FORWARD] = network->forward;
    times->ms[STAGE_POSTPROCESS] = network->postprocess;
}

/* ---- keypoints */

static void write_text(const theo_keypoints *points) {
    json_out json = {0};
    json_open(&json, '[');
    for (int i = 0; i < points->count; i++) {
        json_float(&json, points->xy[2 * i]);
        json_float(&json, points->xy[2 * i + 1]);
        json_float(&json, points->scores[i]);
    }
    json_close(&json, ']');
    json_free(&json);
}

static theo_status run_keypoints(bench_times *times, const bench_work *work, const theo_image *image, theo_error *err) {
    theo_keypoints *points;
    theo_status status = theo_detect(work->session, image, &work->detect, &points, err);
    if (status)
        return status;
    const double start = clock_ms();
    write_text(points);
    times->ms[STAGE_ENCODE] = clock_ms() - start;
    set_network_times(times, &points->timing);
    times->width = points->net_width;
    times->height = points->net_height;
    theo_keypoints_free(points);
    return THEO_OK;
}

/* ---- depth */

static theo_status run_depth(bench_times *times, const bench_work *work, const theo_image *image, theo_error *err) {
    theo_geometry *geometry;
    theo_status status = theo_geometry_run(work->session, image, NULL, &geometry, err);
    if (status)
        return status;
    const double start = clock_ms();
    depth_facts depth;
    json_out json = {0};
    status = depth_measure(&depth, geometry, false, work->pool, err);
    if (!status) {
        json_open(&json, '{');
        depth_json_members(&json, geometry, &depth, "native");
        json_close(&json, '}');
        json_free(&json);
    }
    times->ms[STAGE_ENCODE] = clock_ms() - start;
    set_network_times(times, &geometry->timing);
    times->width = geometry->width;
    times->height = geometry->height;
    theo_geometry_free(geometry);
    return status;
}

/* ---- pairs */

/* As a server answers: points in single precision, confidences in half, not compressed. */
static theo_status encode_pair(const theo_pair *pair, theo_pool *pool, theo_error *err) {
    static const char *const names[2][2] = {{"pts3d1", "conf1"}, {"pts3d2", "conf2"}};
    theo_array arrays[4];
    uint16_t *halves[2];
    void *data;
    size_t bytes;
    for (int v = 0; v < 2; v++) {
        const theo_pair_view *view = &pair->views[v];
        const int64_t h = view->height, w = view->width;
        halves[v] = memory_new((size_t)(h * w), sizeof *halves[v]);
        theo_f32_to_f16(halves[v], view->confidence, (size_t)(h * w));
        arrays[2 * v] =
            (theo_array){.name = names[v][0], .dtype = THEO_DTYPE_F32, .rank = 3, .shape = {h, w, 3}, .data = view->points};
        arrays[2 * v + 1] =
            (theo_array){.name = names[v][1], .dtype = THEO_DTYPE_F16, .rank = 2, .shape = {h, w}, .data = halves[v]};
    }
    theo_status status = theo_npz_encode(arrays, 4, false, pool, &data, &bytes, err);
    if (!status)
        theo_buffer_free(data);
    free(halves[0]);
    free(halves[1]);
    return status;
}

static theo_status run_pair(bench_times *times, const bench_work *work, const theo_image *const images[2], theo_error *err) {
    theo_pair *pair;
    theo_status status = theo_reconstruct(work->session, images[0], images[1], &work->pair, &pair, err);
    if (status)
        return status;
    const double start = clock_ms();
    status = encode_pair(pair, work->pool, err);
    const theo_pair_timing *t = &pair->timing;
    times->ms[STAGE_ENCODE] = clock_ms() - start;
    times->ms[STAGE_PREPROCESS] = t->preprocess;
    times->ms[STAGE_FORWARD] = t->forward;
    if (t->forward_swapped > 0)
        times->ms[STAGE_FORWARD_SYM] = t->forward_swapped;
    times->ms[STAGE_ACTIVATION] = t->activation;
    times->ms[STAGE_POSE] = t->pose;
    times->ms[STAGE_POSTPROCESS] = t->activation + t->pose;
    times->width = pair->views[0].width;
    times->height = pair->views[0].height;
    theo_pair_free(pair);
    return status;
}

theo_status bench_run(bench_times *times, const bench_work *work, const theo_image *const images[2], theo_error *err) {
    for (int i = 0; i < STAGE_COUNT; i++)
        times->ms[i] = NAN;
    switch (work->task) {
    case THEO_TASK_DEPTH:
        return run_depth(times, work, images[0], err);
    case THEO_TASK_PAIR:
        return run_pair(times, work, images, err);
    case THEO_TASK_KEYPOINTS:
        break;
    }
    return run_keypoints(times, work, images[0], err);
}
