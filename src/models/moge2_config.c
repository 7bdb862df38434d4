#include "models/moge2_config.h"
#include "base/error.h"
#include "models/moge2.h"
#include <stdio.h>
#include <string.h>

enum { LARGEST_TOKENS = 1 << 20 };

static const char *const stack_names[] = {"neck", "points_head", "mask_head", "normal_head"};
enum { NECK, POINTS, MASK, NORMAL, STACKS };

static theo_moge2_stack_config *stack_of(theo_moge2_config *c, int which) {
    theo_moge2_stack_config *const all[STACKS] = {&c->neck, &c->points, &c->mask, &c->normal};
    return all[which];
}

const theo_moge2_stack_config *theo_moge2_head_config(const theo_moge2_config *c, theo_moge_head head) {
    const theo_moge2_stack_config *const all[THEO_MOGE_HEADS] = {&c->points, c->has_normal ? &c->normal : NULL,
                                                                 c->has_mask ? &c->mask : NULL};
    return all[head];
}

/* In the order of theo_moge2_norm, and of theo_nonlinearity from ReLU on. */
static const char *const norms[] = {"none", "layer_norm", "group_norm", "instance_norm", NULL};
static const char *const functions[] = {"relu", "leaky_relu", "silu", "elu", NULL};

const char *theo_moge2_norm_name(theo_moge2_norm norm) {
    return norms[norm];
}

const char *theo_moge2_activation_name(theo_nonlinearity f) {
    return functions[f - THEO_NONLINEAR_RELU];
}

int theo_moge2_norm_groups(theo_moge2_norm norm, int channels) {
    int groups = norm == THEO_MOGE2_NORM_GROUP ? channels / 32 : norm == THEO_MOGE2_NORM_INSTANCE ? channels : 1;
    return groups && channels % groups == 0 ? groups : 0;
}

bool theo_moge2_norm_has_affine(theo_moge2_norm norm) {
    return norm == THEO_MOGE2_NORM_LAYER || norm == THEO_MOGE2_NORM_GROUP;
}

/* ---------------------------------------------------------------- from model_config */

/* A list with an element for each level, or one value for all. */
static theo_status read_levels(int out[THEO_MOGE2_LEVELS], const theo_json *value, int absent, int low, int high,
                               const theo_moge_place *at, const char *key) {
    bool is_list = value && value->type == THEO_JSON_ARRAY;
    if (is_list && value->count != THEO_MOGE2_LEVELS)
        return theo_moge_wrong(at, key, "a list of five, or one value for all levels");
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++)
        THEO_TRY(theo_moge_read_int(&out[l], is_list ? theo_json_at(value, l) : value, absent, low, high, at, key));
    return THEO_OK;
}

/* The same where every level has a number. */
static theo_status read_widths(int out[THEO_MOGE2_LEVELS], const theo_json *object, const theo_moge_place *at, const char *key) {
    THEO_TRY(read_levels(out, theo_json_get(object, key), 0, 1, THEO_MOGE_MAX_CHANNELS, at, key));
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++)
        if (!out[l])
            return theo_moge_unsupported(at, key, "null", "a number of channels for every level");
    return THEO_OK;
}

static theo_status read_resamplers(theo_moge2_stack_config *s, const theo_json *value, const theo_moge_place *at) {
    static const char key[] = "resamplers", allowed[] = "a list of four, or one name for all";
    bool is_list = value && value->type == THEO_JSON_ARRAY;
    if (is_list && value->count != THEO_MOGE2_LEVELS - 1)
        return theo_moge_wrong(at, key, allowed);
    for (int l = 0; l < THEO_MOGE2_LEVELS - 1; l++) {
        const theo_json *kind = is_list ? theo_json_at(value, l) : value;
        if (!kind || kind->type != THEO_JSON_STRING)
            return theo_moge_wrong(at, key, allowed);
        s->is_transposed[l] = !strcmp(kind->string, "conv_transpose");
        if (!s->is_transposed[l] && strcmp(kind->string, "bilinear"))
            return theo_moge_unsupported(at, key, kind->string, "conv_transpose, bilinear");
    }
    return THEO_OK;
}

