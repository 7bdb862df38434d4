/* to_rgb.c - any image as plain bytes R, G, B. */
#include "base/error.h"
#include "imageio/image.h"
#include "imageio/rows.h"

/* Gray bytes at the front of a row, spread over it from the end. */
static void spread_gray(uint8_t *row, int width) {
    for (size_t x = (size_t)width; x-- > 0;)
        row[3 * x] = row[3 * x + 1] = row[3 * x + 2] = row[x];
}

theo_status theo_image_to_rgb(theo_image **out, const theo_image *image, theo_error *err) {
    *out = NULL;
    THEO_TRY(theo_image_check(image, "image", err));
    THEO_TRY(theo_image_make(out, image->width, image->height, 3, THEO_U8, NULL, err));
    const theo_row_rule rule = {.channels = image->channels, .type = image->type, .pick = THEO_PICK_COLOR};
    for (int y = 0; y < image->height; y++) {
        uint8_t *row = (uint8_t *)(*out)->owner + (size_t)y * (*out)->row_bytes;
        if (!theo_row_u8(row, (const uint8_t *)image->pixels + (size_t)y * theo_image_row_bytes(image), image->width, &rule)) {
            theo_image_free(*out);
            *out = NULL;
            return theo_fail(err, THEO_ARGUMENT, NULL, "image", "a float image holds NaN or infinity");
        }
        if (theo_row_channels(&rule) == 1)
            spread_gray(row, image->width);
    }
    return THEO_OK;
}
