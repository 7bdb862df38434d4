/* batch.c - decoding, network and caller on up to three threads, one image between each two of them. */
#include "api/batch.h"

typedef struct line {
    const theo_batch *batch;
    theo_relay decoded, worked; /* worked: where the network has a thread of its own */
} line;

static void *decode_all(void *context) {
    line *l = context;
    const theo_batch *b = l->batch;
    for (int i = 0; i < b->count; i++) {
        theo_batch_item item = {.index = i};
        item.status = b->source(b->user, i, &item.image, &item.error);
        if (!item.status && !item.image)
            item.status = theo_fail(&item.error, THEO_ARGUMENT, NULL, "source", "gave no image for number %d", i);
        if (item.status) {
            item.image = NULL;
            item.error.status = item.status;
        }
        if (!theo_relay_put(&l->decoded, &item)) {
            theo_image_free(item.image);
            break;
        }
    }
    theo_relay_stop(&l->decoded);
    return NULL;
}

static bool next_worked(line *l, theo_batch_item *item) {
    if (!theo_relay_take(&l->decoded, item))
        return false;
    if (item->image)
        l->batch->work(l->batch->context, item);
    return true;
}

static void drop(const line *l, theo_batch_item *item) {
    if (item->result)
        l->batch->discard(item->result);
    theo_image_free(item->image);
}

static void *work_all(void *context) {
    line *l = context;
    theo_batch_item item;
    while (next_worked(l, &item)) {
        bool is_last = item.status == THEO_CANCELLED;
        if (!theo_relay_put(&l->worked, &item)) {
            drop(l, &item);
            break;
        }
        if (is_last)
            break;
    }
    theo_relay_stop(&l->decoded);
    theo_relay_stop(&l->worked);
    return NULL;
}

static theo_status give_all(line *l, theo_error *err) {
    const theo_batch *b = l->batch;
    theo_batch_item item;
    while (b->overlaps ? theo_relay_take(&l->worked, &item) : next_worked(l, &item)) {
        bool is_cancelled = item.status == THEO_CANCELLED;
        int stops = b->give(b->context, &item);
        theo_image_free(item.image);
        if (is_cancelled || stops)
            return theo_fail(err, THEO_CANCELLED, NULL, "batch", "stopped at image %d of %d by the %s", item.index + 1, b->count,
                             is_cancelled ? "progress callback" : "sink");
    }
    return THEO_OK;
}

/* What lies in the relays once their threads have gone. */
static void empty(line *l, theo_relay *relay) {
    theo_batch_item item;
    theo_relay_stop(relay);
    while (theo_relay_take(relay, &item))
        drop(l, &item);
}

static theo_status run_threads(line *l, theo_error *err) {
    pthread_t decoder, worker;
    THEO_TRY(theo_thread_start(&decoder, decode_all, l, err));
    theo_status status = l->batch->overlaps ? theo_thread_start(&worker, work_all, l, err) : THEO_OK;
    bool has_worker = l->batch->overlaps && !status;
    if (!status)
        status = give_all(l, err);
    theo_relay_stop(&l->worked);
    theo_relay_stop(&l->decoded);
    if (has_worker)
        pthread_join(worker, NULL);
    pthread_join(decoder, NULL);
    empty(l, &l->worked);
    empty(l, &l->decoded);
    return status;
}

theo_status theo_batch_run(const theo_batch *batch, theo_error *err) {
    line l = {.batch = batch};
    if (batch->count == 0)
        return THEO_OK;
    THEO_TRY(theo_relay_open(&l.decoded, err));
    theo_status status = theo_relay_open(&l.worked, err);
    if (!status) {
        status = run_threads(&l, err);
        theo_relay_close(&l.worked);
    }
    theo_relay_close(&l.decoded);
    return status;
}
