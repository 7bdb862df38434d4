#include "models/moge2_config.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

enum { LARGEST_WIDTH = 8192, LARGEST_TOKENS = 1 << 20 };

static const char *const stack_names[] = {"neck", "points_head", "mask_head", "normal_head"};
enum { NECK, POINTS, MASK, NORMAL, STACKS };

static theo_moge2_stack_config *stack_of(theo_moge2_config *c, int which) {
    theo_moge2_stack_config *const all[STACKS] = {&c->neck, &c->points, &c->mask, &c->normal};
    return all[which];
}

const theo_moge2_stack_config *theo_moge2_head_config(const theo_moge2_config *c, theo_moge2_head head) {
    const theo_moge2_stack_config *const all[THEO_MOGE2_HEADS] = {&c->points, c->has_normal ? &c->normal : NULL,
                                                                  c->has_mask ? &c->mask : NULL};
    return all[head];
}

/* ---------------------------------------------------------------- from model_config */

/* Where one is in the configuration, for messages. */
typedef struct place {
    const char *file, *stack;
    theo_error *err;
} place;

static theo_status wrong(const place *at, const char *key, const char *allowed) {
    char where[96];
    snprintf(where, sizeof where, "model_config.%s%s%s", at->stack, *at->stack ? "." : "", key);
    return theo_fail(at->err, THEO_STRUCTURE, at->file, where, "must be %s", allowed);
}

static theo_status unsupported(const place *at, const char *key, const char *value, const char *allowed) {
    char where[96];
    snprintf(where, sizeof where, "model_config.%s%s%s", at->stack, *at->stack ? "." : "", key);
    return theo_fail(at->err, THEO_UNSUPPORTED, at->file, where, "\"%s\" is not supported: allowed is %s", value, allowed);
}

static bool is_null(const theo_json *value) {
    return !value || value->type == THEO_JSON_NULL;
}

/* A whole number in [low, high]; `absent` where there is none. */
static theo_status read_int(int *out, const theo_json *value, int absent, int low, int high, const place *at, const char *key) {
    *out = absent;
    if (is_null(value))
        return THEO_OK;
    char allowed[64];
    snprintf(allowed, sizeof allowed, "a whole number from %d to %d", low, high);
    if (value->type != THEO_JSON_NUMBER || !value->is_integer || value->integer < low || value->integer > high)
        return wrong(at, key, allowed);
    *out = (int)value->integer;
    return THEO_OK;
}

/* A list with an element for each level, or one value for all. */
static theo_status read_levels(int out[THEO_MOGE2_LEVELS], const theo_json *value, int absent, int low, int high, const place *at,
                               const char *key) {
    bool is_list = value && value->type == THEO_JSON_ARRAY;
    if (is_list && value->count != THEO_MOGE2_LEVELS)
        return wrong(at, key, "a list of five, or one value for all levels");
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++)
        THEO_TRY(read_int(&out[l], is_list ? theo_json_at(value, l) : value, absent, low, high, at, key));
    return THEO_OK;
}

static theo_status read_resamplers(theo_moge2_stack_config *s, const theo_json *value, const place *at) {
    bool is_list = value && value->type == THEO_JSON_ARRAY;
    if (is_list && value->count != THEO_MOGE2_LEVELS - 1)
        return wrong(at, "resamplers", "a list of four, or one name for all");
    for (int l = 0; l < THEO_MOGE2_LEVELS - 1; l++) {
        const theo_json *kind = is_list ? theo_json_at(value, l) : value;
        if (!kind || kind->type != THEO_JSON_STRING)
            return wrong(at, "resamplers", "a list of four, or one name for all");
        s->is_transposed[l] = !strcmp(kind->string, "conv_transpose");
        if (!s->is_transposed[l] && strcmp(kind->string, "bilinear"))
            return unsupported(at, "resamplers", kind->string, "conv_transpose, bilinear");
    }
    return THEO_OK;
}

/* A name that must be the one that this program can do. */
static theo_status require(const theo_json *object, const char *key, const char *absent, const char *wanted, const place *at) {
    const theo_json *value = theo_json_get(object, key);
    const char *text = is_null(value) ? absent : value->type == THEO_JSON_STRING ? value->string : "?";
    return strcmp(text, wanted) ? unsupported(at, key, text, wanted) : THEO_OK;
}

