/* decode.h - what the decoders of the single formats share: the options, and where decoded rows go. */
#ifndef THEO_IMAGEIO_DECODE_H
#define THEO_IMAGEIO_DECODE_H

#include "imageio/rows.h"
#include <theo/image.h>

typedef struct theo_decoder {
    const uint8_t *data;
    size_t bytes;
    const char *name; /* in messages; may be NULL */
    theo_decode_options options;
    theo_image *image; /* NULL until theo_decoder_begin; freed by the caller, also on failure */
    theo_row_rule rule;
} theo_decoder;

/* Called once the header is known: checks max_pixels, then makes the image. channels, type (U8 or U16): of the rows to come. */
theo_status theo_decoder_begin(theo_decoder *d, int width, int height, int channels, theo_pixel type, theo_error *err);

/* Where row y may be decoded to directly, because it is stored as it comes; else NULL. */
void *theo_decoder_place(theo_decoder *d, int y);

/* Takes a decoded row: pixels first, first + step, ... of `row`, a whole row of the image's width. */
void theo_decoder_take(theo_decoder *d, int y, const void *row, int first, int step);

/* The formats. */
theo_status theo_jpeg_decode(theo_decoder *d, theo_error *err);
theo_status theo_png_decode(theo_decoder *d, theo_error *err);

#endif
