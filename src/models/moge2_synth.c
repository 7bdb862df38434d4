/* The formula, for a tensor's name and the element i: x = CRC-32(name) + i * 0x9E3779B9, mixed by shifts and multiplications (the
 * finaliser of MurmurHash3), v = 2 (x + 0.5) / 2^32 - 1. What becomes of v depends on the tensor: see scaled(). */
#include "models/moge2_synth.h"
#include "base/error.h"
#include "formats/text.h"
#include "models/moge2_config.h"
#include "models/moge2_input.h"
#include <libdeflate.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TENSORS = 1024 };

static const char *const head_names[THEO_MOGE2_HEADS] = {"points_head", "normal_head", "mask_head"};

typedef struct backbone {
    int width, depth, hidden, table;
} backbone;

typedef struct maker {
    theo_array *arrays;
    int count;
    theo_bump *memory;
    bool failed; /* out of memory, or too many tensors */
} maker;

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
    if (strstr(name, ".resamplers.") && ends_in(name, ".0.weight")) /* transposed: inputs come first */
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

static void __attribute__((format(printf, 4, 5))) make(maker *m, int rank, const int64_t *shape, const char *format, ...) {
    char name[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
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

#define VECTOR(n)                                                                                                                \
    1, (int64_t[]) {                                                                                                             \
        n                                                                                                                        \
    }
#define MATRIX(rows, n)                                                                                                          \
    2, (int64_t[]) {                                                                                                             \
        rows, n                                                                                                                  \
    }
#define KERNEL(o, i, k)                                                                                                          \
    4, (int64_t[]) {                                                                                                             \
        o, i, k, k                                                                                                               \
    }

static void make_backbone(maker *m, const backbone *b) {
    static const char p[] = "encoder.backbone.";
    int c = b->width;
    make(m, 3, (int64_t[]){1, 1, c}, "%scls_token", p);
    make(m, 3, (int64_t[]){1, 1 + b->table * b->table, c}, "%spos_embed", p);
    make(m, MATRIX(1, c), "%smask_token", p);
    make(m, KERNEL(c, 3, THEO_MOGE_PATCH), "%spatch_embed.proj.weight", p);
    make(m, VECTOR(c), "%spatch_embed.proj.bias", p);
    for (int i = 0; i < b->depth; i++) {
        make(m, VECTOR(c), "%sblocks.%d.norm1.weight", p, i);
        make(m, VECTOR(c), "%sblocks.%d.norm1.bias", p, i);
        make(m, MATRIX(3 * c, c), "%sblocks.%d.attn.qkv.weight", p, i);
        make(m, VECTOR(3 * c), "%sblocks.%d.attn.qkv.bias", p, i);
        make(m, MATRIX(c, c), "%sblocks.%d.attn.proj.weight", p, i);
        make(m, VECTOR(c), "%sblocks.%d.attn.proj.bias", p, i);
        make(m, VECTOR(c), "%sblocks.%d.ls1.gamma", p, i);
        make(m, VECTOR(c), "%sblocks.%d.norm2.weight", p, i);
        make(m, VECTOR(c), "%sblocks.%d.norm2.bias", p, i);
        make(m, MATRIX(b->hidden, c), "%sblocks.%d.mlp.fc1.weight", p, i);
        make(m, VECTOR(b->hidden), "%sblocks.%d.mlp.fc1.bias", p, i);
        make(m, MATRIX(c, b->hidden), "%sblocks.%d.mlp.fc2.weight", p, i);
        make(m, VECTOR(c), "%sblocks.%d.mlp.fc2.bias", p, i);
        make(m, VECTOR(c), "%sblocks.%d.ls2.gamma", p, i);
    }
    make(m, VECTOR(c), "%snorm.weight", p);
    make(m, VECTOR(c), "%snorm.bias", p);
}

static void make_conv(maker *m, int out, int in, int kernel, const char *stem) {
    make(m, KERNEL(out, in, kernel), "%s.weight", stem);
    make(m, VECTOR(out), "%s.bias", stem);
}

typedef struct tensor_stem {
    char text[96];
} tensor_stem;

static tensor_stem __attribute__((format(printf, 1, 2))) stem(const char *format, ...) {
    tensor_stem s;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(s.text, sizeof s.text, format, arguments);
    va_end(arguments);
    return s;
}

static void make_stack(maker *m, const char *name, const theo_moge2_stack_config *s) {
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++)
        if (s->in[l])
            make_conv(m, s->width[l], s->in[l], 1, stem("%s.input_blocks.%d", name, l).text);
    for (int l = 0; l < THEO_MOGE2_LEVELS - 1; l++) {
        int next = s->width[l + 1], in = s->width[l];
        if (s->is_transposed[l]) {
            make(m, KERNEL(in, next, 2), "%s.resamplers.%d.0.weight", name, l);
            make(m, VECTOR(next), "%s.resamplers.%d.0.bias", name, l);
            in = next;
        }
        make_conv(m, next, in, 3, stem("%s.resamplers.%d.1", name, l).text);
    }
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++)
        for (int j = 0; j < s->blocks[l]; j++) {
            int hidden = s->hidden * s->width[l];
            make_conv(m, hidden, s->width[l], 3, stem("%s.res_blocks.%d.%d.layers.2", name, l, j).text);
            make_conv(m, s->width[l], hidden, 3, stem("%s.res_blocks.%d.%d.layers.5", name, l, j).text);
        }
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++)
        if (s->out[l])
            make_conv(m, s->out[l], s->width[l], 1, stem("%s.output_blocks.%d", name, l).text);
}

