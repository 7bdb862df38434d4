/* decode.c - from bytes to an image: which format it is, limits, orientation. */
#include "imageio/decode.h"
#include "base/error.h"
#include "base/map.h"
#include "base/take_options.h"
#include "imageio/image.h"
#include "imageio/sniff.h"
#include <string.h>

void theo_decode_options_init(theo_decode_options *options) {
    *options = (theo_decode_options){.size = sizeof *options, .max_pixels = 100000000};
}

static theo_status check_options(const theo_decode_options *o, theo_error *err) {
    if (o->orientation != THEO_ORIENTATION_IGNORE && o->orientation != THEO_ORIENTATION_APPLY)
        return theo_fail(err, THEO_ARGUMENT, NULL, "orientation", "%d is neither ignore (0) nor apply (1)", (int)o->orientation);
    if (o->channels < THEO_CHANNELS_ALL || o->channels > THEO_CHANNELS_LUMA)
        return theo_fail(err, THEO_ARGUMENT, NULL, "channels", "%d is none of all (0), red (1) and luma (2)", (int)o->channels);
    if (o->max_pixels < 1)
        return theo_fail(err, THEO_ARGUMENT, NULL, "max_pixels", "%lld: must be at least 1", (long long)o->max_pixels);
    return THEO_OK;
}

theo_status theo_decoder_begin(theo_decoder *d, int width, int height, int channels, theo_pixel type, theo_error *err) {
    const int64_t pixels = (int64_t)width * height;
    if (pixels > d->options.max_pixels)
        return theo_fail(err, THEO_BOUNDS, d->name, "header", "%d x %d are %lld pixels, more than the limit max-pixels = %lld",
                         width, height, (long long)pixels, (long long)d->options.max_pixels);

    static const theo_pick picks[] = {[THEO_CHANNELS_RED] = THEO_PICK_RED, [THEO_CHANNELS_LUMA] = THEO_PICK_LUMA};
    d->rule = (theo_row_rule){.channels = channels, .type = type, .pick = picks[d->options.channels]};
    if (d->options.channels == THEO_CHANNELS_ALL)
        d->rule.pick = d->options.keep_alpha ? THEO_PICK_ALL : THEO_PICK_COLOR;
    const theo_pixel kept = d->options.keep_16_bit ? type : THEO_U8;
    return theo_image_make(&d->image, width, height, theo_row_channels(&d->rule), kept, d->name, err);
}

static uint8_t *row_of(theo_decoder *d, int y) {
    return (uint8_t *)d->image->owner + (size_t)y * d->image->row_bytes;
}

void *theo_decoder_place(theo_decoder *d, int y) {
    return theo_row_is_copy(&d->rule) ? row_of(d, y) : NULL;
}

static void convert(theo_decoder *d, uint8_t *dst, const void *src, int count) {
    if (d->image->type == THEO_U16)
        theo_row_u16((uint16_t *)(void *)dst, src, count, &d->rule);
    else
        theo_row_u8(dst, src, count, &d->rule);
}

void theo_decoder_take(theo_decoder *d, int y, const void *row, int first, int step) {
    uint8_t *dst = row_of(d, y);
    if (step == 1) {
        convert(d, dst, row, d->image->width);
        return;
    }
    const size_t from = (size_t)d->rule.channels * theo_pixel_bytes(d->rule.type);
    const size_t to = (size_t)d->image->channels * theo_pixel_bytes(d->image->type);
    for (size_t x = (size_t)first; x < (size_t)d->image->width; x += (size_t)step)
        convert(d, dst + x * to, (const uint8_t *)row + x * from, 1);
}

theo_status theo_image_decode(theo_image **image, const void *data, size_t bytes, const char *name,
                              const theo_decode_options *options, theo_error *err) {
    *image = NULL;
    theo_decoder d = {.data = data, .bytes = bytes, .name = name};
    theo_decode_options_init(&d.options);
    THEO_TRY(theo_options_take(&d.options, sizeof d.options, options, "theo_decode_options", err));
    THEO_TRY(check_options(&d.options, err));
    if (!data || !bytes)
        return theo_fail(err, THEO_CONTAINER, name, NULL, "is empty: a JPEG or PNG image is needed");

    theo_status status;
    switch (theo_sniff(d.data, bytes)) {
    case THEO_FORMAT_JPEG:
        status = theo_jpeg_decode(&d, err);
        break;
    case THEO_FORMAT_PNG:
        status = theo_png_decode(&d, err);
        break;
    default:
        return theo_sniff_refuse(d.data, bytes, name, err);
    }
    if (status == THEO_OK && d.options.orientation == THEO_ORIENTATION_APPLY) {
        status = theo_image_orient(&d.image, d.image->exif_orientation, err);
        if (status == THEO_OK)
            d.image->orientation_applied = true;
    }
    if (status != THEO_OK) {
        theo_image_free(d.image);
        return status;
    }
    *image = d.image;
    return THEO_OK;
}

theo_status theo_image_load(theo_image **image, const char *path, const theo_decode_options *options, theo_error *err) {
    theo_map map;
    *image = NULL;
    if (!path)
        return theo_fail(err, THEO_ARGUMENT, NULL, "path", "no path was given");
    THEO_TRY(theo_map_open(&map, path, err));
    const theo_status status = theo_image_decode(image, map.data, map.bytes, path, options, err);
    theo_map_close(&map);
    return status;
}
