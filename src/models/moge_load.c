/* moge_load.c - from the tensors of a checkpoint to packed layers: which generation it is, the encoder, and all of it. */
#include "base/error.h"
#include "models/moge1.h"
#include "models/moge2.h"
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- which network */

static bool starts(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

int theo_moge_recognise(const theo_weights *weights) {
    int count = 0;
    for (int i = 0; i < theo_weights_count(weights); i++) {
        const char *name = theo_weights_at(weights, i)->name;
        count += starts(name, "encoder.backbone.") || starts(name, "encoder.output_projections.") || starts(name, "neck.") ||
                 starts(name, "points_head.") || starts(name, "head.upsample_blocks.") || starts(name, "head.projects.");
    }
    return count;
}

static theo_status find_generation(theo_moge_generation *generation, const theo_weights *weights, theo_error *err) {
    *generation = THEO_MOGE_2;
    for (int i = 0; i < theo_weights_count(weights); i++) {
        const char *name = theo_weights_at(weights, i)->name;
        if (starts(name, "refiner."))
            return theo_fail(err, THEO_UNSUPPORTED, theo_weights_path(weights), name,
                             "is of MoGe-3, which is not supported: checkpoints of MoGe-1 and MoGe-2 are");
        if (starts(name, "head.projects.") || starts(name, "head.upsample_blocks."))
            *generation = THEO_MOGE_1;
    }
    return THEO_OK;
}

/* Names of what is outside of the decoder. */
typedef struct encoder_names {
    const char *backbone, *mean, *deviation, *projection, *network;
} encoder_names;

static encoder_names names_of(const theo_moge *n) {
    if (n->generation == THEO_MOGE_1)
        return (encoder_names){"backbone.", "image_mean", "image_std", "head.projects", "MoGe-1"};
    return (encoder_names){"encoder.backbone.", "encoder.image_mean", "encoder.image_std", "encoder.output_projections",
                           "MoGe-2"};
}

/* ---------------------------------------------------------------- heads */

int theo_moge_head_channels(const theo_moge *n, theo_moge_head head) {
    if (n->generation == THEO_MOGE_1)
        return head == THEO_MOGE_POINTS ? 3 : head == THEO_MOGE_MASK ? 1 : 0;
    return theo_moge2_head_channels(n->two, head);
}

unsigned theo_moge_heads(const theo_moge *n) {
    unsigned heads = 0;
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++)
        heads |= theo_moge_head_channels(n, h) ? 1u << h : 0;
    return heads;
}

bool theo_moge_has_scale(const theo_moge *n) {
    return n->generation == THEO_MOGE_2 && n->two->config.has_scale;
}

/* ---------------------------------------------------------------- gathering */

/* The configuration as text: of the pickle, of the header, or of model_config.json beside the file; NULL: none is told. *owned is
 * to be freed. */
static theo_status find_config(const char **text, char **owned, const theo_weights *weights, theo_error *err) {
    *owned = NULL;
    *text = theo_weights_config_json(weights);
    if (!*text || !strstr(*text, "\"model_config\""))
        *text = theo_weights_metadata(weights, "model_config");
    if (*text || strcmp(theo_weights_source(weights), "safetensors"))
        return THEO_OK;
    theo_text_beside beside;
    THEO_TRY(theo_weights_read_beside(&beside, weights, "model_config.json", err));
    *text = *owned = beside.text;
    return THEO_OK;
}

static theo_status gather_all(theo_moge *n, const theo_gather *g, const char *config_text, theo_error *err) {
    const int64_t three[] = {1, 3, 1, 1};
    encoder_names names = names_of(n);
    THEO_TRY(theo_vit_gather(&n->vit, g->packing, g->problems, g->weights, names.backbone, err));
    if (n->vit.patch && n->vit.patch != THEO_MOGE_PATCH)
        theo_problems_note(g->problems, THEO_SHAPE, theo_name("%spatch_embed.proj.weight", names.backbone).text,
                           "has patches of %d pixels: %d are needed", n->vit.patch, THEO_MOGE_PATCH);
    THEO_TRY((n->generation == THEO_MOGE_1 ? theo_moge1_gather : theo_moge2_gather)(n, g, config_text, err));
    theo_gather_floats(g, &n->mean, names.mean, 4, three);
    theo_gather_floats(g, &n->deviation, names.deviation, 4, three);
    for (int i = 0; i < n->config.tap_count; i++)
        theo_gather_1x1(g, &n->projections[i], theo_name("%s.%d", names.projection, i).text, n->config.features, n->vit.width);
    return theo_problems_status(g->problems, theo_weights_path(g->weights), names.network, err);
}

/* ---------------------------------------------------------------- the whole */

