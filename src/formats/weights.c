#include "formats/weights.h"

#include "base/error.h"
#include "formats/dtype.h"
#include "formats/weights_internal.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- for the containers */

theo_status theo_weights_reserve(theo_weights *w, int count, theo_error *err) {
    w->items = theo_bump_alloc(&w->memory, (size_t)count, sizeof *w->items);
    w->index = theo_bump_alloc(&w->memory, (size_t)count, sizeof *w->index);
    if (!w->items || !w->index)
        return theo_fail(err, THEO_MEMORY, w->path, NULL, "out of memory for %d tensors", count);
    w->capacity = count;
    return THEO_OK;
}

theo_status theo_weights_add(theo_weights *w, const char *name, theo_weight **item, theo_error *err) {
    if (w->count == w->capacity)
        return theo_fail(err, THEO_INTERNAL, w->path, name, "more tensors than were counted");
    *item = &w->items[w->count];
    (*item)->name = theo_bump_text(&w->memory, name, strlen(name));
    if (!(*item)->name)
        return theo_fail(err, THEO_MEMORY, w->path, name, "out of memory for a tensor's name");
    w->index[w->count] = (theo_named_value){(*item)->name, w->count};
    w->count++;
    return THEO_OK;
}

void theo_weight_set_contiguous(theo_weight *item) {
    int64_t stride = 1;
    for (int i = item->rank - 1; i >= 0 && item->elements > 0; i--) { /* an empty one keeps 0: its product may overflow */
        item->stride[i] = stride;
        stride *= item->shape[i];
    }
}

/* ---------------------------------------------------------------- opening */

static bool starts_with(const theo_map *map, const char *magic, size_t length) {
    return map->bytes >= length && memcmp(map->data, magic, length) == 0;
}

/* Containers are told by their first bytes. */
static theo_status parse(theo_weights *w, theo_error *err) {
    const theo_map *map = &w->map;
    if (map->bytes == 0)
        return theo_fail(err, THEO_CONTAINER, w->path, NULL, "the file is empty");
    if (map->bytes > 8 && map->data[8] == '{') /* in a zip archive this byte is the method, in a legacy file 0xf9 */
        return theo_safetensors_parse(w, err);
    if (starts_with(map, "PK", 2))
        return theo_torch_zip_parse(w, err);
    if (theo_torch_legacy_matches(map))
        return theo_torch_legacy_parse(w, err);
    if (starts_with(map, "\x89HDF", 4))
        return theo_fail(err, THEO_UNSUPPORTED, w->path, NULL,
                         "an HDF5 file; weights are read from safetensors, .pt and .pth files");
    if (starts_with(map, "\x80", 1))
        return theo_fail(err, THEO_CONTAINER, w->path, NULL, "a pickle that is not a torch checkpoint");
    return theo_fail(err, THEO_CONTAINER, w->path, NULL,
                     "not a checkpoint: neither a safetensors file nor a torch file (.pt, .pth) by its first bytes");
}

static theo_status finish(theo_weights *w, theo_error *err) {
    THEO_TRY(parse(w, err));
    const char *twice = theo_names_sort(w->index, w->count);
    return twice ? theo_fail(err, THEO_CONTAINER, w->path, twice, "the tensor stands twice in the file") : THEO_OK;
}

/* map is taken over, whatever happens. */
static theo_status open_map(theo_weights **weights, const theo_map *map, bool mapped, const char *name,
                            const theo_weights_options *options, theo_error *err) {
    *weights = NULL;
    theo_weights *w = theo_alloc(1, sizeof *w);
    theo_status status = w ? THEO_OK : THEO_MEMORY;
    if (w) {
        w->map = *map;
        w->mapped = mapped;
        w->verify_checksums = options && options->verify_checksums;
        w->pool = options ? options->pool : NULL;
        w->path = theo_bump_text(&w->memory, name, strlen(name));
        status = w->path ? finish(w, err) : THEO_MEMORY;
    }
    if (status == THEO_OK) {
        *weights = w;
        return THEO_OK;
    }
    if (!w || !w->path)
        theo_fail(err, THEO_MEMORY, name, NULL, "out of memory");
    if (w)
        theo_weights_close(w);
    else if (mapped)
        theo_map_close(&(theo_map){map->data, map->bytes});
    return status;
}

theo_status theo_weights_open(theo_weights **weights, const char *path, const theo_weights_options *options, theo_error *err) {
    theo_map map;
    *weights = NULL;
    THEO_TRY(theo_map_open(&map, path, err));
    return open_map(weights, &map, true, path, options, err);
}

theo_status theo_weights_open_memory(theo_weights **weights, const void *data, size_t bytes, const char *name,
                                     const theo_weights_options *options, theo_error *err) {
    return open_map(weights, &(theo_map){data, bytes}, false, name, options, err);
}

