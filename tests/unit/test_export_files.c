/* PLY, GLB and EXR files: what stands in them, the same bytes on any number of threads, full disks, and refusals. Their content
 * is checked by readers of other making too (tests/golden/export.py, tests/cli/test_depth.py). */
#include "image_files.h"
#include "scratch.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <theo/export.h>
#include <theo/files.h>

#ifdef THEO_OPENEXR
#include <openexr.h>
#endif

enum { WIDTH = 211, HEIGHT = 97, PIXELS = WIDTH * HEIGHT };

static float points[3 * PIXELS], normals[3 * PIXELS], depth[PIXELS];
static uint8_t colors[3 * PIXELS];
static theo_mesh *mesh;
static theo_pool *pool;

static void fill(void) {
    theo_error err;
    for (int i = 0; i < PIXELS; i++) {
        depth[i] = 2 + (float)(i * 31 % 17) / 100;
        for (int k = 0; k < 3; k++) {
            points[3 * i + k] = depth[i] * (float)(k == 2 ? 1 : k ? i / WIDTH : i % WIDTH) / 100;
            normals[3 * i + k] = k == 2 ? -1 : 0;
            colors[3 * i + k] = (uint8_t)((uint32_t)(3 * i + k) * 2654435761u >> 24); /* compresses badly */
        }
    }
    const theo_depth_map map = {WIDTH, HEIGHT, depth, NULL};
    CHECK(theo_pool_open(&pool, 3, &err) == THEO_OK);
    CHECK(theo_mesh_from_depth(&mesh, &map, INFINITY, pool, &err) == THEO_OK && mesh->vertex_count == PIXELS);
}

static theo_vertices vertices(void) {
    return (theo_vertices){mesh->vertex_count, mesh->pixels, points, normals, colors};
}

static theo_status write_ply(const char *path, theo_pool *threads, theo_error *err) {
    const theo_vertices v = vertices();
    return theo_ply_write(path, &v, mesh->faces, NULL, mesh->face_count, "one line", threads, err);
}

