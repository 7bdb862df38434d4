/* The safetensors container: u64 little-endian header length, JSON header, tensor bytes.
 * Format: https://github.com/huggingface/safetensors, "Format". */
#include "base/error.h"
#include "formats/dtype.h"
#include "formats/weights_internal.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST_HEADER = 100000000, HEADER_DEPTH = 8 };

/* Where a tensor's bytes lie in the data part. */
typedef struct range {
    size_t begin, end;
    const char *name;
} range;

static int compare_ranges(const void *a, const void *b) {
    const range *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* The tensors must fill the data part without holes and overlaps, in any order. */
static theo_status check_cover(const theo_weights *w, range *ranges, int count, size_t data_bytes, theo_error *err) {
    if (count > 1)
        qsort(ranges, (size_t)count, sizeof *ranges, compare_ranges);
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        if (ranges[i].begin != at)
            return theo_fail(err, THEO_BOUNDS, w->path, ranges[i].name,
                             "data_offsets begin at %zu, %s: the tensor before ends at %zu of the data part", ranges[i].begin,
                             ranges[i].begin < at ? "inside of another tensor" : "leaving a hole", at);
        at = ranges[i].end;
    }
    if (at != data_bytes)
        return theo_fail(err, THEO_BOUNDS, w->path, NULL, "the tensors end at byte %zu of the data part, which has %zu", at,
                         data_bytes);
    return THEO_OK;
}

static theo_status parse_metadata(theo_weights *w, const theo_json *metadata, theo_error *err) {
    if (metadata->type != THEO_JSON_OBJECT)
        return theo_fail(err, THEO_CONTAINER, w->path, "__metadata__", "expected an object, found %s",
                         theo_json_type_name(metadata));
    for (const theo_json *m = metadata->first; m; m = m->next)
        if (m->type != THEO_JSON_STRING)
            return theo_fail(err, THEO_CONTAINER, w->path, "__metadata__", "the value of \"%.80s\" is %s, expected a string",
                             m->key, theo_json_type_name(m));
    w->metadata = metadata;
    return THEO_OK;
}

static theo_status parse_shape(const theo_weights *w, const theo_json *entry, theo_weight *t, theo_error *err) {
    const theo_json *shape = theo_json_get(entry, "shape");
    if (!shape || shape->type != THEO_JSON_ARRAY)
        return theo_fail(err, THEO_CONTAINER, w->path, t->name, "shape: expected an array, found %s", theo_json_type_name(shape));
    if (shape->count > THEO_MAX_RANK)
        return theo_fail(err, THEO_UNSUPPORTED, w->path, t->name, "the tensor has %d dimensions, at most %d are allowed",
                         shape->count, THEO_MAX_RANK);
    for (const theo_json *d = shape->first; d; d = d->next) {
        if (d->type != THEO_JSON_NUMBER || !d->is_integer || d->integer < 0)
            return theo_fail(err, THEO_CONTAINER, w->path, t->name, "shape: dimensions must be whole numbers from 0 to 2^63-1");
        t->shape[t->rank++] = d->integer;
    }
    return THEO_OK;
}

static theo_status parse_range(const theo_weights *w, const theo_json *entry, const char *name, size_t data_bytes, range *r,
                               theo_error *err) {
    const theo_json *offsets = theo_json_get(entry, "data_offsets");
    const theo_json *begin = theo_json_at(offsets, 0), *end = theo_json_at(offsets, 1);
    if (!end || offsets->count != 2 || !begin->is_integer || !end->is_integer)
        return theo_fail(err, THEO_CONTAINER, w->path, name, "data_offsets: expected an array of two whole numbers");
    if (begin->integer < 0 || begin->integer > end->integer || (uint64_t)end->integer > data_bytes)
        return theo_fail(err, THEO_BOUNDS, w->path, name,
                         "data_offsets [%lld, %lld] do not lie in order within the %zu bytes of data", (long long)begin->integer,
                         (long long)end->integer, data_bytes);
    *r = (range){(size_t)begin->integer, (size_t)end->integer, name};
    return THEO_OK;
}

static theo_status parse_tensor(theo_weights *w, const theo_json *entry, const uint8_t *data, size_t data_bytes, range *r,
                                theo_error *err) {
    theo_weight *t;
    THEO_TRY(theo_weights_add(w, entry->key, &t, err));
    if (entry->type != THEO_JSON_OBJECT)
        return theo_fail(err, THEO_CONTAINER, w->path, t->name, "expected an object, found %s", theo_json_type_name(entry));
    const theo_json *dtype = theo_json_get(entry, "dtype");
    if (!dtype || dtype->type != THEO_JSON_STRING)
        return theo_fail(err, THEO_CONTAINER, w->path, t->name, "dtype: expected a string, found %s", theo_json_type_name(dtype));
    if (!theo_dtype_parse(&t->dtype, dtype->string))
        return theo_fail(err, THEO_UNSUPPORTED, w->path, t->name,
                         "the type \"%.40s\" is not known; floats may be F64, F32, F16 or BF16", dtype->string);
    THEO_TRY(parse_shape(w, entry, t, err));
    size_t bytes;
    if (!theo_shape_bytes(t->shape, t->rank, t->dtype, &t->elements, &bytes))
        return theo_fail(err, THEO_BOUNDS, w->path, t->name, "the size of the shape overflows 64 bits");
    THEO_TRY(parse_range(w, entry, t->name, data_bytes, r, err));
    if (r->end - r->begin != bytes)
        return theo_fail(err, THEO_BOUNDS, w->path, t->name, "data_offsets span %zu bytes, but shape and type need %zu",
                         r->end - r->begin, bytes);
    theo_weight_set_contiguous(t);
    t->data = data + r->begin;
    return THEO_OK;
}

theo_status theo_safetensors_parse(theo_weights *w, theo_error *err) {
    const theo_map *map = &w->map;
    uint64_t header_bytes;
    memcpy(&header_bytes, map->data, sizeof header_bytes);
    if (header_bytes > LARGEST_HEADER || header_bytes > map->bytes - 8)
        return theo_fail(
            err, THEO_CONTAINER, w->path, "header", "its length of %llu bytes is over %s", (unsigned long long)header_bytes,
            header_bytes > LARGEST_HEADER ? "the format's limit of 100,000,000" : "the length of the file: truncated?");
    const theo_json *header;
    theo_json_options options = {.file = w->path, .max_depth = HEADER_DEPTH};
    THEO_TRY(theo_json_parse(&header, &w->memory, (const char *)map->data + 8, (size_t)header_bytes, &options, err));
    if (header->type != THEO_JSON_OBJECT)
        return theo_fail(err, THEO_CONTAINER, w->path, "header", "expected a JSON object, found %s", theo_json_type_name(header));

    const uint8_t *data = map->data + 8 + header_bytes;
    size_t data_bytes = map->bytes - 8 - (size_t)header_bytes;
    w->source = "safetensors";
    THEO_TRY(theo_weights_reserve(w, header->count, err));
    range *ranges = theo_alloc((size_t)header->count + 1, sizeof *ranges);
    if (!ranges)
        return theo_fail(err, THEO_MEMORY, w->path, NULL, "out of memory for %d tensors", header->count);
    theo_status status = THEO_OK;
    for (const theo_json *entry = header->first; entry && !status; entry = entry->next) {
        if (strcmp(entry->key, "__metadata__") == 0)
            status = parse_metadata(w, entry, err);
        else
            status = parse_tensor(w, entry, data, data_bytes, &ranges[w->count], err);
    }
    if (!status)
        status = check_cover(w, ranges, w->count, data_bytes, err);
    theo_free(ranges);
    return status;
}
