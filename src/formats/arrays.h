/* arrays.h - checks of arrays that are to be written, and the object that holds those read. */
#ifndef THEO_FORMATS_ARRAYS_H
#define THEO_FORMATS_ARRAYS_H

#include "formats/bump.h"

#include <theo/files.h>

/* Bytes of the array's data; for THEO_DTYPE_TEXT of the UTF-8 text. THEO_ARGUMENT for what no format can hold: no name, unknown
 * type, negative dimension, missing data. */
theo_status theo_array_check(const theo_array *array, const char *path, size_t *bytes, theo_error *err);

/* All of them, and that no name comes twice. */
theo_status theo_arrays_check(const theo_array *arrays, int count, const char *path, theo_error *err);

/* What a reader fills; the caller gets &result->arrays. */
typedef struct theo_arrays_result {
    theo_arrays arrays; /* first, so that theo_arrays_free finds the rest */
    theo_bump memory;   /* of everything that `arrays` points to */
} theo_arrays_result;

#endif
