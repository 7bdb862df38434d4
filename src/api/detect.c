#include "api/detect.h"
#include "api/options.h"
#include "base/error.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- results */

/* One block: the struct, its arrays, the model's name. */
typedef struct keypoints_block {
    theo_keypoints public;
    float *xy, *scores, *descriptors; /* the same, writable */
} keypoints_block;

static theo_status new_keypoints(keypoints_block **out, theo_session *s, int count, int dim, theo_error *err) {
    size_t n = (size_t)count, name = strlen(s->model->info.name) + 1;
    size_t floats = n * (3 + (size_t)dim);
    char *memory = theo_results_take(s->results, sizeof(keypoints_block) + floats * sizeof(float) + name);
    if (!memory)
        return theo_fail(err, THEO_MEMORY, NULL, "keypoints", "out of memory for %d points", count);
    keypoints_block *k = (keypoints_block *)(void *)memory;
    float *data = (float *)(void *)(memory + sizeof *k);
    *k = (keypoints_block){.xy = data, .scores = data + 2 * n, .descriptors = dim ? data + 3 * n : NULL};
    char *text = (char *)(data + floats);
    memcpy(text, s->model->info.name, name);
    k->public = (theo_keypoints){
        .count = count, .descriptor_dim = dim, .xy = k->xy, .scores = k->scores, .descriptors = k->descriptors, .model = text};
    *out = k;
    return THEO_OK;
}

void theo_keypoints_free(theo_keypoints *keypoints) {
    theo_results_give(keypoints);
}

/* Between pixels of the network's input and of the photo: X = x * W0/W, or by pixel centres X = (x + 0.5) * W0/W - 0.5. */
typedef struct frame {
    double scale_x, scale_y, centre; /* centre: 0 or 0.5 */
} frame;

static frame frame_of(const theo_image *image, int width, int height, const theo_detect_options *o) {
    return (frame){(double)image->width / width, (double)image->height / height, o->pixel_centers ? 0.5 : 0.0};
}

static void to_photo(float *xy, size_t count, frame f) {
    for (size_t i = 0; i < count; i++) {
        xy[2 * i] = (float)(((double)xy[2 * i] + f.centre) * f.scale_x - f.centre);
        xy[2 * i + 1] = (float)(((double)xy[2 * i + 1] + f.centre) * f.scale_y - f.centre);
    }
}

static void to_network(float *out, const float *xy, size_t count, frame f) {
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = (float)(((double)xy[2 * i] + f.centre) / f.scale_x - f.centre);
        out[2 * i + 1] = (float)(((double)xy[2 * i + 1] + f.centre) / f.scale_y - f.centre);
    }
}

static void finish(keypoints_block *k, const theo_session *s, const theo_image *image, int width, int height, frame f) {
    k->public.image_width = image->width;
    k->public.image_height = image->height;
    k->public.net_width = width;
    k->public.net_height = height;
    k->public.scale_x = (float)f.scale_x;
    k->public.scale_y = (float)f.scale_y;
    k->public.timing = theo_superpoint_timing(s->superpoint);
}

/* ---------------------------------------------------------------- photo to keypoints */

theo_status theo_detect_options_of(theo_detect_options *out, const theo_detect_options *given, const theo_session *session,
                                   theo_error *err) {
    theo_detect_options_for(out, session->model);
    THEO_TRY(theo_options_take(out, sizeof *out, given, "theo_detect_options", err));
    return theo_detect_options_check(out, err);
}

theo_status theo_detect_entered(theo_session *s, const theo_image *image, const theo_detect_options *options,
                                theo_keypoints **keypoints, theo_error *err) {
    theo_detect_options o;
    int width, height, count;
    const theo_selected *points;
    keypoints_block *k;
    THEO_TRY(theo_detect_options_of(&o, options, s, err));
    THEO_TRY(theo_superpoint_set_image(s->superpoint, image, &o, &width, &height, err));
    THEO_TRY(theo_superpoint_detect(s->superpoint, &o, &points, &count, err));
    THEO_TRY(new_keypoints(&k, s, count, o.descriptors ? s->model->superpoint->descriptor_dim : 0, err));
    for (size_t i = 0; i < (size_t)count; i++) {
        k->xy[2 * i] = (float)points[i].x;
        k->xy[2 * i + 1] = (float)points[i].y;
        k->scores[i] = points[i].score;
    }
    theo_status status = theo_superpoint_describe(s->superpoint, o.sampling, k->xy, count, k->descriptors, NULL, err);
    if (status) {
        theo_results_give(k);
        return status;
    }
    frame f = frame_of(image, width, height, &o);
    to_photo(k->xy, (size_t)count, f);
    finish(k, s, image, width, height, f);
    *keypoints = &k->public;
    return THEO_OK;
}

theo_status theo_detect(theo_session *session, const theo_image *image, const theo_detect_options *options,
                        theo_keypoints **keypoints, theo_error *err) {
    if (!keypoints)
        return theo_fail(err, THEO_ARGUMENT, NULL, "keypoints", "is NULL");
    *keypoints = NULL;
    THEO_TRY(theo_session_enter_for(session, THEO_TASK_KEYPOINTS, err));
    theo_status status = theo_detect_entered(session, image, options, keypoints, err);
    theo_session_leave(session);
    return status;
}

/* ---------------------------------------------------------------- descriptors at given points */

static theo_status describe_entered(theo_session *s, const theo_image *image, const float *xy, int count,
                                    const theo_detect_options *options, theo_keypoints **keypoints, theo_error *err) {
    theo_detect_options o;
    int width, height;
    keypoints_block *k;
    THEO_TRY(theo_detect_options_of(&o, options, s, err));
    if (!s->model->superpoint->descriptor_dim)
        return theo_fail(err, THEO_UNSUPPORTED, NULL, s->model->info.name,
                         "this model has no descriptor head: it can detect, but not describe");
    THEO_TRY(theo_superpoint_set_image(s->superpoint, image, &o, &width, &height, err));
    THEO_TRY(new_keypoints(&k, s, count, s->model->superpoint->descriptor_dim, err));
    frame f = frame_of(image, width, height, &o);
    to_network(k->xy, xy, (size_t)count, f);
    theo_status status = theo_superpoint_describe(s->superpoint, o.sampling, k->xy, count, k->descriptors, k->scores, err);
    if (status) {
        theo_results_give(k);
        return status;
    }
    if (count)
        memcpy(k->xy, xy, 2 * (size_t)count * sizeof(float));
    finish(k, s, image, width, height, f);
    *keypoints = &k->public;
    return THEO_OK;
}

theo_status theo_describe(theo_session *session, const theo_image *image, const float *xy, int count,
                          const theo_detect_options *options, theo_keypoints **keypoints, theo_error *err) {
    if (!keypoints)
        return theo_fail(err, THEO_ARGUMENT, NULL, "keypoints", "is NULL");
    *keypoints = NULL;
    if (count < 0 || (count && !xy))
        return theo_fail(err, THEO_ARGUMENT, NULL, "xy", "%d points are given as %s", count, xy ? "an array" : "NULL");
    for (size_t i = 0; i < 2 * (size_t)count; i++)
        if (!isfinite(xy[i]))
            return theo_fail(err, THEO_ARGUMENT, NULL, "xy", "point %zu has a coordinate that is not finite", i / 2);
    THEO_TRY(theo_session_enter_for(session, THEO_TASK_KEYPOINTS, err));
    theo_status status = describe_entered(session, image, xy, count, options, keypoints, err);
    theo_session_leave(session);
    return status;
}
