/* geometry_batch.c - geometry of many photos: decoded ahead, and given to the caller while the network works on the next one. */
#include "api/batch.h"
#include "api/geometry.h"

typedef struct job {
    theo_session *session;
    theo_geometry_options options;
    theo_geometry_sink sink;
    void *user;
} job;

static void measure(void *context, theo_batch_item *item) {
    job *j = context;
    theo_geometry *geometry = NULL;
    item->status = theo_geometry_entered(j->session, item->image, &j->options, &geometry, &item->error);
    item->result = geometry;
}

/* The session's progress callback and the sink never run at the same time. */
static int give(void *context, theo_batch_item *item) {
    job *j = context;
    pthread_mutex_lock(&j->session->callers);
    int stops = j->sink(j->user, item->index, item->image, item->result, item->status ? &item->error : NULL);
    pthread_mutex_unlock(&j->session->callers);
    return stops;
}

static void discard(void *result) {
    theo_geometry_free(result);
}

theo_status theo_geometry_batch(theo_session *session, int count, theo_image_source source, theo_geometry_sink sink, void *user,
                                const theo_geometry_options *options, theo_error *err) {
    if (count < 0 || !source || !sink)
        return theo_fail(err, THEO_ARGUMENT, NULL, "batch", "count %d must be at least 0, source and sink must be given", count);
    THEO_TRY(theo_session_enter_for(session, THEO_TASK_DEPTH, err));
    job j = {.session = session, .sink = sink, .user = user};
    theo_status status = theo_geometry_options_of(&j.options, options, err);
    if (!status)
        status = theo_batch_run(&(theo_batch){count, source, user, measure, give, discard, &j, true}, err);
    theo_session_leave(session);
    return status;
}
