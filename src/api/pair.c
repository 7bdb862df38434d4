/* pair.c - two photos to points: prepared, encoded, decoded in one order or in both. */
#include "api/pair.h"
#include "base/clock.h"
#include "imageio/image.h"
#include <math.h>
#include <string.h>

enum { FIRST = 1, SECOND = 2, BOTH = FIRST | SECOND, LARGEST_SIDE = 1 << 16 };

/* ---------------------------------------------------------------- progress */

void theo_pair_progress_begin(theo_pair_progress *p, int total) {
    p->begin = p->share = 0;
    p->total = total;
}

void theo_pair_progress_step(theo_pair_progress *p, int share) {
    p->begin += p->share;
    p->share = share;
}

int theo_pair_progress_tell(void *user, double done) {
    const theo_pair_progress *p = user;
    return p->tell ? p->tell(p->user, fmin((p->begin + p->share * done) / p->total, 1)) : 0;
}

/* ---------------------------------------------------------------- photos */

static theo_status check_image(const theo_image *image, const char *name, theo_error *err) {
    THEO_TRY(theo_image_check(image, name, err));
    if (image->width > LARGEST_SIDE || image->height > LARGEST_SIDE)
        return theo_fail(err, THEO_ARGUMENT, NULL, name, "has %dx%d pixels: at most %d a side are possible", image->width,
                         image->height, LARGEST_SIDE);
    return THEO_OK;
}

static size_t pixels_of(const theo_dust3r_frame *f) {
    return (size_t)f->net_width * (size_t)f->net_height;
}

theo_status theo_pair_photo_make(theo_pair_photo *photo, theo_session *s, const theo_image *image, const char *name,
                                 const theo_pair_options *o, theo_error *err) {
    const double start = theo_clock_ms();
    THEO_TRY(check_image(image, name, err));
    THEO_TRY(theo_pair_frame_of(&photo->frame, image, name, o, err));
    const theo_dust3r_frame *f = &photo->frame;
    const theo_dust3r_grid grid = {f->net_height / THEO_DUST3R_PATCH, f->net_width / THEO_DUST3R_PATCH};
    const size_t floats = theo_dust3r_feature_floats(s->model->dust3r, grid);
    photo->features = (theo_dust3r_features){.data = theo_scratch_fit(&photo->memory, floats * sizeof(float) + 3 * pixels_of(f))};
    if (!photo->features.data)
        return theo_fail(err, THEO_MEMORY, NULL, name, "out of memory for the features of a photo");
    photo->rgb = (uint8_t *)(photo->features.data + floats);
    THEO_TRY(theo_dust3r_input_fill(&s->pair->input, image, o->bgr, f, photo->rgb, err));
    const double filled = theo_clock_ms();
    photo->preprocess_ms = filled - start;
    theo_pair_progress_step(&s->pair->progress, THEO_PAIR_ENCODE);
    THEO_TRY(theo_dust3r_encode(s->pair->runner, &(theo_dust3r_image){.grid = grid, .bytes = photo->rgb}, &photo->features, err));
    photo->encode_ms = theo_clock_ms() - filled;
    return THEO_OK;
}

void theo_pair_photo_free(theo_pair_photo *photo) {
    theo_scratch_free(&photo->memory);
}

/* ---------------------------------------------------------------- results */

/* One block: the struct, its maps, the model's name. */
typedef struct pair_block {
    theo_pair public;
    struct {
        float *points, *confidence, *depth;
        float *swapped; /* points, then confidence; NULL: not wanted */
        uint8_t *rgb, *mask;
    } views[THEO_PAIR_VIEWS];
} pair_block;

