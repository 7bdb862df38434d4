/* moge2_weights.c - from the tensors of a checkpoint to packed layers: names, shapes, checks. */
#include "base/error.h"
#include "base/map.h"
#include "models/moge2.h"
#include "models/moge2_input.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST = 8192 };

static const char *const head_names[THEO_MOGE2_HEADS] = {"points_head", "normal_head", "mask_head"};

/* ---------------------------------------------------------------- which network */

static bool starts(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

int theo_moge2_recognise(const theo_weights *weights) {
    int count = 0;
    for (int i = 0; i < theo_weights_count(weights); i++) {
        const char *name = theo_weights_at(weights, i)->name;
        count += starts(name, "encoder.backbone.") || starts(name, "encoder.output_projections.") || starts(name, "neck.") ||
                 starts(name, "points_head.") || starts(name, "head.upsample_blocks.") || starts(name, "head.projects.");
    }
    return count;
}

static theo_status refuse_relatives(const theo_weights *weights, theo_error *err) {
    for (int i = 0; i < theo_weights_count(weights); i++) {
        const char *name = theo_weights_at(weights, i)->name;
        if (starts(name, "refiner."))
            return theo_fail(err, THEO_UNSUPPORTED, theo_weights_path(weights), name,
                             "is of MoGe-3, which is not supported: MoGe-2 checkpoints are");
        if (starts(name, "head.projects.") || starts(name, "head.upsample_blocks."))
            return theo_fail(err, THEO_UNSUPPORTED, theo_weights_path(weights), name,
                             "is of MoGe-1, which this version does not support: MoGe-2 checkpoints are supported");
    }
    return THEO_OK;
}

int theo_moge2_head_channels(const theo_moge2 *n, theo_moge2_head head) {
    const theo_moge2_stack_config *s = theo_moge2_head_config(&n->config, head);
    return s ? s->out[THEO_MOGE2_LEVELS - 1] : 0;
}

unsigned theo_moge2_heads(const theo_moge2 *n) {
    unsigned heads = 0;
    for (theo_moge2_head h = 0; h < THEO_MOGE2_HEADS; h++)
        heads |= theo_moge2_head_config(&n->config, h) ? 1u << h : 0;
    return heads;
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
static void gather_neck_input(const theo_gather *s, theo_moge2 *n, int out) {
    const char stem[] = "neck.input_blocks.0";
    int features = n->config.features;
    theo_packing_job job = {.kind = THEO_PACKING_LINEAR, .count = features};
    theo_gather_layer(s, &n->neck.levels[0].input, job, stem, 4, (int64_t[]){out, features + 2, 1, 1}, out);
    job = s->packing->count ? s->packing->jobs[s->packing->count - 1] : job;
    job.bias = NULL;
    job.from = features;
    job.count = 2;
    job.packed = &n->neck_uv;
    theo_packing_add(s->packing, job);
}

static void gather_blocks(const theo_gather *s, theo_moge2_level *level, const char *stack, int l,
                          const theo_moge2_stack_config *c) {
    int width = c->width[l], hidden = c->hidden * width;
    for (int j = 0; j < c->blocks[l]; j++) {
        theo_gather_3x3(s, &level->blocks[j].first, theo_name("%s.res_blocks.%d.%d.layers.2", stack, l, j).text, hidden, width);
        theo_gather_3x3(s, &level->blocks[j].second, theo_name("%s.res_blocks.%d.%d.layers.5", stack, l, j).text, width, hidden);
    }
}

static void gather_stack(const theo_gather *s, theo_moge2_stack *stack, const char *name, const theo_moge2_stack_config *c,
                         bool is_neck) {
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++) {
        theo_moge2_level *level = &stack->levels[l];
        int width = c->width[l];
        if (c->in[l] && !(is_neck && l == 0))
            theo_gather_1x1(s, &level->input, theo_name("%s.input_blocks.%d", name, l).text, width, c->in[l]);
        gather_blocks(s, level, name, l, c);
        if (c->out[l] && (is_neck || l == THEO_MOGE2_LEVELS - 1)) /* of a head the last output alone is used */
            theo_gather_1x1(s, &level->output, theo_name("%s.output_blocks.%d", name, l).text, c->out[l], width);
        if (l == THEO_MOGE2_LEVELS - 1)
            break;
        int next = c->width[l + 1];
        gather_way_up(s, level, theo_name("%s.resamplers.%d", name, l).text, width, next, c->is_transposed[l]);
    }
}

/* Channels that one stack hands to another must agree. */
static theo_status check_joints(const theo_moge2 *n, const char *path, theo_error *err) {
    static const char place[] = "model_config";
    const theo_moge2_config *c = &n->config;
    const int channels[THEO_MOGE2_HEADS] = {3, 3, 1};
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++)
        if (c->neck.in[l] != (l ? 2 : c->features + 2))
            return theo_fail(err, THEO_STRUCTURE, path, place, "the neck's level %d reads %d channels: needed are %d", l,
                             c->neck.in[l], l ? 2 : c->features + 2);
    for (theo_moge2_head h = 0; h < THEO_MOGE2_HEADS; h++) {
        const theo_moge2_stack_config *s = theo_moge2_head_config(c, h);
        for (int l = 0; s && l < THEO_MOGE2_LEVELS; l++) {
            int given = c->neck.out[l] ? c->neck.out[l] : c->neck.width[l];
            int read = s->in[l] ? s->in[l] : s->width[l];
            if (read != given)
                return theo_fail(err, THEO_STRUCTURE, path, place, "%s reads %d channels at level %d, the neck gives %d",
                                 head_names[h], read, l, given);
        }
        if (s && s->out[THEO_MOGE2_LEVELS - 1] != channels[h])
            return theo_fail(err, THEO_STRUCTURE, path, place, "%s makes %d channels: needed are %d", head_names[h],
                             s->out[THEO_MOGE2_LEVELS - 1], channels[h]);
    }
    return THEO_OK;
}

