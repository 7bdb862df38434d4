/* Depth edges and meshes: borders, values that do not count, nothing left, threads, and both ways of making triangles. */
#include "t.h"

#include <theo/export.h>

static theo_depth_map map_of(int width, int height, const float *depth, const uint8_t *valid) {
    return (theo_depth_map){width, height, depth, valid};
}

/* The rule, word by word. */
static int slow_edge(const theo_depth_map *m, int x, int y, float threshold) {
    float low = INFINITY, high = -INFINITY;
    for (int v = y - 1; v <= y + 1; v++)
        for (int u = x - 1; u <= x + 1; u++) {
            if (u < 0 || v < 0 || u >= m->width || v >= m->height)
                continue;
            const int i = v * m->width + u;
            const bool counts = (!m->valid || m->valid[i]) && m->depth[i] > 0 && m->depth[i] < INFINITY;
            const float depth = counts ? m->depth[i] : INFINITY;
            low = fminf(low, depth);
            high = fmaxf(high, depth);
        }
    const int i = y * m->width + x;
    const bool counts = (!m->valid || m->valid[i]) && m->depth[i] > 0 && m->depth[i] < INFINITY;
    return counts && (high - low) / m->depth[i] > threshold;
}

static uint32_t noise(void) {
    static uint32_t state = 5;
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

static void fill(float *depth, uint8_t *valid, int count) {
    static const float odd[] = {INFINITY, -INFINITY, NAN, 0, -1, 1e-40f, 1e30f};
    for (int i = 0; i < count; i++) {
        depth[i] = 1 + (float)(noise() % 100) / 200;
        if (noise() % 20 == 0)
            depth[i] = odd[noise() % (sizeof odd / sizeof *odd)];
        valid[i] = noise() % 10 ? 1 : 0;
    }
}

static void test_edges(void) {
    static const int sizes[][2] = {{1, 1}, {1, 9}, {9, 1}, {2, 2}, {3, 3}, {37, 23}, {64, 8}};
    static const float thresholds[] = {0, 0.04f, 0.3f, 1e9f, INFINITY};
    static float depth[64 * 64];
    static uint8_t valid[64 * 64], edge[64 * 64];
    theo_pool *pool;
    theo_error err;
    CHECK(theo_pool_open(&pool, 3, &err) == THEO_OK);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t t = 0; t < sizeof thresholds / sizeof *thresholds; t++) {
            const int width = sizes[s][0], height = sizes[s][1];
            fill(depth, valid, width * height);
            const theo_depth_map m = map_of(width, height, depth, t % 2 ? valid : NULL);
            CHECK(theo_depth_edges(&m, thresholds[t], edge, s % 2 ? pool : NULL, &err) == THEO_OK);
            for (int i = 0; i < width * height; i++)
                if (edge[i] != slow_edge(&m, i % width, i / width, thresholds[t]))
                    CHECK_MSG(false, "%dx%d, threshold %g: pixel %d", width, height, (double)thresholds[t], i);
        }
    theo_pool_close(pool);
}

/* Vertices and faces against quads found one by one. */
static void test_surface(int width, int height, float threshold, theo_pool *pool) {
    static float depth[64 * 64];
    static uint8_t valid[64 * 64], edge[64 * 64], used[64 * 64];
    static int32_t number[64 * 64];
    theo_mesh *mesh;
    theo_error err;
    fill(depth, valid, width * height);
    const theo_depth_map m = map_of(width, height, depth, valid);
    CHECK(theo_mesh_from_depth(&mesh, &m, threshold, pool, &err) == THEO_OK);
    CHECK(theo_depth_edges(&m, threshold, edge, NULL, &err) == THEO_OK);
    memset(used, 0, sizeof used);
    int64_t face = 0;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i + width < width * height; i++) {
            const int corner[4] = {i, i + width, i + width + 1, i + 1};
            bool whole = i % width + 1 < width;
            for (int k = 0; k < 4 && whole; k++) {
                const float d = depth[corner[k]];
                whole = valid[corner[k]] && d > 0 && d < INFINITY && !edge[corner[k]];
            }
            for (int k = 0; k < 4 && whole && round == 0; k++)
                used[corner[k]] = 1;
            if (!whole || round == 0)
                continue;
            const int32_t want[6] = {number[corner[0]], number[corner[1]], number[corner[2]],
                                     number[corner[0]], number[corner[2]], number[corner[3]]};
            CHECK(face + 2 <= mesh->face_count && memcmp(mesh->faces + 3 * face, want, sizeof want) == 0);
            face += 2;
        }
        int32_t count = 0;
        for (int i = 0; i < width * height && round == 0; i++) {
            number[i] = count;
            if (used[i]) {
                CHECK(count < mesh->vertex_count && mesh->pixels[count] == i);
                count++;
            }
        }
        CHECK(round == 1 || count == mesh->vertex_count);
    }
    CHECK(face == mesh->face_count);
    theo_mesh_free(mesh);
}

static void test_surfaces(void) {
    static const int sizes[][2] = {{1, 1}, {1, 9}, {9, 1}, {2, 2}, {3, 3}, {37, 23}, {64, 8}, {64, 64}};
    theo_pool *pool;
    theo_error err;
    CHECK(theo_pool_open(&pool, 3, &err) == THEO_OK);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        test_surface(sizes[s][0], sizes[s][1], INFINITY, NULL);
        test_surface(sizes[s][0], sizes[s][1], 0.4f, pool);
        test_surface(sizes[s][0], sizes[s][1], 0, pool);
    }
    theo_pool_close(pool);
}