void theo_weights_close(theo_weights *weights) {
    if (!weights)
        return;
    if (weights->mapped)
        theo_map_close(&weights->map);
    theo_bump_free(&weights->memory);
    theo_free(weights);
}

/* ---------------------------------------------------------------- looking */

const char *theo_weights_path(const theo_weights *weights) {
    return weights->path;
}

const char *theo_weights_source(const theo_weights *weights) {
    return weights->source;
}

int64_t theo_weights_file_bytes(const theo_weights *weights) {
    return (int64_t)weights->map.bytes;
}

int theo_weights_count(const theo_weights *weights) {
    return weights->count;
}

const theo_weight *theo_weights_at(const theo_weights *weights, int index) {
    return index >= 0 && index < weights->count ? &weights->items[index] : NULL;
}

const theo_weight *theo_weights_find(const theo_weights *weights, const char *name) {
    return theo_weights_at(weights, theo_names_find(weights->index, weights->count, name));
}

const char *theo_weights_metadata(const theo_weights *weights, const char *key) {
    const theo_json *value = theo_json_get(weights->metadata, key);
    return value ? value->string : NULL;
}

const char *theo_weights_config_json(const theo_weights *weights) {
    return weights->config_json;
}

theo_status theo_weights_read_beside(theo_text_beside *beside, const theo_weights *weights, const char *name, theo_error *err) {
    const char *slash = strrchr(weights->path, '/');
    int folder = slash ? (int)(slash + 1 - weights->path) : 0;
    beside->text = NULL;
    int length = snprintf(beside->path, sizeof beside->path, "%.*s%s", folder, weights->path, name);
    if (!weights->mapped || length >= (int)sizeof beside->path || access(beside->path, F_OK))
        return THEO_OK;
    theo_map map;
    THEO_TRY(theo_map_open(&map, beside->path, err));
    beside->text = theo_alloc(map.bytes + 1, 1);
    if (beside->text && map.bytes)
        memcpy(beside->text, map.data, map.bytes);
    theo_map_close(&map);
    return beside->text ? THEO_OK : theo_fail(err, THEO_MEMORY, beside->path, NULL, "out of memory");
}

/* ---------------------------------------------------------------- numbers */

/* `count` consecutive elements to float32. */
static void convert(float *out, theo_dtype dtype, const uint8_t *in, size_t count) {
    switch (dtype) {
    case THEO_DTYPE_F32:
        memcpy(out, in, 4 * count);
        break;
    case THEO_DTYPE_F16:
        theo_f16_to_f32(out, in, count);
        break;
    case THEO_DTYPE_BF16:
        theo_bf16_to_f32(out, in, count);
        break;
    default: /* F64; the other types were refused */
        for (size_t i = 0; i < count; i++) {
            double value;
            memcpy(&value, in + 8 * i, sizeof value);
            out[i] = (float)value;
        }
        break;
    }
}

/* Number of last dimensions that lie in memory row by row without gaps. */
static int contiguous_dimensions(const theo_weight *t, int64_t *elements) {
    int kept = 0;
    *elements = 1;
    for (int i = t->rank - 1; i >= 0; i--, kept++) {
        if (t->shape[i] != 1 && t->stride[i] != *elements)
            break;
        *elements *= t->shape[i];
    }
    return kept;
}

theo_status theo_weight_to_f32(const theo_weights *weights, const theo_weight *t, float *out, theo_error *err) {
    if (t->dtype > THEO_DTYPE_BF16)
        return theo_fail(err, THEO_SHAPE, weights->path, t->name,
                         "the type is %s, but a network's weights are F64, F32, F16 or BF16", theo_dtype_name(t->dtype));
    if (t->elements == 0)
        return THEO_OK;
    int64_t run, index[THEO_MAX_RANK] = {0};
    int outer = t->rank - contiguous_dimensions(t, &run);
    size_t size = theo_dtype_bytes(t->dtype);
    const uint8_t *data = t->data;
    for (int64_t offset = 0;;) {
        convert(out, t->dtype, data + (size_t)offset * size, (size_t)run);
        out += run;
        int i = outer - 1;
        for (; i >= 0; i--) { /* the next index, last dimension first */
            offset += t->stride[i];
            if (++index[i] < t->shape[i])
                break;
            offset -= t->stride[i] * t->shape[i];
            index[i] = 0;
        }
        if (i < 0)
            return THEO_OK;
    }
}

void theo_weights_release(const theo_weights *weights, const theo_weight *t) {
    if (!weights->mapped || t->elements == 0)
        return;
    int64_t last = 0;
    for (int i = 0; i < t->rank; i++)
        last += (t->shape[i] - 1) * t->stride[i];
    theo_map_release(&weights->map, (size_t)((const uint8_t *)t->data - weights->map.data),
                     ((size_t)last + 1) * theo_dtype_bytes(t->dtype));
}
