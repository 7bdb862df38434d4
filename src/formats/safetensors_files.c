/* The public reader and writer of safetensors files. */
#include "base/error.h"
#include "base/file.h"
#include "formats/arrays.h"
#include "formats/bytes.h"
#include "formats/dtype.h"
#include "formats/text.h"
#include "formats/weights_internal.h"

#include <string.h>

/* ---------------------------------------------------------------- writing */

static theo_status check(const char *path, const theo_array *arrays, int count, const char *const *keys,
                         const char *const *values, int metadata_count, theo_error *err) {
    THEO_TRY(theo_arrays_check(arrays, count, path, err));
    for (int i = 0; i < count; i++)
        if (arrays[i].dtype == THEO_DTYPE_TEXT || strcmp(arrays[i].name, "__metadata__") == 0)
            return theo_fail(err, THEO_ARGUMENT, path, arrays[i].name,
                             "safetensors files hold numbers, and text in their metadata");
    if (metadata_count < 0 || (metadata_count && (!keys || !values)))
        return theo_fail(err, THEO_ARGUMENT, path, "__metadata__", "keys and values must be given");
    for (int i = 0; i < metadata_count; i++) {
        if (!keys[i] || !values[i])
            return theo_fail(err, THEO_ARGUMENT, path, "__metadata__", "a key or value is NULL");
        for (int k = 0; k < i; k++)
            if (strcmp(keys[i], keys[k]) == 0)
                return theo_fail(err, THEO_ARGUMENT, path, "__metadata__", "the key \"%s\" comes twice", keys[i]);
    }
    return THEO_OK;
}

static size_t bytes_of(const theo_array *array) {
    int64_t elements;
    size_t bytes;
    return theo_shape_bytes(array->shape, array->rank, array->dtype, &elements, &bytes) ? bytes : 0;
}

/* Tensors with wide elements first: as the data part starts at a multiple of 8, each is then aligned to its elements. */
static const size_t widths[] = {8, 4, 2, 1};
enum { WIDTHS = sizeof widths / sizeof widths[0] };

static void add_entry(theo_text *text, const theo_array *array, size_t begin) {
    theo_text_printf(text, "%s", text->length > 1 ? "," : "");
    theo_text_add_json_string(text, array->name);
    theo_text_printf(text, ":{\"dtype\":\"%s\",\"shape\":[", theo_dtype_name(array->dtype));
    for (int i = 0; i < array->rank; i++)
        theo_text_printf(text, "%s%lld", i ? "," : "", (long long)array->shape[i]);
    theo_text_printf(text, "],\"data_offsets\":[%zu,%zu]}", begin, begin + bytes_of(array));
}

static void make_header(theo_text *text, const theo_array *arrays, int count, const char *const *keys, const char *const *values,
                        int metadata_count) {
    theo_text_printf(text, "{");
    for (int i = 0; i < metadata_count; i++) {
        theo_text_printf(text, "%s", i ? "," : "\"__metadata__\":{");
        theo_text_add_json_string(text, keys[i]);
        theo_text_printf(text, ":");
        theo_text_add_json_string(text, values[i]);
        theo_text_printf(text, "%s", i + 1 == metadata_count ? "}" : "");
    }
    size_t at = 0;
    for (int w = 0; w < WIDTHS; w++)
        for (int i = 0; i < count; i++)
            if (theo_dtype_bytes(arrays[i].dtype) == widths[w]) {
                add_entry(text, &arrays[i], at);
                at += bytes_of(&arrays[i]);
            }
    theo_text_printf(text, "}");
    while (text->length % 8 && !text->failed)
        theo_text_add(text, " ", 1);
}

static theo_status write_all(theo_file *file, const theo_text *header, const theo_array *arrays, int count, theo_error *err) {
    uint8_t length[8];
    theo_put64(length, header->length);
    THEO_TRY(theo_file_append(file, length, sizeof length, err));
    THEO_TRY(theo_file_append(file, header->data, header->length, err));
    for (int w = 0; w < WIDTHS; w++)
        for (int i = 0; i < count; i++)
            if (theo_dtype_bytes(arrays[i].dtype) == widths[w])
                THEO_TRY(theo_file_append(file, arrays[i].data, bytes_of(&arrays[i]), err));
    return THEO_OK;
}

