/* torch.save before PyTorch 1.6: five pickles one after the other - a magic number, the protocol, facts about the machine, the
 * checkpoint, the list of storage keys - then for every key, in that order, a little-endian int64 element count and the raw
 * numbers. */
#include "base/error.h"
#include "formats/bytes.h"
#include "formats/dtype.h"
#include "formats/torch.h"

#include <string.h>

/* The first pickle: PROTO 2, LONG1 of ten bytes, 0x1950a86a20f9469cfc6c, STOP. */
static const uint8_t magic[] = {0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, '.'};

enum { PROTOCOL = 1001 };

typedef struct legacy {
    theo_weights *w;
    size_t at; /* how far the file is read */
    int count;
    theo_named_value *index; /* storage keys */
    const uint8_t **data;
    int64_t *elements;
} legacy;

bool theo_torch_legacy_matches(const theo_map *map) {
    return map->bytes >= sizeof magic && memcmp(map->data, magic, sizeof magic) == 0;
}

static theo_status next_pickle(legacy *l, theo_pickle *pickle, const char *record, theo_error *err) {
    const theo_map *map = &l->w->map;
    THEO_TRY(theo_pickle_parse(pickle, &l->w->memory, map->data + l->at, map->bytes - l->at, l->w->path, record, err));
    l->at += pickle->bytes;
    return THEO_OK;
}

/* Protocol and machine. */
static theo_status check_system(legacy *l, theo_error *err) {
    theo_pickle protocol, system;
    THEO_TRY(next_pickle(l, &protocol, "protocol", err));
    if (protocol.root->type != THEO_VALUE_INTEGER || protocol.root->integer != PROTOCOL)
        return theo_fail(err, THEO_UNSUPPORTED, l->w->path, "protocol", "only torch's legacy protocol 1001 is supported");
    THEO_TRY(next_pickle(l, &system, "system info", err));
    const theo_value *little = theo_value_get(system.root, "little_endian");
    if (!little || little->type != THEO_VALUE_BOOL)
        return theo_fail(err, THEO_CONTAINER, l->w->path, "system info", "little_endian is not told");
    if (!little->truth)
        return theo_fail(err, THEO_UNSUPPORTED, l->w->path, "system info", "the numbers are not little-endian");
    return THEO_OK;
}

/* Element types by storage key. */
typedef struct types {
    int count;
    const theo_named_value *index; /* value = theo_dtype */
} types;

/* Only the tensors tell the type of a storage; a storage that several tensors share comes several times. */
static theo_status collect_types(legacy *l, const theo_storage *storages, types *out, theo_error *err) {
    int count = 0, kept = 0;
    for (const theo_storage *s = storages; s; s = s->next)
        count++;
    theo_named_value *index = theo_bump_alloc(&l->w->memory, (size_t)count, sizeof *index);
    if (!index)
        return theo_fail(err, THEO_MEMORY, l->w->path, NULL, "out of memory for the storages");
    for (const theo_storage *s = storages; s; s = s->next)
        index[kept++] = (theo_named_value){s->key, (int)s->dtype};
    theo_names_sort(index, count);
    kept = 0;
    for (int i = 0; i < count; i++) {
        if (kept && strcmp(index[kept - 1].text, index[i].text) == 0) {
            if (index[kept - 1].value != index[i].value)
                return theo_fail(err, THEO_CONTAINER, l->w->path, NULL, "the storage \"%.80s\" is used with two types",
                                 index[i].text);
            continue;
        }
        index[kept++] = index[i];
    }
    *out = (types){kept, index};
    return THEO_OK;
}

/* Walks over the raw storages behind the pickles. */
static theo_status locate_storages(legacy *l, const theo_value *keys, const types *known, theo_error *err) {
    const theo_map *map = &l->w->map;
    for (const theo_item *item = keys->first; item; item = item->next) {
        int type = item->value->type == THEO_VALUE_STRING ? theo_names_find(known->index, known->count, item->value->string) : -1;
        if (type < 0)
            return theo_fail(err, THEO_CONTAINER, l->w->path, "storage keys",
                             "a key that no tensor uses: its type and size are not known");
        const char *key = item->value->string;
        if (map->bytes - l->at < 8)
            return theo_fail(err, THEO_BOUNDS, l->w->path, NULL, "the file ends before the storage \"%.80s\"", key);
        uint64_t elements = theo_get64(map->data + l->at), size = theo_dtype_bytes((theo_dtype)type);
        l->at += 8;
        if (elements > (map->bytes - l->at) / size)
            return theo_fail(err, THEO_BOUNDS, l->w->path, NULL, "the file ends inside of the storage \"%.80s\"", key);
        l->index[l->count] = (theo_named_value){key, l->count};
        l->data[l->count] = map->data + l->at;
        l->elements[l->count] = (int64_t)elements;
        l->count++;
        l->at += (size_t)(elements * size);
    }
    if (l->at != map->bytes)
        return theo_fail(err, THEO_CONTAINER, l->w->path, NULL, "%zu bytes follow after the last storage", map->bytes - l->at);
    const char *twice = theo_names_sort(l->index, l->count);
    return twice ? theo_fail(err, THEO_CONTAINER, l->w->path, "storage keys", "the key \"%.80s\" stands twice", twice) : THEO_OK;
}

static theo_status find_storage(void *user, const theo_storage *storage, const char *tensor, const uint8_t **data,
                                theo_error *err) {
    const legacy *l = user;
    int i = theo_names_find(l->index, l->count, storage->key);
    if (i < 0)
        return theo_fail(err, THEO_BOUNDS, l->w->path, tensor, "the storage \"%.80s\" of the tensor is not in the file",
                         storage->key);
    if (l->elements[i] != storage->count)
        return theo_fail(err, THEO_BOUNDS, l->w->path, tensor, "the storage \"%.80s\" has %lld elements, but %lld were announced",
                         storage->key, (long long)l->elements[i], (long long)storage->count);
    *data = l->data[i];
    return THEO_OK;
}

theo_status theo_torch_legacy_parse(theo_weights *w, theo_error *err) {
    legacy l = {.w = w, .at = sizeof magic};
    theo_pickle checkpoint, keys;
    types known = {0};
    w->source = "torch-legacy";
    THEO_TRY(check_system(&l, err));
    THEO_TRY(next_pickle(&l, &checkpoint, "checkpoint", err));
    THEO_TRY(next_pickle(&l, &keys, "storage keys", err));
    if (keys.root->type != THEO_VALUE_LIST)
        return theo_fail(err, THEO_CONTAINER, w->path, "storage keys", "expected a list");
    size_t count = (size_t)keys.root->count;
    l.index = theo_bump_alloc(&w->memory, count, sizeof *l.index);
    l.data = theo_bump_alloc(&w->memory, count, sizeof *l.data);
    l.elements = theo_bump_alloc(&w->memory, count, sizeof *l.elements);
    if (!l.index || !l.data || !l.elements)
        return theo_fail(err, THEO_MEMORY, w->path, NULL, "out of memory for %zu storages", count);
    THEO_TRY(collect_types(&l, checkpoint.storages, &known, err));
    THEO_TRY(locate_storages(&l, keys.root, &known, err));
    return theo_torch_collect(w, checkpoint.root, find_storage, &l, err);
}
