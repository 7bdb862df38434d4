/* The formula, for a tensor's name and the element i: x = CRC-32(name) + i * 0x9E3779B9, mixed by shifts and multiplications (the
 * finaliser of MurmurHash3), v = 2 (x + 0.5) / 2^32 - 1. What becomes of v depends on the tensor: see scaling_of(). */
#include "models/moge_synth.h"
#include "base/error.h"
#include "models/gather.h"
#include "models/moge_frame.h"
#include <libdeflate.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TENSORS = 1024 };

/* ---------------------------------------------------------------- values */

static uint32_t mixed(uint32_t x) {
    x ^= x >> 16;
    x *= 0x85EBCA6Bu;
    x ^= x >> 13;
    x *= 0xC2B2AE35u;
    return x ^ x >> 16;
}

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), n = strlen(end);
    return length >= n && !strcmp(text + length - n, end);
}

/* add + mul * v */
typedef struct scaling {
    double add, mul;
} scaling;

static scaling scaling_of(const char *name, int rank, const int64_t *shape) {
    if (ends_in(name, ".gamma"))
        return (scaling){0.5, 0.25};
    if (ends_in(name, "cls_token") || ends_in(name, "pos_embed") || ends_in(name, "mask_token"))
        return (scaling){0, 0.3};
    if (rank == 1)
        return ends_in(name, ".weight") ? (scaling){1, 0.1} : (scaling){0, 0.1};
    int64_t fan = 1;
    for (int i = 1; i < rank; i++)
        fan *= shape[i];
    bool is_transposed = (strstr(name, ".resamplers.") && ends_in(name, ".0.weight")) ||
                         (strstr(name, ".upsample_blocks.") && ends_in(name, ".0.0.weight"));
    if (is_transposed) /* inputs come first */
        fan = shape[0];
    return (scaling){0, sqrt(3.0 / (double)fan)};
}

static void fill(float *data, size_t elements, const char *name, int rank, const int64_t *shape) {
    static const float statistics[2][3] = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
    for (int i = 0; i < 2; i++)
        if (ends_in(name, i ? "image_std" : "image_mean")) {
            memcpy(data, statistics[i], sizeof statistics[i]);
            return;
        }
    scaling s = scaling_of(name, rank, shape);
    uint32_t seed = libdeflate_crc32(0, name, strlen(name));
    for (size_t i = 0; i < elements; i++) {
        double v = 2 * ((double)mixed(seed + (uint32_t)i * 0x9E3779B9u) + 0.5) / 4294967296.0 - 1;
        data[i] = (float)(s.add + s.mul * v);
    }
}

/* ---------------------------------------------------------------- tensors */

void theo_moge_make_transposed(theo_maker *m, const char *stem, int in, int out) {
    theo_make_kernel(m, stem, in, out, 2);
    theo_make_bias(m, stem, out);
}

static void make_statistics(theo_maker *m, const char *prefix) {
    const int64_t three[] = {1, 3, 1, 1};
    theo_make(m, theo_name("%simage_mean", prefix).text, 4, three);
    theo_make(m, theo_name("%simage_std", prefix).text, 4, three);
}

/* prefix: "encoder.backbone." */
static void make_backbone(theo_maker *m, const theo_moge_backbone *b, const char *prefix) {
    int c = b->width;
    theo_make(m, theo_name("%scls_token", prefix).text, 3, (int64_t[]){1, 1, c});
    theo_make(m, theo_name("%spos_embed", prefix).text, 3, (int64_t[]){1, 1 + b->table * b->table, c});
    theo_make(m, theo_name("%smask_token", prefix).text, 2, (int64_t[]){1, c});
    theo_make_conv(m, theo_name("%spatch_embed.proj", prefix).text, c, 3, THEO_MOGE_PATCH);
    for (int i = 0; i < b->depth; i++) {
        theo_tensor_name block = theo_name("%sblocks.%d", prefix, i);
        theo_make_norm(m, theo_name("%s.norm1", block.text).text, c);
        theo_make_linear(m, theo_name("%s.attn.qkv", block.text).text, 3 * c, c);
        theo_make_linear(m, theo_name("%s.attn.proj", block.text).text, c, c);
        theo_make(m, theo_name("%s.ls1.gamma", block.text).text, 1, (int64_t[]){c});
        theo_make_norm(m, theo_name("%s.norm2", block.text).text, c);
        theo_make_linear(m, theo_name("%s.mlp.fc1", block.text).text, b->hidden, c);
        theo_make_linear(m, theo_name("%s.mlp.fc2", block.text).text, c, b->hidden);
        theo_make(m, theo_name("%s.ls2.gamma", block.text).text, 1, (int64_t[]){c});
    }
    theo_make_norm(m, theo_name("%snorm", prefix).text, c);
}

