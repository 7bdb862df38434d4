#include "bench_run.h"
#include "clock.h"
#include "depth_files.h"
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

/* What `theo depth -o DIR --ply --ply-faces --glb --exr` writes. */
static theo_status encode_depth(const bench_work *work, const theo_geometry *geometry, const theo_image *photo, theo_error *err) {
    const depth_wishes wishes = {
        .deflate = true, .ply = true, .ply_faces = true, .glb = true, .exr = theo_exr_available(), .edge_threshold = 0.04f};
    output_files files = {.folder = work->folder, .stem = "bench", .pool = work->pool};
    depth_facts depth;
    bool no_surface;
    theo_status status = depth_measure(&depth, geometry, false, work->pool, err);
    if (!status)
        status = depth_write_files(&files, geometry, photo, &depth, &wishes, &no_surface, err);
    const char *path = status ? NULL : output_path(&files, "json", err);
    if (path) {
        json_out json = {0};
        json_open(&json, '{');
        depth_json_members(&json, geometry, &depth, "native");
        json_close(&json, '}');
        status = theo_file_write(path, json.text, json.length, err);
        json_free(&json);
    } else if (!status) {
        status = err->status;
    }
    output_files_free(&files);
    return status;
}

static theo_status run_depth(bench_times *times, const bench_work *work, const theo_image *image, theo_error *err) {
    theo_geometry *geometry;
    theo_status status = theo_geometry_run(work->session, image, &work->geometry, &geometry, err);
    if (status)
        return status;
    const double start = clock_ms();
    status = encode_depth(work, geometry, image, err);
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
    void *npz;
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
    theo_status status = theo_npz_encode(arrays, 4, false, pool, &npz, &bytes, err);
    if (!status)
        theo_buffer_free(npz);
    free(halves[0]);
    free(halves[1]);
    return status;
}

/* Encodes and releases a result; its share of the times is added. */
static theo_status finish_pair(bench_times *times, theo_pair *pair, double share, theo_pool *pool, theo_error *err) {
    const double start = clock_ms();
    const theo_status status = encode_pair(pair, pool, err);
    const theo_pair_timing *t = &pair->timing;
    const double ms[STAGE_COUNT] = {
        [STAGE_PREPROCESS] = t->preprocess,
        [STAGE_FORWARD] = t->forward,
        [STAGE_FORWARD_SYM] = t->forward_swapped > 0 ? t->forward_swapped : NAN,
        [STAGE_ACTIVATION] = t->activation,
        [STAGE_POSE] = t->pose,
        [STAGE_POSTPROCESS] = t->activation + t->pose,
        [STAGE_ENCODE] = clock_ms() - start,
    };
    for (int i = STAGE_PREPROCESS; i < STAGE_TOTAL; i++)
        times->ms[i] += share * ms[i];
    times->width = pair->views[0].width;
    times->height = pair->views[0].height;
    theo_pair_free(pair);
    return status;
}

static theo_status run_pair(bench_times *times, const bench_work *work, const theo_image *first, const theo_image *second,
                            theo_error *err) {
    theo_pair *pair;
    theo_status status = theo_reconstruct(work->session, first, second, &work->pair, &pair, err);
    return status ? status : finish_pair(times, pair, 1, work->pool, err);
}

/* ---- all pairs of more photos */

typedef struct list_run {
    bench_times *times;
    const bench_work *work;
    theo_image *const *images;
    theo_image *lent; /* copies of the structs, which the library may free: the pixels stay ours */
    double share;
    theo_error *err; /* of the first pair that failed; THEO_OK: none */
} list_run;

static theo_status lend(void *user, int index, theo_image **image, theo_error *err) {
    list_run *run = user;
    (void)err;
    run->lent[index] = *run->images[index];
    run->lent[index].owner = NULL;
    *image = &run->lent[index];
    return THEO_OK;
}

static int take(void *user, int index, theo_pair *pair, const theo_error *failure) {
    list_run *run = user;
    (void)index;
    if (pair)
        return finish_pair(run->times, pair, run->share, run->work->pool, run->err) != THEO_OK;
    *run->err = *failure;
    return 1;
}

int bench_pairs(int count) {
    return count > 2 ? count * (count - 1) / 2 : 1;
}

static theo_status run_list(bench_times *times, const bench_work *work, theo_image *const *images, int count, theo_error *err) {
    theo_error stopped;
    theo_pair_list list = {.image_count = count, .pair_count = bench_pairs(count)};
    int32_t *pairs = memory_new(2 * (size_t)list.pair_count, sizeof *pairs), *next = pairs;
    for (int j = 1; j < count; j++)
        for (int i = 0; i < j; i++) {
            *next++ = i;
            *next++ = j;
        }
    list.pairs = pairs;
    list_run run = {.times = times, .work = work, .images = images, .share = 1.0 / list.pair_count, .err = err};
    run.lent = memory_new((size_t)count, sizeof *run.lent);
    err->status = THEO_OK;
    theo_status status = theo_reconstruct_pairs(work->session, &list, lend, take, &run, &work->pair, &stopped);
    if (status && !err->status) /* not by a pair */
        *err = stopped;
    free(run.lent);
    free(pairs);
    return status ? err->status : THEO_OK;
}

theo_status bench_run(bench_times *times, const bench_work *work, theo_image *const *images, int count, theo_error *err) {
    for (int i = 0; i < STAGE_COUNT; i++)
        times->ms[i] = work->task == THEO_TASK_PAIR ? 0 : NAN;
    switch (work->task) {
    case THEO_TASK_DEPTH:
        return run_depth(times, work, images[0], err);
    case THEO_TASK_PAIR:
        return count > 2 ? run_list(times, work, images, count, err)
                         : run_pair(times, work, images[0], count == 2 ? images[1] : NULL, err);
    case THEO_TASK_KEYPOINTS:
        break;
    }
    return run_keypoints(times, work, images[0], err);
}
