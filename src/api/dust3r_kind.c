/* dust3r_kind.c - DUSt3R as a kind of model. */
#include "api/pair.h"
#include "base/error.h"

static theo_status load(theo_model *m, const theo_weights *weights, const theo_model_options *options, const char **name,
                        theo_error *err) {
    if (options->bn_eps > 0)
        return theo_fail(err, THEO_ARGUMENT, theo_weights_path(weights), "bn_eps",
                         "has no effect: this network has no batch norm");
    THEO_TRY(theo_dust3r_load(&m->dust3r, weights, m->level, m->pool, err));
    const theo_dust3r *n = m->dust3r;
    *name = NULL;
    m->info.kind = "dust3r";
    m->info.licence = "of the published files: CC BY-NC-SA 4.0, not for commercial use; terms of the training sets on top";
    m->info.config_json = n->config_json;
    m->info.parameters = n->parameters;
    m->info.weight_bytes = n->weight_bytes;
    m->info.input_width = m->info.input_height = n->config.image_size;
    if (n->unused)
        theo_log(m->logger, THEO_LOG_WARNING, "%s: %d tensors are not known and not used", theo_weights_path(weights), n->unused);
    return THEO_OK;
}

static void unload(theo_model *m) {
    theo_dust3r_free(m->dust3r);
}

static theo_status open_runner(theo_session *s, const theo_session_options *o, theo_error *err) {
    s->pair = theo_alloc(1, sizeof *s->pair);
    if (!s->pair)
        return theo_fail(err, THEO_MEMORY, NULL, "session", "out of memory");
    s->pair->progress = (theo_pair_progress){.tell = o->progress, .user = o->progress_user};
    theo_dust3r_runner_options r = {s->model->level, s->model->pool, theo_pair_progress_tell, &s->pair->progress};
    return theo_dust3r_runner_new(&s->pair->runner, s->model->dust3r, &r, err);
}

static void close_runner(theo_session *s) {
    if (!s->pair)
        return;
    theo_dust3r_runner_free(s->pair->runner);
    theo_dust3r_input_free(&s->pair->input);
    for (int v = 0; v < THEO_PAIR_VIEWS; v++)
        theo_pair_photo_free(&s->pair->photos[v]);
    theo_scratch_free(&s->pair->swapped);
    theo_scratch_free(&s->pair->votes);
    theo_free(s->pair);
}

/* Both views on a grid of width x height pixels. */
static theo_status grids_of(theo_dust3r_grid grids[THEO_PAIR_VIEWS], int width, int height, theo_error *err) {
    if (width % THEO_DUST3R_PATCH || height % THEO_DUST3R_PATCH || width > THEO_PAIR_MAX_SIDE || height > THEO_PAIR_MAX_SIDE)
        return theo_fail(err, THEO_ARGUMENT, NULL, "size",
                         "%dx%d: the sides of this network's input are multiples of %d up to %d", width, height,
                         THEO_DUST3R_PATCH, THEO_PAIR_MAX_SIDE);
    grids[0] = grids[1] = (theo_dust3r_grid){height / THEO_DUST3R_PATCH, width / THEO_DUST3R_PATCH};
    return THEO_OK;
}

/* One pair: the encoder for each view, then both decoders and heads. */
static theo_status prepare(theo_session *s, int width, int height, int tokens, theo_plan_part parts[THEO_KIND_PLANS], int *count,
                           theo_error *err) {
    (void)tokens;
    theo_dust3r_grid grids[THEO_PAIR_VIEWS];
    THEO_TRY(grids_of(grids, width, height, err));
    *count = 2;
    parts[0].runs = THEO_PAIR_VIEWS;
    parts[1].runs = 1;
    return theo_dust3r_prepare(s->pair->runner, grids, &parts[0].plan, &parts[1].plan, err);
}

static theo_status memory(theo_session *s, int width, int height, int tokens, size_t *bytes, theo_error *err) {
    (void)tokens;
    theo_dust3r_grid grids[THEO_PAIR_VIEWS];
    THEO_TRY(grids_of(grids, width, height, err));
    return theo_dust3r_memory(s->pair->runner, grids, bytes, err);
}

const theo_kind theo_kind_dust3r = {
    .task = THEO_TASK_PAIR,
    .recognise = theo_dust3r_recognise,
    .load = load,
    .unload = unload,
    .open = open_runner,
    .close = close_runner,
    .prepare = prepare,
    .memory = memory,
};