static theo_status new_pair(pair_block **out, theo_session *s, const theo_pair_photo *const photos[THEO_PAIR_VIEWS],
                            unsigned swapped, theo_error *err) {
    const size_t name = strlen(s->model->info.name) + 1;
    size_t floats = 0, bytes = 0;
    for (int v = 0; v < THEO_PAIR_VIEWS; v++) {
        floats += (swapped & 1u << v ? 9 : 5) * pixels_of(&photos[v]->frame);
        bytes += 4 * pixels_of(&photos[v]->frame);
    }
    pair_block *p = theo_results_take(s->results, sizeof *p + floats * sizeof(float) + bytes + name);
    if (!p)
        return theo_fail(err, THEO_MEMORY, NULL, "pair", "out of memory for the maps of a pair");
    *p = (pair_block){.public = {.pose = {.reason = "no pose was asked for"}}};
    float *number = (float *)(p + 1);
    uint8_t *byte = (uint8_t *)(number + floats);
    for (int v = 0; v < THEO_PAIR_VIEWS; v++) {
        const theo_dust3r_frame *f = &photos[v]->frame;
        const size_t pixels = pixels_of(f);
        p->views[v].points = number;
        p->views[v].confidence = number + 3 * pixels;
        p->views[v].depth = number + 4 * pixels;
        p->views[v].swapped = swapped & 1u << v ? number + 5 * pixels : NULL;
        p->views[v].rgb = byte;
        p->views[v].mask = byte + 3 * pixels;
        p->public.views[v] = (theo_pair_view){
            .width = f->net_width,
            .height = f->net_height,
            .points = p->views[v].points,
            .confidence = p->views[v].confidence,
            .depth = p->views[v].depth,
            .rgb = p->views[v].rgb,
            .mask = p->views[v].mask,
            .record = theo_pair_record_of(f),
        };
        number += (swapped & 1u << v ? 9 : 5) * pixels;
        byte += 4 * pixels;
    }
    p->public.model = memcpy(byte, s->model->info.name, name);
    *out = p;
    return THEO_OK;
}

void theo_pair_free(theo_pair *pair) {
    theo_results_give(pair);
}

/* ---------------------------------------------------------------- the two orders */

static void read_view(theo_session *s, pair_block *p, const theo_pair_photo *photo, int v) {
    theo_dust3r_points(s->pair->runner, v, p->views[v].points, p->views[v].confidence);
    memcpy(p->views[v].rgb, photo->rgb, 3 * pixels_of(&photo->frame));
    theo_dust3r_frame_mask(&photo->frame, p->views[v].mask);
}

static theo_status run_plain(theo_session *s, pair_block *p, const theo_pair_photo *const photos[THEO_PAIR_VIEWS],
                             theo_error *err) {
    const theo_dust3r_features features[] = {photos[0]->features, photos[1]->features};
    theo_pair_timing *timing = &p->public.timing;
    const double start = theo_clock_ms();
    theo_pair_progress_step(&s->pair->progress, THEO_PAIR_DECODE);
    THEO_TRY(theo_dust3r_decode(s->pair->runner, features, BOTH, err));
    const double decoded = theo_clock_ms();
    for (int v = 0; v < THEO_PAIR_VIEWS; v++)
        read_view(s, p, photos[v], v);
    timing->forward = decoded - start;
    timing->activation = theo_clock_ms() - decoded;
    return THEO_OK;
}

/* Which views' maps of the order (2, 1) are needed. */
static unsigned swapped_views(const theo_pair_options *o) {
    static const unsigned needed[] = {
        [THEO_POSE_NONE] = 0, [THEO_POSE_PORT] = THEO_VIEW_2, [THEO_POSE_PAIRVIEWER] = THEO_VIEW_1 | THEO_VIEW_2};
    return o->swapped | needed[o->pose];
}

int theo_pair_work(int encodes, const theo_pair_options *o) {
    return encodes * THEO_PAIR_ENCODE + (swapped_views(o) ? 2 : 1) * THEO_PAIR_DECODE;
}

/* Maps of the order (2, 1): into the result where it wants them, else into the session's scratch. */
static theo_status run_swapped(theo_session *s, pair_block *p, const theo_pair_photo *const photos[THEO_PAIR_VIEWS],
                               unsigned views, theo_view_maps maps[THEO_PAIR_VIEWS], theo_error *err) {
    const theo_dust3r_features features[] = {photos[1]->features, photos[0]->features};
    const unsigned heads = (views & THEO_VIEW_2 ? FIRST : 0) | (views & THEO_VIEW_1 ? SECOND : 0);
    theo_pair_timing *timing = &p->public.timing;
    const double start = theo_clock_ms();
    float *scratch =
        theo_scratch_fit(&s->pair->swapped, 4 * sizeof(float) * (pixels_of(&photos[0]->frame) + pixels_of(&photos[1]->frame)));
    if (!scratch)
        return theo_fail(err, THEO_MEMORY, NULL, "pair", "out of memory for the maps of the order (2, 1)");
    theo_pair_progress_step(&s->pair->progress, THEO_PAIR_DECODE);
    THEO_TRY(theo_dust3r_decode(s->pair->runner, features, heads, err));
    const double decoded = theo_clock_ms();
    for (int v = 0; v < THEO_PAIR_VIEWS; v++) {
        const size_t pixels = pixels_of(&photos[v]->frame);
        if (views & 1u << v) {
            float *points = p->views[v].swapped ? p->views[v].swapped : scratch;
            theo_dust3r_points(s->pair->runner, 1 - v, points, points + 3 * pixels);
            maps[v] = (theo_view_maps){points, points + 3 * pixels};
            if (p->views[v].swapped)
                p->public.swapped[v] = maps[v];
        }
        scratch += 4 * pixels;
    }
    timing->forward_swapped = decoded - start;
    timing->activation += theo_clock_ms() - decoded;
    return THEO_OK;
}

