/* resize_image.c - theo_image_resize: whole images, colours weighted by alpha as Pillow's Image.resize does. */
#include "base/error.h"
#include "imageio/image.h"
#include "imageio/resize.h"

/* Pillow's La and RGBa: colours times alpha / 255, rounded. */
static void weigh(uint8_t *dst, const uint8_t *src, size_t count, int channels) {
    const int colors = channels - 1;
    for (size_t i = 0; i < count; i++, dst += channels, src += channels) {
        const uint32_t alpha = src[colors];
        for (int c = 0; c < colors; c++) {
            const uint32_t t = src[c] * alpha + 128;
            dst[c] = (uint8_t)((t + (t >> 8)) >> 8);
        }
        dst[colors] = (uint8_t)alpha;
    }
}

static void unweigh(uint8_t *pixels, size_t count, int channels) {
    const int colors = channels - 1;
    for (size_t i = 0; i < count; i++, pixels += channels) {
        const uint32_t alpha = pixels[colors];
        for (int c = 0; c < colors && alpha != 0 && alpha != 255; c++) {
            const uint32_t v = 255u * pixels[c] / alpha;
            pixels[c] = (uint8_t)(v > 255 ? 255 : v);
        }
    }
}

static theo_status resize(theo_image *out, const theo_image *in, theo_filter filter, theo_error *err) {
    const theo_resize job = {.src_width = in->width,
                             .src_height = in->height,
                             .dst_width = out->width,
                             .dst_height = out->height,
                             .channels = in->channels,
                             .filter = filter};
    const size_t bytes = theo_resize_bytes(&job);
    void *workspace = bytes == SIZE_MAX ? NULL : theo_alloc_aligned(bytes);
    if (!workspace)
        return theo_fail(err, THEO_MEMORY, NULL, NULL, "no memory to resize %d x %d pixels to %d x %d", in->width, in->height,
                         out->width, out->height);
    theo_resize_u8(&job, out->owner, out->row_bytes, in->pixels, theo_image_row_bytes(in), workspace);
    theo_free_aligned(workspace);
    return THEO_OK;
}

theo_status theo_image_resize(theo_image **out, const theo_image *in, int width, int height, theo_filter filter,
                              theo_error *err) {
    *out = NULL;
    THEO_TRY(theo_image_check(in, "image", err));
    if (in->type != THEO_U8)
        return theo_fail(err, THEO_ARGUMENT, NULL, "image", "only 8-bit images are resized");
    if (filter < THEO_BILINEAR || filter > THEO_LANCZOS)
        return theo_fail(err, THEO_ARGUMENT, NULL, "filter", "%d is none of bilinear (0), bicubic (1) and lanczos (2)",
                         (int)filter);
    theo_image *made, *weighted = NULL;
    THEO_TRY(theo_image_make(&made, width, height, in->channels, THEO_U8, NULL, err));

    const bool has_alpha = in->channels % 2 == 0, same = width == in->width && height == in->height;
    theo_status status = THEO_OK;
    if (has_alpha && !same) {
        status = theo_image_make(&weighted, in->width, in->height, in->channels, THEO_U8, NULL, err);
        for (int y = 0; status == THEO_OK && y < in->height; y++)
            weigh((uint8_t *)weighted->owner + (size_t)y * weighted->row_bytes,
                  (const uint8_t *)in->pixels + (size_t)y * theo_image_row_bytes(in), (size_t)in->width, in->channels);
    }
    if (status == THEO_OK)
        status = resize(made, weighted ? weighted : in, filter, err);
    if (status == THEO_OK && weighted)
        unweigh(made->owner, (size_t)width * (size_t)height, in->channels);
    theo_image_free(weighted);
    if (status != THEO_OK) {
        theo_image_free(made);
        return status;
    }
    made->exif_orientation = in->exif_orientation;
    made->exif_focal_35mm = in->exif_focal_35mm;
    made->orientation_applied = in->orientation_applied;
    made->truncated = in->truncated;
    *out = made;
    return THEO_OK;
}
