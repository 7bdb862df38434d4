/* npy files, and npz: a zip archive of npy files. */
#include "base/error.h"
#include "base/map.h"
#include "formats/arrays.h"
#include "formats/dtype.h"
#include "formats/npy.h"
#include "formats/zip.h"
#include "formats/zip_write.h"

#include <string.h>

/* ---------------------------------------------------------------- writing */

/* Header and data of an array as npy. Text is converted into *utf32, which the caller frees. */
static theo_status make_npy(const theo_array *array, const char *path, theo_text *header, const void **data, size_t *bytes,
                            void **utf32, theo_error *err) {
    size_t characters = 0;
    *data = array->data;
    *utf32 = NULL;
    THEO_TRY(theo_array_check(array, path, bytes, err));
    if (array->dtype == THEO_DTYPE_BF16)
        return theo_fail(err, THEO_UNSUPPORTED, path, array->name, "numpy files cannot hold bfloat16");
    if (array->dtype == THEO_DTYPE_TEXT) {
        characters = theo_npy_text(NULL, array->data);
        *bytes = 4 * characters;
        *data = *utf32 = theo_alloc(characters, 4);
        if (*utf32)
            theo_npy_text(*utf32, array->data);
    }
    theo_npy_header(header, array, characters);
    if (header->failed || (*bytes && !*data))
        return theo_fail(err, THEO_MEMORY, path, array->name, "out of memory for a header");
    return THEO_OK;
}

static theo_status add_array(theo_zip_writer *zip, const theo_array *array, const char *path, bool deflate, theo_error *err) {
    theo_text header = {0}, name = {0};
    const void *data;
    size_t bytes;
    void *utf32;
    theo_status status = make_npy(array, path, &header, &data, &bytes, &utf32, err);
    if (!status) {
        theo_text_printf(&name, "%s.npy", array->name);
        status = name.failed ? theo_fail(err, THEO_MEMORY, path, array->name, "out of memory for a name")
                             : theo_zip_add(zip, name.data, header.data, header.length, data, bytes, deflate, err);
    }
    theo_text_free(&header);
    theo_text_free(&name);
    theo_free(utf32);
    return status;
}

/* Fills and finishes an archive that was created. */
static theo_status add_arrays(theo_zip_writer *zip, const theo_array *arrays, int count, const char *path, bool deflate,
                              theo_error *err) {
    for (int i = 0; i < count; i++) {
        theo_status status = add_array(zip, &arrays[i], path, deflate, err);
        if (status) {
            theo_zip_abandon(zip);
            return status;
        }
    }
    return theo_zip_finish(zip, err);
}

theo_status theo_npz_write(const char *path, const theo_array *arrays, int count, bool deflate, theo_pool *pool,
                           theo_error *err) {
    theo_zip_writer zip;
    THEO_TRY(theo_arrays_check(arrays, count, path, err));
    THEO_TRY(theo_zip_create(&zip, path, THEO_ZIP_PLAIN, err));
    zip.pool = pool;
    return add_arrays(&zip, arrays, count, path, deflate, err);
}

/* Bytes that the archive can need: stored, which compression never exceeds. */
static theo_status bound_of(size_t *room, const theo_array *arrays, int count, theo_error *err) {
    enum { NPY_HEADER = 512, ENDING = 4 }; /* at least: a shape of eight numbers; ".npy" */
    *room = theo_zip_bound(NULL, 0);
    for (int i = 0; i < count; i++) {
        size_t bytes;
        THEO_TRY(theo_array_check(&arrays[i], NULL, &bytes, err));
        if (arrays[i].dtype == THEO_DTYPE_TEXT)
            bytes = 4 * theo_npy_text(NULL, arrays[i].data);
        *room += theo_zip_bound(arrays[i].name, bytes + NPY_HEADER) + 2 * ENDING;
    }
    return THEO_OK;
}

theo_status theo_npz_encode(const theo_array *arrays, int count, bool deflate, theo_pool *pool, void **data, size_t *bytes,
                            theo_error *err) {
    theo_zip_writer zip;
    size_t room;
    if (!data || !bytes)
        return theo_fail(err, THEO_ARGUMENT, NULL, "data", "data and bytes must be given");
    *data = NULL;
    *bytes = 0;
    THEO_TRY(theo_arrays_check(arrays, count, NULL, err));
    THEO_TRY(bound_of(&room, arrays, count, err));
    THEO_TRY(theo_zip_create_in_memory(&zip, room, err));
    zip.pool = pool;
    THEO_TRY(add_arrays(&zip, arrays, count, NULL, deflate, err));
    *data = zip.memory;
    *bytes = (size_t)zip.at;
    return THEO_OK;
}

