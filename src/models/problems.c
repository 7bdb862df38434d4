#include "models/problems.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

void theo_problems_note(theo_problems *p, theo_status status, const char *tensor, const char *format, ...) {
    char sentence[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (!p->count++) {
        p->status = status;
        snprintf(p->first, sizeof p->first, "%s", tensor);
    }
    size_t need = strlen(tensor) + strlen(sentence) + 4;
    if (p->length + need >= sizeof p->text) {
        p->untold++;
        return;
    }
    p->length +=
        (size_t)snprintf(p->text + p->length, sizeof p->text - p->length, "%s%s %s", p->length ? "; " : "", tensor, sentence);
}

/* "[" and "]", and at most 19 digits and ", " for each size: a hostile file may have the largest ones. */
enum { SHAPE_BYTES = 3 + THEO_MAX_RANK * 21 };

/* "[64, 1, 3, 3]"; a size of 0 or less is any: "*". */
static const char *shape_text(char text[SHAPE_BYTES], int rank, const int64_t *shape) {
    size_t n = (size_t)snprintf(text, SHAPE_BYTES, "[");
    for (int i = 0; i < rank; i++) {
        const char *comma = i ? ", " : "";
        n += (size_t)(shape[i] > 0 ? snprintf(text + n, SHAPE_BYTES - n, "%s%lld", comma, (long long)shape[i])
                                   : snprintf(text + n, SHAPE_BYTES - n, "%s*", comma));
    }
    snprintf(text + n, SHAPE_BYTES - n, "]");
    return text;
}

static bool is_float(theo_dtype type) {
    return type == THEO_DTYPE_F32 || type == THEO_DTYPE_F16 || type == THEO_DTYPE_BF16 || type == THEO_DTYPE_F64;
}

const theo_weight *theo_problems_expect(theo_problems *p, const theo_weights *weights, const char *name, int rank,
                                        const int64_t *want, int64_t limit) {
    char got_text[SHAPE_BYTES], want_text[SHAPE_BYTES];
    const theo_weight *w = theo_weights_find(weights, name);
    if (!w) {
        theo_problems_note(p, THEO_MISSING, name, "is missing");
        return NULL;
    }
    bool fits = w->rank == rank;
    for (int i = 0; fits && i < rank; i++)
        fits = want[i] > 0 ? w->shape[i] == want[i] : w->shape[i] >= 1 && w->shape[i] <= limit;
    if (!fits) {
        theo_problems_note(p, THEO_SHAPE, name, "has shape %s, needed is %s", shape_text(got_text, w->rank, w->shape),
                           shape_text(want_text, rank, want));
        return NULL;
    }
    if (!is_float(w->dtype)) {
        theo_problems_note(p, THEO_SHAPE, name, "is not a floating-point tensor");
        return NULL;
    }
    return w;
}

theo_status theo_problems_status(const theo_problems *p, const char *path, const char *network, theo_error *err) {
    if (!p->count)
        return THEO_OK;
    if (p->untold)
        return theo_fail(err, p->status, path, p->first, "not a usable %s, %d problems: %s; and %d more", network, p->count,
                         p->text, p->untold);
    return theo_fail(err, p->status, path, p->first, "not a usable %s, %d problem%s: %s", network, p->count,
                     p->count == 1 ? "" : "s", p->text);
}
