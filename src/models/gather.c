#include "models/gather.h"
#include "base/error.h"
#include <stdarg.h>
#include <stdio.h>

theo_tensor_name theo_name(const char *format, ...) {
    theo_tensor_name n;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(n.text, sizeof n.text, format, arguments);
    va_end(arguments);
    return n;
}

const theo_weight *theo_gather_expect(const theo_gather *g, const char *name, int rank, const int64_t *shape) {
    return theo_problems_expect(g->problems, g->weights, theo_name("%s%s", g->prefix, name).text, rank, shape, g->largest);
}

void theo_gather_floats(const theo_gather *g, float **out, const char *name, int rank, const int64_t *shape) {
    const theo_weight *w = theo_gather_expect(g, name, rank, shape);
    theo_packing_add(g->packing, (theo_packing_job){.kind = THEO_PACKING_FLOATS, .weight = w, .floats = out});
}

void theo_gather_norm(const theo_gather *g, theo_norm *norm, const char *stem, int width) {
    theo_gather_floats(g, &norm->gamma, theo_name("%s.weight", stem).text, 1, (int64_t[]){width});
    theo_gather_floats(g, &norm->beta, theo_name("%s.bias", stem).text, 1, (int64_t[]){width});
}

void theo_gather_layer(const theo_gather *g, theo_packed **packed, theo_packing_job job, const char *stem, int rank,
                       const int64_t *shape, int biases) {
    job.packed = packed;
    job.weight = theo_gather_expect(g, theo_name("%s.weight", stem).text, rank, shape);
    if (biases)
        job.bias = theo_gather_expect(g, theo_name("%s.bias", stem).text, 1, (int64_t[]){biases});
    theo_packing_add(g->packing, job);
}

void theo_gather_turned(const theo_gather *g, theo_packed **packed, const char *stem, int out, int in, int turned, int head) {
    theo_packing_job job = {.kind = THEO_PACKING_LINEAR, .turned = head ? turned : 0, .head = head};
    theo_gather_layer(g, packed, job, stem, 2, (int64_t[]){out, in}, out);
}

void theo_gather_linear(const theo_gather *g, theo_packed **packed, const char *stem, int out, int in) {
    theo_gather_layer(g, packed, (theo_packing_job){.kind = THEO_PACKING_LINEAR}, stem, 2, (int64_t[]){out, in}, out);
}

void theo_gather_1x1(const theo_gather *g, theo_packed **packed, const char *stem, int out, int in) {
    theo_gather_layer(g, packed, (theo_packing_job){.kind = THEO_PACKING_LINEAR}, stem, 4, (int64_t[]){out, in, 1, 1}, out);
}

void theo_gather_3x3(const theo_gather *g, theo_packed **packed, const char *stem, int out, int in) {
    theo_gather_layer(g, packed, (theo_packing_job){.kind = THEO_PACKING_CONV}, stem, 4, (int64_t[]){out, in, 3, 3}, out);
}

void theo_norm_free(theo_norm *norm) {
    theo_free_aligned(norm->gamma);
    theo_free_aligned(norm->beta);
}

void theo_packed_visit_free(theo_packed *packed, void *unused) {
    (void)unused;
    theo_packed_free(packed);
}

void theo_packed_visit_bytes(theo_packed *packed, void *bytes) {
    *(size_t *)bytes += packed ? theo_packed_bytes(packed) : 0;
}