static theo_status read_stack(theo_moge2_stack_config *s, const theo_json *object, const place *at) {
    if (object->type != THEO_JSON_OBJECT)
        return wrong(at, "", "an object");
    THEO_TRY(read_levels(s->in, theo_json_get(object, "dim_in"), 0, 1, LARGEST_WIDTH, at, "dim_in"));
    const theo_json *widths = theo_json_get(object, "dim_res_blocks");
    if (is_null(widths))
        return wrong(at, "dim_res_blocks", "a list of five, or one value for all levels");
    THEO_TRY(read_levels(s->width, widths, 0, 1, LARGEST_WIDTH, at, "dim_res_blocks"));
    THEO_TRY(read_levels(s->out, theo_json_get(object, "dim_out"), 0, 1, LARGEST_WIDTH, at, "dim_out"));
    THEO_TRY(read_levels(s->blocks, theo_json_get(object, "num_res_blocks"), 1, 0, THEO_MOGE2_MAX_BLOCKS, at, "num_res_blocks"));
    THEO_TRY(
        read_int(&s->hidden, theo_json_get(object, "dim_times_res_block_hidden"), 1, 1, 16, at, "dim_times_res_block_hidden"));
    THEO_TRY(read_resamplers(s, theo_json_get(object, "resamplers"), at));
    THEO_TRY(require(object, "res_block_in_norm", "layer_norm", "none", at));
    THEO_TRY(require(object, "res_block_hidden_norm", "group_norm", "none", at));
    return require(object, "activation", "relu", "relu", at);
}

static theo_status read_taps(theo_moge2_config *c, const theo_json *value, int depth, const place *at) {
    static const char key[] = "intermediate_layers",
                      allowed[] = "a list of up to 8 blocks of the backbone, or how many of the last ones";
    if (value && value->type == THEO_JSON_NUMBER) { /* the last n blocks */
        THEO_TRY(read_int(&c->tap_count, value, 0, 1, depth < THEO_MOGE2_MAX_TAPS ? depth : THEO_MOGE2_MAX_TAPS, at, key));
        for (int i = 0; i < c->tap_count; i++)
            c->taps[i] = depth - c->tap_count + i;
        return THEO_OK;
    }
    if (!value || value->type != THEO_JSON_ARRAY || value->count < 1 || value->count > THEO_MOGE2_MAX_TAPS)
        return wrong(at, key, allowed);
    c->tap_count = value->count;
    for (int i = 0; i < c->tap_count; i++) {
        THEO_TRY(read_int(&c->taps[i], theo_json_at(value, i), -1, 0, depth - 1, at, key));
        if (c->taps[i] < 0 || (i && c->taps[i] <= c->taps[i - 1]))
            return wrong(at, key, "rising numbers of blocks");
    }
    return THEO_OK;
}

static theo_status read_remap(theo_moge2_remap *out, const theo_json *value, const place *at) {
    static const char *const names[] = {"linear", "exp", "sinh", "sinh_exp"};
    const char *text = is_null(value) ? "linear" : value->type == THEO_JSON_STRING ? value->string : "?";
    for (int i = 0; i < 4; i++)
        if (!strcmp(text, names[i])) {
            *out = (theo_moge2_remap)i;
            return THEO_OK;
        }
    return unsupported(at, "remap_output", text, "linear, exp, sinh, sinh_exp");
}

static theo_status read_config(theo_moge2_config *c, const theo_json *root, int depth, const char *file, theo_error *err) {
    place at = {file, "encoder", err};
    const theo_json *encoder = theo_json_get(root, "encoder");
    THEO_TRY(read_taps(c, theo_json_get(encoder, "intermediate_layers"), depth, &at));
    THEO_TRY(read_int(&c->features, theo_json_get(encoder, "dim_out"), 0, 1, LARGEST_WIDTH, &at, "dim_out"));
    if (!c->features)
        return wrong(&at, "dim_out", "given");
    bool is_there[STACKS];
    for (int i = 0; i < STACKS; i++) {
        const theo_json *object = theo_json_get(root, stack_names[i]);
        at.stack = stack_names[i];
        is_there[i] = !is_null(object);
        if (is_there[i])
            THEO_TRY(read_stack(stack_of(c, i), object, &at));
        else if (i == NECK || i == POINTS)
            return wrong(&at, "", "an object");
    }
    c->has_mask = is_there[MASK];
    c->has_normal = is_there[NORMAL];
    c->has_scale = !is_null(theo_json_get(root, "scale_head"));
    at.stack = "";
    THEO_TRY(read_remap(&c->remap, theo_json_get(root, "remap_output"), &at));
    const theo_json *range = theo_json_get(root, "num_tokens_range");
    THEO_TRY(read_int(&c->min_tokens, theo_json_at(range, 0), 1200, 1, LARGEST_TOKENS, &at, "num_tokens_range"));
    return read_int(&c->max_tokens, theo_json_at(range, 1), 3600, c->min_tokens, LARGEST_TOKENS, &at, "num_tokens_range");
}

