/* PNG files. Their checksums are put right first: no mutation would get past them otherwise. */
#include "fuzz.h"
#include <string.h>
#include <theo/image.h>
#include <zlib.h>

static void repair(uint8_t *png, size_t size) {
    for (size_t at = 8; at + 12 <= size;) {
        const size_t length = (size_t)png[at] << 24 | (size_t)png[at + 1] << 16 | (size_t)png[at + 2] << 8 | png[at + 3];
        if (length > size - at - 12)
            return;
        const uint32_t crc = (uint32_t)crc32(0, png + at + 4, (uInt)length + 4);
        uint8_t *stored = png + at + 8 + length;
        for (int i = 0; i < 4; i++)
            stored[i] = (uint8_t)(crc >> (24 - 8 * i));
        at += length + 12;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *png = malloc(size + !size);
    if (!png)
        return 0;
    memcpy(png, data, size);
    repair(png, size);
    for (int mode = 0; mode < 3; mode++) {
        theo_decode_options options;
        theo_image *image;
        theo_error err;
        theo_decode_options_init(&options);
        options.max_pixels = 1 << 18;
        options.keep_16_bit = options.keep_alpha = mode == 1;
        options.channels = mode == 2 ? THEO_CHANNELS_LUMA : THEO_CHANNELS_ALL;
        options.orientation = mode == 1 ? THEO_ORIENTATION_APPLY : THEO_ORIENTATION_IGNORE;
        if (theo_image_decode(&image, png, size, "fuzz", &options, &err)) {
            MUST(!image && err.message[0] && err.status != THEO_INTERNAL);
            continue;
        }
        MUST((int64_t)image->width * image->height <= options.max_pixels);
        fuzz_touch(image->pixels, image->row_bytes * (size_t)image->height);
        theo_image_free(image);
    }
    free(png);
    return 0;
}
