/* batch.h - many images through one session: the next ones decoded while the network works on this one. */
#ifndef THEO_API_BATCH_H
#define THEO_API_BATCH_H

#include "api/relay.h"

typedef struct theo_batch {
    int count;
    theo_image_source source; /* on a thread of its own, in order */
    void *user;               /* of the source */
    /* The network: fills item->result, or status and error. Called for images that could be had. */
    void (*work)(void *context, theo_batch_item *item);
    /* Gets every item, on the calling thread and in order; frees neither image nor result but takes the result over. Non-zero
     * stops. */
    int (*give)(void *context, theo_batch_item *item);
    /* A result that nobody gets any more. */
    void (*discard)(void *result);
    void *context; /* of work, give */
    bool overlaps; /* work runs on a thread of its own, so that `give` may take its time */
} theo_batch;

/* A failed image does not stop the others. THEO_CANCELLED when `give` stops it, or an item's status is that. */
theo_status theo_batch_run(const theo_batch *batch, theo_error *err);

#endif
