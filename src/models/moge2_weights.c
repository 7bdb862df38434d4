/* moge2_weights.c - the decoder of MoGe-2 from the tensors of a checkpoint: names, shapes, checks. */
#include "base/error.h"
#include "models/moge2.h"

static const char *const head_names[THEO_MOGE_HEADS] = {"points_head", "normal_head", "mask_head"};

int theo_moge2_head_channels(const theo_moge2 *n, theo_moge_head head) {
    const theo_moge2_stack_config *s = theo_moge2_head_config(&n->config, head);
    return s ? s->out[THEO_MOGE2_LEVELS - 1] : 0;
}

/* ---------------------------------------------------------------- gathering */

/* To the next level: a transposed convolution (number 0) or bilinear interpolation, then a 3x3 convolution (number 1). */
static void gather_way_up(const theo_gather *s, theo_moge2_level *level, const char *stem, int in, int out, bool is_transposed) {
    theo_tensor_name first = theo_name("%s.0", stem), second = theo_name("%s.1", stem);
    if (is_transposed) {
        theo_gather_layer(s, &level->up, (theo_packing_job){.kind = THEO_PACKING_TRANSPOSED}, first.text, 4,
                          (int64_t[]){in, out, 2, 2}, out);
        theo_gather_3x3(s, &level->conv, second.text, out, out);
    } else {
        theo_gather_layer(s, &level->conv, (theo_packing_job){.kind = THEO_PACKING_UPSAMPLED}, second.text, 4,
                          (int64_t[]){out, in, 3, 3}, out);
    }
}

/* The neck reads the features and, behind them, two coordinates: as two layers. */
static void gather_neck_input(const theo_gather *s, theo_moge2 *n, int features, int out) {
    const char stem[] = "neck.input_blocks.0";
    theo_packing_job job = {.kind = THEO_PACKING_LINEAR, .count = features};
    theo_gather_layer(s, &n->neck.levels[0].input, job, stem, 4, (int64_t[]){out, features + 2, 1, 1}, out);
    job = s->packing->count ? s->packing->jobs[s->packing->count - 1] : job;
    job.bias = NULL;
    job.from = features;
    job.count = 2;
    job.packed = &n->neck_uv;
    theo_packing_add(s->packing, job);
}

static void gather_block(const theo_gather *s, theo_moge2_block *block, const char *stem, int width,
                         const theo_moge2_stack_config *c) {
    int hidden = c->hidden * width;
    if (theo_moge2_norm_has_affine(c->in_norm))
        theo_gather_norm(s, &block->in_norm, theo_name("%s.layers.0", stem).text, width);
    theo_gather_3x3(s, &block->first, theo_name("%s.layers.2", stem).text, hidden, width);
    if (theo_moge2_norm_has_affine(c->hidden_norm))
        theo_gather_norm(s, &block->hidden_norm, theo_name("%s.layers.3", stem).text, hidden);
    theo_gather_3x3(s, &block->second, theo_name("%s.layers.5", stem).text, width, hidden);
}

static void gather_stack(const theo_gather *s, theo_moge2_stack *stack, const char *name, const theo_moge2_stack_config *c,
                         bool is_neck) {
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++) {
        theo_moge2_level *level = &stack->levels[l];
        int width = c->width[l];
        if (!(is_neck && l == 0))
            theo_gather_1x1(s, &level->input, theo_name("%s.input_blocks.%d", name, l).text, width, c->in[l]);
        for (int j = 0; j < c->blocks[l]; j++)
            gather_block(s, &level->blocks[j], theo_name("%s.res_blocks.%d.%d", name, l, j).text, width, c);
        if (c->out[l] && (is_neck || l == THEO_MOGE2_LEVELS - 1)) /* of a head the last output alone is used */
            theo_gather_1x1(s, &level->output, theo_name("%s.output_blocks.%d", name, l).text, c->out[l], width);
        if (l == THEO_MOGE2_LEVELS - 1)
            break;
        int next = c->width[l + 1];
        gather_way_up(s, level, theo_name("%s.resamplers.%d", name, l).text, width, next, c->is_transposed[l]);
    }
}

/* Channels that one stack hands to another must agree. */
static theo_status check_joints(const theo_moge2_config *c, int features, const char *path, theo_error *err) {
    static const char place[] = "model_config";
    const int channels[THEO_MOGE_HEADS] = {3, 3, 1};
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++)
        if (c->neck.in[l] != (l ? 2 : features + 2))
            return theo_fail(err, THEO_STRUCTURE, path, place, "the neck's level %d reads %d channels: needed are %d", l,
                             c->neck.in[l], l ? 2 : features + 2);
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++) {
        const theo_moge2_stack_config *s = theo_moge2_head_config(c, h);
        for (int l = 0; s && l < THEO_MOGE2_LEVELS; l++) {
            int given = c->neck.out[l] ? c->neck.out[l] : c->neck.width[l];
            if (s->in[l] != given)
                return theo_fail(err, THEO_STRUCTURE, path, place, "%s reads %d channels at level %d, the neck gives %d",
                                 head_names[h], s->in[l], l, given);
        }
        if (s && s->out[THEO_MOGE2_LEVELS - 1] != channels[h])
            return theo_fail(err, THEO_STRUCTURE, path, place, "%s makes %d channels: needed are %d", head_names[h],
                             s->out[THEO_MOGE2_LEVELS - 1], channels[h]);
    }
    return THEO_OK;
}