static theo_status gather_all(const theo_gather *s, theo_moge2 *n, const char *config_text, theo_error *err) {
    const char *path = theo_weights_path(s->weights);
    const int64_t three[] = {1, 3, 1, 1};
    THEO_TRY(theo_vit_gather(&n->vit, s->packing, s->problems, s->weights, "encoder.backbone.", err));
    if (n->vit.patch && n->vit.patch != THEO_MOGE_PATCH)
        theo_problems_note(s->problems, THEO_SHAPE, "encoder.backbone.patch_embed.proj.weight",
                           "has patches of %d pixels: %d are needed", n->vit.patch, THEO_MOGE_PATCH);
    if (config_text)
        THEO_TRY(theo_moge2_config_parse(&n->config, config_text, n->vit.depth, path, err));
    else
        THEO_TRY(theo_moge2_config_guess(&n->config, s->weights, n->vit.depth, err));
    THEO_TRY(check_joints(n, path, err));

    const theo_moge2_config *c = &n->config;
    float **const statistics[] = {&n->mean, &n->deviation};
    static const char *const names[] = {"encoder.image_mean", "encoder.image_std"};
    for (int i = 0; i < 2; i++) {
        const theo_weight *w = theo_problems_expect(s->problems, s->weights, names[i], 4, three, LARGEST);
        theo_packing_add(s->packing, (theo_packing_job){.kind = THEO_PACKING_FLOATS, .weight = w, .floats = statistics[i]});
    }
    for (int i = 0; i < c->tap_count; i++)
        theo_gather_1x1(s, &n->taps[i], theo_name("encoder.output_projections.%d", i).text, c->features, n->vit.width);
    gather_neck_input(s, n, c->neck.width[0]);
    gather_stack(s, &n->neck, "neck", &c->neck, true);
    for (theo_moge2_head h = 0; h < THEO_MOGE2_HEADS; h++)
        if (theo_moge2_head_config(c, h))
            gather_stack(s, &n->heads[h], head_names[h], theo_moge2_head_config(c, h), false);
    for (int i = 0; c->has_scale && i < 3; i++)
        theo_gather_linear(s, &n->scale[i], theo_name("scale_head.%d", 2 * i).text, i < 2 ? n->vit.width : 1, n->vit.width);
    return theo_problems_status(s->problems, path, "MoGe-2", err);
}

/* ---------------------------------------------------------------- the whole */

/* The configuration as text: of the pickle, of the header, or of model_config.json beside the file. *owned is to be freed. */
static theo_status find_config(const char **text, char **owned, const theo_weights *weights, theo_error *err) {
    *owned = NULL;
    *text = theo_weights_config_json(weights);
    if (!*text || !strstr(*text, "\"model_config\""))
        *text = theo_weights_metadata(weights, "model_config");
    if (*text || strcmp(theo_weights_source(weights), "safetensors"))
        return THEO_OK;
    const char *path = theo_weights_path(weights), *slash = strrchr(path, '/');
    char beside[4096];
    if (snprintf(beside, sizeof beside, "%.*smodel_config.json", slash ? (int)(slash + 1 - path) : 0, path) >= (int)sizeof beside)
        return THEO_OK;
    if (access(beside, F_OK))
        return THEO_OK;
    theo_map map;
    THEO_TRY(theo_map_open(&map, beside, err));
    char *copy = theo_alloc(map.bytes + 1, 1);
    if (copy && map.bytes)
        memcpy(copy, map.data, map.bytes);
    theo_map_close(&map);
    *text = *owned = copy;
    return copy ? THEO_OK : theo_fail(err, THEO_MEMORY, beside, NULL, "out of memory");
}

static void visit_stack(theo_moge2_stack *stack, void (*visit)(theo_packed *packed, void *context), void *context) {
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++) {
        theo_moge2_level *level = &stack->levels[l];
        visit(level->input, context);
        visit(level->output, context);
        visit(level->up, context);
        visit(level->conv, context);
        for (int j = 0; j < THEO_MOGE2_MAX_BLOCKS; j++) {
            visit(level->blocks[j].first, context);
            visit(level->blocks[j].second, context);
        }
    }
}

