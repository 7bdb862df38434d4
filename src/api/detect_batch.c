/* detect_batch.c - keypoints of many photos. */
#include "api/batch.h"
#include "api/detect.h"

typedef struct job {
    theo_session *session;
    theo_detect_options options;
    theo_keypoints_sink sink;
    void *user;
} job;

static void detect(void *context, theo_batch_item *item) {
    job *j = context;
    theo_keypoints *keypoints = NULL;
    item->status = theo_detect_entered(j->session, item->image, &j->options, &keypoints, &item->error);
    item->result = keypoints;
}

static int give(void *context, theo_batch_item *item) {
    job *j = context;
    return j->sink(j->user, item->index, item->image, item->result, item->status ? &item->error : NULL);
}

static void discard(void *result) {
    theo_keypoints_free(result);
}

theo_status theo_detect_batch(theo_session *session, int count, theo_image_source source, theo_keypoints_sink sink, void *user,
                              const theo_detect_options *options, theo_error *err) {
    if (count < 0 || !source || !sink)
        return theo_fail(err, THEO_ARGUMENT, NULL, "batch", "count %d must be at least 0, source and sink must be given", count);
    THEO_TRY(theo_session_enter_for(session, THEO_TASK_KEYPOINTS, err));
    job j = {.session = session, .sink = sink, .user = user};
    theo_status status = theo_detect_options_of(&j.options, options, session, err);
    if (!status)
        status = theo_batch_run(&(theo_batch){count, source, user, detect, give, discard, &j, false}, err);
    theo_session_leave(session);
    return status;
}
