/* glb.c - glTF 2.0 in its binary form: a header, a chunk of JSON, a chunk of numbers and textures. */
#include "formats/glb.h"

#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "formats/vertices.h"

#include <math.h>
#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers are written as they lie in memory, which must be little-endian"
#endif

enum {
    MAGIC = 0x46546C67,
    VERSION = 2,
    CHUNK_JSON = 0x4E4F534A,
    CHUNK_BIN = 0x004E4942,
    HEADER_BYTES = 12,
    CHUNK_HEADER_BYTES = 8,
    SECTIONS_EACH = 5, /* of a primitive, at most */
    BOUNDS_PART = 1 << 15
};

/* ---------------------------------------------------------------- what there is */

const char *theo_glb_media_type(const void *data, size_t bytes) {
    if (bytes >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0)
        return "image/jpeg";
    return bytes >= 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0 ? "image/png" : NULL;
}

int theo_glb_find(const theo_glb_layout *layout, int primitive, theo_glb_content content) {
    for (int i = 0; i < layout->section_count; i++)
        if (layout->sections[i].primitive == primitive && layout->sections[i].content == content)
            return i;
    return -1;
}

int theo_glb_image_number(const theo_glb_layout *layout, int index) {
    int number = 0;
    for (int i = 0; i < index; i++)
        number += layout->sections[i].content == THEO_GLB_IMAGE;
    return number;
}

