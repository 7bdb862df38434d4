#include "api/relay.h"
#include <signal.h>

theo_status theo_relay_open(theo_relay *r, theo_error *err) {
    *r = (theo_relay){.is_full = false};
    if (pthread_mutex_init(&r->mutex, NULL))
        return theo_fail(err, THEO_MEMORY, NULL, "batch", "out of memory");
    if (pthread_cond_init(&r->changed, NULL)) {
        pthread_mutex_destroy(&r->mutex);
        return theo_fail(err, THEO_MEMORY, NULL, "batch", "out of memory");
    }
    return THEO_OK;
}

void theo_relay_close(theo_relay *r) {
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->mutex);
}

bool theo_relay_put(theo_relay *r, const theo_batch_item *item) {
    pthread_mutex_lock(&r->mutex);
    while (r->is_full && !r->is_stopped)
        pthread_cond_wait(&r->changed, &r->mutex);
    bool goes = !r->is_stopped;
    if (goes) {
        r->item = *item;
        r->is_full = true;
        pthread_cond_signal(&r->changed);
    }
    pthread_mutex_unlock(&r->mutex);
    return goes;
}

bool theo_relay_take(theo_relay *r, theo_batch_item *item) {
    pthread_mutex_lock(&r->mutex);
    while (!r->is_full && !r->is_stopped)
        pthread_cond_wait(&r->changed, &r->mutex);
    bool came = r->is_full;
    if (came) {
        *item = r->item;
        r->is_full = false;
        pthread_cond_signal(&r->changed);
    }
    pthread_mutex_unlock(&r->mutex);
    return came;
}

void theo_relay_stop(theo_relay *r) {
    pthread_mutex_lock(&r->mutex);
    r->is_stopped = true;
    pthread_cond_broadcast(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

theo_status theo_thread_start(pthread_t *thread, void *(*run)(void *context), void *context, theo_error *err) {
    sigset_t all, callers;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &callers);
    int failed = pthread_create(thread, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &callers, NULL);
    return failed ? theo_fail(err, THEO_MEMORY, NULL, "batch", "cannot start a thread") : THEO_OK;
}