/* ---------------------------------------------------------------- configurations */

void theo_moge_add_list(theo_text *t, const char *key, const int *values, int count, bool null_for_zero) {
    theo_text_printf(t, "\"%s\": [", key);
    for (int i = 0; i < count; i++)
        if (values[i] || !null_for_zero)
            theo_text_printf(t, "%s%d", i ? ", " : "", values[i]);
        else
            theo_text_printf(t, "%snull", i ? ", " : "");
    theo_text_printf(t, "]");
}

static theo_status read_size(int *out, const theo_json *config, const char *key, int absent, int high, theo_error *err) {
    const theo_json *value = theo_json_get(config, key);
    *out = absent;
    if (!value)
        return THEO_OK;
    if (value->type != THEO_JSON_NUMBER || !value->is_integer || value->integer < 1 || value->integer > high)
        return theo_fail(err, THEO_ARGUMENT, NULL, key, "must be a whole number from 1 to %d", high);
    *out = (int)value->integer;
    return THEO_OK;
}

/* A network to be made. */
typedef struct layout {
    theo_moge_generation generation;
    theo_moge_backbone backbone;
    theo_moge_config common;
    union { /* of the generation */
        theo_moge1_config one;
        theo_moge2_config two;
    };
} layout;

static bool published(layout *l, const char *name) {
    l->generation = THEO_MOGE_1;
    if (theo_moge1_published(&l->backbone, &l->common, &l->one, name))
        return true;
    l->generation = THEO_MOGE_2;
    return theo_moge2_published(&l->backbone, &l->common, &l->two, name);
}

static theo_status read_layout(layout *l, const theo_json *config, const char *json, theo_error *err) {
    theo_moge_backbone *b = &l->backbone;
    THEO_TRY(read_size(&b->width, config, "dim", b->width, 8192, err));
    THEO_TRY(read_size(&b->depth, config, "depth", b->depth, 64, err));
    THEO_TRY(read_size(&b->hidden, config, "mlp", 4 * b->width, 8192, err));
    THEO_TRY(read_size(&b->table, config, "table", b->table, 256, err));
    if (l->generation == THEO_MOGE_1)
        return theo_moge1_config_parse(&l->one, &l->common, json, b->depth, "config", err);
    return theo_moge2_config_parse(&l->two, &l->common, json, b->depth, "config", err);
}

/* ---------------------------------------------------------------- all of it */

static void make_all(theo_maker *m, theo_text *config, const layout *l) {
    int width = l->backbone.width;
    if (l->generation == THEO_MOGE_1) {
        make_statistics(m, "");
        make_backbone(m, &l->backbone, "backbone.");
        theo_moge1_make(m, width, &l->common, &l->one);
        theo_moge1_add_config(config, width, &l->common, &l->one);
    } else {
        make_statistics(m, "encoder.");
        make_backbone(m, &l->backbone, "encoder.backbone.");
        theo_moge2_make(m, width, &l->common, &l->two);
        theo_moge2_add_config(config, width, &l->common, &l->two);
    }
}

theo_status theo_moge_synthesize(theo_array **arrays, int *count, const char **config_text, theo_bump *memory, const char *name,
                                 const theo_json *config, const char *json, theo_error *err) {
    layout l;
    if (!published(&l, name))
        return theo_fail(err, THEO_UNSUPPORTED, NULL, name,
                         "this version of the library does not know how to make its checkpoint");
    if (config)
        THEO_TRY(read_layout(&l, config, json, err));
    theo_maker m = theo_maker_new(memory, MOST_TENSORS, fill);
    theo_text text = {0};
    make_all(&m, &text, &l);
    *config_text = text.failed ? NULL : theo_bump_text(memory, text.data, text.length);
    theo_text_free(&text);
    if (!*config_text || m.failed)
        return theo_fail(err, THEO_MEMORY, NULL, name, "out of memory for its tensors");
    *arrays = m.arrays;
    *count = m.count;
    return THEO_OK;
}
