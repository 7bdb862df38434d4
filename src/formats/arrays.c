#include "formats/arrays.h"

#include "base/error.h"
#include "formats/dtype.h"
#include "formats/names.h"
#include "formats/text.h"

#include <string.h>

static bool is_utf8(const char *text) {
    while (*text) {
        size_t n = theo_utf8_length(text, strnlen(text, 4));
        if (!n)
            return false;
        text += n;
    }
    return true;
}

theo_status theo_array_check(const theo_array *array, const char *path, size_t *bytes, theo_error *err) {
    int64_t elements;
    *bytes = 0;
    if (!array->name)
        return theo_fail(err, THEO_ARGUMENT, path, NULL, "an array has no name");
    if (!is_utf8(array->name))
        return theo_fail(err, THEO_ARGUMENT, path, NULL, "an array's name is not UTF-8");
    if (array->rank < 0 || array->rank > THEO_MAX_RANK)
        return theo_fail(err, THEO_ARGUMENT, path, array->name, "the rank is %d, allowed is 0 to %d", array->rank, THEO_MAX_RANK);
    if (array->dtype == THEO_DTYPE_TEXT) {
        if (array->rank || !array->data)
            return theo_fail(err, THEO_ARGUMENT, path, array->name, "a text must have rank 0 and data");
        *bytes = strlen(array->data);
        return THEO_OK;
    }
    if (!theo_dtype_bytes(array->dtype))
        return theo_fail(err, THEO_ARGUMENT, path, array->name, "%d is no element type", (int)array->dtype);
    if (!theo_shape_bytes(array->shape, array->rank, array->dtype, &elements, bytes))
        return theo_fail(err, THEO_ARGUMENT, path, array->name, "a dimension is negative, or the size overflows 64 bits");
    if (*bytes && !array->data)
        return theo_fail(err, THEO_ARGUMENT, path, array->name, "the array has no data");
    return THEO_OK;
}

theo_status theo_arrays_check(const theo_array *arrays, int count, const char *path, theo_error *err) {
    size_t bytes;
    if (count < 0 || (count && !arrays))
        return theo_fail(err, THEO_ARGUMENT, path, NULL, "arrays must be given");
    for (int i = 0; i < count; i++)
        THEO_TRY(theo_array_check(&arrays[i], path, &bytes, err));
    theo_named_value *names = theo_alloc((size_t)count + 1, sizeof *names);
    if (!names)
        return theo_fail(err, THEO_MEMORY, path, NULL, "out of memory for %d arrays", count);
    for (int i = 0; i < count; i++)
        names[i].text = arrays[i].name;
    const char *twice = theo_names_sort(names, count);
    theo_free(names);
    return twice ? theo_fail(err, THEO_ARGUMENT, path, twice, "two arrays have this name") : THEO_OK;
}

const theo_array *theo_arrays_find(const theo_arrays *arrays, const char *name) {
    for (int i = 0; arrays && name && i < arrays->count; i++)
        if (strcmp(arrays->items[i].name, name) == 0)
            return &arrays->items[i];
    return NULL;
}

void theo_arrays_free(theo_arrays *arrays) {
    if (!arrays)
        return;
    theo_arrays_result *result = (theo_arrays_result *)arrays;
    theo_bump_free(&result->memory);
    theo_free(result);
}
