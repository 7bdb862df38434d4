/* image_files.h - what the tests of image reading share. */
#ifndef THEO_TESTS_IMAGE_FILES_H
#define THEO_TESTS_IMAGE_FILES_H

#include "t.h"
#include <theo/image.h>
#include <zlib.h>

/* A whole file in a block of exactly its size, so that AddressSanitizer sees a read past the end; NULL when it cannot be read. */
static inline uint8_t *read_file(const char *path, size_t *bytes) {
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    uint8_t *data = malloc(*bytes ? *bytes : 1);
    if (data && fread(data, 1, *bytes, f) != *bytes) {
        free(data);
        data = NULL;
    }
    fclose(f);
    return data;
}

/* CRC-32 of the pixels, row by row. */
static inline uint32_t image_crc(const theo_image *image) {
    return (uint32_t)crc32(0, image->pixels, (uInt)(image->row_bytes * (size_t)image->height));
}

static inline theo_decode_options decode_options(void) {
    theo_decode_options options;
    theo_decode_options_init(&options);
    return options;
}

/* Does the error name the file and give a reason? */
static inline bool is_clear(const theo_error *err, const char *name) {
    return strstr(err->message, name) && strlen(err->message) > strlen(name) + 10;
}

/* Pixel (x, y) of an image of single-byte samples. */
static inline const uint8_t *pixel_at(const theo_image *image, int x, int y) {
    return (const uint8_t *)image->pixels + (size_t)y * image->row_bytes + (size_t)x * (size_t)image->channels;
}

#endif
