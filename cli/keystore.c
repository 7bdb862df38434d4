#include "keystore.h"
#include "message.h"
#include "outputs.h"
#include "temporary.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Keypoints of one image: facts as they came, numbers in one block: xy [N, 2], scores [N], descriptors [N, C]. */
typedef struct entry {
    theo_keypoints facts; /* its pointers are not used */
    float *block;         /* NULL: not in memory */
    size_t bytes;
    off_t offset; /* in the temporary file, -1: not there */
    int uses, views;
    uint64_t last_use;
} entry;

struct keystore {
    entry *entries;
    int count;
    size_t budget, memory, spilled;
    uint64_t clock;
    char *model; /* the name that all keypoints carry */
    int file;    /* -1 until needed */
};

keystore *keystore_new(int images, const int *uses, size_t budget) {
    keystore *store = memory_new(1, sizeof *store);
    store->entries = memory_new((size_t)images, sizeof *store->entries);
    store->count = images;
    store->budget = budget;
    store->file = -1;
    for (int i = 0; i < images; i++) {
        store->entries[i].uses = uses[i];
        store->entries[i].offset = -1;
    }
    return store;
}

void keystore_free(keystore *store) {
    if (!store)
        return;
    for (int i = 0; i < store->count; i++)
        free(store->entries[i].block);
    if (store->file >= 0)
        close(store->file);
    free(store->entries);
    free(store->model);
    free(store);
}

static void drop_block(keystore *store, entry *item) {
    if (!item->block)
        return;
    free(item->block);
    item->block = NULL;
    store->memory -= item->bytes;
}

/* ---- the temporary file */

static theo_status file_failed(theo_error *err, const char *what) {
    char reason[200];
    snprintf(reason, sizeof reason, "%s: %s", what, strerror(errno));
    return output_fail(err, THEO_IO, temporary_place(), reason);
}

static theo_status open_file(keystore *store, theo_error *err) {
    if (store->file >= 0)
        return THEO_OK;
    char *path = text_format("%s/theo-XXXXXX", temporary_place());
    store->file = mkostemp(path, O_CLOEXEC);
    if (store->file >= 0)
        unlink(path);
    free(path);
    return store->file >= 0 ? THEO_OK : file_failed(err, "cannot make a temporary file for keypoints");
}

static theo_status write_block(keystore *store, entry *item, theo_error *err) {
    theo_status status = open_file(store, err);
    if (status)
        return status;
    for (size_t done = 0; done < item->bytes;) {
        ssize_t n = pwrite(store->file, (char *)item->block + done, item->bytes - done, (off_t)(store->spilled + done));
        if (n < 0 && errno != EINTR)
            return file_failed(err, "cannot write keypoints to a temporary file");
        done += n > 0 ? (size_t)n : 0;
    }
    item->offset = (off_t)store->spilled;
    store->spilled += item->bytes;
    return THEO_OK;
}

static theo_status read_block(keystore *store, entry *item, theo_error *err) {
    item->block = memory_new(1, item->bytes);
    store->memory += item->bytes;
    for (size_t done = 0; done < item->bytes;) {
        ssize_t n = pread(store->file, (char *)item->block + done, item->bytes - done, item->offset + (off_t)done);
        if (n == 0)
            errno = EIO;
        if (n <= 0 && errno != EINTR) {
            drop_block(store, item);
            return file_failed(err, "cannot read keypoints from a temporary file");
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return THEO_OK;
}

/* Moves the blocks whose use lies back longest out of memory, down to the budget. */
static theo_status keep_budget(keystore *store, theo_error *err) {
    while (store->memory > store->budget) {
        entry *oldest = NULL;
        for (int i = 0; i < store->count; i++) {
            entry *item = &store->entries[i];
            if (item->block && !item->views && (!oldest || item->last_use < oldest->last_use))
                oldest = item;
        }
        if (!oldest)
            return THEO_OK;
        if (oldest->offset < 0) {
            theo_status status = write_block(store, oldest, err);
            if (status)
                return status;
        }
        drop_block(store, oldest);
    }
    return THEO_OK;
}

/* ---- use */

theo_status keystore_put(keystore *store, int image, const theo_keypoints *points, theo_error *err) {
    entry *item = &store->entries[image];
    size_t n = (size_t)points->count, c = (size_t)points->descriptor_dim;
    if (!store->model)
        store->model = text_copy(points->model);
    item->facts = *points;
    item->facts.model = store->model;
    item->bytes = n * (3 + c) * sizeof(float);
    item->block = memory_new(1, item->bytes);
    item->last_use = ++store->clock;
    store->memory += item->bytes;
    if (n) {
        memcpy(item->block, points->xy, 2 * n * sizeof(float));
        memcpy(item->block + 2 * n, points->scores, n * sizeof(float));
        if (c)
            memcpy(item->block + 3 * n, points->descriptors, n * c * sizeof(float));
    }
    return keep_budget(store, err);
}

theo_status keystore_get(keystore *store, int image, theo_keypoints *view, theo_error *err) {
    entry *item = &store->entries[image];
    if (!item->block) {
        theo_status status = read_block(store, item, err);
        if (status)
            return status;
    }
    item->last_use = ++store->clock;
    item->views++;
    size_t n = (size_t)item->facts.count;
    *view = item->facts;
    view->xy = item->block;
    view->scores = item->block + 2 * n;
    view->descriptors = item->facts.descriptor_dim ? item->block + 3 * n : NULL;
    return keep_budget(store, err);
}

void keystore_release(keystore *store, int image) {
    entry *item = &store->entries[image];
    if (item->views)
        item->views--;
    if (--item->uses == 0)
        drop_block(store, item);
}

size_t keystore_memory(const keystore *store) {
    return store->memory;
}

size_t keystore_spilled(const keystore *store) {
    return store->spilled;
}
