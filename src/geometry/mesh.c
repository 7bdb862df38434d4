/* mesh.c - triangles over the pixels of a map. Faces and vertices are counted per row first, so that rows can be written by any
 * thread, each to its own place. */
#include "base/error.h"
#include "base/pool.h"
#include "geometry/depth_edges.h"

#include <string.h>

/* A mesh with room for its vertices and faces; `public` is the first member, so that freeing the one frees the other. */
typedef struct mesh_block {
    theo_mesh public;
    int32_t *pixels, *faces; /* the same, writable */
} mesh_block;

static theo_status new_mesh(mesh_block **out, int width, int height, int64_t vertices, int64_t faces, theo_error *err) {
    mesh_block *m = theo_alloc(1, sizeof *m);
    if (m) {
        m->pixels = theo_alloc((size_t)vertices + 1, sizeof *m->pixels);           /* + 1: no block is empty */
        m->faces = theo_alloc_aligned(((size_t)faces + 1) * 3 * sizeof *m->faces); /* at most 2^32 of 12 bytes */
        m->public = (theo_mesh){width, height, vertices, m->pixels, faces, m->faces};
    }
    if (!m || !m->pixels || !m->faces) {
        theo_mesh_free(m ? &m->public : NULL);
        return theo_fail(err, THEO_MEMORY, NULL, "mesh", "no memory for %lld vertices and %lld faces", (long long)vertices,
                         (long long)faces);
    }
    *out = m;
    return THEO_OK;
}

void theo_mesh_free(theo_mesh *mesh) {
    mesh_block *m = (mesh_block *)(void *)mesh;
    if (!m)
        return;
    theo_free(m->pixels);
    theo_free_aligned(m->faces);
    theo_free(m);
}

static inline int32_t *put_face(int32_t *at, int32_t a, int32_t b, int32_t c) {
    at[0] = a;
    at[1] = b;
    at[2] = c;
    return at + 3;
}

/* ---------------------------------------------------------------- the surface of a depth map */

typedef struct surface {
    const theo_depth_map *map;
    float threshold;
    uint8_t *kept;             /* [height][width] pixels that count and are no edges */
    uint8_t *used;             /* [height][width] pixels of a quad */
    int64_t *vertices, *quads; /* [height + 1] numbers in each row, then of the rows before it */
    float *scratch;            /* of all workers */
    mesh_block *mesh;
} surface;

static void find_kept(void *context, int y, int worker) {
    const surface *s = context;
    const size_t width = (size_t)s->map->width;
    theo_depth_edge_row(s->map, s->threshold, y, NULL, s->kept + (size_t)y * width, s->scratch + 3 * width * (size_t)worker);
}

/* Does a quad have its top left corner at top[x]? bottom: the row below. */
static inline uint8_t is_quad(const uint8_t *top, const uint8_t *bottom, size_t x) {
    return top[x] & top[x + 1] & bottom[x] & bottom[x + 1];
}

/* Adds the corners of the quads between two rows to row `used`; their number. */
static int64_t mark_quads(uint8_t *used, const uint8_t *top, const uint8_t *bottom, size_t width) {
    int64_t count = 0;
    for (size_t x = 0; x + 1 < width; x++) {
        const uint8_t quad = is_quad(top, bottom, x);
        used[x] |= quad;
        used[x + 1] |= quad;
        count += quad;
    }
    return count;
}

static void count_row(void *context, int y, int worker) {
    const surface *s = context;
    const size_t width = (size_t)s->map->width;
    const uint8_t *kept = s->kept + (size_t)y * width;
    uint8_t *used = s->used + (size_t)y * width;
    (void)worker;
    memset(used, 0, width);
    s->quads[y] = y + 1 < s->map->height ? mark_quads(used, kept, kept + width, width) : 0;
    if (y > 0)
        mark_quads(used, kept - width, kept, width);
    int64_t count = 0;
    for (size_t x = 0; x < width; x++)
        count += used[x];
    s->vertices[y] = count;
}

