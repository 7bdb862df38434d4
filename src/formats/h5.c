/* Keypoints and matches in the layout of hloc (Hierarchical-Localization, extract_features.py and match_features.py). */
#include "base/error.h"
#include "formats/hdf.h"

#include <string.h>
#include <theo/files.h>

struct theo_h5 {
    theo_hdf hdf;
};

bool theo_h5_available(void) {
    return true;
}

theo_status theo_h5_create(theo_h5 **file, const char *path, theo_error *err) {
    *file = NULL;
    if (!path)
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "the path must not be NULL");
    theo_h5 *h5 = theo_alloc(1, sizeof *h5);
    if (!h5)
        return theo_fail(err, THEO_MEMORY, path, NULL, "out of memory");
    theo_status status = theo_hdf_create(&h5->hdf, path, err);
    if (status == THEO_OK)
        *file = h5;
    else
        theo_free(h5);
    return status;
}

/* The group "a/b/c.jpg", each part within the one before. */
static theo_status open_path(theo_h5 *file, const char *path, theo_hdf_node **group, theo_error *err) {
    *group = file->hdf.root;
    char *copy = theo_strdup(path), *rest = copy;
    if (!copy)
        return theo_fail(err, THEO_MEMORY, file->hdf.file.path, path, "out of memory");
    theo_status status = THEO_OK;
    for (char *part; !status && (part = strsep(&rest, "/"));)
        if (*part && strcmp(part, ".") != 0)
            status = theo_hdf_group(&file->hdf, *group, part, group, err);
    theo_free(copy);
    if (!status && *group == file->hdf.root)
        status = theo_fail(err, THEO_ARGUMENT, file->hdf.file.path, NULL, "\"%.80s\" names no group", path);
    return status;
}

/* float32 as it is or as float16. */
static theo_status add_floats(theo_h5 *file, theo_hdf_node *group, const char *name, int rank, const int64_t *shape,
                              const float *data, bool half, theo_error *err) {
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)shape[i];
    if (!half)
        return theo_hdf_dataset(&file->hdf, group, name, THEO_DTYPE_F32, rank, shape, data, err);
    uint16_t *halves = theo_alloc(count + 1, sizeof *halves);
    if (!halves)
        return theo_fail(err, THEO_MEMORY, file->hdf.file.path, name, "out of memory");
    theo_f32_to_f16(halves, data, count);
    theo_status status = theo_hdf_dataset(&file->hdf, group, name, THEO_DTYPE_F16, rank, shape, halves, err);
    theo_free(halves);
    return status;
}

/* Descriptors [N, C] as [C, N]. */
static theo_status add_descriptors(theo_h5 *file, theo_hdf_node *group, const theo_keypoints *k, bool half, theo_error *err) {
    size_t n = (size_t)k->count, c = (size_t)k->descriptor_dim;
    float *transposed = theo_alloc(n * c + 1, sizeof *transposed);
    if (!transposed)
        return theo_fail(err, THEO_MEMORY, file->hdf.file.path, "descriptors", "out of memory");
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < c; j++)
            transposed[j * n + i] = k->descriptors[i * c + j];
    theo_status status = add_floats(file, group, "descriptors", 2, (int64_t[]){(int64_t)c, (int64_t)n}, transposed, half, err);
    theo_free(transposed);
    return status;
}

theo_status theo_h5_add_keypoints(theo_h5 *file, const char *name, const theo_keypoints *k, bool half, theo_error *err) {
    theo_hdf_node *group;
    if (!file || !name || !k)
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "file, name and keypoints must not be NULL");
    THEO_TRY(open_path(file, name, &group, err));
    if (!theo_hdf_is_empty(group))
        return theo_fail(err, THEO_ARGUMENT, file->hdf.file.path, name, "the file holds this image already");
    const int64_t n = k->count, size[2] = {k->image_width, k->image_height};
    THEO_TRY(add_floats(file, group, "keypoints", 2, (int64_t[]){n, 2}, k->xy, half, err));
    THEO_TRY(add_floats(file, group, "scores", 1, &n, k->scores, half, err));
    if (k->descriptor_dim)
        THEO_TRY(add_descriptors(file, group, k, half, err));
    return theo_hdf_dataset(&file->hdf, group, "image_size", THEO_DTYPE_I64, 1, (int64_t[]){2}, size, err);
}

