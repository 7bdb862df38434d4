/* superpoint_fixture.h - networks of formula weights and pictures without files, for tests of the public API. */
#ifndef THEO_TESTS_SUPERPOINT_FIXTURE_H
#define THEO_TESTS_SUPERPOINT_FIXTURE_H

#include "require.h"
#include "t.h"
#include <theo/image.h>
#include <theo/inspect.h>
#include <unistd.h>

#define SMALL_NETWORK                                                                                                            \
    "{\"names\": \"original\", \"encoder\": [16, 16, 32, 32], \"decoder\": 64, \"keypoint_dim\": 65, \"descriptor_dim\": 64}"

/* A checkpoint of that configuration in a new temporary file; the caller unlinks it. */
static inline void synthesize(char path[64], const char *config) {
    snprintf(path, 64, "/tmp/theo-test-%ld-XXXXXX.safetensors", (long)getpid());
    int file = mkstemps(path, 12);
    if (file < 0) {
        perror(path);
        exit(1);
    }
    close(file);
    REQUIRE(theo_synthesize("superpoint", config, path, &test_error));
}

static inline theo_model *open_model(const char *path, int threads) {
    theo_model *model;
    theo_model_options o;
    theo_model_options_init(&o);
    o.threads = threads;
    REQUIRE(theo_model_open(&model, path, &o, &test_error));
    return model;
}

/* A model of formula weights. */
static inline theo_model *formula_model(const char *config, int threads) {
    char path[64];
    synthesize(path, config);
    theo_model *model = open_model(path, threads);
    unlink(path);
    return model;
}

static inline theo_session *open_session(theo_model *model, int64_t tile_pixels, theo_progress_fn progress, void *user) {
    theo_session *session;
    theo_session_options o;
    theo_session_options_init(&o);
    o.tile_pixels = tile_pixels;
    o.progress = progress;
    o.progress_user = user;
    REQUIRE(theo_session_open(&session, model, &o, &test_error));
    return session;
}

/* Blobs and noise, 8 bits. */
static inline theo_image *picture(int width, int height, int channels) {
    theo_image *image;
    REQUIRE(theo_image_new(&image, width, height, channels, THEO_U8, &test_error));
    uint8_t *p = theo_image_pixels(image);
    uint32_t state = 12345;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++) {
                state = state * 1664525u + 1013904223u;
                double wave = sin(x * 0.21 + c) * cos(y * 0.17 - 0.3 * c) + 0.5 * sin((x + 2 * y) * 0.043);
                *p++ = (uint8_t)(128 + 60 * wave + (double)(state >> 27));
            }
    return image;
}

/* Everything that a small network finds, at the picture's own size. */
static inline theo_detect_options native_options(void) {
    theo_detect_options o;
    theo_detect_options_init(&o);
    o.fit = THEO_FIT_NATIVE;
    o.max_keypoints = -1;
    return o;
}

static inline theo_keypoints *detect(theo_session *session, const theo_image *image, const theo_detect_options *o) {
    theo_keypoints *k;
    REQUIRE(theo_detect(session, image, o, &k, &test_error));
    return k;
}

static inline bool same_keypoints(const theo_keypoints *a, const theo_keypoints *b) {
    size_t n = (size_t)a->count;
    return a->count == b->count && a->descriptor_dim == b->descriptor_dim && !memcmp(a->xy, b->xy, 2 * n * sizeof(float)) &&
           !memcmp(a->scores, b->scores, n * sizeof(float)) &&
           (!a->descriptor_dim || !memcmp(a->descriptors, b->descriptors, n * (size_t)a->descriptor_dim * sizeof(float)));
}

#endif
