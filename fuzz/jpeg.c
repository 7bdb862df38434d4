/* JPEG files, strictly and as far as they go, in colour and as one plane; upright. */
#include "fuzz.h"
#include <theo/image.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int mode = 0; mode < 3; mode++) {
        theo_decode_options options;
        theo_image *image;
        theo_error err;
        theo_decode_options_init(&options);
        options.max_pixels = 1 << 18;
        options.allow_truncated = mode > 0;
        options.channels = mode == 2 ? THEO_CHANNELS_LUMA : THEO_CHANNELS_ALL;
        options.orientation = mode == 1 ? THEO_ORIENTATION_APPLY : THEO_ORIENTATION_IGNORE;
        if (theo_image_decode(&image, data, size, "fuzz", &options, &err)) {
            MUST(!image && err.message[0] && err.status != THEO_INTERNAL);
            continue;
        }
        MUST((int64_t)image->width * image->height <= options.max_pixels);
        fuzz_touch(image->pixels, image->row_bytes * (size_t)image->height);
        theo_image_free(image);
    }
    return 0;
}