static theo_status read_block(theo_moge2_stack_config *s, const theo_json *object, const theo_moge_place *at) {
    int in = 0, hidden = 0, f = 0;
    THEO_TRY(theo_moge_read_name(&in, object, "res_block_in_norm", "layer_norm", norms, at));
    THEO_TRY(theo_moge_read_name(&hidden, object, "res_block_hidden_norm", "group_norm", norms, at));
    THEO_TRY(theo_moge_read_name(&f, object, "activation", "relu", functions, at));
    s->in_norm = (theo_moge2_norm)in;
    s->hidden_norm = (theo_moge2_norm)hidden;
    s->f = (theo_nonlinearity)(THEO_NONLINEAR_RELU + f);
    return THEO_OK;
}

static theo_status read_stack(theo_moge2_stack_config *s, const theo_json *object, const theo_moge_place *at) {
    if (object->type != THEO_JSON_OBJECT)
        return theo_moge_wrong(at, "", "an object");
    THEO_TRY(read_widths(s->in, object, at, "dim_in"));
    THEO_TRY(read_widths(s->width, object, at, "dim_res_blocks"));
    THEO_TRY(read_levels(s->out, theo_json_get(object, "dim_out"), 0, 1, THEO_MOGE_MAX_CHANNELS, at, "dim_out"));
    THEO_TRY(read_levels(s->blocks, theo_json_get(object, "num_res_blocks"), 1, 0, THEO_MOGE_MAX_BLOCKS, at, "num_res_blocks"));
    THEO_TRY(theo_moge_read_int(&s->hidden, theo_json_get(object, "dim_times_res_block_hidden"), 1, 1, 16, at,
                                "dim_times_res_block_hidden"));
    THEO_TRY(read_resamplers(s, theo_json_get(object, "resamplers"), at));
    return read_block(s, object, at);
}

static theo_status read_config(theo_moge2_config *c, theo_moge_config *common, const theo_json *root, int depth, const char *file,
                               theo_error *err) {
    theo_moge_place at = {file, "encoder", err};
    const theo_json *encoder = theo_json_get(root, "encoder");
    THEO_TRY(theo_moge_read_taps(common, theo_json_get(encoder, "intermediate_layers"), depth, &at));
    THEO_TRY(
        theo_moge_read_int(&common->features, theo_json_get(encoder, "dim_out"), 0, 1, THEO_MOGE_MAX_CHANNELS, &at, "dim_out"));
    if (!common->features)
        return theo_moge_wrong(&at, "dim_out", "given");
    bool is_there[STACKS];
    for (int i = 0; i < STACKS; i++) {
        const theo_json *object = theo_json_get(root, stack_names[i]);
        at.part = stack_names[i];
        is_there[i] = !theo_moge_is_null(object);
        if (is_there[i])
            THEO_TRY(read_stack(stack_of(c, i), object, &at));
        else if (i == NECK || i == POINTS)
            return theo_moge_wrong(&at, "", "an object");
    }
    c->has_mask = is_there[MASK];
    c->has_normal = is_there[NORMAL];
    c->has_scale = !theo_moge_is_null(theo_json_get(root, "scale_head"));
    at.part = "";
    THEO_TRY(theo_moge_read_remap(common, root, &at));
    int tokens[2] = {1200, 3600};
    bool is_given;
    THEO_TRY(theo_moge_read_range(&is_given, tokens, root, "num_tokens_range", 1, LARGEST_TOKENS, &at));
    common->min_tokens = tokens[0];
    common->max_tokens = tokens[1];
    return THEO_OK;
}

/* ---------------------------------------------------------------- from shapes */

static const theo_weight *find(const theo_weights *weights, const char *stack, const char *part, int level, const char *rest) {
    char name[160];
    snprintf(name, sizeof name, "%s.%s.%d%s", stack, part, level, rest);
    return theo_weights_find(weights, name);
}