static bool all_finite(const double *values, int count) {
    for (int i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

static theo_status check_part(const theo_glb_part *part, theo_pool *pool, theo_error *err) {
    THEO_TRY(theo_vertices_check(&part->vertices, part->faces, part->face_count, "GLB", pool, err));
    if (!part->texture)
        return THEO_OK;
    if (!theo_glb_media_type(part->texture, part->texture_bytes))
        return theo_fail(err, THEO_ARGUMENT, NULL, "texture", "is neither a JPEG nor a PNG file");
    if (part->texture_width < 1 || part->texture_height < 1)
        return theo_fail(err, THEO_ARGUMENT, NULL, "texture", "of %d x %d pixels: both sizes must be at least 1",
                         part->texture_width, part->texture_height);
    return THEO_OK;
}

static theo_status check_scene(const theo_glb_scene *scene, theo_pool *pool, theo_error *err) {
    if (!scene || scene->part_count < 0 || scene->camera_count < 0 || (scene->part_count && !scene->parts) ||
        (scene->camera_count && !scene->cameras))
        return theo_fail(err, THEO_ARGUMENT, NULL, "scene", "parts or cameras were announced and none given");
    for (int i = 0; i < scene->part_count; i++)
        THEO_TRY(check_part(&scene->parts[i], pool, err));
    for (int i = 0; i < scene->camera_count; i++) {
        const theo_glb_camera *c = &scene->cameras[i];
        if (!all_finite(c->camera_to_world, 16) || !(c->focal > 0) || !isfinite(c->focal) || c->width < 1 || c->height < 1)
            return theo_fail(err, THEO_ARGUMENT, NULL, "cameras",
                             "camera %d: its matrix must be finite, focal length and sizes above 0", i);
    }
    if ((scene->transform && !all_finite(scene->transform, 16)) || !(scene->camera_size >= 0) || !isfinite(scene->camera_size))
        return theo_fail(err, THEO_ARGUMENT, NULL, "scene", "transform and camera_size must be finite, camera_size 0 or more");
    return THEO_OK;
}

/* ---------------------------------------------------------------- pyramids of cameras */

enum { PYRAMID_VERTICES = 5, PYRAMID_LINES = 8 };

typedef struct pyramids {
    float *positions;
    uint8_t *colors;
    int32_t *indices;
} pyramids;

static void make_pyramid(const pyramids *p, const theo_glb_camera *c, double size, int index) {
    static const int32_t lines[2 * PYRAMID_LINES] = {0, 1, 0, 2, 0, 3, 0, 4, 1, 2, 2, 3, 3, 4, 4, 1};
    static const int corners[4][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
    const int32_t first = PYRAMID_VERTICES * index;
    for (int v = 0; v < PYRAMID_VERTICES; v++) {
        const double scale = size / c->height; /* scene units for a pixel of the picture */
        const double x = v ? corners[v - 1][0] * 0.5 * c->width * scale : 0, y = v ? corners[v - 1][1] * 0.5 * size : 0;
        const double z = v ? c->focal * scale : 0;
        for (int k = 0; k < 3; k++) {
            const double *row = c->camera_to_world + 4 * k;
            p->positions[3 * (first + v) + k] = (float)(row[0] * x + row[1] * y + row[2] * z + row[3]);
        }
        memcpy(p->colors + 3 * (first + v), c->color, 3);
    }
    for (int i = 0; i < 2 * PYRAMID_LINES; i++)
        p->indices[2 * PYRAMID_LINES * index + i] = first + lines[i];
}

static bool make_pyramids(pyramids *p, const theo_glb_scene *scene) {
    const size_t count = (size_t)scene->camera_count;
    const double size = scene->camera_size > 0 ? scene->camera_size : 0.05;
    p->positions = theo_alloc(count, 3 * PYRAMID_VERTICES * sizeof *p->positions);
    p->colors = theo_alloc(count, 3 * PYRAMID_VERTICES);
    p->indices = theo_alloc(count, 2 * PYRAMID_LINES * sizeof *p->indices);
    if (!p->positions || !p->colors || !p->indices)
        return false;
    for (int i = 0; i < scene->camera_count; i++)
        make_pyramid(p, &scene->cameras[i], size, i);
    return true;
}

static void free_pyramids(const pyramids *p) {
    theo_free(p->positions);
    theo_free(p->colors);
    theo_free(p->indices);
}

/* ---------------------------------------------------------------- layout */

static void add_primitives(theo_glb_layout *l, const pyramids *cameras) {
    for (int i = 0; i < l->scene->part_count; i++) {
        const theo_glb_part *part = &l->scene->parts[i];
        if (part->vertices.count == 0)
            continue;
        l->primitives[l->primitive_count++] = (theo_glb_primitive){
            .mode = part->face_count ? THEO_GLB_TRIANGLES : THEO_GLB_POINTS,
            .name = part->name         ? part->name
                    : part->face_count ? "mesh"
                                       : "points",
            .vertices = part->vertices,
            .indices = part->faces,
            .index_count = 3 * part->face_count,
            .textured = part->texture ? part : NULL,
        };
    }
    if (l->scene->camera_count)
        l->primitives[l->primitive_count++] = (theo_glb_primitive){
            .mode = THEO_GLB_LINES,
            .name = "cameras",
            .vertices = {.count = (int64_t)PYRAMID_VERTICES * l->scene->camera_count,
                         .positions = cameras->positions,
                         .colors = cameras->colors},
            .indices = cameras->indices,
            .index_count = (int64_t)2 * PYRAMID_LINES * l->scene->camera_count,
        };
}

static void add_section(theo_glb_layout *l, theo_glb_content content, int primitive, int64_t records, size_t record_bytes) {
    if (records == 0)
        return;
    l->sections[l->section_count++] = (theo_glb_section){content, primitive, records, record_bytes, l->bytes};
    l->bytes += ((uint64_t)records * record_bytes + 3) / 4 * 4;
}

/* Everything that has an accessor, then the images: section i is buffer view and accessor i. */
static void add_sections(theo_glb_layout *l) {
    for (int i = 0; i < l->primitive_count; i++) {
        const theo_glb_primitive *p = &l->primitives[i];
        const int64_t n = p->vertices.count;
        add_section(l, THEO_GLB_POSITION, i, n, 12);
        add_section(l, THEO_GLB_NORMAL, i, p->vertices.normals ? n : 0, 12);
        add_section(l, THEO_GLB_TEXCOORD, i, p->textured ? n : 0, 8);
        add_section(l, THEO_GLB_COLOR, i, p->vertices.colors && !p->textured ? n : 0, 8);
        add_section(l, THEO_GLB_INDICES, i, p->index_count, 4);
    }
    for (int i = 0; i < l->primitive_count; i++)
        if (l->primitives[i].textured)
            add_section(l, THEO_GLB_IMAGE, i, (int64_t)l->primitives[i].textured->texture_bytes, 1);
}

/* ---------------------------------------------------------------- attributes */

static inline void transform_point(const double m[12], const float in[3], float out[3]) {
    const double x = (double)in[0], y = (double)in[1], z = (double)in[2];
    for (int k = 0; k < 3; k++)
        out[k] = (float)(m[4 * k] * x + m[4 * k + 1] * y + m[4 * k + 2] * z + m[4 * k + 3]);
}

/* A transformed direction of length 1. Zero, which is none, becomes the axis towards the viewer. */
static inline void transform_normal(const double m[12], const float in[3], float out[3]) {
    const double x = (double)in[0], y = (double)in[1], z = (double)in[2];
    double n[3], length = 0;
    for (int k = 0; k < 3; k++) {
        n[k] = m[4 * k] * x + m[4 * k + 1] * y + m[4 * k + 2] * z;
        length += n[k] * n[k];
    }
    length = sqrt(length);
    for (int k = 0; k < 3; k++)
        out[k] = length > 0 ? (float)(n[k] / length) : k == 2 ? 1.0f : 0.0f;
}

typedef struct bounds_job {
    const theo_vertices *vertices;
    const double *transform;
    float (*bounds)[6]; /* of each task: low, high; high[0] = NaN where a position is not finite */
} bounds_job;

static void find_bounds(void *context, int task, int worker) {
    const bounds_job *j = context;
    const int64_t first = (int64_t)task * BOUNDS_PART, rest = j->vertices->count - first;
    const int64_t end = first + (rest < BOUNDS_PART ? rest : BOUNDS_PART);
    float low[3] = {INFINITY, INFINITY, INFINITY}, high[3] = {-INFINITY, -INFINITY, -INFINITY}, sum = 0;
    (void)worker;
    for (int64_t i = first; i < end; i++) {
        float p[3];
        transform_point(j->transform, j->vertices->positions + 3 * theo_vertex_row(j->vertices, i), p);
        for (int k = 0; k < 3; k++) {
            low[k] = p[k] < low[k] ? p[k] : low[k];
            high[k] = p[k] > high[k] ? p[k] : high[k];
            sum += p[k] * 0.0f; /* NaN for what is not finite */
        }
    }
    float *out = j->bounds[task];
    for (int k = 0; k < 3; k++) {
        out[k] = low[k];
        out[3 + k] = sum == 0.0f ? high[k] : NAN;
    }
}

static theo_status bound_primitive(theo_glb_primitive *p, const double transform[12], theo_pool *pool, theo_error *err) {
    const int tasks = (int)((p->vertices.count + BOUNDS_PART - 1) / BOUNDS_PART);
    float(*bounds)[6] = theo_alloc((size_t)tasks, sizeof *bounds);
    if (!bounds)
        return theo_fail(err, THEO_MEMORY, NULL, "GLB", "no memory for bounds");
    theo_pool_run(pool, tasks, find_bounds, &(bounds_job){&p->vertices, transform, bounds});
    bool finite = true;
    for (int t = 0; t < tasks; t++)
        for (int k = 0; k < 3; k++) {
            finite = finite && isfinite(bounds[t][3 + k]);
            p->low[k] = t && p->low[k] < bounds[t][k] ? p->low[k] : bounds[t][k];
            p->high[k] = t && p->high[k] > bounds[t][3 + k] ? p->high[k] : bounds[t][3 + k];
        }
    theo_free(bounds);
    if (!finite)
        return theo_fail(err, THEO_ARGUMENT, NULL, p->name, "a position is not finite; GLB holds finite ones only");
    return THEO_OK;
}

/* ---------------------------------------------------------------- the binary chunk */

typedef struct maker {
    const theo_glb_primitive *of;
    const double *transform;
    const uint16_t *linear; /* [256] */
} maker;

static const void *make_positions(const void *context, int64_t first, int64_t count, void *scratch) {
    const maker *m = context;
    float *out = scratch;
    for (int64_t i = first; i < first + count; i++, out += 3)
        transform_point(m->transform, m->of->vertices.positions + 3 * theo_vertex_row(&m->of->vertices, i), out);
    return scratch;
}

static const void *make_normals(const void *context, int64_t first, int64_t count, void *scratch) {
    const maker *m = context;
    float *out = scratch;
    for (int64_t i = first; i < first + count; i++, out += 3)
        transform_normal(m->transform, m->of->vertices.normals + 3 * theo_vertex_row(&m->of->vertices, i), out);
    return scratch;
}

/* v from the top, as glTF has it. */
static const void *make_texcoords(const void *context, int64_t first, int64_t count, void *scratch) {
    const maker *m = context;
    const size_t width = (size_t)m->of->textured->texture_width;
    const double x_scale = 1.0 / (double)width, y_scale = 1.0 / m->of->textured->texture_height;
    float *out = scratch;
    for (int64_t i = first; i < first + count; i++, out += 2) {
        const size_t pixel = theo_vertex_row(&m->of->vertices, i);
        out[0] = (float)(((double)(pixel % width) + 0.5) * x_scale);
        out[1] = (float)(((double)(pixel / width) + 0.5) * y_scale);
    }
    return scratch;
}

static const void *make_colors(const void *context, int64_t first, int64_t count, void *scratch) {
    const maker *m = context;
    uint16_t *out = scratch;
    for (int64_t i = first; i < first + count; i++, out += 4) {
        const uint8_t *rgb = m->of->vertices.colors + 3 * theo_vertex_row(&m->of->vertices, i);
        for (int k = 0; k < 3; k++)
            out[k] = m->linear[rgb[k]];
        out[3] = UINT16_MAX;
    }
    return scratch;
}

static const void *make_indices(const void *context, int64_t first, int64_t count, void *scratch) {
    const maker *m = context;
    (void)count;
    (void)scratch;
    return m->of->indices + first;
}

static const void *make_image(const void *context, int64_t first, int64_t count, void *scratch) {
    const maker *m = context;
    (void)count;
    (void)scratch;
    return (const uint8_t *)m->of->textured->texture + first;
}

/* glTF's vertex colours are linear (3.7.2.1), photos are sRGB (IEC 61966-2-1): 16 bits hold each of their 256 values. */
static void make_linear(uint16_t linear[256]) {
    for (int i = 0; i < 256; i++) {
        const double v = i / 255.0;
        linear[i] = (uint16_t)lrint(65535 * (v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4)));
    }
}

static theo_status write_sections(theo_file *file, const theo_glb_layout *l, theo_pool *pool, theo_error *err) {
    static const theo_make_fn make[] = {
        [THEO_GLB_POSITION] = make_positions, [THEO_GLB_NORMAL] = make_normals,  [THEO_GLB_TEXCOORD] = make_texcoords,
        [THEO_GLB_COLOR] = make_colors,       [THEO_GLB_INDICES] = make_indices, [THEO_GLB_IMAGE] = make_image,
    };
    uint16_t linear[256];
    make_linear(linear);
    for (int i = 0; i < l->section_count; i++) {
        const theo_glb_section *s = &l->sections[i];
        const maker m = {&l->primitives[s->primitive], l->transform, linear};
        const uint64_t bytes = (uint64_t)s->records * s->record_bytes, end = i + 1 < l->section_count ? s[1].offset : l->bytes;
        THEO_TRY(theo_file_append_made(file, s->records, s->record_bytes, make[s->content], &m, pool, err));
        THEO_TRY(theo_file_append(file, (const char[4]){0}, (size_t)(end - s->offset - bytes), err));
    }
    return THEO_OK;
}

/* ---------------------------------------------------------------- the file */

static theo_status write_file(theo_file *file, const theo_glb_layout *l, theo_text *json, theo_pool *pool, theo_error *err) {
    theo_text head = {0};
    theo_glb_json(json, l);
    while (json->length % 4)
        theo_text_add(json, " ", 1);
    const uint64_t total = HEADER_BYTES + CHUNK_HEADER_BYTES + json->length + (l->bytes ? CHUNK_HEADER_BYTES + l->bytes : 0);
    if (total > UINT32_MAX)
        return theo_fail(err, THEO_BOUNDS, file->path, NULL, "%llu bytes; a GLB file holds less than 4 GiB",
                         (unsigned long long)total);
    theo_text_add32(&head, MAGIC);
    theo_text_add32(&head, VERSION);
    theo_text_add32(&head, total);
    theo_text_add32(&head, json->length);
    theo_text_add32(&head, CHUNK_JSON);
    theo_text_add(&head, json->data, json->length);
    if (l->bytes) {
        theo_text_add32(&head, l->bytes);
        theo_text_add32(&head, CHUNK_BIN);
    }
    const theo_status status = head.failed || json->failed
                                   ? theo_fail(err, THEO_MEMORY, file->path, NULL, "no memory for its header")
                                   : theo_file_append(file, head.data, head.length, err);
    theo_text_free(&head);
    return status ? status : write_sections(file, l, pool, err);
}

static theo_status write_layout(const char *path, const theo_glb_layout *l, theo_pool *pool, theo_error *err) {
    theo_file file;
    theo_text json = {0};
    THEO_TRY(theo_file_open(&file, path, err));
    const theo_status status = write_file(&file, l, &json, pool, err);
    theo_text_free(&json);
    if (status == THEO_OK)
        return theo_file_commit(&file, err);
    theo_file_abandon(&file);
    return status;
}

static theo_status lay_out_and_write(const char *path, theo_glb_layout *l, const pyramids *cameras, theo_pool *pool,
                                     theo_error *err) {
    add_primitives(l, cameras);
    for (int i = 0; i < l->primitive_count; i++)
        THEO_TRY(bound_primitive(&l->primitives[i], l->transform, pool, err));
    add_sections(l);
    return write_layout(path, l, pool, err);
}

theo_status theo_glb_write(const char *path, const theo_glb_scene *scene, theo_pool *pool, theo_error *err) {
    THEO_TRY(check_scene(scene, pool, err));
    static const double identity[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
    const size_t primitives = (size_t)scene->part_count + 1;
    theo_glb_layout l = {.scene = scene};
    memcpy(l.transform, scene->transform ? scene->transform : identity, sizeof l.transform);
    l.primitives = theo_alloc(primitives, sizeof *l.primitives);
    l.sections = theo_alloc(primitives, SECTIONS_EACH * sizeof *l.sections);
    pyramids cameras = {0};
    const theo_status status = l.primitives && l.sections && make_pyramids(&cameras, scene)
                                   ? lay_out_and_write(path, &l, &cameras, pool, err)
                                   : theo_fail(err, THEO_MEMORY, path, NULL, "no memory for its parts");
    free_pyramids(&cameras);
    theo_free(l.primitives);
    theo_free(l.sections);
    return status;
}
