#include "api/sequence.h"
#include <math.h>

struct theo_sequence {
    theo_sequence_mode mode;
    int width, height; /* of the first good frame; 0: none yet */
    theo_sequence_view view;
};

theo_status theo_sequence_open(theo_sequence **sequence, theo_sequence_mode mode, theo_error *err) {
    if (!sequence)
        return theo_fail(err, THEO_ARGUMENT, NULL, "sequence", "is NULL");
    *sequence = NULL;
    if (mode != THEO_SEQUENCE_FIRST && mode != THEO_SEQUENCE_EMA)
        return theo_fail(err, THEO_ARGUMENT, NULL, "mode", "%d is neither %d (first) nor %d (ema)", (int)mode,
                         THEO_SEQUENCE_FIRST, THEO_SEQUENCE_EMA);
    theo_sequence *s = theo_alloc(1, sizeof *s);
    if (!s)
        return theo_fail(err, THEO_MEMORY, NULL, "sequence", "out of memory");
    s->mode = mode;
    *sequence = s;
    return THEO_OK;
}

void theo_sequence_close(theo_sequence *sequence) {
    theo_free(sequence);
}

theo_status theo_sequence_check(const theo_sequence *s, int width, int height, theo_error *err) {
    if (!s->width || (int64_t)width * s->height == (int64_t)height * s->width)
        return THEO_OK;
    return theo_fail(
        err, THEO_ARGUMENT, NULL, "image",
        "has %dx%d pixels, the sequence began with %dx%d: its frames must have one aspect, since they share a field of view",
        width, height, s->width, s->height);
}

bool theo_sequence_has_view(const theo_sequence *s) {
    return s->width > 0;
}

/* 0.9 old + 0.1 new of the logarithms. */
static double smoothed(double old, double new) {
    return exp(0.9 * log(old) + 0.1 * log(new));
}

void theo_sequence_next(const theo_sequence *s, const theo_sequence_view *own, theo_sequence_view *view) {
    if (!theo_sequence_has_view(s)) {
        if (own)
            *view = *own;
    } else if (!own || s->mode == THEO_SEQUENCE_FIRST) {
        *view = s->view;
    } else {
        view->half_width = smoothed(s->view.half_width, own->half_width);
        view->scale = smoothed(s->view.scale, own->scale);
    }
}

void theo_sequence_advance(theo_sequence *s, int width, int height, const theo_sequence_view *view) {
    if (!s->width) {
        s->width = width;
        s->height = height;
    }
    s->view = *view;
}
