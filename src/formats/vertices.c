#include "formats/vertices.h"

#include "base/error.h"
#include "base/pool.h"

#include <stdatomic.h>

enum { CHECKED_FACES = 1 << 16 }; /* by a task */

typedef struct face_check {
    const int32_t *faces;
    int64_t numbers; /* three for each face */
    uint32_t limit;
    _Atomic int64_t wrong; /* a number that names no vertex, or INT64_MIN */
} face_check;

static void check_faces(void *context, int task, int worker) {
    face_check *c = context;
    const int64_t first = (int64_t)task * 3 * CHECKED_FACES, end = first + 3 * CHECKED_FACES;
    uint32_t largest = 0;
    (void)worker;
    for (int64_t i = first; i < end && i < c->numbers; i++)
        largest = (uint32_t)c->faces[i] > largest ? (uint32_t)c->faces[i] : largest; /* negative numbers become large ones */
    if (largest >= c->limit)
        atomic_store(&c->wrong, (int64_t)(int32_t)largest);
}

theo_status theo_vertices_check(const theo_vertices *v, const int32_t *faces, int64_t face_count, const char *what,
                                theo_pool *pool, theo_error *err) {
    if (!v || v->count < 0 || v->count > INT32_MAX || (v->count && !v->positions))
        return theo_fail(err, THEO_ARGUMENT, NULL, what, "vertices need positions; 0 to 2^31 - 1 of them are possible");
    if (face_count < 0 || (face_count && !faces))
        return theo_fail(err, THEO_ARGUMENT, NULL, what, "%lld faces were announced and none given", (long long)face_count);
    face_check c = {.faces = faces, .numbers = 3 * face_count, .limit = (uint32_t)v->count, .wrong = INT64_MIN};
    theo_pool_run(pool, (int)((face_count + CHECKED_FACES - 1) / CHECKED_FACES), check_faces, &c);
    const int64_t wrong = atomic_load(&c.wrong);
    if (wrong != INT64_MIN)
        return theo_fail(err, THEO_ARGUMENT, NULL, what, "a face names vertex %lld; there are %lld, counted from 0",
                         (long long)wrong, (long long)v->count);
    return THEO_OK;
}