/* Every norm needs channels that can be cut into its groups, and every convolution some channels. */
static theo_status check_stack(const theo_moge2_stack_config *s, const char *name, const char *path, theo_error *err) {
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++) {
        if (s->width[l] < THEO_MOGE_MIN_CHANNELS)
            return theo_fail(err, THEO_STRUCTURE, path, "model_config", "%s has %d channels at level %d: at least %d are needed",
                             name, s->width[l], l, THEO_MOGE_MIN_CHANNELS);
        for (int i = 0; i < 2 && s->blocks[l]; i++) {
            int channels = i ? s->hidden * s->width[l] : s->width[l];
            if (!theo_moge2_norm_groups(i ? s->hidden_norm : s->in_norm, channels))
                return theo_fail(err, THEO_STRUCTURE, path, "model_config",
                                 "%s, level %d: %d channels cannot be cut into %d equal groups for a norm", name, l, channels,
                                 channels / 32);
        }
    }
    return THEO_OK;
}

static theo_status check(const theo_moge2_config *c, int features, const char *path, theo_error *err) {
    THEO_TRY(check_joints(c, features, path, err));
    THEO_TRY(check_stack(&c->neck, "neck", path, err));
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++)
        if (theo_moge2_head_config(c, h))
            THEO_TRY(check_stack(theo_moge2_head_config(c, h), head_names[h], path, err));
    return THEO_OK;
}

theo_status theo_moge2_gather(theo_moge *network, const theo_gather *g, const char *config_text, theo_error *err) {
    const char *path = theo_weights_path(g->weights);
    theo_moge2 *n = network->two = theo_alloc(1, sizeof *n);
    theo_moge_config *common = &network->config;
    int width = network->vit.width, depth = network->vit.depth;
    if (!n)
        return theo_fail(err, THEO_MEMORY, path, NULL, "out of memory");
    if (config_text)
        THEO_TRY(theo_moge2_config_parse(&n->config, common, config_text, depth, path, err));
    else
        THEO_TRY(theo_moge2_config_guess(&n->config, common, g->weights, depth, err));
    const theo_moge2_config *c = &n->config;
    THEO_TRY(check(c, common->features, path, err));

    gather_neck_input(g, n, common->features, c->neck.width[0]);
    gather_stack(g, &n->neck, "neck", &c->neck, true);
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++)
        if (theo_moge2_head_config(c, h))
            gather_stack(g, &n->heads[h], head_names[h], theo_moge2_head_config(c, h), false);
    for (int i = 0; c->has_scale && i < 3; i++)
        theo_gather_linear(g, &n->scale[i], theo_name("scale_head.%d", 2 * i).text, i < 2 ? width : 1, width);
    return THEO_OK;
}

/* ---------------------------------------------------------------- all layers */

static void visit_stack(theo_moge2_stack *stack, theo_packed_visitor visit, void *context) {
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++) {
        theo_moge2_level *level = &stack->levels[l];
        visit(level->input, context);
        visit(level->output, context);
        visit(level->up, context);
        visit(level->conv, context);
        for (int j = 0; j < THEO_MOGE_MAX_BLOCKS; j++) {
            visit(level->blocks[j].first, context);
            visit(level->blocks[j].second, context);
        }
    }
}

void theo_moge2_visit(theo_moge2 *n, theo_packed_visitor visit, void *context) {
    visit(n->neck_uv, context);
    visit_stack(&n->neck, visit, context);
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++) {
        visit_stack(&n->heads[h], visit, context);
        visit(n->fold.heads[h], context);
    }
    visit(n->fold.uv, context);
    visit(n->fold.neck, context);
    for (int i = 0; i < 3; i++)
        visit(n->scale[i], context);
}

static void free_norms(theo_moge2_stack *stack) {
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++)
        for (int j = 0; j < THEO_MOGE_MAX_BLOCKS; j++) {
            theo_norm_free(&stack->levels[l].blocks[j].in_norm);
            theo_norm_free(&stack->levels[l].blocks[j].hidden_norm);
        }
}

void theo_moge2_free(theo_moge2 *n) {
    if (!n)
        return;
    theo_moge2_visit(n, theo_packed_visit_free, NULL);
    free_norms(&n->neck);
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++)
        free_norms(&n->heads[h]);
    theo_free(n);
}