static theo_status write_glb(const char *path, theo_pool *threads, theo_error *err) {
    static const theo_glb_camera camera = {{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, 100, WIDTH, HEIGHT, {255, 0, 0}};
    const theo_glb_part part = {"a \"name\"", vertices(), mesh->faces, mesh->face_count, NULL, 0, 0, 0};
    const theo_glb_scene scene = {.parts = &part, .part_count = 1, .cameras = &camera, .camera_count = 1};
    return theo_glb_write(path, &scene, threads, err);
}

static theo_status write_exr(const char *path, theo_pool *threads, theo_error *err) {
    return theo_exr_write(path, points, WIDTH, HEIGHT, 3, threads, err);
}

static theo_status write_npz(const char *path, theo_pool *threads, theo_error *err) {
    const theo_array array = {"points", THEO_DTYPE_F32, 3, {HEIGHT, WIDTH, 3}, points};
    return theo_npz_write(path, &array, 1, true, threads, err);
}

static theo_status write_png(const char *path, theo_pool *threads, theo_error *err) {
    const theo_image image = {.width = WIDTH, .height = HEIGHT, .channels = 3, .pixels = colors};
    return theo_image_save_png(&image, path, NULL, 0, threads, err);
}

typedef theo_status (*write_fn)(const char *path, theo_pool *threads, theo_error *err);
static const write_fn writers[] = {write_ply, write_glb, write_npz, write_png, write_exr};
static int writer_count = 5; /* the last one is EXR's */

static void test_threads(void) {
    theo_error err;
    for (int w = 0; w < writer_count; w++) {
        size_t bytes[2] = {0};
        CHECK_MSG(writers[w](scratch("one"), NULL, &err) == THEO_OK, "%s", err.message);
        CHECK_MSG(writers[w](scratch("three"), pool, &err) == THEO_OK, "%s", err.message);
        uint8_t *one = read_file(scratch("one"), &bytes[0]), *three = read_file(scratch("three"), &bytes[1]);
        CHECK_MSG(one && three && bytes[0] > 1000 && bytes[0] == bytes[1] && memcmp(one, three, bytes[0]) == 0, "writer %d", w);
        free(one);
        free(three);
    }
}

/* A file that may not grow beyond some length stands for a full disk: an error, the old file stays, nothing is left beside it. */
static void test_full_disk(void) {
    const struct rlimit small = {3000, RLIM_INFINITY};
    struct rlimit before;
    theo_error err;
    if (getrlimit(RLIMIT_FSIZE, &before) != 0 || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
        return;
    for (int w = 0; w < writer_count; w++)
        for (int threads = 0; threads < 2; threads++) {
            CHECK(theo_file_write(scratch("full"), "old", 3, &err) == THEO_OK);
            const int files = scratch_count();
            setrlimit(RLIMIT_FSIZE, &small);
            const theo_status status = writers[w](scratch("full"), threads ? pool : NULL, &err);
            setrlimit(RLIMIT_FSIZE, &before);
            CHECK_MSG(status == THEO_IO && is_clear(&err, "full") && strstr(err.message, strerror(EFBIG)), "writer %d: %s", w,
                      status ? err.message : "no error");
            size_t bytes;
            uint8_t *old = read_file(scratch("full"), &bytes);
            CHECK(old && bytes == 3 && memcmp(old, "old", 3) == 0 && scratch_count() == files);
            free(old);
        }
}

static void test_no_folder_and_devices(void) {
    theo_error err;
    for (int w = 0; w < writer_count; w++) {
        CHECK(writers[w](NULL, pool, &err) == THEO_ARGUMENT && strstr(err.message, "path"));
        const theo_status status = writers[w]("no/such/folder/x", pool, &err);
        CHECK_MSG(status == THEO_MISSING && is_clear(&err, "no/such/folder/x"), "writer %d", w);
        if (access("/dev/full", W_OK) == 0)
            CHECK_MSG(writers[w]("/dev/full", pool, &err) == THEO_IO && is_clear(&err, "/dev/full"), "writer %d", w);
    }
    /* A pipe takes what is made in order; EXR goes back to its table of offsets. */
    CHECK(write_ply("/dev/null", pool, &err) == THEO_OK && write_glb("/dev/null", pool, &err) == THEO_OK);
}

/* ---- PLY */

static void test_ply(void) {
    static const char head[] = "ply\nformat binary_little_endian 1.0\nelement vertex 2\nproperty float x\nproperty float y\n"
                               "property float z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nelement face 1\n"
                               "property list uchar int vertex_indices\nproperty uchar red\nproperty uchar green\n"
                               "property uchar blue\nend_header\n";
    static const float positions[9] = {0, 0, 0, 1, 2, 3, 4, 5, 6};
    static const uint8_t rgb[9] = {0, 0, 0, 1, 2, 3, 4, 5, 6}, face_rgb[3] = {7, 8, 9};
    static const int32_t rows[2] = {2, 1}, face[3] = {0, 1, 0}, wrong[3] = {0, 1, 2}, negative[3] = {0, -1, 1};
    theo_vertices v = {2, rows, positions, NULL, rgb};
    theo_error err;
    size_t bytes;
    CHECK(theo_ply_write(scratch("a.ply"), &v, face, face_rgb, 1, NULL, pool, &err) == THEO_OK);
    uint8_t *file = read_file(scratch("a.ply"), &bytes);
    const size_t start = sizeof head - 1;
    CHECK(file && bytes == start + 2 * 15 + 16 && memcmp(file, head, start) == 0);
    CHECK(file && memcmp(file + start, positions + 6, 12) == 0 && memcmp(file + start + 12, rgb + 6, 3) == 0 &&
          memcmp(file + start + 15, positions + 3, 12) == 0 && file[start + 30] == 3 &&
          memcmp(file + start + 31, face, 12) == 0 && memcmp(file + start + 43, face_rgb, 3) == 0);
    free(file);
    CHECK(theo_ply_write(scratch("a.ply"), &v, wrong, NULL, 1, NULL, NULL, &err) == THEO_ARGUMENT &&
          strstr(err.message, "vertex 2"));
    CHECK(theo_ply_write(scratch("a.ply"), &v, negative, NULL, 1, NULL, NULL, &err) == THEO_ARGUMENT &&
          strstr(err.message, "vertex -1"));
    CHECK(theo_ply_write(scratch("a.ply"), &v, NULL, NULL, 1, NULL, NULL, &err) == THEO_ARGUMENT);
    CHECK(theo_ply_write(scratch("a.ply"), &v, face, NULL, 1, "two\nlines", NULL, &err) == THEO_ARGUMENT);
    v.positions = NULL;
    CHECK(theo_ply_write(scratch("a.ply"), &v, NULL, NULL, 0, NULL, NULL, &err) == THEO_ARGUMENT);
    v.count = 0;
    CHECK(theo_ply_write(scratch("a.ply"), &v, NULL, NULL, 0, NULL, NULL, &err) == THEO_OK);
}

/* ---- GLB */

static void test_glb_refusals(void) {
    theo_glb_part part = {NULL, vertices(), mesh->faces, mesh->face_count, NULL, 0, 0, 0};
    theo_glb_camera camera = {{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, 100, 0, HEIGHT, {0}};
    theo_glb_scene scene = {.parts = &part, .part_count = 1};
    theo_error err;
    points[777] = NAN;
    CHECK(theo_glb_write(scratch("bad"), &scene, pool, &err) == THEO_ARGUMENT && strstr(err.message, "finite"));
    points[777] = INFINITY;
    CHECK(theo_glb_write(scratch("bad"), &scene, pool, &err) == THEO_ARGUMENT && strstr(err.message, "finite"));
    points[777] = 1;
    part.texture = "GIF89a..";
    part.texture_bytes = 8;
    CHECK(theo_glb_write(scratch("bad"), &scene, pool, &err) == THEO_ARGUMENT && strstr(err.message, "JPEG"));
    part.texture = "\xff\xd8\xff";
    part.texture_bytes = 3;
    CHECK(theo_glb_write(scratch("bad"), &scene, pool, &err) == THEO_ARGUMENT && strstr(err.message, "0 x 0"));
    part.texture = NULL;
    scene.cameras = &camera;
    scene.camera_count = 1;
    CHECK(theo_glb_write(scratch("bad"), &scene, pool, &err) == THEO_ARGUMENT && strstr(err.message, "camera 0"));
    scene.parts = NULL;
    CHECK(theo_glb_write(scratch("bad"), &scene, pool, &err) == THEO_ARGUMENT);
    CHECK(theo_glb_write(scratch("bad"), NULL, pool, &err) == THEO_ARGUMENT);
    CHECK(access(scratch("bad"), F_OK) != 0);
}

/* ---- EXR */

#ifdef THEO_OPENEXR
/* One channel of a file, by OpenEXR's own decoder. */
static bool read_channel(const char *path, const char *name, float *plane, int width, int height) {
    exr_context_t exr;
    exr_context_initializer_t setup = EXR_DEFAULT_CONTEXT_INITIALIZER;
    exr_attr_box2i_t window;
    int32_t rows;
    if (exr_start_read(&exr, path, &setup) != EXR_ERR_SUCCESS)
        return false;
    bool good = exr_get_data_window(exr, 0, &window) == EXR_ERR_SUCCESS && window.max.x == width - 1 &&
                window.max.y == height - 1 && exr_get_scanlines_per_chunk(exr, 0, &rows) == EXR_ERR_SUCCESS;
    for (int y = 0; good && y < height; y += rows) {
        exr_chunk_info_t chunk;
        exr_decode_pipeline_t pipe = EXR_DECODE_PIPELINE_INITIALIZER;
        good = exr_read_scanline_chunk_info(exr, 0, y, &chunk) == EXR_ERR_SUCCESS &&
               exr_decoding_initialize(exr, 0, &chunk, &pipe) == EXR_ERR_SUCCESS;
        bool found = false;
        for (int c = 0; good && c < pipe.channel_count; c++) {
            if (strcmp(pipe.channels[c].channel_name, name) != 0)
                continue;
            found = true;
            pipe.channels[c].decode_to_ptr = (uint8_t *)(plane + (size_t)y * (size_t)width);
            pipe.channels[c].user_pixel_stride = 4;
            pipe.channels[c].user_line_stride = 4 * width;
            pipe.channels[c].user_bytes_per_element = 4;
            pipe.channels[c].user_data_type = EXR_PIXEL_FLOAT;
        }
        good = good && found && exr_decoding_choose_default_routines(exr, 0, &pipe) == EXR_ERR_SUCCESS &&
               exr_decoding_run(exr, 0, &pipe) == EXR_ERR_SUCCESS;
        exr_decoding_destroy(exr, &pipe);
    }
    exr_finish(&exr);
    return good;
}

static void check_exr(const float *map, int width, int height, int channels) {
    static const char *const names[] = {"R", "G", "B"};
    float *plane = malloc((size_t)width * (size_t)height * sizeof *plane);
    theo_error err;
    CHECK_MSG(theo_exr_write(scratch("a.exr"), map, width, height, channels, pool, &err) == THEO_OK, "%s", err.message);
    for (int c = 0; c < channels; c++) {
        CHECK(read_channel(scratch("a.exr"), channels == 1 ? "Y" : names[c], plane, width, height));
        bool same = true;
        for (int i = 0; i < width * height; i++)
            same = same && memcmp(plane + i, map + (size_t)i * (size_t)channels + c, 4) == 0;
        CHECK_MSG(same, "%dx%d, channel %d of %d", width, height, c, channels);
    }
    free(plane);
}

static void test_exr(void) {
    static float odd[PIXELS * 3];
    uint32_t state = 9;
    for (int i = 0; i < PIXELS * 3; i++) { /* every kind of bits, NaN with its payload too; noise is stored raw */
        state = state * 1664525 + 1013904223;
        memcpy(odd + i, &state, 4);
        if (i % 3000 < 1500)
            odd[i] = INFINITY;
    }
    check_exr(points, WIDTH, HEIGHT, 3);
    check_exr(depth, WIDTH, HEIGHT, 1);
    check_exr(odd, WIDTH, HEIGHT, 3);
    check_exr(odd, 1, 1, 1);
    check_exr(odd, PIXELS, 1, 3);
    check_exr(odd, 1, PIXELS, 1);
    check_exr(points, WIDTH, 16, 3);
    check_exr(points, WIDTH, 17, 3);
}

static void test_exr_refusals(void) {
    theo_error err;
    CHECK(theo_exr_available());
    CHECK(theo_exr_write(scratch("a.exr"), depth, 0, 4, 1, NULL, &err) == THEO_ARGUMENT && strstr(err.message, "0 x 4"));
    CHECK(theo_exr_write(scratch("a.exr"), depth, 4, 4, 2, NULL, &err) == THEO_ARGUMENT);
    CHECK(theo_exr_write(scratch("a.exr"), NULL, 4, 4, 1, NULL, &err) == THEO_ARGUMENT);
}
#else
static void test_exr(void) {
    theo_error err;
    CHECK(!theo_exr_available());
    CHECK(theo_exr_write(scratch("a.exr"), depth, 4, 4, 1, NULL, &err) == THEO_UNSUPPORTED && strstr(err.message, "OpenEXR"));
}

static void test_exr_refusals(void) {}
#endif

int main(void) {
    fill();
    if (!theo_exr_available())
        writer_count--;
    test_threads();
    test_full_disk();
    test_no_folder_and_devices();
    test_ply();
    test_glb_refusals();
    test_exr();
    test_exr_refusals();
    theo_mesh_free(mesh);
    theo_pool_close(pool);
    scratch_remove();
    return t_done("test_export_files");
}
