/* theo_geometry_run and theo_geometry_batch on a small network of formula weights: the same bits on any number of threads and in
 * a batch, odd pictures, options that contradict each other, order, failures and stopping of batches. */
#include "require.h"
#include "t.h"
#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <theo/depth.h>
#include <theo/image.h>
#include <theo/inspect.h>
#include <unistd.h>

#define STACK                                                                                                                    \
    "\"dim_res_blocks\": [32, 32, 16, 16, 16], \"num_res_blocks\": [0, 1, 1, 1, 0], \"res_block_in_norm\": \"none\", "           \
    "\"res_block_hidden_norm\": \"none\", \"resamplers\": [\"conv_transpose\", \"conv_transpose\", \"conv_transpose\", "         \
    "\"bilinear\"]"
#define HEAD(channels) "{" STACK ", \"dim_in\": [32, 32, 16, 16, 16], \"dim_out\": [null, null, null, null, " channels "]}"

static const char config[] =
    "{\"dim\": 64, \"depth\": 2, \"mlp\": 128, \"table\": 37, \"model_config\": {\"encoder\": {\"backbone\": \"test\", "
    "\"intermediate_layers\": [0, 1], \"dim_out\": 32}, \"neck\": {" STACK ", \"dim_in\": [34, 2, 2, 2, 2], \"dim_out\": null}, "
    "\"points_head\": " HEAD("3") ", \"normal_head\": " HEAD("3") ", \"mask_head\": " HEAD(
        "1") ", "
             "\"scale_head\": {\"dims\": [64, 64, 64, 1]}, \"remap_output\": \"exp\"}}";

static char checkpoint[64];

static theo_session *open_session(int threads, const theo_session_options *options) {
    theo_model *model;
    theo_session *session;
    theo_model_options o;
    theo_model_options_init(&o);
    o.threads = threads;
    REQUIRE(theo_model_open(&model, checkpoint, &o, &test_error));
    REQUIRE(theo_session_open(&session, model, options, &test_error));
    theo_model_close(model);
    return session;
}

static theo_image *picture(int width, int height, int channels, theo_pixel type) {
    theo_image *image;
    REQUIRE(theo_image_new(&image, width, height, channels, type, &test_error));
    size_t samples = (size_t)width * (size_t)height * (size_t)channels;
    for (size_t i = 0; i < samples; i++) {
        uint32_t value = (uint32_t)i * 2654435761u >> 24;
        if (type == THEO_U8)
            ((uint8_t *)theo_image_pixels(image))[i] = (uint8_t)value;
        else if (type == THEO_U16)
            ((uint16_t *)theo_image_pixels(image))[i] = (uint16_t)(257 * value);
        else
            ((float *)theo_image_pixels(image))[i] = (float)value / 255.0f;
    }
    return image;
}

static theo_geometry_options small_options(void) {
    theo_geometry_options o;
    theo_geometry_options_init(&o);
    o.tokens = 24;
    return o;
}

static bool same(const theo_geometry *a, const theo_geometry *b) {
    size_t pixels = (size_t)a->width * (size_t)a->height;
    return a->width == b->width && a->height == b->height && !memcmp(a->points, b->points, 3 * pixels * sizeof(float)) &&
           !memcmp(a->depth, b->depth, pixels * sizeof(float)) && !memcmp(a->normal, b->normal, 3 * pixels * sizeof(float)) &&
           !memcmp(a->mask, b->mask, pixels) && a->focal == b->focal && a->shift == b->shift &&
           a->metric_scale == b->metric_scale;
}

static void test_threads(void) {
    theo_image *image = picture(75, 52, 3, THEO_U8);
    theo_geometry_options o = small_options();
    theo_geometry *first = NULL;
    for (int threads = 1; threads <= 3; threads++) {
        theo_session *session = open_session(threads, NULL);
        theo_geometry *g;
        REQUIRE(theo_geometry_run(session, image, &o, &g, &test_error));
        CHECK(!first || same(first, g));
        if (first)
            theo_geometry_free(g);
        else
            first = g;
        theo_session_close(session); /* results outlive it */
    }
    theo_geometry_free(first);
    theo_image_free(image);
}

