/* files.h - the file formats results are exchanged in: npz and npy, safetensors, HDF5. See theo.h for the rules that hold
 * everywhere.
 *
 * Everything is written beside its final name and renamed at the end: a reader never sees half a file. */
#ifndef THEO_FILES_H
#define THEO_FILES_H

#include <theo/theo.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum theo_dtype {
    THEO_DTYPE_F64,
    THEO_DTYPE_F32,
    THEO_DTYPE_F16,
    THEO_DTYPE_BF16,
    THEO_DTYPE_I64,
    THEO_DTYPE_I32,
    THEO_DTYPE_I16,
    THEO_DTYPE_I8,
    THEO_DTYPE_U64,
    THEO_DTYPE_U32,
    THEO_DTYPE_U16,
    THEO_DTYPE_U8,
    THEO_DTYPE_BOOL,
    THEO_DTYPE_TEXT /* numpy '<U': data is UTF-8, written as a 0-d unicode array; npz only */
} theo_dtype;

enum { THEO_MAX_RANK = 8 };

/* A named array, row-major and contiguous. */
typedef struct theo_array {
    const char *name;
    theo_dtype dtype;
    int rank;
    int64_t shape[THEO_MAX_RANK];
    const void *data;
} theo_array;

/* Arrays of a file, held in memory until theo_arrays_free. */
typedef struct theo_arrays {
    int count;
    const theo_array *items;
    int metadata_count; /* safetensors only */
    const char *const *metadata_keys, *const *metadata_values;
} theo_arrays;

/* npz: `deflate` stores (false) or compresses (true), fast rather than well: numbers lose what their upper bytes have in common.
 * zip64 where needed. pool: for compression, may be NULL; the bytes do not depend on it. */
THEO_API theo_status theo_npz_write(const char *path, const theo_array *arrays, int count, bool deflate, theo_pool *pool,
                                    theo_error *err);
/* The same into memory; release *data with theo_buffer_free (image.h). */
THEO_API theo_status theo_npz_encode(const theo_array *arrays, int count, bool deflate, theo_pool *pool, void **data,
                                     size_t *bytes, theo_error *err);
THEO_API theo_status theo_npz_read(theo_arrays **arrays, const char *path, theo_error *err);
THEO_API theo_status theo_npy_write(const char *path, const theo_array *array, theo_error *err);
THEO_API theo_status theo_npy_read(theo_arrays **arrays, const char *path, theo_error *err);

/* safetensors; metadata: pairs of key and value, may be NULL with count 0. */
THEO_API theo_status theo_safetensors_write(const char *path, const theo_array *arrays, int count,
                                            const char *const *metadata_keys, const char *const *metadata_values,
                                            int metadata_count, theo_error *err);
THEO_API theo_status theo_safetensors_read(theo_arrays **arrays, const char *path, theo_error *err);

/* Array of that name, or NULL. */
THEO_API const theo_array *theo_arrays_find(const theo_arrays *arrays, const char *name);
THEO_API void theo_arrays_free(theo_arrays *arrays);

/* Writes `bytes` bytes beside `path`, then renames. */
THEO_API theo_status theo_file_write(const char *path, const void *data, size_t bytes, theo_error *err);

/* IEEE binary16, round to nearest even. */
THEO_API void theo_f32_to_f16(uint16_t *out, const float *in, size_t count);

/* ---- HDF5 in the layout of hloc (Hierarchical-Localization). */

typedef struct theo_h5 theo_h5;
/* Can this build write HDF5? The writer is the library's own: always true. */
THEO_API bool theo_h5_available(void);
/* Creates the file (beside its name; theo_h5_close renames). */
THEO_API theo_status theo_h5_create(theo_h5 **file, const char *path, theo_error *err);
/* Group `name`: keypoints [N,2], scores [N], descriptors [C,N] (omitted when C is 0), image_size [w,h]; half: as float16. */
THEO_API theo_status theo_h5_add_keypoints(theo_h5 *file, const char *name, const theo_keypoints *keypoints, bool half,
                                           theo_error *err);
/* hloc matches: group name_a, subgroup name_b ('/' in names becomes '-'): matches0 i2/i4 [N] (-1 = none), matching_scores0 f2
 * [N]. */
THEO_API theo_status theo_h5_add_matches(theo_h5 *file, const char *name_a, const char *name_b, int keypoints_a,
                                         const int32_t *pairs, const float *similarity, int count, theo_error *err);
/* Closes; with `keep` the finished file takes its final name, without it is removed. */
THEO_API theo_status theo_h5_close(theo_h5 *file, bool keep, theo_error *err);

#ifdef __cplusplus
}
#endif
#endif
