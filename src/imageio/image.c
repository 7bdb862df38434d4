/* image.c - the life of an image. */
#include "imageio/image.h"
#include "base/error.h"
#include <string.h>

size_t theo_pixel_bytes(theo_pixel type) {
    return type == THEO_U8 ? 1 : type == THEO_U16 ? 2 : 4;
}

size_t theo_image_row_bytes(const theo_image *image) {
    if (image->row_bytes)
        return image->row_bytes;
    return (size_t)image->width * (size_t)image->channels * theo_pixel_bytes(image->type);
}

theo_status theo_image_make(theo_image **image, int width, int height, int channels, theo_pixel type, const char *name,
                            theo_error *err) {
    *image = NULL;
    if (width < 1 || height < 1 || channels < 1 || channels > 4 || type < THEO_U8 || type > THEO_F32)
        return theo_fail(
            err, THEO_ARGUMENT, name, NULL,
            "an image of %d x %d pixels with %d channels of type %d: sizes start at 1, channels are 1 to 4, types 0 to 2", width,
            height, channels, (int)type);
    const size_t row = (size_t)width * (size_t)channels * theo_pixel_bytes(type);
    size_t bytes;
    void *pixels = NULL;
    theo_image *made = theo_alloc(1, sizeof *made);
    if (made && !__builtin_mul_overflow(row, (size_t)height, &bytes))
        pixels = theo_alloc_aligned(bytes);
    if (!pixels) {
        theo_free(made);
        return theo_fail(err, THEO_MEMORY, name, NULL, "no memory for an image of %d x %d pixels with %d channels", width, height,
                         channels);
    }
    *made = (theo_image){.width = width,
                         .height = height,
                         .channels = channels,
                         .type = type,
                         .row_bytes = row,
                         .pixels = pixels,
                         .owner = pixels};
    *image = made;
    return THEO_OK;
}

theo_status theo_image_new(theo_image **image, int width, int height, int channels, theo_pixel type, theo_error *err) {
    THEO_TRY(theo_image_make(image, width, height, channels, type, NULL, err));
    memset((*image)->owner, 0, (*image)->row_bytes * (size_t)height);
    return THEO_OK;
}

void *theo_image_pixels(theo_image *image) {
    return image ? image->owner : NULL;
}

void theo_image_free(theo_image *image) {
    if (!image || !image->owner)
        return;
    theo_free_aligned(image->owner);
    theo_free(image);
}

theo_status theo_image_check(const theo_image *image, const char *what, theo_error *err) {
    if (!image || !image->pixels)
        return theo_fail(err, THEO_ARGUMENT, NULL, what, "no image was given");
    if (image->width < 1 || image->height < 1)
        return theo_fail(err, THEO_ARGUMENT, NULL, what, "the image is %d x %d pixels: both sizes must be at least 1",
                         image->width, image->height);
    if (image->channels < 1 || image->channels > 4)
        return theo_fail(err, THEO_ARGUMENT, NULL, what, "the image has %d channels: 1 to 4 are allowed", image->channels);
    if (image->type < THEO_U8 || image->type > THEO_F32)
        return theo_fail(err, THEO_ARGUMENT, NULL, what, "the image has pixel type %d: allowed are 0 (U8), 1 (U16) and 2 (F32)",
                         (int)image->type);
    const size_t sample = theo_pixel_bytes(image->type);
    if ((uintptr_t)image->pixels % sample || image->row_bytes % sample)
        return theo_fail(err, THEO_ARGUMENT, NULL, what,
                         "the image's pixels and rows must start at multiples of a sample's %zu bytes", sample);
    const size_t tight = (size_t)image->width * (size_t)image->channels * sample;
    if (image->row_bytes && image->row_bytes < tight)
        return theo_fail(err, THEO_ARGUMENT, NULL, what, "the image's rows are %zu bytes apart but %zu bytes long",
                         image->row_bytes, tight);
    const size_t row = image->row_bytes ? image->row_bytes : tight;
    if (row > (size_t)PTRDIFF_MAX / (size_t)image->height)
        return theo_fail(err, THEO_ARGUMENT, NULL, what, "the image's %d rows of %zu bytes are more than memory can hold",
                         image->height, row);
    return THEO_OK;
}