static void make_all(maker *m, const backbone *b, const theo_moge2_config *c) {
    const int64_t three[] = {1, 3, 1, 1};
    make(m, 4, three, "encoder.image_mean");
    make(m, 4, three, "encoder.image_std");
    make_backbone(m, b);
    for (int i = 0; i < c->tap_count; i++)
        make_conv(m, c->features, b->width, 1, stem("encoder.output_projections.%d", i).text);
    make_stack(m, "neck", &c->neck);
    for (theo_moge2_head h = 0; h < THEO_MOGE2_HEADS; h++)
        if (theo_moge2_head_config(c, h))
            make_stack(m, head_names[h], theo_moge2_head_config(c, h));
    for (int i = 0; c->has_scale && i < 3; i++) {
        make(m, MATRIX(i < 2 ? b->width : 1, b->width), "scale_head.%d.weight", 2 * i);
        make(m, VECTOR(i < 2 ? b->width : 1), "scale_head.%d.bias", 2 * i);
    }
}

/* ---------------------------------------------------------------- configurations */

static void stack_of(theo_moge2_stack_config *s, int width, int inner, const int *in, int out) {
    const int widths[THEO_MOGE2_LEVELS] = {width, 256, 128, 64, 32};
    *s = (theo_moge2_stack_config){
        .hidden = 1, .out = {[THEO_MOGE2_LEVELS - 1] = out}, .is_transposed = {true, true, true, false}};
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++) {
        s->width[l] = widths[l];
        s->in[l] = in ? in[l] : widths[l];
        s->blocks[l] = l == 0 || l == THEO_MOGE2_LEVELS - 1 ? 0 : inner;
    }
}

static bool published(backbone *b, theo_moge2_config *c, const char *name) {
    static const struct {
        const char *name;
        int width, depth, taps, neck_blocks;
        bool has_normal;
    } known[] = {
        {"moge-2-vitl-normal", 1024, 24, 4, 2, true},
        {"moge-2-vitl", 1024, 24, 4, 2, false},
        {"moge-2-vitb-normal", 768, 12, 2, 1, true},
        {"moge-2-vits-normal", 384, 12, 2, 1, true},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name))
            continue;
        int width = known[i].width;
        const int neck_in[THEO_MOGE2_LEVELS] = {width + 2, 2, 2, 2, 2};
        *b = (backbone){width, known[i].depth, 4 * width, 37};
        *c = (theo_moge2_config){.tap_count = known[i].taps,
                                 .features = width,
                                 .has_mask = true,
                                 .has_scale = true,
                                 .has_normal = known[i].has_normal,
                                 .remap = THEO_MOGE2_REMAP_EXP,
                                 .min_tokens = 1200,
                                 .max_tokens = 3600};
        for (int k = 0; k < c->tap_count; k++)
            c->taps[k] = b->depth / c->tap_count * (k + 1) - 1;
        stack_of(&c->neck, width, known[i].neck_blocks, neck_in, 0);
        stack_of(&c->points, width, 1, NULL, 3);
        stack_of(&c->normal, width, 1, NULL, 3);
        stack_of(&c->mask, width, 1, NULL, 1);
        return true;
    }
    return false;
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