/* ---------------------------------------------------------------- from shapes */

static const theo_weight *find(const theo_weights *weights, const char *stack, const char *part, int level, const char *rest) {
    char name[160];
    snprintf(name, sizeof name, "%s.%s.%d%s", stack, part, level, rest);
    return theo_weights_find(weights, name);
}

static int size_of(const theo_weight *w, int dimension) {
    return w && dimension < w->rank && w->shape[dimension] > 0 && w->shape[dimension] <= LARGEST_WIDTH ? (int)w->shape[dimension]
                                                                                                       : 0;
}

static void guess_stack(theo_moge2_stack_config *s, const theo_weights *weights, const char *stack) {
    s->hidden = 1;
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++) {
        const theo_weight *input = find(weights, stack, "input_blocks", l, ".weight");
        s->width[l] = size_of(input, 0);
        s->in[l] = size_of(input, 1);
        s->out[l] = size_of(find(weights, stack, "output_blocks", l, ".weight"), 0);
        if (l < THEO_MOGE2_LEVELS - 1)
            s->is_transposed[l] = find(weights, stack, "resamplers", l, ".0.weight") != NULL;
        const theo_weight *block;
        char rest[64];
        for (s->blocks[l] = 0; s->blocks[l] < THEO_MOGE2_MAX_BLOCKS; s->blocks[l]++) {
            snprintf(rest, sizeof rest, ".%d.layers.2.weight", s->blocks[l]);
            if (!(block = find(weights, stack, "res_blocks", l, rest)))
                break;
            if (s->width[l])
                s->hidden = size_of(block, 0) > s->width[l] ? size_of(block, 0) / s->width[l] : 1;
        }
    }
}

static void guess_config(theo_moge2_config *c, const theo_weights *weights, int depth) {
    const theo_weight *tap;
    while (c->tap_count < THEO_MOGE2_MAX_TAPS &&
           (tap = find(weights, "encoder", "output_projections", c->tap_count, ".weight"))) {
        c->tap_count++;
        c->features = size_of(tap, 0);
    }
    for (int i = 0; i < c->tap_count; i++)
        c->taps[i] = depth / c->tap_count * (i + 1) - 1;
    for (int i = 0; i < STACKS; i++)
        guess_stack(stack_of(c, i), weights, stack_names[i]);
    c->has_mask = c->mask.width[0] > 0;
    c->has_normal = c->normal.width[0] > 0;
    c->has_scale = theo_weights_find(weights, "scale_head.0.weight") != NULL;
    c->remap = THEO_MOGE2_REMAP_EXP;
    c->min_tokens = 1200;
    c->max_tokens = 3600;
}

theo_status theo_moge2_config_parse(theo_moge2_config *config, const char *text, int depth, const char *file, theo_error *err) {
    *config = (theo_moge2_config){.tap_count = 0};
    theo_bump memory = {0};
    const theo_json *root;
    theo_status status = theo_json_parse(&root, &memory, text, strlen(text), &(theo_json_options){.file = file}, err);
    if (!status) {
        const theo_json *inner = theo_json_get(root, "model_config");
        status = read_config(config, inner ? inner : root, depth, file, err);
    }
    theo_bump_free(&memory);
    return status;
}

theo_status theo_moge2_config_guess(theo_moge2_config *config, const theo_weights *weights, int depth, theo_error *err) {
    *config = (theo_moge2_config){.tap_count = 0};
    guess_config(config, weights, depth);
    if (config->tap_count < 1 || config->tap_count > depth)
        return theo_fail(err, THEO_MISSING, theo_weights_path(weights), "encoder.output_projections.0.weight",
                         "is missing: the file has no configuration, and its tensors do not tell which blocks are used");
    return THEO_OK;
}