static int size_of(const theo_weight *w, int dimension) {
    return w && dimension < w->rank && w->shape[dimension] > 0 && w->shape[dimension] <= THEO_MOGE_MAX_CHANNELS
               ? (int)w->shape[dimension]
               : 0;
}

static void guess_stack(theo_moge2_stack_config *s, const theo_weights *weights, const char *stack) {
    s->hidden = 1;
    s->f = THEO_NONLINEAR_RELU;
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++) {
        const theo_weight *input = find(weights, stack, "input_blocks", l, ".weight");
        s->width[l] = size_of(input, 0);
        s->in[l] = size_of(input, 1);
        s->out[l] = size_of(find(weights, stack, "output_blocks", l, ".weight"), 0);
        if (l < THEO_MOGE2_LEVELS - 1)
            s->is_transposed[l] = find(weights, stack, "resamplers", l, ".0.weight") != NULL;
        const theo_weight *block;
        char rest[64];
        for (s->blocks[l] = 0; s->blocks[l] < THEO_MOGE_MAX_BLOCKS; s->blocks[l]++) {
            snprintf(rest, sizeof rest, ".%d.layers.2.weight", s->blocks[l]);
            if (!(block = find(weights, stack, "res_blocks", l, rest)))
                break;
            /* what has a gain is of the usual kind: shapes do not tell more */
            snprintf(rest, sizeof rest, ".%d.layers.0.weight", s->blocks[l]);
            s->in_norm = find(weights, stack, "res_blocks", l, rest) ? THEO_MOGE2_NORM_LAYER : THEO_MOGE2_NORM_NONE;
            snprintf(rest, sizeof rest, ".%d.layers.3.weight", s->blocks[l]);
            s->hidden_norm = find(weights, stack, "res_blocks", l, rest) ? THEO_MOGE2_NORM_GROUP : THEO_MOGE2_NORM_NONE;
            if (s->width[l])
                s->hidden = size_of(block, 0) > s->width[l] ? size_of(block, 0) / s->width[l] : 1;
        }
    }
}

static void guess_config(theo_moge2_config *c, theo_moge_config *common, const theo_weights *weights, int depth) {
    const theo_weight *tap;
    while (common->tap_count < THEO_MOGE_MAX_TAPS &&
           (tap = find(weights, "encoder", "output_projections", common->tap_count, ".weight"))) {
        common->tap_count++;
        common->features = size_of(tap, 0);
    }
    for (int i = 0; i < common->tap_count; i++)
        common->taps[i] = depth / common->tap_count * (i + 1) - 1;
    for (int i = 0; i < STACKS; i++)
        guess_stack(stack_of(c, i), weights, stack_names[i]);
    c->has_mask = c->mask.width[0] > 0;
    c->has_normal = c->normal.width[0] > 0;
    c->has_scale = theo_weights_find(weights, "scale_head.0.weight") != NULL;
    common->remap = THEO_MOGE_REMAP_EXP;
    common->min_tokens = 1200;
    common->max_tokens = 3600;
}

theo_status theo_moge2_config_parse(theo_moge2_config *config, theo_moge_config *common, const char *text, int depth,
                                    const char *file, theo_error *err) {
    *config = (theo_moge2_config){.has_mask = false};
    *common = (theo_moge_config){.tap_count = 0};
    theo_bump memory = {0};
    const theo_json *root;
    theo_status status = theo_moge_config_root(&root, &memory, text, file, err);
    if (!status)
        status = read_config(config, common, root, depth, file, err);
    theo_bump_free(&memory);
    return status;
}

theo_status theo_moge2_config_guess(theo_moge2_config *config, theo_moge_config *common, const theo_weights *weights, int depth,
                                    theo_error *err) {
    *config = (theo_moge2_config){.has_mask = false};
    *common = (theo_moge_config){.tap_count = 0};
    guess_config(config, common, weights, depth);
    if (common->tap_count < 1 || common->tap_count > depth)
        return theo_fail(err, THEO_MISSING, theo_weights_path(weights), "encoder.output_projections.0.weight",
                         "is missing: the file has no configuration, and its tensors do not tell which blocks are used");
    return THEO_OK;
}