static void test_nothing_left(void) {
    float depth[64];
    uint8_t valid[64] = {0};
    theo_mesh *mesh;
    theo_error err;
    for (int i = 0; i < 64; i++)
        depth[i] = 2;
    const theo_depth_map masked = map_of(8, 8, depth, valid), line = map_of(64, 1, depth, NULL);
    CHECK(theo_mesh_from_depth(&mesh, &masked, 0.04f, NULL, &err) == THEO_OK && mesh->vertex_count == 0 && mesh->face_count == 0);
    theo_mesh_free(mesh);
    CHECK(theo_mesh_from_depth(&mesh, &line, 0.04f, NULL, &err) == THEO_OK && mesh->vertex_count == 0 && mesh->face_count == 0);
    theo_mesh_free(mesh);
    theo_mesh_free(NULL);
}

/* Two triangles, each twice, the second time backwards; colours of the pixels at their right angles. */
static void test_triangles(void) {
    static const int32_t want[12] = {0, 1, 2, 2, 1, 0, 1, 2, 3, 3, 2, 1};
    static const uint8_t rgb[12] = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4};
    uint8_t valid[4] = {1, 1, 1, 1}, colors[12];
    theo_mesh *mesh;
    theo_error err;
    CHECK(theo_mesh_from_mask(&mesh, NULL, 2, 2, &err) == THEO_OK && mesh->vertex_count == 4 && mesh->face_count == 4 &&
          memcmp(mesh->faces, want, sizeof want) == 0);
    theo_mesh_face_colors(mesh, rgb, colors);
    CHECK(colors[0] == 1 && colors[3] == 1 && colors[6] == 4 && colors[9] == 4);
    CHECK(theo_mesh_drop_unused(mesh, &err) == THEO_OK && mesh->vertex_count == 4 && memcmp(mesh->faces, want, sizeof want) == 0);
    theo_mesh_free(mesh);
    valid[0] = 0;
    CHECK(theo_mesh_from_mask(&mesh, valid, 2, 2, &err) == THEO_OK && mesh->face_count == 2 &&
          memcmp(mesh->faces, want + 6, 6 * sizeof *want) == 0);
    CHECK(theo_mesh_drop_unused(mesh, &err) == THEO_OK && mesh->vertex_count == 3 && mesh->pixels[0] == 1 &&
          mesh->pixels[2] == 3);
    CHECK(mesh->faces[0] == 0 && mesh->faces[2] == 2 && mesh->faces[5] == 0);
    theo_mesh_face_colors(mesh, rgb, colors);
    CHECK(colors[0] == 4 && colors[3] == 4);
    theo_mesh_free(mesh);
    valid[1] = 0;
    CHECK(theo_mesh_from_mask(&mesh, valid, 2, 2, &err) == THEO_OK && mesh->vertex_count == 4 && mesh->face_count == 0);
    CHECK(theo_mesh_drop_unused(mesh, &err) == THEO_OK && mesh->vertex_count == 0);
    theo_mesh_free(mesh);
    CHECK(theo_mesh_from_mask(&mesh, NULL, 1, 5, &err) == THEO_OK && mesh->vertex_count == 5 && mesh->face_count == 0);
    theo_mesh_free(mesh);
}

static void test_refusals(void) {
    float depth[4] = {1, 1, 1, 1};
    uint8_t edge[4];
    theo_mesh *mesh;
    theo_error err;
    theo_depth_map m = map_of(2, 2, depth, NULL);
    CHECK(theo_mesh_from_depth(&mesh, &m, -1, NULL, &err) == THEO_ARGUMENT && !mesh && strstr(err.message, "threshold"));
    CHECK(theo_mesh_from_depth(&mesh, &m, NAN, NULL, &err) == THEO_ARGUMENT);
    CHECK(theo_mesh_from_depth(&mesh, NULL, 0, NULL, &err) == THEO_ARGUMENT);
    CHECK(theo_depth_edges(&m, 0.1f, NULL, NULL, &err) == THEO_ARGUMENT);
    CHECK(theo_mesh_from_mask(&mesh, NULL, 0, 5, &err) == THEO_ARGUMENT && strstr(err.message, "0 x 5"));
    CHECK(theo_mesh_from_mask(&mesh, NULL, 1 << 20, 1 << 20, &err) == THEO_ARGUMENT);
    m.height = 0;
    CHECK(theo_depth_edges(&m, 0.1f, edge, NULL, &err) == THEO_ARGUMENT);
}

static void test_view_transform(void) {
    static const double camera[16] = {0, -1, 0, 1, 1, 0, 0, 2, 0, 0, 1, 3, 0, 0, 0, 1}, flat[16] = {0};
    double transform[16];
    theo_error err;
    CHECK(theo_glb_transform_from_view(transform, camera, &err) == THEO_OK);
    /* The camera's centre goes to the origin, what it sees in front of it to +z, its right to -x. */
    for (int k = 0; k < 3; k++) {
        const double *row = transform + 4 * k;
        CHECK_NEAR(row[0] * 1 + row[1] * 2 + row[2] * 3 + row[3], 0, 1e-12);
        CHECK_NEAR(row[0] * 1 + row[1] * 2 + row[2] * 4 + row[3], k == 2 ? 1 : 0, 1e-12);
        CHECK_NEAR(row[0] * 1 + row[1] * 3 + row[2] * 3 + row[3], k == 0 ? -1 : 0, 1e-12);
    }
    CHECK(theo_glb_transform_from_view(transform, flat, &err) == THEO_ARGUMENT);
}

int main(void) {
    test_edges();
    test_surfaces();
    test_nothing_left();
    test_triangles();
    test_refusals();
    test_view_transform();
    return t_done("test_mesh");
}
