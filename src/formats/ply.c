/* ply.c - binary little-endian PLY (Turk 1994). */
#include "base/error.h"
#include "base/file.h"
#include "formats/text.h"
#include "formats/vertices.h"

#include <string.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers are written as they lie in memory, which must be little-endian"
#endif

static size_t vertex_bytes(const theo_vertices *v) {
    return 12u + (v->normals ? 12u : 0u) + (v->colors ? 3u : 0u);
}

static const void *make_vertices(const void *context, int64_t first, int64_t count, void *scratch) {
    const theo_vertices *v = context;
    uint8_t *at = scratch;
    for (int64_t i = first; i < first + count; i++) {
        const size_t row = 3 * theo_vertex_row(v, i);
        memcpy(at, v->positions + row, 12);
        at += 12;
        if (v->normals) {
            memcpy(at, v->normals + row, 12);
            at += 12;
        }
        if (v->colors) {
            memcpy(at, v->colors + row, 3);
            at += 3;
        }
    }
    return scratch;
}

typedef struct face_list {
    const int32_t *faces;
    const uint8_t *colors;
} face_list;

static const void *make_faces(const void *context, int64_t first, int64_t count, void *scratch) {
    const face_list *list = context;
    uint8_t *at = scratch;
    for (int64_t f = first; f < first + count; f++) {
        *at++ = 3;
        memcpy(at, list->faces + 3 * f, 12);
        at += 12;
        if (list->colors) {
            memcpy(at, list->colors + 3 * f, 3);
            at += 3;
        }
    }
    return scratch;
}

static const char colors_words[] = "property uchar red\nproperty uchar green\nproperty uchar blue\n";

static void make_header(theo_text *text, const theo_vertices *v, const face_list *list, int64_t face_count, const char *comment) {
    theo_text_printf(text, "ply\nformat binary_little_endian 1.0\n");
    if (comment)
        theo_text_printf(text, "comment %s\n", comment);
    theo_text_printf(text, "element vertex %lld\nproperty float x\nproperty float y\nproperty float z\n", (long long)v->count);
    if (v->normals)
        theo_text_printf(text, "property float nx\nproperty float ny\nproperty float nz\n");
    if (v->colors)
        theo_text_printf(text, "%s", colors_words);
    if (face_count)
        theo_text_printf(text, "element face %lld\nproperty list uchar int vertex_indices\n%s", (long long)face_count,
                         list->colors ? colors_words : "");
    theo_text_printf(text, "end_header\n");
}

static theo_status write_all(theo_file *file, const theo_vertices *v, const face_list *list, int64_t face_count,
                             const char *comment, theo_pool *pool, theo_error *err) {
    theo_text header = {0};
    make_header(&header, v, list, face_count, comment);
    theo_status status = header.failed ? theo_fail(err, THEO_MEMORY, file->path, NULL, "no memory for its header")
                                       : theo_file_append(file, header.data, header.length, err);
    theo_text_free(&header);
    if (!status)
        status = theo_file_append_made(file, v->count, vertex_bytes(v), make_vertices, v, pool, err);
    if (!status)
        status = theo_file_append_made(file, face_count, list->colors ? 16 : 13, make_faces, list, pool, err);
    return status;
}

theo_status theo_ply_write(const char *path, const theo_vertices *vertices, const int32_t *faces, const uint8_t *face_colors,
                           int64_t face_count, const char *comment, theo_pool *pool, theo_error *err) {
    theo_file file;
    THEO_TRY(theo_vertices_check(vertices, faces, face_count, "PLY", pool, err));
    if (comment && strpbrk(comment, "\r\n"))
        return theo_fail(err, THEO_ARGUMENT, NULL, "comment", "must be one line");
    THEO_TRY(theo_file_open(&file, path, err));
    const theo_status status = write_all(&file, vertices, &(face_list){faces, face_colors}, face_count, comment, pool, err);
    if (status == THEO_OK)
        return theo_file_commit(&file, err);
    theo_file_abandon(&file);
    return status;
}
