/* pair_fixture.h - a tiny DUSt3R of formula weights and pictures without files, for tests of the public API. */
#ifndef THEO_TESTS_PAIR_FIXTURE_H
#define THEO_TESTS_PAIR_FIXTURE_H

#include "require.h"
#include "scratch.h"
#include "t.h"
#include <string.h>
#include <theo/image.h>
#include <theo/inspect.h>
#include <theo/pair.h>

/* A configuration with that head. */
#define TINY_DUST3R(head)                                                                                                        \
    "{\"enc_embed_dim\": 64, \"enc_depth\": 2, \"enc_num_heads\": 4, \"dec_embed_dim\": 48, \"dec_depth\": 12, "                 \
    "\"dec_num_heads\": 3, \"mlp_ratio\": 2, \"head_type\": \"" head "\", \"output_mode\": \"pts3d\", \"img_size\": [64, 64], "  \
    "\"pos_embed\": \"RoPE100\", \"depth_mode\": [\"exp\", -Infinity, Infinity], \"conf_mode\": [\"exp\", 1, Infinity], "        \
    "\"dpt_layer_dims\": [8, 8, 16, 16], \"dpt_feature_dim\": 16, \"dpt_last_dims\": [8, 8]}"

static inline theo_model *open_tiny(const char *config, int threads) {
    theo_model *model;
    theo_model_options o;
    theo_model_options_init(&o);
    o.threads = threads;
    REQUIRE(theo_synthesize("dust3r", config, scratch("tiny.pth"), &test_error));
    REQUIRE(theo_model_open(&model, scratch("tiny.pth"), &o, &test_error));
    return model;
}

static inline theo_model *tiny_model(int threads) {
    return open_tiny(TINY_DUST3R("dpt"), threads);
}

static inline theo_session *new_session(theo_model *model) {
    theo_session *session;
    REQUIRE(theo_session_open(&session, model, NULL, &test_error));
    return session;
}

/* A picture of structure that depends on the seed. */
static inline theo_image *new_picture(int width, int height, int channels, unsigned seed) {
    theo_image *image;
    REQUIRE(theo_image_new(&image, width, height, channels, THEO_U8, &test_error));
    uint8_t *pixels = theo_image_pixels(image);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                *pixels++ = (uint8_t)(7 * x + 13 * y + 50 * c + 3 * (int)((unsigned)(x * y) % (23 + seed)));
    return image;
}

#endif
