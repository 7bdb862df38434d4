#include "models/maker.h"
#include "models/gather.h"
#include <string.h>

theo_maker theo_maker_new(theo_bump *memory, int capacity, theo_fill_fn fill) {
    theo_maker m = {.capacity = capacity, .memory = memory, .fill = fill};
    m.arrays = theo_bump_alloc(memory, (size_t)capacity, sizeof *m.arrays);
    m.failed = !m.arrays;
    return m;
}

void theo_make(theo_maker *m, const char *name, int rank, const int64_t *shape) {
    if (m->failed || m->count == m->capacity) {
        m->failed = true;
        return;
    }
    theo_array *a = &m->arrays[m->count++];
    *a = (theo_array){.dtype = THEO_DTYPE_F32, .rank = rank};
    size_t elements = 1;
    for (int i = 0; i < rank; i++) {
        a->shape[i] = shape[i];
        elements *= (size_t)shape[i];
    }
    float *data = theo_bump_alloc(m->memory, elements, sizeof(float));
    a->name = theo_bump_text(m->memory, name, strlen(name));
    a->data = data;
    m->failed = !data || !a->name;
    if (!m->failed)
        m->fill(data, elements, name, rank, shape);
}

void theo_make_alias(theo_maker *m, const char *name, const char *of) {
    int i = 0;
    while (!m->failed && i < m->count && strcmp(m->arrays[i].name, of) != 0)
        i++;
    if (m->failed || i == m->count || m->count == m->capacity) {
        m->failed = true;
        return;
    }
    theo_array *a = &m->arrays[m->count++];
    *a = m->arrays[i];
    a->name = theo_bump_text(m->memory, name, strlen(name));
    m->failed = !a->name;
}

void theo_make_bias(theo_maker *m, const char *stem, int out) {
    theo_make(m, theo_name("%s.bias", stem).text, 1, (int64_t[]){out});
}

void theo_make_kernel(theo_maker *m, const char *stem, int first, int second, int side) {
    theo_make(m, theo_name("%s.weight", stem).text, 4, (int64_t[]){first, second, side, side});
}

void theo_make_norm(theo_maker *m, const char *stem, int width) {
    theo_make(m, theo_name("%s.weight", stem).text, 1, (int64_t[]){width});
    theo_make_bias(m, stem, width);
}

void theo_make_linear(theo_maker *m, const char *stem, int out, int in) {
    theo_make(m, theo_name("%s.weight", stem).text, 2, (int64_t[]){out, in});
    theo_make_bias(m, stem, out);
}

void theo_make_conv(theo_maker *m, const char *stem, int out, int in, int side) {
    theo_make_kernel(m, stem, out, in, side);
    theo_make_bias(m, stem, out);
}