static void visit_all(theo_moge *n, theo_packed_visitor visit, void *context) {
    for (int i = 0; i < THEO_MOGE_MAX_TAPS; i++)
        visit(n->projections[i], context);
    if (n->generation == THEO_MOGE_1)
        theo_moge1_visit(n->one, visit, context);
    else
        theo_moge2_visit(n->two, visit, context);
}

void theo_moge_free(theo_moge *n) {
    if (!n)
        return;
    theo_vit_free(&n->vit);
    theo_free_aligned(n->mean);
    theo_free_aligned(n->deviation);
    for (int i = 0; i < THEO_MOGE_MAX_TAPS; i++)
        theo_packed_free(n->projections[i]);
    if (n->generation == THEO_MOGE_1)
        theo_moge1_free(n->one);
    else
        theo_moge2_free(n->two);
    theo_free(n);
}

static void describe(theo_moge *n) {
    const theo_moge_config *c = &n->config;
    n->weight_bytes = theo_vit_bytes(&n->vit);
    visit_all(n, theo_packed_visit_bytes, &n->weight_bytes);
    char *text = n->config_json;
    size_t room = sizeof n->config_json, at;
    at = (size_t)snprintf(text, room, "{\"kind\": \"moge-%d\", \"width\": %d, \"depth\": %d, \"heads\": %d, \"taps\": [",
                          (int)n->generation, n->vit.width, n->vit.depth, n->vit.heads);
    for (int i = 0; i < c->tap_count; i++)
        at += (size_t)snprintf(text + at, room - at, "%s%d", i ? ", " : "", c->taps[i]);
    at += (size_t)snprintf(text + at, room - at, "], \"levels\": [");
    int levels = n->generation == THEO_MOGE_1 ? n->one->config.stages : THEO_MOGE2_LEVELS;
    const int *widths = n->generation == THEO_MOGE_1 ? n->one->config.width : n->two->config.neck.width;
    for (int l = 0; l < levels; l++)
        at += (size_t)snprintf(text + at, room - at, "%s%d", l ? ", " : "", widths[l]);
    snprintf(text + at, room - at, "], \"mask\": %s, \"normal\": %s, \"scale\": %s, \"remap\": \"%s\", \"tokens\": [%d, %d]}",
             theo_moge_head_channels(n, THEO_MOGE_MASK) ? "true" : "false",
             theo_moge_head_channels(n, THEO_MOGE_NORMAL) ? "true" : "false", theo_moge_has_scale(n) ? "true" : "false",
             theo_moge_remap_name(c->remap), c->min_tokens, c->max_tokens);
}

static void count_tensors(theo_moge *n, const theo_packing *packing, const theo_weights *weights) {
    int used = theo_weights_find(weights, theo_name("%smask_token", names_of(n).backbone).text) != NULL; /* of training alone */
    for (int i = 0; i < packing->count; i++) {
        const theo_packing_job *job = &packing->jobs[i];
        /* the rest of a tensor, whose first part is another job's, does not count again */
        const theo_weight *const tensors[] = {job->from ? NULL : job->weight, job->bias, job->scale};
        for (int k = 0; k < 3; k++) {
            n->parameters += tensors[k] ? tensors[k]->elements : 0;
            used += tensors[k] != NULL;
        }
    }
    n->unused = theo_weights_count(weights) - used;
}

static theo_status load(theo_moge *n, theo_packing *packing, const theo_weights *weights, theo_cpu level, theo_pool *pool,
                        theo_error *err) {
    theo_problems problems = {.count = 0};
    theo_gather g = {weights, packing, &problems, "", THEO_MOGE_MAX_CHANNELS};
    const char *text;
    char *owned;
    theo_status status = find_config(&text, &owned, weights, err);
    if (!status)
        status = gather_all(n, &g, text, err);
    theo_free(owned);
    THEO_TRY(status);
    THEO_TRY(theo_packing_run(packing, weights, level, pool, err));
    if (n->generation == THEO_MOGE_1)
        THEO_TRY(theo_moge1_join(n->one, level, err));
    else
        THEO_TRY(theo_moge2_make_fold(n->two, weights, level, err));
    count_tensors(n, packing, weights);
    describe(n);
    return THEO_OK;
}

theo_status theo_moge_load(theo_moge **network, const theo_weights *weights, theo_cpu level, theo_pool *pool, theo_error *err) {
    *network = NULL;
    theo_moge_generation generation;
    THEO_TRY(find_generation(&generation, weights, err));
    theo_moge *n = theo_alloc(1, sizeof *n);
    if (!n)
        return theo_fail(err, THEO_MEMORY, theo_weights_path(weights), NULL, "out of memory");
    n->generation = generation;
    theo_packing packing = {.count = 0};
    theo_status status = load(n, &packing, weights, level, pool, err);
    theo_packing_free(&packing);
    if (status)
        theo_moge_free(n);
    else
        *network = n;
    return status;
}
