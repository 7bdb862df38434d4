/* moge_kind.c - MoGe as a kind of model. */
#include "api/model.h"
#include "base/error.h"

static theo_status load(theo_model *m, const theo_weights *weights, const theo_model_options *options, const char **name,
                        theo_error *err) {
    if (options->bn_eps > 0)
        return theo_fail(err, THEO_ARGUMENT, theo_weights_path(weights), "bn_eps",
                         "has no effect: this network has no batch norm");
    THEO_TRY(theo_moge_load(&m->moge, weights, m->level, m->pool, err));
    const theo_moge *n = m->moge;
    *name = NULL;
    m->info.kind = n->generation == THEO_MOGE_1 ? "moge-1" : "moge-2";
    m->info.licence = "of the published files: MIT (weights and code), Apache-2.0 (DINOv2)";
    m->info.config_json = n->config_json;
    m->info.parameters = n->parameters;
    m->info.weight_bytes = n->weight_bytes;
    m->info.input_width = THEO_MOGE_CANVAS_WIDTH;
    m->info.input_height = THEO_MOGE_CANVAS_HEIGHT;
    if (n->unused)
        theo_log(m->logger, THEO_LOG_WARNING, "%s: %d tensors are not known and not used", theo_weights_path(weights), n->unused);
    return THEO_OK;
}

static void unload(theo_model *m) {
    theo_moge_free(m->moge);
}

/* theo_progress_fn of the runner: in a batch it is called on the network's thread, and leaves out its turn while the sink runs.
 */
static int tell_progress(void *user, double done) {
    theo_session *s = user;
    if (pthread_mutex_trylock(&s->callers))
        return 0;
    int stops = s->progress(s->progress_user, done);
    pthread_mutex_unlock(&s->callers);
    return stops;
}

static theo_status open_runner(theo_session *s, const theo_session_options *o, theo_error *err) {
    theo_moge_runner_options r = {s->model->level, s->model->pool, o->progress ? tell_progress : NULL, s};
    s->progress = o->progress;
    s->progress_user = o->progress_user;
    return theo_moge_runner_new(&s->moge, s->model->moge, &r, err);
}

static void close_runner(theo_session *s) {
    theo_moge_runner_free(s->moge);
}

/* Of a photo of that size, as theo_geometry_run takes it by default. */
static theo_moge_grid grid_of(const theo_session *s, int width, int height, int tokens) {
    return theo_moge_frame_of(s->model->moge->generation, width, height, THEO_MOGE_NATIVE,
                              tokens ? tokens : THEO_MOGE_CANVAS_TOKENS)
        .grid;
}

static theo_status prepare(theo_session *s, int width, int height, int tokens, theo_plan_part parts[THEO_KIND_PLANS], int *count,
                           theo_error *err) {
    theo_moge_grid grid = grid_of(s, width, height, tokens);
    *count = 1;
    parts[0].runs = 1;
    return theo_moge_prepare(s->moge, &grid, ~0u, &parts[0].plan, err);
}

static theo_status memory(theo_session *s, int width, int height, int tokens, size_t *bytes, theo_error *err) {
    theo_moge_grid grid = grid_of(s, width, height, tokens);
    return theo_moge_memory(s->moge, &grid, ~0u, bytes, err);
}

const theo_kind theo_kind_moge = {
    .task = THEO_TASK_DEPTH,
    .recognise = theo_moge_recognise,
    .load = load,
    .unload = unload,
    .open = open_runner,
    .close = close_runner,
    .prepare = prepare,
    .memory = memory,
};