/* Index into B for every keypoint of A, -1 where it has no match. */
static theo_status add_indices(theo_h5 *file, theo_hdf_node *group, const int64_t n, const int32_t *partner, bool narrow,
                               theo_error *err) {
    if (!narrow)
        return theo_hdf_dataset(&file->hdf, group, "matches0", THEO_DTYPE_I32, 1, &n, partner, err);
    int16_t *narrowed = theo_alloc((size_t)n + 1, sizeof *narrowed);
    if (!narrowed)
        return theo_fail(err, THEO_MEMORY, file->hdf.file.path, "matches0", "out of memory");
    for (int64_t i = 0; i < n; i++)
        narrowed[i] = (int16_t)partner[i];
    theo_status status = theo_hdf_dataset(&file->hdf, group, "matches0", THEO_DTYPE_I16, 1, &n, narrowed, err);
    theo_free(narrowed);
    return status;
}

/* Spreads the pairs over the keypoints of A. *narrow: the indices fit 16 bits. */
static theo_status spread(theo_h5 *file, int n, const int32_t *pairs, const float *similarity, int count, int32_t *partner,
                          float *scores, bool *narrow, theo_error *err) {
    *narrow = true;
    for (int i = 0; i < n; i++)
        partner[i] = -1;
    for (int i = 0; i < count; i++) {
        int a = pairs[2 * i], b = pairs[2 * i + 1];
        if (a < 0 || a >= n || b < 0)
            return theo_fail(err, THEO_ARGUMENT, file->hdf.file.path, NULL, "pair %d is (%d, %d), but image A has %d keypoints",
                             i, a, b, n);
        partner[a] = b;
        scores[a] = similarity[i];
        *narrow = *narrow && b <= INT16_MAX;
    }
    return THEO_OK;
}

static theo_status add_pair(theo_h5 *file, theo_hdf_node *group, int n, const int32_t *pairs, const float *similarity, int count,
                            theo_error *err) {
    bool narrow = true;
    int32_t *partner = theo_alloc((size_t)n + 1, sizeof *partner);
    float *scores = theo_alloc((size_t)n + 1, sizeof *scores);
    theo_status status = partner && scores ? spread(file, n, pairs, similarity, count, partner, scores, &narrow, err)
                                           : theo_fail(err, THEO_MEMORY, file->hdf.file.path, NULL, "out of memory");
    if (!status)
        status = add_indices(file, group, n, partner, narrow, err);
    if (!status)
        status = add_floats(file, group, "matching_scores0", 1, &(int64_t){n}, scores, true, err);
    theo_free(partner);
    theo_free(scores);
    return status;
}

/* hloc writes '/' in the names of a pair as '-'. */
static theo_status open_pair(theo_h5 *file, const char *name_a, const char *name_b, theo_hdf_node **group, theo_error *err) {
    char *a = theo_strdup(name_a), *b = theo_strdup(name_b);
    theo_status status = a && b ? THEO_OK : theo_fail(err, THEO_MEMORY, file->hdf.file.path, NULL, "out of memory");
    for (char *c = a; !status && *c; c++)
        *c = *c == '/' ? '-' : *c;
    for (char *c = b; !status && *c; c++)
        *c = *c == '/' ? '-' : *c;
    if (!status)
        status = theo_hdf_group(&file->hdf, file->hdf.root, a, group, err);
    if (!status)
        status = theo_hdf_group(&file->hdf, *group, b, group, err);
    theo_free(a);
    theo_free(b);
    return status;
}

theo_status theo_h5_add_matches(theo_h5 *file, const char *name_a, const char *name_b, int keypoints_a, const int32_t *pairs,
                                const float *similarity, int count, theo_error *err) {
    theo_hdf_node *group;
    if (!file || !name_a || !name_b || keypoints_a < 0 || count < 0 || (count && (!pairs || !similarity)))
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "file, names, pairs and similarities must be given");
    THEO_TRY(open_pair(file, name_a, name_b, &group, err));
    if (!theo_hdf_is_empty(group))
        return theo_fail(err, THEO_ARGUMENT, file->hdf.file.path, name_a, "the file holds the pair with %s already", name_b);
    return add_pair(file, group, keypoints_a, pairs, similarity, count, err);
}

theo_status theo_h5_close(theo_h5 *file, bool keep, theo_error *err) {
    if (!file)
        return THEO_OK;
    theo_status status = THEO_OK;
    if (keep)
        status = theo_hdf_finish(&file->hdf, err);
    else
        theo_hdf_abandon(&file->hdf);
    theo_free(file);
    return status;
}
