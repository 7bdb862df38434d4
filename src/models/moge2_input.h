/* moge2_input.h - how a photo lies in MoGe's input, and the patches that the network reads. */
#ifndef THEO_MODELS_MOGE2_INPUT_H
#define THEO_MODELS_MOGE2_INPUT_H

#include "base/pool.h"
#include "models/scratch.h"

enum {
    THEO_MOGE_CANVAS_WIDTH = 1920,
    THEO_MOGE_CANVAS_HEIGHT = 1080,
    THEO_MOGE_CANVAS_TOKENS = 1800,
    THEO_MOGE_PATCH = 14,
    THEO_MOGE_MIN_SIDE = 8,
};

typedef enum theo_moge_fit {
    THEO_MOGE_NATIVE,  /* the photo as it is */
    THEO_MOGE_PAD,     /* within a canvas of 1920x1080, the border in ImageNet's mean colour */
    THEO_MOGE_STRETCH, /* drawn out to 1920x1080 */
} theo_moge_fit;

typedef struct theo_moge_frame {
    int width, height; /* of the photo */
    int rows, columns; /* patches */
    theo_moge_fit fit;
    int canvas_width, canvas_height; /* of what the network sees: the photo, or the canvas */
    int x, y, w, h;                  /* the photo within */
    double net_aspect;               /* width / height of what the network sees */
    double camera_aspect; /* of the picture whose focal length is looked for: the photo's, but stretched the canvas's */
} theo_moge_frame;

/* The grid nearest to `tokens` patches at that aspect: each side rounded to even at halves, at least 1. */
void theo_moge_grid(int width, int height, int tokens, int *rows, int *columns);
theo_moge_frame theo_moge_frame_of(int width, int height, theo_moge_fit fit, int tokens);

typedef struct theo_moge_input {
    theo_scratch canvas;    /* [1080, 1920, 3] */
    theo_scratch workspace; /* of all threads */
} theo_moge_input;          /* starts zeroed */

/* Resizes (bilinear, antialias; first onto the canvas where there is one), normalises by mean and deviation [3], and cuts into
 * patches: row 1 + n of `out`, `pitch` floats apart, gets patch n in the order (channel, y, x); row 0 gets zeros. */
theo_status theo_moge_input_fill(theo_moge_input *input, const theo_image *image, bool bgr, const theo_moge_frame *frame,
                                 const float *mean, const float *deviation, theo_pool *pool, float *out, size_t pitch,
                                 theo_error *err);
/* The same of a normalised picture [3, 14 rows, 14 columns]. */
void theo_moge_input_planes(const float *planes, int rows, int columns, float *out, size_t pitch);
void theo_moge_input_free(theo_moge_input *input);

#endif
