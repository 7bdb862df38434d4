#include "api/model.h"
#include "api/options.h"

static theo_status take_options(theo_session_options *out, const theo_session_options *given, theo_error *err) {
    theo_session_options_init(out);
    THEO_TRY(theo_options_take(out, sizeof *out, given, "theo_session_options", err));
    if (out->tile_pixels < 0)
        return theo_fail(err, THEO_ARGUMENT, NULL, "tile_pixels", "%lld is out of range: allowed is 0 (never tile) or more",
                         (long long)out->tile_pixels);
    return THEO_OK;
}

theo_status theo_session_open(theo_session **session, theo_model *model, const theo_session_options *options, theo_error *err) {
    if (session)
        *session = NULL;
    if (!session || !model)
        return theo_fail(err, THEO_ARGUMENT, NULL, session ? "model" : "session", "is NULL");
    theo_session *s = theo_alloc(1, sizeof *s);
    if (!s)
        return theo_fail(err, THEO_MEMORY, NULL, "session", "out of memory");
    atomic_init(&s->is_busy, false);
    if (pthread_mutex_init(&s->callers, NULL)) {
        theo_free(s);
        return theo_fail(err, THEO_MEMORY, NULL, "session", "out of memory");
    }
    s->model = theo_model_retain(model);
    theo_session_options o;
    theo_status status = take_options(&o, options, err);
    if (!status)
        status = model->kind->open(s, &o, err);
    if (!status && !(s->results = theo_results_new()))
        status = theo_fail(err, THEO_MEMORY, NULL, "session", "out of memory");
    if (status) {
        theo_session_close(s);
        return status;
    }
    *session = s;
    return THEO_OK;
}

void theo_session_close(theo_session *s) {
    if (!s)
        return;
    s->model->kind->close(s);
    theo_results_close(s->results);
    theo_model_close(s->model);
    pthread_mutex_destroy(&s->callers);
    theo_free(s);
}

theo_status theo_session_enter(theo_session *s, theo_error *err) {
    if (!s)
        return theo_fail(err, THEO_ARGUMENT, NULL, "session", "is NULL");
    if (atomic_exchange_explicit(&s->is_busy, true, memory_order_acquire))
        return theo_fail(err, THEO_BUSY, NULL, "session", "another call is using it: open a session for each thread");
    return THEO_OK;
}

theo_status theo_session_enter_for(theo_session *s, theo_task task, theo_error *err) {
    static const char *const what[] = {
        [THEO_TASK_KEYPOINTS] = "keypoints", [THEO_TASK_DEPTH] = "depth", [THEO_TASK_PAIR] = "pairs"};
    if (s && s->model->kind->task != task)
        return theo_fail(err, THEO_UNSUPPORTED, NULL, s->model->info.name, "is a model for %s (%s), not for %s",
                         what[s->model->kind->task], s->model->info.kind, what[task]);
    return theo_session_enter(s, err);
}

void theo_session_leave(theo_session *s) {
    atomic_store_explicit(&s->is_busy, false, memory_order_release);
}

/* What theo_session_prepare says of width, height and tokens. */
static theo_status check_input(const theo_model *model, int width, int height, int tokens, theo_error *err) {
    const int most = model->kind->task == THEO_TASK_DEPTH ? THEO_MOGE_MAX_SIDE : THEO_SUPERPOINT_MAX_SIDE;
    if (width < THEO_SUPERPOINT_MIN_SIDE || height < THEO_SUPERPOINT_MIN_SIDE || width > most || height > most ||
        (int64_t)width * height > THEO_SUPERPOINT_MAX_AREA)
        return theo_fail(err, THEO_ARGUMENT, NULL, "size",
                         "%dx%d is out of range: allowed is 8x8 to %d a side and %d pixels in all", width, height, most,
                         THEO_SUPERPOINT_MAX_AREA);
    if (tokens && model->kind->task != THEO_TASK_DEPTH)
        return theo_fail(err, THEO_ARGUMENT, NULL, "tokens", "%d has no effect on %s (%s): only depth models take tokens", tokens,
                         model->info.name, model->info.kind);
    if (tokens && (tokens < THEO_MOGE_MIN_TOKENS || tokens > THEO_MOGE_MAX_TOKENS))
        return theo_fail(err, THEO_ARGUMENT, NULL, "tokens", "%d is out of range: allowed is %d to %d", tokens,
                         THEO_MOGE_MIN_TOKENS, THEO_MOGE_MAX_TOKENS);
    return THEO_OK;
}

/* report: NULL where none is wanted. */
static theo_status prepare(theo_session *s, int width, int height, int tokens, theo_plan_report **report, theo_error *err) {
    THEO_TRY(theo_session_enter(s, err));
    theo_plan_part parts[THEO_KIND_PLANS];
    int count;
    theo_status status = check_input(s->model, width, height, tokens, err);
    if (!status)
        status = s->model->kind->prepare(s, width, height, tokens, parts, &count, err);
    if (!status && report)
        status = theo_plan_describe(parts, count, report, err);
    theo_session_leave(s);
    return status;
}

theo_status theo_session_prepare(theo_session *session, int width, int height, int tokens, theo_error *err) {
    return prepare(session, width, height, tokens, NULL, err);
}

theo_status theo_session_plan(theo_session *session, int width, int height, int tokens, theo_plan_report **report,
                              theo_error *err) {
    if (!report)
        return theo_fail(err, THEO_ARGUMENT, NULL, "report", "is NULL");
    *report = NULL;
    return prepare(session, width, height, tokens, report, err);
}

theo_status theo_session_bytes(const theo_model *model, int width, int height, int tokens, const theo_session_options *options,
                               size_t *bytes, theo_error *err) {
    if (bytes)
        *bytes = 0;
    if (!model || !bytes)
        return theo_fail(err, THEO_ARGUMENT, NULL, model ? "bytes" : "model", "is NULL");
    THEO_TRY(check_input(model, width, height, tokens, err));
    theo_session *session;
    THEO_TRY(theo_session_open(&session, (theo_model *)(uintptr_t)model, options, err));
    theo_status status = model->kind->memory(session, width, height, tokens, bytes, err);
    theo_session_close(session);
    return status;
}
