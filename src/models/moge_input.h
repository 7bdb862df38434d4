/* moge_input.h - the patches that MoGe reads. */
#ifndef THEO_MODELS_MOGE_INPUT_H
#define THEO_MODELS_MOGE_INPUT_H

#include "base/pool.h"
#include "models/moge_frame.h"
#include "models/scratch.h"
#include <theo/theo.h>

typedef struct theo_moge_input {
    theo_scratch canvas;    /* [1080, 1920, 3] */
    theo_scratch resized;   /* MoGe-1: [map_h, map_w, 3] */
    theo_scratch workspace; /* of all threads */
} theo_moge_input;          /* starts zeroed */

/* Resizes (bilinear, antialias; first onto the canvas where there is one; MoGe-1 then bicubic, antialias, to the size of its
 * maps), normalises by mean and deviation [3], and cuts into patches: row 1 + n of `out`, `pitch` floats apart, gets patch n in
 * the order (channel, y, x); row 0 gets zeros. */
theo_status theo_moge_input_fill(theo_moge_input *input, const theo_image *image, bool bgr, const theo_moge_frame *frame,
                                 const float *mean, const float *deviation, theo_pool *pool, float *out, size_t pitch,
                                 theo_error *err);
/* The same of a normalised picture [3, 14 rows, 14 columns]. */
void theo_moge_input_planes(const float *planes, int rows, int columns, float *out, size_t pitch);
void theo_moge_input_free(theo_moge_input *input);

#endif