/* The kinds of picture that mean the same give the same. */
static void test_pictures(void) {
    theo_session *session = open_session(2, NULL);
    theo_geometry_options o = small_options();
    static const struct { int width, height; } sizes[] = {{8, 8}, {8, 300}, {301, 9}, {64, 64}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        theo_geometry *bytes, *words;
        theo_image *u8 = picture(sizes[i].width, sizes[i].height, 3, THEO_U8);
        theo_image *u16 = picture(sizes[i].width, sizes[i].height, 3, THEO_U16);
        REQUIRE(theo_geometry_run(session, u8, &o, &bytes, &test_error));
        REQUIRE(theo_geometry_run(session, u16, &o, &words, &test_error)); /* 257 v / 65535 = v / 255 */
        CHECK(bytes->width == sizes[i].width && bytes->height == sizes[i].height);
        CHECK_MSG(fabsf(bytes->metric_scale - words->metric_scale) <= 1e-4f * bytes->metric_scale, "%g, %g",
                  (double)bytes->metric_scale, (double)words->metric_scale);
        for (int k = 0; k < bytes->width * bytes->height; k++) {
            CHECK(bytes->mask[k] ? isfinite(bytes->depth[k]) && bytes->depth[k] > 0 : isinf(bytes->depth[k]));
            CHECK(!isnan(bytes->points[3 * k]));
        }
        theo_geometry_free(bytes);
        theo_geometry_free(words);
        theo_image_free(u8);
        theo_image_free(u16);
    }
    for (int channels = 1; channels <= 4; channels++) {
        theo_geometry *g;
        theo_image *image = picture(40, 30, channels, THEO_F32);
        REQUIRE(theo_geometry_run(session, image, &o, &g, &test_error));
        theo_geometry_free(g);
        theo_image_free(image);
    }
    static const struct { int width, height; } wrong[] = {{7, 100}, {100, 7}, {1, 5000}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        theo_geometry *g = (theo_geometry *)&g;
        theo_image *image = picture(wrong[i].width, wrong[i].height, 3, THEO_U8);
        CHECK(theo_geometry_run(session, image, &o, &g, &test_error) == THEO_ARGUMENT && !g);
        CHECK_STR(test_error.place, "image");
        theo_image_free(image);
    }
    theo_session_close(session);
}

/* No pixel is valid: every map says so, and nothing is NaN. */
static void test_nothing_valid(void) {
    theo_session *session = open_session(2, NULL);
    theo_image *image = picture(40, 30, 3, THEO_U8);
    theo_geometry_options o = small_options();
    o.mask_threshold = 1;
    static const theo_invalid fillings[] = {THEO_INVALID_INF, THEO_INVALID_ZERO, THEO_INVALID_NAN};
    for (int i = 0; i < 3; i++) {
        theo_geometry *g;
        o.invalid = fillings[i];
        REQUIRE(theo_geometry_run(session, image, &o, &g, &test_error));
        CHECK(g->is_degenerate && g->mask_coverage == 0 && g->focal == 1 && g->shift == 0);
        CHECK(isfinite(g->fov_x) && isfinite(g->metric_scale));
        for (int k = 0; k < 40 * 30; k++)
            CHECK(i == 0 ? isinf(g->depth[k]) : i == 1 ? g->depth[k] == 0 : isnan(g->depth[k]));
        theo_geometry_free(g);
    }
    theo_image_free(image);
    theo_session_close(session);
}

static void refused(theo_session *session, const theo_image *image, theo_geometry_options o, const char *place) {
    theo_geometry *g;
    CHECK(theo_geometry_run(session, image, &o, &g, &test_error) == THEO_ARGUMENT && !g);
    CHECK_STR(test_error.place, place);
}