/* From numbers in each row to numbers before each row. */
static void sum_up(int64_t *counts, int rows) {
    int64_t sum = 0;
    for (int y = 0; y <= rows; y++) {
        const int64_t count = y < rows ? counts[y] : 0;
        counts[y] = sum;
        sum += count;
    }
}

/* The vertices of row y, and the faces of the quads below it. Neighbours in a row that are both used have neighbouring numbers.
 */
static void write_row(void *context, int y, int worker) {
    const surface *s = context;
    const size_t width = (size_t)s->map->width;
    const uint8_t *kept = s->kept + (size_t)y * width, *used = s->used + (size_t)y * width;
    int32_t *pixel = s->mesh->pixels + s->vertices[y];
    (void)worker;
    for (size_t x = 0; x < width; x++)
        if (used[x])
            *pixel++ = (int32_t)((size_t)y * width + x);
    if (y + 1 == s->map->height)
        return;
    int32_t *face = s->mesh->faces + 6 * s->quads[y];
    int32_t top = (int32_t)s->vertices[y], bottom = (int32_t)s->vertices[y + 1];
    for (size_t x = 0; x + 1 < width; x++) {
        if (is_quad(kept, kept + width, x)) {
            face = put_face(face, top, bottom, bottom + 1);
            face = put_face(face, top, bottom + 1, top + 1);
        }
        top += used[x];
        bottom += used[width + x];
    }
}

static theo_status make_surface(surface *s, theo_pool *pool, theo_error *err) {
    const int width = s->map->width, height = s->map->height;
    theo_pool_run(pool, height, find_kept, s);
    theo_pool_run(pool, height, count_row, s);
    sum_up(s->vertices, height);
    sum_up(s->quads, height);
    THEO_TRY(new_mesh(&s->mesh, width, height, s->vertices[height], 2 * s->quads[height], err));
    theo_pool_run(pool, height, write_row, s);
    return THEO_OK;
}

theo_status theo_mesh_from_depth(theo_mesh **mesh, const theo_depth_map *map, float edge_threshold, theo_pool *pool,
                                 theo_error *err) {
    *mesh = NULL;
    THEO_TRY(theo_depth_map_check(map, edge_threshold, err));
    const size_t width = (size_t)map->width, height = (size_t)map->height;
    surface s = {
        .map = map,
        .threshold = edge_threshold,
        .kept = theo_alloc(width, height),
        .used = theo_alloc(width, height),
        .vertices = theo_alloc(height + 1, sizeof *s.vertices),
        .quads = theo_alloc(height + 1, sizeof *s.quads),
        .scratch = theo_alloc(3 * width * (size_t)theo_pool_threads(pool), sizeof *s.scratch),
    };
    theo_status status =
        s.kept && s.used && s.vertices && s.quads && s.scratch
            ? make_surface(&s, pool, err)
            : theo_fail(err, THEO_MEMORY, NULL, "mesh", "no memory for a map of %d x %d pixels", map->width, map->height);
    theo_free(s.kept);
    theo_free(s.used);
    theo_free(s.vertices);
    theo_free(s.quads);
    theo_free(s.scratch);
    if (!status)
        *mesh = &s.mesh->public;
    return status;
}

/* ---------------------------------------------------------------- every pixel a vertex */

/* Which triangles of the quad with its top left corner at pixel i are there: 1 = at the top left, 2 = at the bottom right. */
static inline int triangles_at(const uint8_t *valid, size_t i, size_t width) {
    if (!valid)
        return 3;
    const bool diagonal = valid[i + 1] && valid[i + width];
    return (diagonal && valid[i] ? 1 : 0) | (diagonal && valid[i + width + 1] ? 2 : 0);
}

static void count_triangles(const uint8_t *valid, int width, int height, int64_t counts[2]) {
    counts[0] = counts[1] = 0;
    for (int y = 0; y + 1 < height; y++)
        for (int x = 0; x + 1 < width; x++) {
            const int found = triangles_at(valid, (size_t)y * (size_t)width + (size_t)x, (size_t)width);
            counts[0] += found & 1;
            counts[1] += found >> 1;
        }
}

