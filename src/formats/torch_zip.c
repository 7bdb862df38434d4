/* torch.save since PyTorch 1.6: a zip archive with records PREFIX/data.pkl, PREFIX/data/KEY, PREFIX/version and, from newer
 * writers, PREFIX/byteorder. All are stored, so that the tensors are used where they lie in the mapped file. */
#include "base/error.h"
#include "formats/dtype.h"
#include "formats/torch.h"
#include "formats/zip.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static const char pickle_ending[] = "/data.pkl";

enum { LONGEST_KEY = 128, RELEASE_FROM = 1 << 20 };

typedef struct archive {
    theo_weights *w;
    theo_zip zip;
    const theo_zip_entry *pickle;
    const char *prefix; /* without the slash */
} archive;

static bool ends_with(const char *text, const char *ending) {
    size_t n = strlen(text), e = strlen(ending);
    return n >= e && memcmp(text + n - e, ending, e) == 0;
}

static theo_status find_pickle(archive *a, theo_error *err) {
    for (int i = 0; i < a->zip.count; i++) {
        const theo_zip_entry *entry = &a->zip.entries[i];
        if (entry->method != THEO_ZIP_STORED)
            return theo_fail(err, THEO_UNSUPPORTED, a->w->path, entry->name,
                             "zip: compressed records are not allowed in a torch checkpoint");
        if (!ends_with(entry->name, pickle_ending))
            continue;
        if (a->pickle)
            return theo_fail(err, THEO_CONTAINER, a->w->path, entry->name, "a second data.pkl besides %s", a->pickle->name);
        a->pickle = entry;
    }
    if (!a->pickle)
        return theo_fail(err, THEO_CONTAINER, a->w->path, NULL, "a zip archive without a data.pkl: not a torch checkpoint");
    a->prefix = theo_bump_text(&a->w->memory, a->pickle->name, strlen(a->pickle->name) - strlen(pickle_ending));
    return a->prefix ? THEO_OK : theo_fail(err, THEO_MEMORY, a->w->path, NULL, "out of memory");
}

/* The entry PREFIX/name, or NULL. */
static const theo_zip_entry *find_record(const archive *a, const char *name) {
    char path[512 + LONGEST_KEY];
    int n = snprintf(path, sizeof path, "%s/%s", a->prefix, name);
    return n > 0 && (size_t)n < sizeof path ? theo_zip_find(&a->zip, path) : NULL;
}

static theo_status check_byteorder(const archive *a, theo_error *err) {
    const theo_zip_entry *order = find_record(a, "byteorder");
    if (order && (order->bytes != 6 || memcmp(order->data, "little", 6) != 0))
        return theo_fail(err, THEO_UNSUPPORTED, a->w->path, order->name, "the numbers are not little-endian");
    return THEO_OK;
}

/* Checksums of all records; records are the tasks. */
typedef struct checking {
    const archive *a;
    atomic_int failed; /* the first one in the directory, whatever the threads' order; count: none */
} checking;

static void check_sum(void *context, int task, int worker) {
    (void)worker;
    checking *c = context;
    const archive *a = c->a;
    const theo_zip_entry *entry = &a->zip.entries[task];
    if (theo_zip_check(&a->zip, entry, NULL)) {
        int failed = atomic_load(&c->failed);
        while (task < failed && !atomic_compare_exchange_weak(&c->failed, &failed, task))
            ;
    }
    if (a->w->mapped && entry->bytes >= RELEASE_FROM) /* the file need not fit into memory as a whole */
        theo_map_release(&a->w->map, (size_t)(entry->data - a->w->map.data), (size_t)entry->bytes);
}

static theo_status check_sums(const archive *a, theo_error *err) {
    checking c = {.a = a};
    atomic_init(&c.failed, a->zip.count);
    theo_pool_run(a->w->pool, a->zip.count, check_sum, &c);
    int failed = atomic_load(&c.failed);
    return failed < a->zip.count ? theo_zip_check(&a->zip, &a->zip.entries[failed], err) : THEO_OK;
}

static theo_status find_storage(void *user, const theo_storage *storage, const char *tensor, const uint8_t **data,
                                theo_error *err) {
    const archive *a = user;
    char name[LONGEST_KEY];
    int n = snprintf(name, sizeof name, "data/%s", storage->key);
    const theo_zip_entry *record = n > 0 && n < LONGEST_KEY ? find_record(a, name) : NULL;
    if (!record)
        return theo_fail(err, THEO_BOUNDS, a->w->path, tensor, "the storage \"%.80s\" of the tensor is not in the file",
                         storage->key);
    uint64_t size = theo_dtype_bytes(storage->dtype);
    if (record->bytes % size != 0 || record->bytes / size != (uint64_t)storage->count)
        return theo_fail(err, THEO_BOUNDS, a->w->path, tensor,
                         "the storage \"%.80s\" has %llu bytes, but %lld elements of %llu were announced", storage->key,
                         (unsigned long long)record->bytes, (long long)storage->count, (unsigned long long)size);
    *data = record->data;
    return THEO_OK;
}

theo_status theo_torch_zip_parse(theo_weights *w, theo_error *err) {
    archive a = {.w = w};
    theo_pickle pickle;
    w->source = "torch-zip";
    THEO_TRY(theo_zip_parse(&a.zip, &w->memory, w->map.data, w->map.bytes, w->path, err));
    THEO_TRY(find_pickle(&a, err));
    THEO_TRY(check_byteorder(&a, err));
    if (w->verify_checksums)
        THEO_TRY(check_sums(&a, err));
    THEO_TRY(theo_pickle_parse(&pickle, &w->memory, a.pickle->data, (size_t)a.pickle->bytes, w->path, "data.pkl", err));
    if (pickle.bytes != a.pickle->bytes)
        return theo_fail(err, THEO_PICKLE, w->path, "data.pkl", "bytes after the end of the pickle");
    return theo_torch_collect(w, pickle.root, find_storage, &a, err);
}