static void add_list(theo_text *t, const char *key, const int *values, int count, bool null_for_zero) {
    theo_text_printf(t, "\"%s\": [", key);
    for (int i = 0; i < count; i++)
        if (values[i] || !null_for_zero)
            theo_text_printf(t, "%s%d", i ? ", " : "", values[i]);
        else
            theo_text_printf(t, "%snull", i ? ", " : "");
    theo_text_printf(t, "]");
}

static void add_stack(theo_text *t, const char *name, const theo_moge2_stack_config *s) {
    theo_text_printf(t, ", \"%s\": {", name);
    add_list(t, "dim_in", s->in, THEO_MOGE2_LEVELS, true);
    theo_text_printf(t, ", ");
    add_list(t, "dim_res_blocks", s->width, THEO_MOGE2_LEVELS, false);
    theo_text_printf(t, ", ");
    add_list(t, "dim_out", s->out, THEO_MOGE2_LEVELS, true);
    theo_text_printf(t, ", ");
    add_list(t, "num_res_blocks", s->blocks, THEO_MOGE2_LEVELS, false);
    theo_text_printf(t, ", \"dim_times_res_block_hidden\": %d, \"resamplers\": [", s->hidden);
    for (int l = 0; l < THEO_MOGE2_LEVELS - 1; l++)
        theo_text_printf(t, "%s\"%s\"", l ? ", " : "", s->is_transposed[l] ? "conv_transpose" : "bilinear");
    theo_text_printf(t, "], \"res_block_in_norm\": \"none\", \"res_block_hidden_norm\": \"none\"}");
}

static void add_config(theo_text *t, const backbone *b, const theo_moge2_config *c) {
    static const char *const remaps[] = {"linear", "exp", "sinh", "sinh_exp"};
    const char *size = b->width == 384 ? "s" : b->width == 768 ? "b" : b->width == 1024 ? "l" : "_test";
    theo_text_printf(t, "{\"encoder\": {\"backbone\": \"dinov2_vit%s14\", ", size);
    add_list(t, "intermediate_layers", c->taps, c->tap_count, false);
    theo_text_printf(t, ", \"dim_out\": %d}", c->features);
    add_stack(t, "neck", &c->neck);
    for (theo_moge2_head h = 0; h < THEO_MOGE2_HEADS; h++)
        if (theo_moge2_head_config(c, h))
            add_stack(t, head_names[h], theo_moge2_head_config(c, h));
    if (c->has_scale)
        theo_text_printf(t, ", \"scale_head\": {\"dims\": [%d, %d, %d, 1]}", b->width, b->width, b->width);
    theo_text_printf(t, ", \"remap_output\": \"%s\", \"num_tokens_range\": [%d, %d]}", remaps[c->remap], c->min_tokens,
                     c->max_tokens);
}

theo_status theo_moge2_synthesize(theo_array **arrays, int *count, const char **config_text, theo_bump *memory, const char *name,
                                  const theo_json *config, const char *json, theo_error *err) {
    backbone b;
    theo_moge2_config c;
    if (!published(&b, &c, name))
        return theo_fail(err, THEO_UNSUPPORTED, NULL, name,
                         "this version of the library does not know how to make its checkpoint");
    if (config) {
        THEO_TRY(read_size(&b.width, config, "dim", b.width, 8192, err));
        THEO_TRY(read_size(&b.depth, config, "depth", b.depth, 64, err));
        THEO_TRY(read_size(&b.hidden, config, "mlp", 4 * b.width, 8192, err));
        THEO_TRY(read_size(&b.table, config, "table", b.table, 256, err));
        THEO_TRY(theo_moge2_config_parse(&c, json, b.depth, "config", err));
    }
    maker m = {.memory = memory, .arrays = theo_bump_alloc(memory, MOST_TENSORS, sizeof *m.arrays)};
    theo_text text = {0};
    add_config(&text, &b, &c);
    *config_text = text.failed ? NULL : theo_bump_text(memory, text.data, text.length);
    theo_text_free(&text);
    if (m.arrays && *config_text)
        make_all(&m, &b, &c);
    if (!m.arrays || !*config_text || m.failed)
        return theo_fail(err, THEO_MEMORY, NULL, name, "out of memory for its tensors");
    *arrays = m.arrays;
    *count = m.count;
    return THEO_OK;
}
