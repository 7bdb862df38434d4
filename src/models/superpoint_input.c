#include "models/superpoint_input.h"
#include "imageio/image.h"
#include "imageio/resize.h"
#include "models/superpoint.h"
#include <math.h>

theo_status theo_superpoint_network_size(const theo_image *image, const theo_detect_options *o, int *width, int *height,
                                         theo_error *err) {
    THEO_TRY(theo_image_check(image, "image", err));
    int64_t w = o->net_width, h = o->net_height;
    if (o->fit == THEO_FIT_NATIVE) {
        w = image->width;
        h = image->height;
    } else if (o->fit == THEO_FIT_LONG) {
        double scale = (double)o->long_side / (image->width > image->height ? image->width : image->height);
        w = llround(image->width * scale);
        h = llround(image->height * scale);
    }
    if (w < THEO_SUPERPOINT_MIN_SIDE || h < THEO_SUPERPOINT_MIN_SIDE)
        return theo_fail(
            err, THEO_ARGUMENT, NULL, "size",
            "the network's input would be %lldx%lld pixels (width x height, from a picture of %dx%d): at least 8x8 is needed",
            (long long)w, (long long)h, image->width, image->height);
    if (w > THEO_SUPERPOINT_MAX_SIDE || h > THEO_SUPERPOINT_MAX_SIDE || w * h > THEO_SUPERPOINT_MAX_AREA)
        return theo_fail(err, THEO_ARGUMENT, NULL, "size",
                         "the network's input would be %lldx%lld pixels: at most %d a side and %d in all are possible",
                         (long long)w, (long long)h, THEO_SUPERPOINT_MAX_SIDE, THEO_SUPERPOINT_MAX_AREA);
    *width = (int)w;
    *height = (int)h;
    return THEO_OK;
}

/* Samples that need no work: 8 bits, of the right size, one of the channels as it is. */
static bool is_read_in_place(const theo_image *image, const theo_superpoint_input *in, theo_gray gray) {
    return image->type == THEO_U8 && image->width == in->width && image->height == in->height &&
           (image->channels < 3 || gray != THEO_GRAY_LUMA);
}

static void read_in_place(theo_superpoint_input *in, const theo_image *image, bool bgr) {
    bool is_color = image->channels >= 3;
    in->samples = image->pixels;
    in->step = image->channels;
    in->row_bytes = theo_image_row_bytes(image);
    in->red = is_color && bgr ? 2 : 0;
    in->blue = 2 - in->red;
}

static theo_status resize(theo_superpoint_input *in, const theo_image *image, const theo_detect_options *o, theo_error *err) {
    static const theo_pick picks[] = {
        [THEO_GRAY_RED] = THEO_PICK_RED, [THEO_GRAY_RGB601] = THEO_PICK_COLOR, [THEO_GRAY_LUMA] = THEO_PICK_LUMA};
    theo_plane plane = {
        .image = image, .pick = picks[o->gray], .bgr = o->bgr, .width = in->width, .height = in->height, .filter = THEO_BILINEAR};
    in->step = theo_plane_channels(&plane);
    in->row_bytes = (size_t)in->width * (size_t)in->step;
    in->red = 0;
    in->blue = 2;
    size_t workspace = theo_plane_bytes(&plane);
    uint8_t *out = workspace == SIZE_MAX ? NULL : theo_scratch_fit(&in->resized, in->row_bytes * (size_t)in->height);
    if (!out || !theo_scratch_fit(&in->workspace, workspace))
        return theo_fail(err, THEO_MEMORY, NULL, "image", "out of memory for resizing to %dx%d", in->width, in->height);
    in->samples = out;
    return theo_plane_resize(&plane, out, in->workspace.data, err);
}

static bool is_gray(const theo_superpoint_input *in) {
    for (int y = 0; y < in->height; y++) {
        const uint8_t *p = in->samples + (size_t)y * in->row_bytes;
        for (int x = 0; x < in->width; x++, p += in->step)
            if (p[0] != p[1] || p[0] != p[2])
                return false;
    }
    return true;
}

theo_status theo_superpoint_input_set(theo_superpoint_input *in, const theo_image *image, const theo_detect_options *o,
                                      theo_error *err) {
    THEO_TRY(theo_superpoint_network_size(image, o, &in->width, &in->height, err));
    in->green = 1;
    if (is_read_in_place(image, in, o->gray))
        read_in_place(in, image, o->bgr);
    else
        THEO_TRY(resize(in, image, o, err));
    /* As Hugging Face: a picture of three equal channels is not mixed, which would multiply it by 0.9999. */
    in->is_mixed = o->gray == THEO_GRAY_RGB601 && in->step >= 3 && !is_gray(in);
    return THEO_OK;
}

/* Values are divided by 255: a product with float32(1/255) differs in the last bit for half of them. */
static void fill_single(float *restrict out, size_t pitch, const uint8_t *restrict samples, int step, int count) {
    if (step == 1 && pitch == 1)
        for (int x = 0; x < count; x++)
            out[x] = (float)samples[x] / 255.0f;
    else
        for (int x = 0; x < count; x++)
            out[(size_t)x * pitch] = (float)samples[(size_t)x * (size_t)step] / 255.0f;
}

static void fill_mixed(float *restrict out, size_t pitch, const uint8_t *red, const uint8_t *green, const uint8_t *blue, int step,
                       int count) {
    for (int x = 0; x < count; x++) {
        size_t i = (size_t)x * (size_t)step;
        out[(size_t)x * pitch] =
            (float)red[i] / 255.0f * 0.2989f + (float)green[i] / 255.0f * 0.5870f + (float)blue[i] / 255.0f * 0.1140f;
    }
}

void theo_superpoint_input_fill(const theo_superpoint_input *in, int x0, int y0, int width, int height, float *out,
                                size_t pitch) {
    for (int y = 0; y < height; y++, out += (size_t)width * pitch) {
        const uint8_t *row = in->samples + (size_t)(y0 + y) * in->row_bytes + (size_t)x0 * (size_t)in->step;
        if (in->is_mixed)
            fill_mixed(out, pitch, row + in->red, row + in->green, row + in->blue, in->step, width);
        else
            fill_single(out, pitch, row + in->red, in->step, width);
    }
}

void theo_superpoint_input_free(theo_superpoint_input *in) {
    theo_scratch_free(&in->resized);
    theo_scratch_free(&in->workspace);
    *in = (theo_superpoint_input){0};
}