static void test_options(void) {
    theo_session *session = open_session(1, NULL);
    theo_image *image = picture(40, 30, 3, THEO_U8);
    theo_geometry_options good = small_options(), o = good;
#define REFUSED(field, value)                                                                                                    \
    o = good;                                                                                                                    \
    o.field = value;                                                                                                             \
    refused(session, image, o, #field)
    REFUSED(fit, (theo_depth_fit)3);
    REFUSED(tokens, 15);
    REFUSED(tokens, 16385);
    REFUSED(resolution_level, 31);
    REFUSED(fov_x, 180);
    REFUSED(fov_x, -1);
    REFUSED(fov_x, NAN);
    REFUSED(focal_px, -5);
    REFUSED(focal_px, INFINITY);
    REFUSED(mask_threshold, 1.5f);
    REFUSED(metric_scale, NAN);
    REFUSED(scale, 0);
    o = good;
    o.fov_x = 60;
    o.focal_px = 40;
    refused(session, image, o, "fov_x");

    theo_geometry *by_angle, *by_focal, *by_exif;
    o = good;
    o.fov_x = 2 * atan(40 / (2 * 30.0)) * 180 / 3.14159265358979323846;
    REQUIRE(theo_geometry_run(session, image, &o, &by_angle, &test_error));
    o = good;
    o.focal_px = 30;
    REQUIRE(theo_geometry_run(session, image, &o, &by_focal, &test_error));
    o = good;
    o.fov_from_exif = true;
    image->exif_focal_35mm = 27; /* of a film 36 mm wide: 30 of 40 pixels */
    REQUIRE(theo_geometry_run(session, image, &o, &by_exif, &test_error));
    CHECK(same(by_angle, by_focal) && same(by_focal, by_exif));
    CHECK_NEAR(by_focal->intrinsics_pixels[0], 30, 1e-4);
    theo_geometry_free(by_angle);
    theo_geometry_free(by_focal);
    theo_geometry_free(by_exif);
    theo_image_free(image);
    theo_session_close(session);
}

/* Pictures that are none, in the caller's memory. */
static void test_broken_pictures(void) {
    theo_session *session = open_session(1, NULL);
    theo_image *image = picture(40, 30, 3, THEO_F32);
    const theo_geometry_options o = small_options();
    theo_image broken;
#define BROKEN(field, value)                                                                                                     \
    broken = *image;                                                                                                             \
    broken.field = value;                                                                                                        \
    refused(session, &broken, o, "image")
    BROKEN(pixels, NULL);
    BROKEN(pixels, (const char *)image->pixels + 1);
    BROKEN(width, 0);
    BROKEN(height, -30);
    BROKEN(height, 65537);
    BROKEN(channels, 5);
    BROKEN(type, (theo_pixel)3);
    BROKEN(row_bytes, 40 * 3 * sizeof(float) - 4);
    BROKEN(row_bytes, SIZE_MAX - 3);
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        float *last = (float *)theo_image_pixels(image) + 40 * 30 * 3 - 1, before = *last;
        *last = wrong[i];
        refused(session, image, o, "image");
        *last = before;
    }
    refused(session, NULL, o, "image");
    theo_geometry *g;
    CHECK(theo_geometry_run(NULL, image, &o, &g, &test_error) == THEO_ARGUMENT && !g);
    CHECK(theo_geometry_run(session, image, &o, NULL, NULL) == THEO_ARGUMENT);
    REQUIRE(theo_geometry_run(session, image, &o, &g, &test_error)); /* the session is none the worse */
    theo_geometry_free(g);
    theo_image_free(image);
    theo_session_close(session);
}

