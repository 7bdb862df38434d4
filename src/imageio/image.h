/* image.h - making images inside the library. */
#ifndef THEO_IMAGEIO_IMAGE_H
#define THEO_IMAGEIO_IMAGE_H

#include <theo/image.h>

/* theo_image_new without clearing the pixels. `name` stands in the error, may be NULL. */
theo_status theo_image_make(theo_image **image, int width, int height, int channels, theo_pixel type, const char *name,
                            theo_error *err);

/* Bytes of one sample, of one pixel, and the distance of two rows (row_bytes 0 resolved). */
size_t theo_pixel_bytes(theo_pixel type);
size_t theo_image_row_bytes(const theo_image *image);

/* THEO_ARGUMENT unless sizes, channels, type, stride and pointer of an image (that a caller may have filled) make sense. */
theo_status theo_image_check(const theo_image *image, const char *what, theo_error *err);

/* Turns *image so that Exif orientation 2..8 becomes 1 (a new image; the old one is freed). */
theo_status theo_image_orient(theo_image **image, int orientation, theo_error *err);

#endif