theo_status theo_safetensors_write(const char *path, const theo_array *arrays, int count, const char *const *metadata_keys,
                                   const char *const *metadata_values, int metadata_count, theo_error *err) {
    theo_file file;
    theo_text header = {0};
    THEO_TRY(check(path, arrays, count, metadata_keys, metadata_values, metadata_count, err));
    make_header(&header, arrays, count, metadata_keys, metadata_values, metadata_count);
    theo_status status = header.failed ? theo_fail(err, THEO_MEMORY, path, NULL, "out of memory for the header")
                                       : theo_file_open(&file, path, err);
    if (!status) {
        status = write_all(&file, &header, arrays, count, err);
        if (!status)
            status = theo_file_commit(&file, err);
        else
            theo_file_abandon(&file);
    }
    theo_text_free(&header);
    return status;
}

/* ---------------------------------------------------------------- reading */

static theo_status copy_metadata(theo_arrays_result *result, const theo_json *metadata, const char *path, theo_error *err) {
    int count = metadata ? metadata->count : 0, n = 0;
    const char **keys = theo_bump_alloc(&result->memory, (size_t)count, sizeof *keys);
    const char **values = theo_bump_alloc(&result->memory, (size_t)count, sizeof *values);
    if (!keys || !values)
        return theo_fail(err, THEO_MEMORY, path, NULL, "out of memory for the metadata");
    for (const theo_json *m = metadata ? metadata->first : NULL; m; m = m->next, n++) {
        keys[n] = theo_bump_text(&result->memory, m->key, strlen(m->key));
        values[n] = theo_bump_text(&result->memory, m->string, strlen(m->string));
        if (!keys[n] || !values[n])
            return theo_fail(err, THEO_MEMORY, path, NULL, "out of memory for the metadata");
    }
    result->arrays.metadata_count = count;
    result->arrays.metadata_keys = keys;
    result->arrays.metadata_values = values;
    return THEO_OK;
}

static theo_status copy_arrays(theo_arrays_result *result, const theo_weights *w, theo_error *err) {
    theo_array *items = theo_bump_alloc(&result->memory, (size_t)w->count, sizeof *items);
    if (!items)
        return theo_fail(err, THEO_MEMORY, w->path, NULL, "out of memory for %d arrays", w->count);
    for (int i = 0; i < w->count; i++) {
        const theo_weight *t = &w->items[i];
        size_t bytes = (size_t)t->elements * theo_dtype_bytes(t->dtype);
        char *name = theo_bump_text(&result->memory, t->name, strlen(t->name));
        void *data = theo_bump_alloc(&result->memory, bytes, 1);
        if (!name || !data)
            return theo_fail(err, THEO_MEMORY, w->path, t->name, "out of memory for an array of %zu bytes", bytes);
        if (bytes)
            memcpy(data, t->data, bytes);
        items[i] = (theo_array){.name = name, .dtype = t->dtype, .rank = t->rank, .data = data};
        memcpy(items[i].shape, t->shape, sizeof items[i].shape);
    }
    result->arrays.items = items;
    result->arrays.count = w->count;
    return copy_metadata(result, w->metadata, w->path, err);
}

theo_status theo_safetensors_read(theo_arrays **arrays, const char *path, theo_error *err) {
    theo_weights *w;
    *arrays = NULL;
    if (!path)
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "the path must not be NULL");
    THEO_TRY(theo_weights_open(&w, path, NULL, err));
    theo_arrays_result *result = theo_alloc(1, sizeof *result);
    theo_status status;
    if (!result)
        status = theo_fail(err, THEO_MEMORY, path, NULL, "out of memory");
    else if (strcmp(w->source, "safetensors") != 0)
        status = theo_fail(err, THEO_CONTAINER, path, NULL, "a %s file, not safetensors", w->source);
    else
        status = copy_arrays(result, w, err);
    theo_weights_close(w);
    if (status == THEO_OK)
        *arrays = &result->arrays;
    else if (result)
        theo_arrays_free(&result->arrays);
    return status;
}