/* The network alone: what a photo becomes is taken, whatever its shape, and nothing that is out of range. */
static void test_raw(void) {
    enum { TALL = 65536 };
    theo_model *model;
    REQUIRE(theo_model_open(&model, checkpoint, NULL, &test_error));
    theo_session *session;
    REQUIRE(theo_session_open(&session, model, NULL, &test_error));
    theo_image *tall = picture(8, TALL, 1, THEO_U8);
    theo_geometry_options o = small_options();
    o.tokens = 3000;
    theo_geometry_input input;
    theo_geometry_maps *maps;
    REQUIRE(theo_geometry_planes(model, tall, &o, &input, &test_error));
    CHECK(input.rows > 4096 && input.columns == 1);
    REQUIRE(theo_geometry_raw(session, input.planes, input.rows, 1, input.aspect, &maps, &test_error));
    CHECK(maps->height == 16 * input.rows && maps->width == 16);
    theo_geometry_maps_free(maps);

    static const struct {
        int rows, columns;
        double aspect;
        const char *place;
    } wrong[] = {{0, 1, 1, "planes"}, {1, -1, 1, "planes"},  {65537, 1, 1, "planes"},   {46341, 46341, 1, "planes"},
                 {2, 2, 0, "aspect"}, {2, 2, NAN, "aspect"}, {2, 2, INFINITY, "aspect"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(theo_geometry_raw(session, input.planes, wrong[i].rows, wrong[i].columns, wrong[i].aspect, &maps, &test_error) ==
                  THEO_ARGUMENT &&
              !maps);
        CHECK_STR(test_error.place, wrong[i].place);
    }
    CHECK(theo_geometry_raw(session, NULL, 2, 2, 1, &maps, &test_error) == THEO_ARGUMENT && !maps);
    input.planes[3 * 14 * 14 * 4 - 1] = NAN;
    CHECK(theo_geometry_raw(session, input.planes, 2, 2, 1, &maps, &test_error) == THEO_ARGUMENT && !maps);
    theo_buffer_free(input.planes);
    theo_image_free(tall);
    theo_session_close(session);
    theo_model_close(model);
}

/* ---- batches */

typedef struct batch {
    theo_session *single; /* runs every image by itself */
    theo_geometry_options options;
    int seen, bad, stop_at, failures;
    atomic_int inside; /* functions of the caller's that run */
    bool is_ordered, is_alone;
} batch;

static theo_status make(void *user, int index, theo_image **image, theo_error *err) {
    batch *b = user;
    if (index == b->bad) {
        memset(err, 0, sizeof *err);
        err->status = THEO_IO;
        snprintf(err->message, sizeof err->message, "image %d is broken", index);
        return THEO_IO;
    }
    *image = picture(40 + 4 * index, 30, 3, THEO_U8);
    return THEO_OK;
}

static void enter(batch *b) {
    b->is_alone &= atomic_fetch_add(&b->inside, 1) == 0;
}

static int tell(void *user, double done) {
    batch *b = user;
    enter(b);
    CHECK(done > 0 && done <= 1);
    atomic_fetch_sub(&b->inside, 1);
    return 0;
}

static int take(void *user, int index, const theo_image *image, theo_geometry *geometry, const theo_error *err) {
    batch *b = user;
    enter(b);
    b->is_ordered &= index == b->seen++;
    if (err) {
        b->failures++;
        CHECK(!geometry && !image && strstr(err->message, "broken"));
    } else {
        theo_geometry *alone;
        REQUIRE(theo_geometry_run(b->single, image, &b->options, &alone, &test_error));
        CHECK(same(alone, geometry));
        theo_geometry_free(alone);
    }
    theo_geometry_free(geometry);
    atomic_fetch_sub(&b->inside, 1);
    return index == b->stop_at;
}

static void test_batch(void) {
    batch b = {.single = open_session(1, NULL),
               .options = small_options(),
               .bad = 2,
               .stop_at = -1,
               .is_ordered = true,
               .is_alone = true};
    theo_session_options session_options;
    theo_session_options_init(&session_options);
    session_options.progress = tell;
    session_options.progress_user = &b;
    theo_session *session = open_session(2, &session_options);
    REQUIRE(theo_geometry_batch(session, 6, make, take, &b, &b.options, &test_error));
    CHECK(b.seen == 6 && b.failures == 1 && b.is_ordered && b.is_alone);

    b.seen = b.failures = 0;
    b.bad = -1;
    b.stop_at = 1;
    CHECK(theo_geometry_batch(session, 9, make, take, &b, &b.options, &test_error) == THEO_CANCELLED);
    CHECK(b.seen == 2 && b.is_ordered);

    b.seen = 0;
    REQUIRE(theo_geometry_batch(session, 0, make, take, &b, NULL, &test_error));
    CHECK(b.seen == 0);
    CHECK(theo_geometry_batch(session, -1, make, take, &b, NULL, &test_error) == THEO_ARGUMENT);
    CHECK(theo_geometry_batch(session, 1, NULL, take, &b, NULL, &test_error) == THEO_ARGUMENT);
    b.options.tokens = 1;
    CHECK(theo_geometry_batch(session, 1, make, take, &b, &b.options, &test_error) == THEO_ARGUMENT);
    theo_session_close(session);
    theo_session_close(b.single);
}

/* Memory and plans for a photo, before any is there. */
static void test_plans(void) {
    theo_model *model;
    theo_session *session;
    size_t few, many;
    REQUIRE(theo_model_open(&model, checkpoint, NULL, &test_error));
    REQUIRE(theo_session_open(&session, model, NULL, &test_error));
    REQUIRE(theo_session_bytes(model, 96, 64, 40, NULL, &few, &test_error));
    REQUIRE(theo_session_bytes(model, 96, 64, 400, NULL, &many, &test_error));
    CHECK(few > 0 && many > 5 * few);
    theo_plan_report *small, *usual;
    REQUIRE(theo_session_plan(session, 96, 64, 40, &small, &test_error));
    CHECK(small->arena_bytes + small->scratch_bytes == few);
    REQUIRE(theo_session_plan(session, 96, 64, 0, &usual, &test_error));
    CHECK(usual->flops > 30 * small->flops); /* 1800 */
    theo_plan_report_free(small);
    theo_plan_report_free(usual);
    static const int wrong[] = {-1, 15, 16385};
    for (int i = 0; i < 3; i++)
        CHECK(theo_session_prepare(session, 96, 64, wrong[i], &test_error) == THEO_ARGUMENT &&
              strstr(test_error.message, "tokens"));
    CHECK(theo_session_prepare(session, 7, 64, 0, &test_error) == THEO_ARGUMENT);
    CHECK(theo_session_prepare(session, 65537, 64, 0, &test_error) == THEO_ARGUMENT);
    theo_session_close(session);
    theo_model_close(model);
}

int main(void) {
    snprintf(checkpoint, sizeof checkpoint, "/tmp/theo-test-%ld-XXXXXX.safetensors", (long)getpid());
    int file = mkstemps(checkpoint, 12);
    if (file < 0)
        return 1;
    close(file);
    REQUIRE(theo_synthesize("moge-2-vits-normal", config, checkpoint, &test_error));
    test_threads();
    test_pictures();
    test_nothing_valid();
    test_options();
    test_broken_pictures();
    test_raw();
    test_batch();
    test_plans();
    unlink(checkpoint);
    return t_done("geometry");
}