static void write_triangles(int32_t *faces, const uint8_t *valid, int width, int height, const int64_t counts[2]) {
    int32_t *front[2] = {faces, faces + 6 * counts[0]};
    int32_t *back[2] = {front[0] + 3 * counts[0], front[1] + 3 * counts[1]};
    for (int y = 0; y + 1 < height; y++)
        for (int x = 0; x + 1 < width; x++) {
            const int32_t i = y * width + x, below = i + width;
            const int found = triangles_at(valid, (size_t)i, (size_t)width);
            if (found & 1) {
                front[0] = put_face(front[0], i, i + 1, below);
                back[0] = put_face(back[0], below, i + 1, i);
            }
            if (found & 2) {
                front[1] = put_face(front[1], i + 1, below, below + 1);
                back[1] = put_face(back[1], below + 1, below, i + 1);
            }
        }
}

theo_status theo_mesh_from_mask(theo_mesh **mesh, const uint8_t *valid, int width, int height, theo_error *err) {
    mesh_block *m;
    int64_t counts[2];
    *mesh = NULL;
    if (width < 1 || height < 1 || height > (1 << 29) / width)
        return theo_fail(err, THEO_ARGUMENT, NULL, "mesh",
                         "a map of %d x %d pixels: both sizes are at least 1, their product at most 2^29", width, height);
    count_triangles(valid, width, height, counts);
    THEO_TRY(new_mesh(&m, width, height, (int64_t)width * height, 2 * (counts[0] + counts[1]), err));
    for (int32_t i = 0; i < width * height; i++)
        m->pixels[i] = i;
    write_triangles(m->faces, valid, width, height, counts);
    *mesh = &m->public;
    return THEO_OK;
}

theo_status theo_mesh_drop_unused(theo_mesh *mesh, theo_error *err) {
    mesh_block *m = (mesh_block *)(void *)mesh;
    if (!m)
        return theo_fail(err, THEO_ARGUMENT, NULL, "mesh", "is NULL");
    int32_t *numbers = theo_alloc((size_t)mesh->vertex_count + 1, sizeof *numbers), count = 0;
    if (!numbers)
        return theo_fail(err, THEO_MEMORY, NULL, "mesh", "no memory for %lld vertices", (long long)mesh->vertex_count);
    for (int64_t i = 0; i < 3 * mesh->face_count; i++)
        numbers[m->faces[i]] = 1;
    for (int64_t i = 0; i < mesh->vertex_count; i++)
        if (numbers[i]) {
            m->pixels[count] = m->pixels[i];
            numbers[i] = count++;
        }
    for (int64_t i = 0; i < 3 * mesh->face_count; i++)
        m->faces[i] = numbers[m->faces[i]];
    mesh->vertex_count = count;
    theo_free(numbers);
    return THEO_OK;
}

/* ---------------------------------------------------------------- colours of faces */

void theo_mesh_face_colors(const theo_mesh *mesh, const uint8_t *rgb, uint8_t *colors) {
    for (int64_t f = 0; f < mesh->face_count; f++) {
        const int32_t *face = mesh->faces + 3 * f;
        int32_t pixel[3];
        for (int k = 0; k < 3; k++)
            pixel[k] = mesh->pixels[face[k]];
        /* The right angle shares its row with one corner and its column with the other. */
        int right = 0;
        for (int k = 0; k < 3; k++) {
            const int32_t a = pixel[(k + 1) % 3], b = pixel[(k + 2) % 3], w = mesh->width;
            const bool row_a = pixel[k] / w == a / w, row_b = pixel[k] / w == b / w;
            const bool column_a = pixel[k] % w == a % w, column_b = pixel[k] % w == b % w;
            if ((row_a && column_b) || (row_b && column_a))
                right = k;
        }
        memcpy(colors + 3 * f, rgb + 3 * (size_t)pixel[right], 3);
    }
}
