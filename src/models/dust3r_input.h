/* dust3r_input.h - how a photo lies in DUSt3R's input, the pixels that the network reads, and the maps between both. */
#ifndef THEO_MODELS_DUST3R_INPUT_H
#define THEO_MODELS_DUST3R_INPUT_H

#include "base/pool.h"
#include "models/scratch.h"
#include <theo/image.h>

typedef enum theo_dust3r_fit {
    THEO_DUST3R_PAD,   /* the photo in the middle of a gray square */
    THEO_DUST3R_CROP,  /* the square in the middle of the photo */
    THEO_DUST3R_NATIVE /* the photo's aspect, cut to whole patches, as the published program loads images */
} theo_dust3r_fit;

typedef struct theo_dust3r_frame_options {
    theo_dust3r_fit fit;
    int size;         /* the network's longer side (the side of its square): 512; 224, where native is a square too */
    int patch;        /* 16 */
    bool square_ok;   /* native: a square photo stays one; else it is cut to 4:3, in whole patches */
    const char *name; /* of the photo, in errors; NULL: "image" */
} theo_dust3r_frame_options;

typedef struct theo_dust3r_frame {
    theo_dust3r_fit fit;
    int width, height;         /* of the photo */
    int net_width, net_height; /* of what the network reads */
    theo_filter filter;        /* from one to the other */
    /* pad, crop: the square that is resized; the photo lies at (offset_x, offset_y) in it */
    int offset_x, offset_y, square;
    /* native: the whole photo is resized to this, and cut from (crop_x, crop_y) on */
    int resized_width, resized_height, crop_x, crop_y;
} theo_dust3r_frame;

/* THEO_ARGUMENT where nothing sensible is left: a side of less than a patch, or an intermediate picture of no bounds. */
theo_status theo_dust3r_frame_of(theo_dust3r_frame *frame, int width, int height, const theo_dust3r_frame_options *options,
                                 theo_error *err);

typedef struct theo_dust3r_input {
    theo_scratch workspace, resized;
} theo_dust3r_input; /* starts zeroed */

/* The network's pixels into rgb [net_height, net_width, 3]. Gray is repeated, alpha dropped, 16 bits give their top 8.
 * THEO_ARGUMENT where a float image holds NaN or infinity. */
theo_status theo_dust3r_input_fill(theo_dust3r_input *input, const theo_image *image, bool bgr, const theo_dust3r_frame *frame,
                                   uint8_t *rgb, theo_error *err);
void theo_dust3r_input_free(theo_dust3r_input *input);

/* What the network reads of a byte: (u / 255 - 0.5) / 0.5 in single precision, step by step as the original computes it. */
void theo_dust3r_byte_table(float table[256]);

/* mask [net_height, net_width]: 1 where the network saw the photo, 0 where it saw the border. */
void theo_dust3r_frame_mask(const theo_dust3r_frame *frame, uint8_t *mask);

/* On each axis (0: x, 1: y) position p of the photo (integer = centre of a pixel) is (p + offset) * scale of the network's. */
typedef struct theo_dust3r_map {
    double offset, scale;
} theo_dust3r_map;
theo_dust3r_map theo_dust3r_frame_map(const theo_dust3r_frame *frame, int axis);

#endif