theo_status theo_npy_write(const char *path, const theo_array *array, theo_error *err) {
    theo_text header = {0};
    theo_file file;
    const void *data;
    size_t bytes;
    void *utf32;
    THEO_TRY(theo_arrays_check(array, 1, path, err));
    theo_status status = make_npy(array, path, &header, &data, &bytes, &utf32, err);
    if (!status)
        status = theo_file_open(&file, path, err);
    if (!status) {
        status = theo_file_append(&file, header.data, header.length, err);
        if (!status)
            status = theo_file_append(&file, data, bytes, err);
        if (!status)
            status = theo_file_commit(&file, err);
        else
            theo_file_abandon(&file);
    }
    theo_text_free(&header);
    theo_free(utf32);
    return status;
}

/* ---------------------------------------------------------------- reading */

static theo_status out_of_memory(const char *path, theo_error *err) {
    return theo_fail(err, THEO_MEMORY, path, NULL, "out of memory for the arrays");
}

/* "xy.npy" gives "xy". */
static theo_status read_entry(theo_arrays_result *result, const theo_zip *zip, const theo_zip_entry *entry, theo_array *array,
                              theo_error *err) {
    size_t length = strlen(entry->name);
    if (length < 4 || strcmp(entry->name + length - 4, ".npy") != 0)
        return theo_fail(err, THEO_CONTAINER, zip->file, entry->name, "npz: an entry that is no .npy file");
    array->name = theo_bump_text(&result->memory, entry->name, length - 4);
    uint8_t *data = theo_bump_alloc(&result->memory, (size_t)entry->bytes, 1);
    if (!array->name || !data)
        return out_of_memory(zip->file, err);
    THEO_TRY(theo_zip_unpack(zip, entry, data, err));
    return theo_npy_parse(array, &result->memory, data, (size_t)entry->bytes, zip->file, entry->name, err);
}

static theo_status read_npz(theo_arrays_result *result, const theo_map *map, const char *path, theo_error *err) {
    theo_zip zip;
    THEO_TRY(theo_zip_parse(&zip, &result->memory, map->data, map->bytes, path, err));
    theo_array *items = theo_bump_alloc(&result->memory, (size_t)zip.count, sizeof *items);
    if (!items)
        return out_of_memory(path, err);
    for (int i = 0; i < zip.count; i++)
        THEO_TRY(read_entry(result, &zip, &zip.entries[i], &items[i], err));
    result->arrays.items = items;
    result->arrays.count = zip.count;
    return THEO_OK;
}

static theo_status read_npy(theo_arrays_result *result, const theo_map *map, const char *path, theo_error *err) {
    theo_array *item = theo_bump_alloc(&result->memory, 1, sizeof *item);
    uint8_t *data = theo_bump_alloc(&result->memory, map->bytes, 1);
    if (!item || !data)
        return out_of_memory(path, err);
    if (map->bytes)
        memcpy(data, map->data, map->bytes);
    item->name = "";
    result->arrays.items = item;
    result->arrays.count = 1;
    return theo_npy_parse(item, &result->memory, data, map->bytes, path, NULL, err);
}

typedef theo_status (*read_fn)(theo_arrays_result *result, const theo_map *map, const char *path, theo_error *err);

static theo_status read_map(theo_arrays **arrays, const theo_map *map, const char *path, read_fn read, theo_error *err) {
    theo_arrays_result *result = theo_alloc(1, sizeof *result);
    theo_status status = result ? read(result, map, path, err) : out_of_memory(path, err);
    if (status == THEO_OK)
        *arrays = &result->arrays;
    else
        theo_arrays_free(&result->arrays);
    return status;
}

static theo_status read_file(theo_arrays **arrays, const char *path, read_fn read, theo_error *err) {
    theo_map map;
    *arrays = NULL;
    if (!path)
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "the path must not be NULL");
    THEO_TRY(theo_map_open(&map, path, err));
    theo_status status = read_map(arrays, &map, path, read, err);
    theo_map_close(&map);
    return status;
}

theo_status theo_npz_read(theo_arrays **arrays, const char *path, theo_error *err) {
    return read_file(arrays, path, read_npz, err);
}

theo_status theo_npy_read(theo_arrays **arrays, const char *path, theo_error *err) {
    return read_file(arrays, path, read_npy, err);
}

theo_status theo_npz_read_memory(theo_arrays **arrays, const void *data, size_t bytes, const char *name, theo_error *err) {
    *arrays = NULL;
    return read_map(arrays, &(theo_map){data, bytes}, name, read_npz, err);
}

theo_status theo_npy_read_memory(theo_arrays **arrays, const void *data, size_t bytes, const char *name, theo_error *err) {
    *arrays = NULL;
    return read_map(arrays, &(theo_map){data, bytes}, name, read_npy, err);
}
