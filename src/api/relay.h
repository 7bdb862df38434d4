/* relay.h - one place between two threads: the first puts, the second takes, each waits for the other. */
#ifndef THEO_API_RELAY_H
#define THEO_API_RELAY_H

#include "base/error.h"
#include <pthread.h>

/* One image on its way through a batch. */
typedef struct theo_batch_item {
    int index;
    theo_image *image;  /* NULL: it could not be had */
    void *result;       /* NULL: not yet, or failed */
    theo_status status; /* of what failed */
    theo_error error;
} theo_batch_item;

typedef struct theo_relay {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_full, is_stopped;
    theo_batch_item item;
} theo_relay;

theo_status theo_relay_open(theo_relay *relay, theo_error *err);
void theo_relay_close(theo_relay *relay);
/* False when the relay was stopped: the item stays the caller's. */
bool theo_relay_put(theo_relay *relay, const theo_batch_item *item);
/* False when the relay was stopped and is empty. */
bool theo_relay_take(theo_relay *relay, theo_batch_item *item);
/* Nothing more is put; what lies there may still be taken. */
void theo_relay_stop(theo_relay *relay);

/* A thread that takes no signals: those are the application's, for its own threads. */
theo_status theo_thread_start(pthread_t *thread, void *(*run)(void *context), void *context, theo_error *err);

#endif
