/* The .h5 files that we write, read by libhdf5. */
#include "scratch.h"
#include "t.h"

#include <hdf5.h>
#include <theo/files.h>

/* Reads a dataset as double; the number of elements, or -1. */
static int64_t read_dataset(hid_t file, const char *path, int rank, hsize_t dims[2], H5T_class_t type_class, size_t type_bytes,
                            double *out, int64_t room) {
    hid_t set = H5Dopen2(file, path, H5P_DEFAULT);
    CHECK_MSG(set >= 0, "%s", path);
    if (set < 0)
        return -1;
    hid_t space = H5Dget_space(set), type = H5Dget_type(set);
    int64_t count = H5Sget_simple_extent_npoints(space);
    CHECK_MSG(H5Sget_simple_extent_ndims(space) == rank && H5Tget_class(type) == type_class && H5Tget_size(type) == type_bytes,
              "%s", path);
    H5Sget_simple_extent_dims(space, dims, NULL);
    CHECK(count <= room && H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(set);
    return count;
}

enum { N = 5, C = 3 };
static const float xy[2 * N] = {0.5f, 1, 2, 3, 4.25f, 5, 6, 7, 639.5f, 479.5f};
static const float scores[N] = {0.5f, 0.25f, 0.125f, 1, 0.0078125f};
static const float descriptors[N * C] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const theo_keypoints points = {.count = N,
                                      .descriptor_dim = C,
                                      .xy = xy,
                                      .scores = scores,
                                      .descriptors = descriptors,
                                      .image_width = 640,
                                      .image_height = 480};

static void check_keypoints(hid_t file, const char *name, bool half, int n, int c) {
    char path[256];
    double values[64];
    hsize_t dims[2];
    size_t bytes = half ? 2 : 4;
    snprintf(path, sizeof path, "%s/keypoints", name);
    CHECK(read_dataset(file, path, 2, dims, H5T_FLOAT, bytes, values, 64) == 2 * n && dims[0] == (hsize_t)n && dims[1] == 2);
    for (int i = 0; i < 2 * n; i++)
        CHECK_NEAR(values[i], (double)xy[i], 0);
    snprintf(path, sizeof path, "%s/scores", name);
    CHECK(read_dataset(file, path, 1, dims, H5T_FLOAT, bytes, values, 64) == n);
    for (int i = 0; i < n; i++)
        CHECK_NEAR(values[i], (double)scores[i], 0);
    snprintf(path, sizeof path, "%s/image_size", name);
    CHECK(read_dataset(file, path, 1, dims, H5T_INTEGER, 8, values, 64) == 2 && values[0] == 640 && values[1] == 480);
    snprintf(path, sizeof path, "%s/descriptors", name);
    if (!c) {
        CHECK(H5Lexists(file, path, H5P_DEFAULT) == 0);
        return;
    }
    CHECK(read_dataset(file, path, 2, dims, H5T_FLOAT, bytes, values, 64) == n * c && dims[0] == (hsize_t)c &&
          dims[1] == (hsize_t)n);
    for (int i = 0; i < n; i++)
        for (int j = 0; j < c; j++)
            CHECK_NEAR(values[j * n + i], (double)descriptors[i * c + j], 0);
}

static void test_keypoints(bool half) {
    theo_error err;
    theo_h5 *h5;
    theo_keypoints none = {.count = 0, .descriptor_dim = C, .image_width = 640, .image_height = 480}, plain = points;
    plain.descriptor_dim = 0;
    CHECK_MSG(theo_h5_create(&h5, scratch("k.h5"), &err) == THEO_OK, "%s", err.message);
    CHECK_MSG(theo_h5_add_keypoints(h5, "db/1.jpg", &points, half, &err) == THEO_OK, "%s", err.message);
    CHECK_MSG(theo_h5_add_keypoints(h5, "db/\xc3\xbc.jpg", &none, half, &err) == THEO_OK, "%s", err.message);
    CHECK_MSG(theo_h5_add_keypoints(h5, "/top.png", &plain, half, &err) == THEO_OK, "%s", err.message);
    CHECK(theo_h5_add_keypoints(h5, "db/1.jpg", &points, half, &err) == THEO_ARGUMENT && strstr(err.message, "already"));
    CHECK(theo_h5_add_keypoints(h5, "db", &points, half, &err) == THEO_ARGUMENT);
    CHECK(theo_h5_add_keypoints(h5, "", &points, half, &err) == THEO_ARGUMENT);
    CHECK(theo_h5_add_keypoints(h5, "top.png/scores", &points, half, &err) == THEO_ARGUMENT);
    CHECK(access(scratch("k.h5"), F_OK) != 0);
    CHECK_MSG(theo_h5_close(h5, true, &err) == THEO_OK, "%s", err.message);

    hid_t file = H5Fopen(scratch("k.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    CHECK(file >= 0);
    check_keypoints(file, "db/1.jpg", half, N, C);
    check_keypoints(file, "db/\xc3\xbc.jpg", half, 0, C);
    check_keypoints(file, "top.png", half, N, 0);
    H5Fclose(file);
    unlink(scratch("k.h5"));
}

static void test_matches(void) {
    theo_error err;
    theo_h5 *h5;
    hsize_t dims[2];
    double values[8];
    const int32_t pairs[] = {0, 7, 3, 2}, far[] = {1, 40000}, outside[] = {4, 0};
    const float similarity[] = {0.75f, 0.5f};
    CHECK(theo_h5_create(&h5, scratch("m.h5"), &err) == THEO_OK);
    CHECK_MSG(theo_h5_add_matches(h5, "db/a.jpg", "db/b.jpg", 4, pairs, similarity, 2, &err) == THEO_OK, "%s", err.message);
    CHECK(theo_h5_add_matches(h5, "db/a.jpg", "db/c.jpg", 4, far, similarity, 1, &err) == THEO_OK);
    CHECK(theo_h5_add_matches(h5, "x.jpg", "y.jpg", 0, NULL, NULL, 0, &err) == THEO_OK);
    CHECK(theo_h5_add_matches(h5, "db/a.jpg", "db/b.jpg", 4, pairs, similarity, 2, &err) == THEO_ARGUMENT);
    CHECK(theo_h5_add_matches(h5, "p", "q", 4, outside, similarity, 1, &err) == THEO_ARGUMENT);
    CHECK(theo_h5_close(h5, true, &err) == THEO_OK);

    hid_t file = H5Fopen(scratch("m.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    CHECK(read_dataset(file, "db-a.jpg/db-b.jpg/matches0", 1, dims, H5T_INTEGER, 2, values, 8) == 4);
    CHECK(values[0] == 7 && values[1] == -1 && values[2] == -1 && values[3] == 2);
    CHECK(read_dataset(file, "db-a.jpg/db-b.jpg/matching_scores0", 1, dims, H5T_FLOAT, 2, values, 8) == 4);
    CHECK(values[0] == 0.75 && values[1] == 0 && values[3] == 0.5);
    CHECK(read_dataset(file, "db-a.jpg/db-c.jpg/matches0", 1, dims, H5T_INTEGER, 4, values, 8) == 4 && values[1] == 40000);
    CHECK(read_dataset(file, "x.jpg/y.jpg/matches0", 1, dims, H5T_INTEGER, 2, values, 8) == 0);
    H5Fclose(file);
    unlink(scratch("m.h5"));
}

/* Many images in one folder: more links than HDF5 itself keeps in a header. Then a library that adds one more, as hloc does. */
static void test_many(void) {
    enum { MANY = 5000 };
    theo_error err;
    theo_h5 *h5;
    char name[64];
    theo_keypoints one = {.count = 1, .xy = xy, .scores = scores, .image_width = 640, .image_height = 480};
    CHECK(theo_h5_create(&h5, scratch("many.h5"), &err) == THEO_OK);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "folder/image_%05d.jpg", i);
        CHECK(theo_h5_add_keypoints(h5, name, &one, false, &err) == THEO_OK);
    }
    CHECK(theo_h5_close(h5, true, &err) == THEO_OK);
    hid_t file = H5Fopen(scratch("many.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
    H5G_info_t info;
    CHECK(H5Gget_info_by_name(file, "folder", &info, H5P_DEFAULT) >= 0 && info.nlinks == MANY);
    hid_t added = H5Gcreate2(file, "folder/new.jpg", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(added >= 0);
    H5Gclose(added);
    H5Fclose(file);
    file = H5Fopen(scratch("many.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    CHECK(H5Gget_info_by_name(file, "folder", &info, H5P_DEFAULT) >= 0 && info.nlinks == MANY + 1);
    CHECK(H5Lexists(file, "folder/new.jpg", H5P_DEFAULT) > 0 &&
          H5Lexists(file, "folder/image_04321.jpg/scores", H5P_DEFAULT) > 0);
    H5Fclose(file);
    unlink(scratch("many.h5"));
}

static void test_files(void) {
    theo_error err;
    theo_h5 *h5;
    CHECK(theo_h5_create(&h5, "no/such/folder/a.h5", &err) == THEO_MISSING && !h5);
    CHECK(theo_h5_create(&h5, scratch("empty.h5"), &err) == THEO_OK && theo_h5_close(h5, true, &err) == THEO_OK);
    hid_t file = H5Fopen(scratch("empty.h5"), H5F_ACC_RDONLY, H5P_DEFAULT);
    CHECK(file >= 0);
    H5Fclose(file);
    unlink(scratch("empty.h5"));
    CHECK(theo_h5_create(&h5, scratch("gone.h5"), &err) == THEO_OK &&
          theo_h5_add_keypoints(h5, "a", &points, false, &err) == THEO_OK);
    CHECK(theo_h5_close(h5, false, &err) == THEO_OK && scratch_count() == 0);
}

int main(void) {
    test_keypoints(false);
    test_keypoints(true);
    test_matches();
    test_many();
    test_files();
    scratch_remove();
    return t_done("h5");
}
