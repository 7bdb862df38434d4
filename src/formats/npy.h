/* npy.h - the header of numpy's array files. Format: numpy/lib/format.py. */
#ifndef THEO_FORMATS_NPY_H
#define THEO_FORMATS_NPY_H

#include "formats/bump.h"
#include "formats/text.h"

#include <theo/files.h>

/* Header of an array with that type and shape; for THEO_DTYPE_TEXT of `characters` code points. Check text->failed. */
void theo_npy_header(theo_text *text, const theo_array *array, size_t characters);

/* UTF-8 to the UTF-32 that numpy stores, into `out` (may be NULL to count). Number of code points, at least 1: numpy has no
 * '<U0'. */
size_t theo_npy_text(uint8_t *out, const char *utf8);

/* Parses npy bytes in place: *array gets type, shape and a pointer into `data` (moved to its start, so that it is aligned as
 * `data` is; the header is gone then). Text is converted into `memory`. `file` and `place` are for messages. THEO_CONTAINER,
 * THEO_BOUNDS, THEO_UNSUPPORTED (objects, records, big-endian numbers, Fortran order). */
theo_status theo_npy_parse(theo_array *array, theo_bump *memory, uint8_t *data, size_t bytes, const char *file, const char *place,
                           theo_error *err);

/* theo_npz_read and theo_npy_read over memory; `name` stands for the file in messages. For fuzzers. */
theo_status theo_npz_read_memory(theo_arrays **arrays, const void *data, size_t bytes, const char *name, theo_error *err);
theo_status theo_npy_read_memory(theo_arrays **arrays, const void *data, size_t bytes, const char *name, theo_error *err);

#endif
