/* sequence.h - what a theo_sequence carries from frame to frame. */
#ifndef THEO_API_SEQUENCE_H
#define THEO_API_SEQUENCE_H

#include "base/error.h"
#include <theo/depth.h>

/* What one frame says, or all so far. */
typedef struct theo_sequence_view {
    double half_width; /* tan(fov_x / 2) */
    double scale;      /* metric scale */
} theo_sequence_view;

/* THEO_ARGUMENT for a frame of another aspect than the first one's. */
theo_status theo_sequence_check(const theo_sequence *sequence, int width, int height, theo_error *err);
/* Is anything known yet? */
bool theo_sequence_has_view(const theo_sequence *sequence);
/* What holds for a frame that says `own` (NULL: it says nothing usable). Changes nothing. Without `own` and before the first good
 * frame there is nothing: *view stays. */
void theo_sequence_next(const theo_sequence *sequence, const theo_sequence_view *own, theo_sequence_view *view);
/* The frame was good: `view`, as of theo_sequence_next, is what is known now. */
void theo_sequence_advance(theo_sequence *sequence, int width, int height, const theo_sequence_view *view);

#endif
