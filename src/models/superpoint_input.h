/* superpoint_input.h - from a photo to the plane that the network reads. */
#ifndef THEO_MODELS_SUPERPOINT_INPUT_H
#define THEO_MODELS_SUPERPOINT_INPUT_H

#include "models/scratch.h"

/* The photo as 8-bit samples of the network's size, gray or three colours that are mixed as floats, and the memory for them: a
 * photo and rules of sizes seen before allocate nothing. Zeroed at the start. */
typedef struct theo_superpoint_input {
    int width, height;      /* of the network's input */
    const uint8_t *samples; /* in `resized`, or in the photo where nothing is to be done to it */
    size_t row_bytes;
    int step;             /* bytes from a pixel to its right neighbour */
    bool is_mixed;        /* 0.2989 R + 0.5870 G + 0.1140 B, else the first sample of a pixel */
    int red, green, blue; /* their place in a pixel */
    theo_scratch resized, workspace;
} theo_superpoint_input;

/* Size of the network's input for that photo. THEO_ARGUMENT with the reason where the photo or the size cannot be. */
theo_status theo_superpoint_network_size(const theo_image *image, const theo_detect_options *options, int *width, int *height,
                                         theo_error *err);

/* Applies the gray and the size rule. `image` must stay until the last theo_superpoint_input_fill: what can be read in place is
 * not copied. */
theo_status theo_superpoint_input_set(theo_superpoint_input *input, const theo_image *image, const theo_detect_options *options,
                                      theo_error *err);

/* Samples [y0, y0 + height) x [x0, x0 + width) as floats in [0, 1]; `pitch` floats from a pixel to the next. */
void theo_superpoint_input_fill(const theo_superpoint_input *input, int x0, int y0, int width, int height, float *out,
                                size_t pitch);

void theo_superpoint_input_free(theo_superpoint_input *input);

#endif