/* Every packed layer but the backbone's; many are NULL. */
static void visit_all(theo_moge2 *n, void (*visit)(theo_packed *packed, void *context), void *context) {
    for (int i = 0; i < THEO_MOGE2_MAX_TAPS; i++)
        visit(n->taps[i], context);
    visit(n->neck_uv, context);
    visit_stack(&n->neck, visit, context);
    for (theo_moge2_head h = 0; h < THEO_MOGE2_HEADS; h++) {
        visit_stack(&n->heads[h], visit, context);
        visit(n->fold.heads[h], context);
    }
    visit(n->fold.uv, context);
    visit(n->fold.neck, context);
    for (int i = 0; i < 3; i++)
        visit(n->scale[i], context);
}

static void free_packed(theo_packed *packed, void *context) {
    (void)context;
    theo_packed_free(packed);
}

static void add_bytes(theo_packed *packed, void *context) {
    size_t *bytes = context;
    *bytes += packed ? theo_packed_bytes(packed) : 0;
}

void theo_moge2_free(theo_moge2 *n) {
    if (!n)
        return;
    theo_vit_free(&n->vit);
    theo_free_aligned(n->mean);
    theo_free_aligned(n->deviation);
    visit_all(n, free_packed, NULL);
    theo_free(n);
}

static void describe(theo_moge2 *n) {
    static const char *const remaps[] = {"linear", "exp", "sinh", "sinh_exp"};
    const theo_moge2_config *c = &n->config;
    n->weight_bytes = theo_vit_bytes(&n->vit);
    visit_all(n, add_bytes, &n->weight_bytes);
    char *text = n->config_json;
    size_t room = sizeof n->config_json, at;
    at = (size_t)snprintf(text, room, "{\"kind\": \"moge-2\", \"width\": %d, \"depth\": %d, \"heads\": %d, \"taps\": [",
                          n->vit.width, n->vit.depth, n->vit.heads);
    for (int i = 0; i < c->tap_count; i++)
        at += (size_t)snprintf(text + at, room - at, "%s%d", i ? ", " : "", c->taps[i]);
    at += (size_t)snprintf(text + at, room - at, "], \"levels\": [");
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++)
        at += (size_t)snprintf(text + at, room - at, "%s%d", l ? ", " : "", c->neck.width[l]);
    snprintf(text + at, room - at, "], \"mask\": %s, \"normal\": %s, \"scale\": %s, \"remap\": \"%s\", \"tokens\": [%d, %d]}",
             c->has_mask ? "true" : "false", c->has_normal ? "true" : "false", c->has_scale ? "true" : "false", remaps[c->remap],
             c->min_tokens, c->max_tokens);
}

static void count_tensors(theo_moge2 *n, const theo_packing *packing, const theo_weights *weights) {
    int used = theo_weights_find(weights, "encoder.backbone.mask_token") != NULL; /* of training alone */
    for (int i = 0; i < packing->count; i++) {
        const theo_packing_job *job = &packing->jobs[i];
        if (job->packed == &n->neck_uv) /* counted as the neck's input */
            continue;
        const theo_weight *const tensors[] = {job->weight, job->bias, job->scale};
        for (int k = 0; k < 3; k++) {
            n->parameters += tensors[k] ? tensors[k]->elements : 0;
            used += tensors[k] != NULL;
        }
    }
    n->unused = theo_weights_count(weights) - used;
}

static theo_status load(theo_moge2 *n, theo_packing *packing, const theo_weights *weights, theo_cpu level, theo_pool *pool,
                        theo_error *err) {
    theo_problems problems = {.count = 0};
    theo_gather s = {weights, packing, &problems, "", LARGEST};
    const char *text;
    char *owned;
    theo_status status = find_config(&text, &owned, weights, err);
    if (!status)
        status = gather_all(&s, n, text, err);
    theo_free(owned);
    THEO_TRY(status);
    THEO_TRY(theo_moge2_make_fold(n, weights, level, err));
    THEO_TRY(theo_packing_run(packing, weights, level, pool, err));
    count_tensors(n, packing, weights);
    describe(n);
    return THEO_OK;
}

theo_status theo_moge2_load(theo_moge2 **network, const theo_weights *weights, theo_cpu level, theo_pool *pool, theo_error *err) {
    *network = NULL;
    THEO_TRY(refuse_relatives(weights, err));
    theo_moge2 *n = theo_alloc(1, sizeof *n);
    if (!n)
        return theo_fail(err, THEO_MEMORY, theo_weights_path(weights), NULL, "out of memory");
    theo_packing packing = {.count = 0};
    theo_status status = load(n, &packing, weights, level, pool, err);
    theo_packing_free(&packing);
    if (status)
        theo_moge2_free(n);
    else
        *network = n;
    return status;
}
