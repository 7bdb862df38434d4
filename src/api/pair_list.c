/* pair_list.c - many pairs of photos, each photo prepared and encoded once as long as the memory for it lasts. */
#include "api/pair.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_CACHE = 1 << 30 };

typedef struct entry {
    theo_pair_photo photo;
    bool is_ready;
    theo_error *failure; /* of an image that could not be made; NULL: none */
} entry;

typedef struct job {
    theo_session *session;
    const theo_pair_list *list;
    theo_image_source source;
    void *user;
    const theo_pair_options *options;
    entry *entries; /* [image_count] */
    size_t bytes;   /* that the ready ones take */
} job;

/* ---------------------------------------------------------------- what is kept */

/* The first pair from `index` on that needs an image; pair_count: none. */
static int next_use(const job *j, int image, int index) {
    const int32_t *pairs = j->list->pairs;
    while (index < j->list->pair_count && pairs[2 * index] != image && pairs[2 * index + 1] != image)
        index++;
    return index;
}

static void drop(job *j, entry *e) {
    j->bytes -= e->photo.memory.bytes;
    theo_pair_photo_free(&e->photo);
    e->photo = (theo_pair_photo){.rgb = NULL};
    e->is_ready = false;
}

/* Before pair `index` is made: drops what no pair needs any more, and as long as too much is kept, what is needed last. */
static void make_room(job *j, int index) {
    const size_t limit = j->list->cache_bytes ? j->list->cache_bytes : DEFAULT_CACHE;
    for (;;) {
        int last = index;
        entry *victim = NULL;
        for (int i = 0; i < j->list->image_count; i++) {
            if (!j->entries[i].is_ready)
                continue;
            const int use = next_use(j, i, index);
            if (use == j->list->pair_count) {
                drop(j, &j->entries[i]);
            } else if (use > last) {
                last = use;
                victim = &j->entries[i];
            }
        }
        if (j->bytes <= limit || !victim)
            return;
        drop(j, victim);
    }
}

/* ---------------------------------------------------------------- images */

static theo_status encode(const job *j, int index, entry *e, theo_error *err) {
    char name[32];
    theo_image *image = NULL;
    snprintf(name, sizeof name, "image %d", index);
    theo_status status = j->source(j->user, index, &image, err);
    if (!status && !image)
        status = theo_fail(err, THEO_ARGUMENT, NULL, "source", "gave no image for number %d", index);
    if (!status)
        status = theo_pair_photo_make(&e->photo, j->session, image, name, j->options, err);
    theo_image_free(image);
    return status;
}

/* The image, ready. One that failed is not tried again. */
static theo_status fetch(job *j, int index, theo_error *err) {
    entry *e = &j->entries[index];
    if (e->failure) {
        *err = *e->failure;
        return e->failure->status;
    }
    if (e->is_ready) {
        e->photo.preprocess_ms = e->photo.encode_ms = 0; /* of another pair */
        return THEO_OK;
    }
    theo_status status = encode(j, index, e, err);
    j->bytes += e->photo.memory.bytes;
    e->is_ready = true;
    if (!status)
        return THEO_OK;
    drop(j, e);
    err->status = status;
    e->failure = status == THEO_CANCELLED ? NULL : theo_alloc(1, sizeof *e->failure);
    if (e->failure)
        *e->failure = *err;
    return status;
}

/* ---------------------------------------------------------------- pairs */

static theo_status make_pair(job *j, int index, theo_pair **pair, theo_error *err) {
    const int a = j->list->pairs[2 * index], b = j->list->pairs[2 * index + 1];
    make_room(j, index);
    const int missing = !j->entries[a].is_ready + (a != b && !j->entries[b].is_ready);
    theo_pair_progress_begin(&j->session->pair->progress, theo_pair_work(missing, j->options));
    THEO_TRY(fetch(j, a, err));
    const double alone = a == b ? 0 : 1;
    if (a != b)
        THEO_TRY(fetch(j, b, err));
    const theo_pair_photo *first = &j->entries[a].photo, *second = &j->entries[b].photo;
    THEO_TRY(theo_pair_make(j->session, (const theo_pair_photo *const[]){first, second}, j->options, pair, err));
    theo_pair_timing *t = &(*pair)->timing;
    const double preprocess = first->preprocess_ms + alone * second->preprocess_ms;
    const double encode_ms = first->encode_ms + alone * second->encode_ms;
    t->preprocess += preprocess;
    t->forward += encode_ms;
    t->total += preprocess + encode_ms;
    return THEO_OK;
}

static theo_status run(job *j, theo_pair_sink sink, theo_error *err) {
    for (int i = 0; i < j->list->pair_count; i++) {
        theo_pair *pair = NULL;
        theo_error failure = {.status = THEO_OK}; /* a source may fail without a word */
        const theo_status status = make_pair(j, i, &pair, &failure);
        failure.status = status;
        const int stops = sink(j->user, i, pair, status ? &failure : NULL);
        if (status == THEO_CANCELLED || stops)
            return theo_fail(err, THEO_CANCELLED, NULL, "pairs", "stopped at pair %d of %d by the %s", i + 1, j->list->pair_count,
                             stops ? "sink" : "progress callback");
    }
    return THEO_OK;
}

static theo_status check(const theo_pair_list *list, theo_image_source source, theo_pair_sink sink, theo_error *err) {
    if (!list || !source || !sink)
        return theo_fail(err, THEO_ARGUMENT, NULL, "pairs", "list, source and sink must be given");
    if (list->image_count < 0 || list->pair_count < 0 || list->pair_count > INT_MAX / 2 || (list->pair_count && !list->pairs))
        return theo_fail(err, THEO_ARGUMENT, NULL, "pairs", "%d images and %d pairs: both are at least 0, pairs must be given",
                         list->image_count, list->pair_count);
    for (int i = 0; i < 2 * list->pair_count; i++)
        if (list->pairs[i] < 0 || list->pairs[i] >= list->image_count)
            return theo_fail(err, THEO_ARGUMENT, NULL, "pairs", "pair %d names image %d: allowed are 0 to %d", i / 2,
                             list->pairs[i], list->image_count - 1);
    return THEO_OK;
}

theo_status theo_reconstruct_pairs(theo_session *session, const theo_pair_list *list, theo_image_source source,
                                   theo_pair_sink sink, void *user, const theo_pair_options *options, theo_error *err) {
    theo_pair_options o;
    THEO_TRY(check(list, source, sink, err));
    THEO_TRY(theo_session_enter_for(session, THEO_TASK_PAIR, err));
    job j = {.session = session, .list = list, .source = source, .user = user, .options = &o};
    theo_status status = theo_pair_options_of(&o, options, session->model, err);
    if (!status && list->image_count && !(j.entries = theo_alloc((size_t)list->image_count, sizeof *j.entries)))
        status = theo_fail(err, THEO_MEMORY, NULL, "pairs", "out of memory");
    if (!status)
        status = run(&j, sink, err);
    for (int i = 0; j.entries && i < list->image_count; i++) {
        theo_pair_photo_free(&j.entries[i].photo);
        theo_free(j.entries[i].failure);
    }
    theo_free(j.entries);
    theo_session_leave(session);
    return status;
}
