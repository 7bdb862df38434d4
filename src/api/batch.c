/* batch.c - many photos, the next one decoded while the network works on this one. */
#include "api/detect.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>

/* One photo on its way from the decoding thread to the calling thread. */
typedef struct photo {
    theo_image *image; /* NULL: failed, see error */
    theo_error error;
} photo;

typedef struct ahead {
    theo_image_source source;
    void *user;
    int count;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_full, is_stopped;
    photo slot;
} ahead;

static photo decode(const ahead *a, int index) {
    photo p = {.image = NULL};
    theo_status status = a->source(a->user, index, &p.image, &p.error);
    if (!status && !p.image)
        status = theo_fail(&p.error, THEO_ARGUMENT, NULL, "source", "gave no image for number %d", index);
    if (status) {
        p.image = NULL;
        p.error.status = status;
    }
    return p;
}

static void *decode_all(void *context) {
    ahead *a = context;
    bool is_stopped = false;
    for (int i = 0; i < a->count && !is_stopped; i++) {
        photo p = decode(a, i);
        pthread_mutex_lock(&a->mutex);
        while (a->is_full && !a->is_stopped)
            pthread_cond_wait(&a->changed, &a->mutex);
        is_stopped = a->is_stopped;
        if (!is_stopped) {
            a->slot = p;
            a->is_full = true;
            pthread_cond_signal(&a->changed);
        }
        pthread_mutex_unlock(&a->mutex);
        if (is_stopped)
            theo_image_free(p.image);
    }
    return NULL;
}

static photo next_photo(ahead *a) {
    pthread_mutex_lock(&a->mutex);
    while (!a->is_full)
        pthread_cond_wait(&a->changed, &a->mutex);
    photo p = a->slot;
    a->is_full = false;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
    return p;
}

static void stop(ahead *a) {
    pthread_mutex_lock(&a->mutex);
    a->is_stopped = true;
    pthread_cond_signal(&a->changed);
    pthread_mutex_unlock(&a->mutex);
}

static theo_status consume(theo_session *session, ahead *a, theo_keypoints_sink sink, const theo_detect_options *options,
                           theo_error *err) {
    for (int i = 0; i < a->count; i++) {
        photo p = next_photo(a);
        theo_keypoints *keypoints = NULL;
        theo_status status = p.image ? theo_detect_entered(session, p.image, options, &keypoints, &p.error) : p.error.status;
        int stops = sink(a->user, i, p.image, keypoints, status ? &p.error : NULL);
        theo_image_free(p.image);
        if (status == THEO_CANCELLED || stops)
            return theo_fail(err, THEO_CANCELLED, NULL, "batch", "stopped at image %d of %d by the %s", i + 1, a->count,
                             stops ? "sink" : "progress callback");
    }
    return THEO_OK;
}

/* The new thread takes no signals: those are the application's, for its own threads. */
static int start_decoder(pthread_t *decoder, ahead *a) {
    sigset_t all, callers;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &callers);
    int failed = pthread_create(decoder, NULL, decode_all, a);
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    return failed;
}

static theo_status run(theo_session *session, ahead *a, theo_keypoints_sink sink, const theo_detect_options *options,
                       theo_error *err) {
    pthread_t decoder;
    if (start_decoder(&decoder, a))
        return theo_fail(err, THEO_MEMORY, NULL, "batch", "cannot start a thread for decoding");
    theo_status status = consume(session, a, sink, options, err);
    stop(a);
    pthread_join(decoder, NULL);
    if (a->is_full) /* decoded, and not wanted any more */
        theo_image_free(a->slot.image);
    return status;
}

theo_status theo_detect_batch(theo_session *session, int count, theo_image_source source, theo_keypoints_sink sink, void *user,
                              const theo_detect_options *options, theo_error *err) {
    theo_detect_options checked;
    if (count < 0 || !source || !sink)
        return theo_fail(err, THEO_ARGUMENT, NULL, "batch", "count %d must be at least 0, source and sink must be given", count);
    THEO_TRY(theo_session_enter_for(session, THEO_TASK_KEYPOINTS, err));
    ahead a = {.source = source, .user = user, .count = count};
    theo_status status = theo_detect_options_of(&checked, options, session, err);
    if (!status && pthread_mutex_init(&a.mutex, NULL))
        status = theo_fail(err, THEO_MEMORY, NULL, "batch", "out of memory");
    if (!status) {
        if (pthread_cond_init(&a.changed, NULL)) {
            status = theo_fail(err, THEO_MEMORY, NULL, "batch", "out of memory");
        } else {
            status = count ? run(session, &a, sink, options, err) : THEO_OK;
            pthread_cond_destroy(&a.changed);
        }
        pthread_mutex_destroy(&a.mutex);
    }
    theo_session_leave(session);
    return status;
}