static theo_status fill_pair(theo_session *s, pair_block *p, const theo_pair_photo *const photos[THEO_PAIR_VIEWS],
                             const theo_pair_options *o, theo_error *err) {
    theo_view_maps swapped[THEO_PAIR_VIEWS] = {{NULL, NULL}, {NULL, NULL}};
    THEO_TRY(run_plain(s, p, photos, err));
    if (swapped_views(o))
        THEO_TRY(run_swapped(s, p, photos, swapped_views(o), swapped, err));
    const double start = theo_clock_ms();
    double *votes = theo_scratch_fit(&s->pair->votes, 2 * sizeof *votes * pixels_of(&photos[0]->frame));
    if (!votes)
        return theo_fail(err, THEO_MEMORY, NULL, "pair", "out of memory for the focal length");
    const theo_pair_writable writable[] = {{p->views[0].points, p->views[0].confidence},
                                           {p->views[1].points, p->views[1].confidence}};
    THEO_TRY(theo_pair_solve(&p->public, swapped, writable, votes, o, err));
    p->public.timing.pose = theo_clock_ms() - start;
    for (int v = 0; v < THEO_PAIR_VIEWS; v++)
        for (size_t i = 0; i < pixels_of(&photos[v]->frame); i++)
            p->views[v].depth[i] = p->views[v].points[3 * i + 2];
    return THEO_OK;
}

theo_status theo_pair_make(theo_session *s, const theo_pair_photo *const photos[THEO_PAIR_VIEWS], const theo_pair_options *o,
                           theo_pair **pair, theo_error *err) {
    const double start = theo_clock_ms();
    pair_block *p = NULL;
    THEO_TRY(new_pair(&p, s, photos, o->swapped, err));
    theo_status status = fill_pair(s, p, photos, o, err);
    if (status) {
        theo_results_give(p);
        return status;
    }
    p->public.timing.total = theo_clock_ms() - start;
    *pair = &p->public;
    return THEO_OK;
}

/* ---------------------------------------------------------------- one pair */

static theo_status run_entered(theo_session *s, const theo_image *const images[THEO_PAIR_VIEWS], const theo_pair_options *options,
                               theo_pair **pair, theo_error *err) {
    const double start = theo_clock_ms();
    const bool is_alone = !images[1];
    theo_pair_options o;
    THEO_TRY(theo_pair_options_of(&o, options, s->model, err));
    if (is_alone && o.pose)
        return theo_fail(err, THEO_ARGUMENT, NULL, "pose", "needs two images: there is one alone");
    theo_pair_photo *photos = s->pair->photos;
    const int count = is_alone ? 1 : THEO_PAIR_VIEWS;
    theo_pair_progress_begin(&s->pair->progress, theo_pair_work(count, &o));
    for (int v = 0; v < count; v++)
        THEO_TRY(theo_pair_photo_make(&photos[v], s, images[v], v ? "second" : "first", &o, err));
    const theo_pair_photo *const both[] = {&photos[0], is_alone ? &photos[0] : &photos[1]};
    THEO_TRY(theo_pair_make(s, both, &o, pair, err));
    theo_pair_timing *timing = &(*pair)->timing;
    for (int v = 0; v < count; v++) {
        timing->preprocess += photos[v].preprocess_ms;
        timing->forward += photos[v].encode_ms;
    }
    timing->total = theo_clock_ms() - start;
    return THEO_OK;
}

theo_status theo_reconstruct(theo_session *session, const theo_image *first, const theo_image *second,
                             const theo_pair_options *options, theo_pair **pair, theo_error *err) {
    if (!pair)
        return theo_fail(err, THEO_ARGUMENT, NULL, "pair", "is NULL");
    *pair = NULL;
    THEO_TRY(theo_session_enter_for(session, THEO_TASK_PAIR, err));
    const theo_image *const images[] = {first, second};
    theo_status status = run_entered(session, images, options, pair, err);
    theo_session_leave(session);
    return status;
}
