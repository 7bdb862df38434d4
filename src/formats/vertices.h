/* vertices.h - rows of attributes picked for the vertices of a file. */
#ifndef THEO_FORMATS_VERTICES_H
#define THEO_FORMATS_VERTICES_H

#include <theo/export.h>

/* THEO_ARGUMENT unless counts and pointers make sense and every face names vertices that are there. `what` stands in the message.
 */
theo_status theo_vertices_check(const theo_vertices *v, const int32_t *faces, int64_t face_count, const char *what,
                                theo_pool *pool, theo_error *err);

/* The row of vertex i. */
static inline size_t theo_vertex_row(const theo_vertices *v, int64_t i) {
    return (size_t)(v->rows ? v->rows[i] : i);
}

#endif
