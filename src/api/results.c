#include "api/results.h"
#include <pthread.h>

enum {
    KEPT = 8,
    GRAIN = 1 << 16
}; /* blocks kept for later; sizes are multiples of GRAIN, so that counts that vary a little fit */

/* Stands in the 64 bytes in front of a block. */
typedef struct header {
    theo_results *results;
    size_t bytes;
} header;
enum { HEADER = 64 };

struct theo_results {
    pthread_mutex_t mutex;
    size_t holders; /* the session and the blocks that are out */
    bool is_closed;
    int kept_count;
    header *kept[KEPT];
};

theo_results *theo_results_new(void) {
    theo_results *r = theo_alloc(1, sizeof *r);
    if (r && pthread_mutex_init(&r->mutex, NULL)) {
        theo_free(r);
        return NULL;
    }
    if (r)
        r->holders = 1;
    return r;
}

/* Called with the mutex held, which it releases. */
static void drop_holder(theo_results *r) {
    bool last = --r->holders == 0;
    pthread_mutex_unlock(&r->mutex);
    if (!last)
        return;
    pthread_mutex_destroy(&r->mutex);
    theo_free(r);
}

void theo_results_close(theo_results *r) {
    if (!r)
        return;
    pthread_mutex_lock(&r->mutex);
    r->is_closed = true;
    while (r->kept_count)
        theo_free_aligned(r->kept[--r->kept_count]);
    drop_holder(r);
}

/* Smallest kept block that is large enough, taken out of the list; NULL: none. */
static header *take_kept(theo_results *r, size_t bytes) {
    int best = -1;
    for (int i = 0; i < r->kept_count; i++)
        if (r->kept[i]->bytes >= bytes && (best < 0 || r->kept[i]->bytes < r->kept[best]->bytes))
            best = i;
    if (best < 0)
        return NULL;
    header *block = r->kept[best];
    r->kept[best] = r->kept[--r->kept_count];
    return block;
}

void *theo_results_take(theo_results *r, size_t bytes) {
    if (bytes > SIZE_MAX - HEADER - GRAIN)
        return NULL;
    pthread_mutex_lock(&r->mutex);
    header *block = take_kept(r, bytes);
    if (!block) {
        size_t room = (bytes + HEADER + GRAIN - 1) / GRAIN * GRAIN;
        block = theo_alloc_aligned(room);
        if (block)
            *block = (header){r, room - HEADER};
    }
    r->holders += block != NULL;
    pthread_mutex_unlock(&r->mutex);
    return block ? (char *)block + HEADER : NULL;
}

/* When the list is full, the smallest block goes. */
static header *keep(theo_results *r, header *block) {
    if (r->is_closed)
        return block;
    if (r->kept_count < KEPT) {
        r->kept[r->kept_count++] = block;
        return NULL;
    }
    for (int i = 0; i < KEPT; i++)
        if (r->kept[i]->bytes < block->bytes) {
            header *smaller = r->kept[i];
            r->kept[i] = block;
            block = smaller;
        }
    return block;
}

void theo_results_give(void *data) {
    if (!data)
        return;
    header *block = (header *)(void *)((char *)data - HEADER);
    theo_results *r = block->results;
    pthread_mutex_lock(&r->mutex);
    theo_free_aligned(keep(r, block));
    drop_holder(r);
}
