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

static void make(theo_moge_maker *m, int rank, const int64_t *shape, const char *name) {
    if (m->failed || m->count == MOST_TENSORS) {
        m->failed = true;
        return;
    }
    theo_array *a = &m->arrays[m->count++];
    *a = (theo_array){.dtype = THEO_DTYPE_F32, .rank = rank};
    size_t elements = 1;
    for (int i = 0; i < rank; i++) {
        a->shape[i] = shape[i];
        elements *= (size_t)shape[i];
    }
    float *data = theo_bump_alloc(m->memory, elements, sizeof(float));
    a->name = theo_bump_text(m->memory, name, strlen(name));
    a->data = data;
    m->failed = !data || !a->name;
    if (!m->failed)
        fill(data, elements, name, rank, shape);
}

static void make_layer(theo_moge_maker *m, int rank, const int64_t *shape, int out, const char *stem) {
    make(m, rank, shape, theo_name("%s.weight", stem).text);
    make(m, 1, (int64_t[]){out}, theo_name("%s.bias", stem).text);
}

void theo_moge_make_norm(theo_moge_maker *m, int width, const char *stem) {
    make_layer(m, 1, (int64_t[]){width}, width, stem);
}

void theo_moge_make_linear(theo_moge_maker *m, int out, int in, const char *stem) {
    make_layer(m, 2, (int64_t[]){out, in}, out, stem);
}

void theo_moge_make_conv(theo_moge_maker *m, int out, int in, int kernel, const char *stem) {
    make_layer(m, 4, (int64_t[]){out, in, kernel, kernel}, out, stem);
}

void theo_moge_make_transposed(theo_moge_maker *m, int in, int out, const char *stem) {
    make_layer(m, 4, (int64_t[]){in, out, 2, 2}, out, stem);
}

static void make_statistics(theo_moge_maker *m, const char *prefix) {
    const int64_t three[] = {1, 3, 1, 1};
    make(m, 4, three, theo_name("%simage_mean", prefix).text);
    make(m, 4, three, theo_name("%simage_std", prefix).text);
}

/* prefix: "encoder.backbone." */
static void make_backbone(theo_moge_maker *m, const theo_moge_backbone *b, const char *prefix) {
    int c = b->width;
    make(m, 3, (int64_t[]){1, 1, c}, theo_name("%scls_token", prefix).text);
    make(m, 3, (int64_t[]){1, 1 + b->table * b->table, c}, theo_name("%spos_embed", prefix).text);
    make(m, 2, (int64_t[]){1, c}, theo_name("%smask_token", prefix).text);
    theo_moge_make_conv(m, c, 3, THEO_MOGE_PATCH, theo_name("%spatch_embed.proj", prefix).text);
    for (int i = 0; i < b->depth; i++) {
        theo_tensor_name block = theo_name("%sblocks.%d", prefix, i);
        theo_moge_make_norm(m, c, theo_name("%s.norm1", block.text).text);
        theo_moge_make_linear(m, 3 * c, c, theo_name("%s.attn.qkv", block.text).text);
        theo_moge_make_linear(m, c, c, theo_name("%s.attn.proj", block.text).text);
        make(m, 1, (int64_t[]){c}, theo_name("%s.ls1.gamma", block.text).text);
        theo_moge_make_norm(m, c, theo_name("%s.norm2", block.text).text);
        theo_moge_make_linear(m, b->hidden, c, theo_name("%s.mlp.fc1", block.text).text);
        theo_moge_make_linear(m, c, b->hidden, theo_name("%s.mlp.fc2", block.text).text);
        make(m, 1, (int64_t[]){c}, theo_name("%s.ls2.gamma", block.text).text);
    }
    theo_moge_make_norm(m, c, theo_name("%snorm", prefix).text);
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

static void make_all(theo_moge_maker *m, theo_text *config, const layout *l) {
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
    theo_moge_maker m = {.memory = memory, .arrays = theo_bump_alloc(memory, MOST_TENSORS, sizeof *m.arrays)};
    theo_text text = {0};
    m.failed = !m.arrays;
    make_all(&m, &text, &l);
    *config_text = text.failed ? NULL : theo_bump_text(memory, text.data, text.length);
    theo_text_free(&text);
    if (!*config_text || m.failed)
        return theo_fail(err, THEO_MEMORY, NULL, name, "out of memory for its tensors");
    *arrays = m.arrays;
    *count = m.count;
    return THEO_OK;
}
