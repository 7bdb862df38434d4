#include "models/moge1_config.h"
#include "base/error.h"
#include "models/gather.h"
#include "models/moge_frame.h"
#include <string.h>

enum {
    LARGEST_AREA = 1 << 28, /* pixels */
    PATCH_AREA = THEO_MOGE_PATCH * THEO_MOGE_PATCH,
};

/* ---------------------------------------------------------------- from model_config */

static theo_status read_widths(theo_moge1_config *c, const theo_json *value, const theo_moge_place *at) {
    static const char key[] = "dim_upsample";
    if (!value || value->type != THEO_JSON_ARRAY || value->count < 1 || value->count > THEO_MOGE1_MAX_STAGES)
        return theo_moge_wrong(at, key, "a list of one to six numbers of channels");
    c->stages = value->count;
    for (int i = 0; i < c->stages; i++) {
        THEO_TRY(theo_moge_read_int(&c->width[i], theo_json_at(value, i), 0, 1, THEO_MOGE_MAX_CHANNELS, at, key));
        if (!c->width[i])
            return theo_moge_wrong(at, key, "a number of channels for each stage");
    }
    return THEO_OK;
}

/* A range of areas in pixels is the older form. */
static theo_status read_tokens(theo_moge_config *c, const theo_json *root, const theo_moge_place *at) {
    int tokens[2] = {1200, 2500}, areas[2] = {0};
    bool has_tokens, has_areas;
    THEO_TRY(theo_moge_read_range(&has_tokens, tokens, root, "num_tokens_range", 1, LARGEST_AREA / PATCH_AREA, at));
    THEO_TRY(theo_moge_read_range(&has_areas, areas, root, "trained_area_range", PATCH_AREA, LARGEST_AREA, at));
    for (int i = 0; i < 2 && has_areas && !has_tokens; i++)
        tokens[i] = areas[i] / PATCH_AREA;
    c->min_tokens = tokens[0];
    c->max_tokens = tokens[1];
    return THEO_OK;
}

/* A number that must be the one that this program can do. */
static theo_status require(const theo_json *root, const char *key, int wanted, const theo_moge_place *at) {
    int value;
    THEO_TRY(theo_moge_read_int(&value, theo_json_get(root, key), wanted, 0, 64, at, key));
    return value == wanted ? THEO_OK : theo_moge_unsupported(at, key, theo_name("%d", value).text, theo_name("%d", wanted).text);
}

static theo_status read_config(theo_moge1_config *c, theo_moge_config *common, const theo_json *root, int depth, const char *file,
                               theo_error *err) {
    static const char *const norms[] = {"layer_norm", "group_norm", NULL};
    theo_moge_place at = {file, "", err};
    int norm = 0;
    THEO_TRY(theo_moge_read_taps(common, theo_json_get(root, "intermediate_layers"), depth, &at));
    THEO_TRY(
        theo_moge_read_int(&common->features, theo_json_get(root, "dim_proj"), 512, 1, THEO_MOGE_MAX_CHANNELS, &at, "dim_proj"));
    THEO_TRY(theo_moge_read_remap(common, root, &at));
    THEO_TRY(read_tokens(common, root, &at));
    THEO_TRY(read_widths(c, theo_json_get(root, "dim_upsample"), &at));
    THEO_TRY(
        theo_moge_read_int(&c->blocks, theo_json_get(root, "num_res_blocks"), 1, 0, THEO_MOGE_MAX_BLOCKS, &at, "num_res_blocks"));
    THEO_TRY(theo_moge_read_int(&c->hidden, theo_json_get(root, "dim_times_res_block_hidden"), 1, 1, 16, &at,
                                "dim_times_res_block_hidden"));
    THEO_TRY(theo_moge_read_name(&norm, root, "res_block_norm", "group_norm", norms, &at));
    c->is_hidden_grouped = norm == 1;
    THEO_TRY(theo_moge_read_int(&c->last_channels, theo_json_get(root, "last_conv_channels"), 32, 1, THEO_MOGE_MAX_CHANNELS, &at,
                                "last_conv_channels"));
    THEO_TRY(require(root, "last_res_blocks", 0, &at));
    return require(root, "last_conv_size", 1, &at);
}

theo_status theo_moge1_config_parse(theo_moge1_config *config, theo_moge_config *common, const char *text, int depth,
                                    const char *file, theo_error *err) {
    *config = (theo_moge1_config){.stages = 0};
    *common = (theo_moge_config){.tap_count = 0};
    theo_bump memory = {0};
    const theo_json *root;
    theo_status status = theo_moge_config_root(&root, &memory, text, file, err);
    if (!status)
        status = read_config(config, common, root, depth, file, err);
    theo_bump_free(&memory);
    return status;
}

/* ---------------------------------------------------------------- from shapes */

/* 0: there is no such tensor, or dimension. */
static int size_of(const theo_weights *weights, theo_tensor_name name, int dimension) {
    const theo_weight *w = theo_weights_find(weights, name.text);
    bool is_there = w && dimension < w->rank && w->shape[dimension] > 0 && w->shape[dimension] <= THEO_MOGE_MAX_CHANNELS;
    return is_there ? (int)w->shape[dimension] : 0;
}

theo_status theo_moge1_config_guess(theo_moge1_config *c, theo_moge_config *common, const theo_weights *weights, int depth,
                                    theo_error *err) {
    *c = (theo_moge1_config){.is_hidden_grouped = true, .hidden = 1};
    *common = (theo_moge_config){.remap = THEO_MOGE_REMAP_EXP, .min_tokens = 1275, .max_tokens = 2551};
    int size;
    while (common->tap_count < THEO_MOGE_MAX_TAPS &&
           (size = size_of(weights, theo_name("head.projects.%d.weight", common->tap_count), 0)) > 0) {
        common->tap_count++;
        common->features = size;
    }
    while (c->stages < THEO_MOGE1_MAX_STAGES &&
           (size = size_of(weights, theo_name("head.upsample_blocks.%d.0.0.weight", c->stages), 1)) > 0)
        c->width[c->stages++] = size;
    while (c->stages && c->blocks < THEO_MOGE_MAX_BLOCKS &&
           (size = size_of(weights, theo_name("head.upsample_blocks.0.%d.layers.2.weight", c->blocks + 1), 0)) > 0) {
        c->blocks++;
        c->hidden = size > c->width[0] ? size / c->width[0] : 1;
    }
    c->last_channels = size_of(weights, theo_name("head.output_block.0.0.weight"), 0);
    if (common->tap_count < 1 || common->tap_count > depth || !c->stages)
        return theo_fail(err, THEO_MISSING, theo_weights_path(weights),
                         c->stages ? "head.projects.0.weight" : "head.upsample_blocks.0.0.0.weight",
                         "is missing: the file has no configuration, and its tensors do not tell what it would be");
    for (int i = 0; i < common->tap_count; i++)
        common->taps[i] = depth - common->tap_count + i;
    return THEO_OK;
}
