/* pair_raw.c - the network's own maps of two planes, and the planes that it is given. */
#include "api/pair.h"
#include "base/clock.h"
#include "imageio/image.h"
#include <math.h>
#include <string.h>

static theo_status check_planes(const theo_pair_planes *p, int number, theo_error *err) {
    if (!p->planes || p->width < THEO_DUST3R_PATCH || p->height < THEO_DUST3R_PATCH || p->width > THEO_PAIR_MAX_SIDE ||
        p->height > THEO_PAIR_MAX_SIDE || p->width % THEO_DUST3R_PATCH || p->height % THEO_DUST3R_PATCH)
        return theo_fail(err, THEO_ARGUMENT, NULL, "planes",
                         "view %d of %dx%d: planes must be given, sides are multiples of %d, %d at most", number, p->width,
                         p->height, THEO_DUST3R_PATCH, THEO_PAIR_MAX_SIDE);
    const size_t count = 3 * (size_t)p->width * (size_t)p->height;
    for (size_t i = 0; i < count; i++)
        if (!isfinite(p->planes[i]))
            return theo_fail(err, THEO_ARGUMENT, NULL, "planes", "view %d holds NaN or infinity", number);
    return THEO_OK;
}

static theo_status encode(theo_session *s, const theo_pair_planes *p, theo_pair_photo *photo, theo_error *err) {
    const theo_dust3r_image image = {.grid = {p->height / THEO_DUST3R_PATCH, p->width / THEO_DUST3R_PATCH}, .planes = p->planes};
    const size_t floats = theo_dust3r_feature_floats(s->model->dust3r, image.grid);
    photo->features.data = theo_scratch_fit(&photo->memory, floats * sizeof(float));
    if (!photo->features.data)
        return theo_fail(err, THEO_MEMORY, NULL, "planes", "out of memory for the features of a view");
    theo_pair_progress_step(&s->pair->progress, THEO_PAIR_ENCODE);
    return theo_dust3r_encode(s->pair->runner, &image, &photo->features, err);
}

static size_t pixels_of(const theo_pair_planes *p) {
    return (size_t)p->width * (size_t)p->height;
}

/* Fills *maps, whose `data` has room for eight floats a pixel. */
static void read_maps(theo_session *s, const theo_pair_planes views[THEO_PAIR_VIEWS], theo_pair_raw *maps, float *data) {
    const double start = theo_clock_ms();
    for (int v = 0; v < THEO_PAIR_VIEWS; v++) {
        const size_t pixels = pixels_of(&views[v]);
        float *raw = data, *points = raw + 4 * pixels, *confidence = points + 3 * pixels;
        maps->views[v].width = views[v].width;
        maps->views[v].height = views[v].height;
        maps->views[v].raw = raw;
        maps->views[v].points = points;
        maps->views[v].confidence = confidence;
        theo_dust3r_points(s->pair->runner, v, points, confidence);
        theo_dust3r_raw_map(s->pair->runner, v, raw);
        data = confidence + pixels;
    }
    maps->timing.activation = theo_clock_ms() - start;
}

static theo_status raw_entered(theo_session *s, const theo_pair_planes views[THEO_PAIR_VIEWS], theo_pair_raw **out,
                               theo_error *err) {
    enum { BOTH = 3 };
    const double start = theo_clock_ms();
    theo_dust3r_features features[THEO_PAIR_VIEWS];
    theo_pair_progress_begin(&s->pair->progress, THEO_PAIR_VIEWS * THEO_PAIR_ENCODE + THEO_PAIR_DECODE);
    for (int v = 0; v < THEO_PAIR_VIEWS; v++) {
        THEO_TRY(encode(s, &views[v], &s->pair->photos[v], err));
        features[v] = s->pair->photos[v].features;
    }
    theo_pair_progress_step(&s->pair->progress, THEO_PAIR_DECODE);
    THEO_TRY(theo_dust3r_decode(s->pair->runner, features, BOTH, err));
    const double decoded = theo_clock_ms();
    const size_t bytes = 8 * sizeof(float) * (pixels_of(&views[0]) + pixels_of(&views[1]));
    theo_pair_raw *maps = theo_results_take(s->results, sizeof *maps + bytes);
    if (!maps)
        return theo_fail(err, THEO_MEMORY, NULL, "maps", "out of memory");
    *maps = (theo_pair_raw){.timing = {.forward = decoded - start}};
    read_maps(s, views, maps, (float *)(void *)(maps + 1));
    maps->timing.total = theo_clock_ms() - start;
    *out = maps;
    return THEO_OK;
}

theo_status theo_reconstruct_raw(theo_session *session, const theo_pair_planes views[2], theo_pair_raw **raw, theo_error *err) {
    if (!raw)
        return theo_fail(err, THEO_ARGUMENT, NULL, "raw", "is NULL");
    *raw = NULL;
    if (!views)
        return theo_fail(err, THEO_ARGUMENT, NULL, "views", "is NULL");
    for (int v = 0; v < THEO_PAIR_VIEWS; v++)
        THEO_TRY(check_planes(&views[v], v + 1, err));
    THEO_TRY(theo_session_enter_for(session, THEO_TASK_PAIR, err));
    theo_status status = raw_entered(session, views, raw, err);
    theo_session_leave(session);
    return status;
}

void theo_pair_raw_free(theo_pair_raw *raw) {
    theo_results_give(raw);
}

/* ---------------------------------------------------------------- the planes of a photo */

static theo_status fill_planes(const theo_dust3r_frame *frame, const theo_image *image, bool bgr, float **planes,
                               theo_error *err) {
    const size_t pixels = (size_t)frame->net_width * (size_t)frame->net_height;
    theo_dust3r_input input = {0};
    uint8_t *rgb = theo_alloc(pixels, 3);
    float *out = theo_alloc(3 * pixels, sizeof(float)), table[256];
    theo_status status = rgb && out ? theo_dust3r_input_fill(&input, image, bgr, frame, rgb, err)
                                    : theo_fail(err, THEO_MEMORY, NULL, "planes", "out of memory");
    if (!status) {
        theo_dust3r_byte_table(table);
        for (size_t i = 0; i < pixels; i++)
            for (size_t c = 0; c < 3; c++)
                out[c * pixels + i] = table[rgb[3 * i + c]];
        *planes = out;
        out = NULL;
    }
    theo_dust3r_input_free(&input);
    theo_free(rgb);
    theo_free(out);
    return status;
}

theo_status theo_pair_plane(const theo_model *model, const theo_image *image, const theo_pair_options *options, float **planes,
                            int *width, int *height, theo_error *err) {
    if (!model || !planes || !width || !height)
        return theo_fail(err, THEO_ARGUMENT, NULL, "planes", "model, planes, width and height must be given");
    *planes = NULL;
    theo_pair_options o;
    theo_dust3r_frame frame;
    THEO_TRY(theo_pair_options_of(&o, options, model, err));
    THEO_TRY(theo_image_check(image, "image", err));
    THEO_TRY(theo_pair_frame_of(&frame, image, "image", &o, err));
    *width = frame.net_width;
    *height = frame.net_height;
    return fill_planes(&frame, image, o.bgr, planes, err);
}
