/* superpoint_kind.c - SuperPoint as a kind of model. */
#include "api/catalog.h"
#include "api/model.h"
#include "base/error.h"

#define MAGICPOINT_LICENCE "MIT, Copyright (c) 2022 Shao-Feng Zeng"

/* Published numbers, known by theo_superpoint.fingerprint whatever the file and its tensors are called. */
static const struct known {
    uint64_t fingerprint;
    const char *name, *licence; /* name: of the catalogue, with its licence there; NULL: the file's name */
} published[] = {
    {0x7afeaa9ff237b15a, "superpoint", NULL},
    {0x26f7b43a104ed123, "superpoint-open", NULL},
    {0x7a23e45d5d252feb, NULL, MAGICPOINT_LICENCE}, /* MagicPoint with its batch norm folded */
};

static const struct known *known_of(const theo_superpoint *n) {
    for (size_t i = 0; i < sizeof published / sizeof *published; i++)
        if (published[i].fingerprint == n->fingerprint)
            return &published[i];
    return NULL;
}

static const char *licence_of(const theo_superpoint *n) {
    const struct known *k = known_of(n);
    if (k)
        return k->name ? theo_catalog_find(k->name)->licence : k->licence;
    switch (n->kind) {
    case THEO_SUPERPOINT_BN:
        return "of the published file of this layout: MIT, Copyright (c) 2018 Paul-Edouard Sarlin, Remi Pautrat";
    case THEO_SUPERPOINT_MAGICPOINT:
        return "of the published file of this layout: " MAGICPOINT_LICENCE;
    case THEO_SUPERPOINT_PLAIN:
        break;
    }
    return "not known for this file: ask where it came from (what derives from Magic Leap's weights is for noncommercial "
           "research only)";
}

static theo_status load(theo_model *m, const theo_weights *weights, const theo_model_options *options, const char **name,
                        theo_error *err) {
    THEO_TRY(theo_superpoint_load(&m->superpoint, weights, m->level, options->bn_eps, err));
    const theo_superpoint *n = m->superpoint;
    const struct known *k = known_of(n);
    *name = k ? k->name : NULL;
    m->info.kind = theo_superpoint_kind_name(n->kind);
    m->info.licence = licence_of(n);
    m->info.config_json = n->config_json;
    m->info.parameters = n->parameters;
    m->info.weight_bytes = n->weight_bytes;
    m->info.descriptor_dim = n->descriptor_dim;
    m->info.input_width = 640;
    m->info.input_height = 480;
    return THEO_OK;
}

static void unload(theo_model *m) {
    theo_superpoint_free(m->superpoint);
}

static theo_status open_runner(theo_session *s, const theo_session_options *o, theo_error *err) {
    theo_superpoint_runner_options r = {s->model->level, s->model->pool, o->tile_pixels, o->progress, o->progress_user};
    return theo_superpoint_runner_new(&s->superpoint, s->model->superpoint, &r, err);
}

static void close_runner(theo_session *s) {
    theo_superpoint_runner_free(s->superpoint);
}

static theo_status prepare(theo_session *s, int width, int height, int tokens, theo_plan_part parts[THEO_KIND_PLANS], int *count,
                           theo_error *err) {
    (void)tokens;
    *count = 1;
    parts[0].runs = 1;
    return theo_superpoint_prepare(s->superpoint, width, height, &parts[0].plan, err);
}

static theo_status memory(theo_session *s, int width, int height, int tokens, size_t *bytes, theo_error *err) {
    (void)tokens;
    return theo_superpoint_memory(s->superpoint, width, height, bytes, err);
}

const theo_kind theo_kind_superpoint = {
    .task = THEO_TASK_KEYPOINTS,
    .recognise = theo_superpoint_recognise,
    .load = load,
    .unload = unload,
    .open = open_runner,
    .close = close_runner,
    .prepare = prepare,
    .memory = memory,
};

void theo_detect_options_for(theo_detect_options *o, const theo_model *model) {
    theo_detect_options_init(o);
    if (model && model->kind == &theo_kind_superpoint && model->superpoint->kind == THEO_SUPERPOINT_BN) {
        o->sampling = THEO_SAMPLING_C;
        o->gray = THEO_GRAY_LUMA;
    }
}
