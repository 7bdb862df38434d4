#include "models/dust3r_input.h"
#include "imageio/image.h"
#include "imageio/resize.h"
#include <math.h>
#include <string.h>

enum {
    GRAY = 128,
    LARGEST_RESIZED = 1 << 26, /* pixels of the picture before it is cut: 224 x 224 n of a photo of 1 x n */
};

/* ---------------------------------------------------------------- where the photo lies */

static theo_dust3r_frame square_frame(int width, int height, const theo_dust3r_frame_options *o) {
    bool is_padded = o->fit == THEO_DUST3R_PAD;
    int side = (width > height) == is_padded ? width : height;
    theo_dust3r_frame f = {.fit = o->fit, .width = width, .height = height, .filter = THEO_BICUBIC, .square = side};
    f.net_width = f.net_height = o->size;
    f.offset_x = is_padded ? (side - width) / 2 : -((width - side) / 2);
    f.offset_y = is_padded ? (side - height) / 2 : -((height - side) / 2);
    return f;
}

static const char *name_of(const theo_dust3r_frame_options *o) {
    return o->name ? o->name : "image";
}

/* Longer side after resizing: the size itself, or for the network of 224 pixels what makes the shorter one 224. */
static double long_side(int width, int height, int size) {
    double w = width, h = height;
    return size == 224 ? rint(224 * fmax(w / h, h / w)) : size;
}

static theo_status native_frame(theo_dust3r_frame *f, int width, int height, const theo_dust3r_frame_options *o,
                                theo_error *err) {
    double longer = width > height ? width : height, target = long_side(width, height, o->size);
    double w = rint(width * target / longer), h = rint(height * target / longer);
    if (w * h > LARGEST_RESIZED)
        return theo_fail(err, THEO_ARGUMENT, NULL, name_of(o),
                         "a photo of %d x %d pixels is too elongated: it would be resized to %.0f x %.0f", width, height, w, h);
    *f = (theo_dust3r_frame){.fit = o->fit, .width = width, .height = height, .resized_width = (int)w, .resized_height = (int)h};
    f->filter = longer > target ? THEO_LANCZOS : THEO_BICUBIC;
    int cx = f->resized_width / 2, cy = f->resized_height / 2, half_width, half_height;
    if (o->size == 224) {
        half_width = half_height = cx < cy ? cx : cy;
    } else {
        half_width = 2 * cx / o->patch * o->patch / 2;
        half_height = 2 * cy / o->patch * o->patch / 2;
        if (!o->square_ok && f->resized_width == f->resized_height)
            half_height = 3 * half_width / 4 * 2 / o->patch * o->patch / 2; /* of 512 pixels: 192 */
    }
    f->crop_x = cx - half_width;
    f->crop_y = cy - half_height;
    f->net_width = 2 * half_width;
    f->net_height = 2 * half_height;
    return THEO_OK;
}

theo_status theo_dust3r_frame_of(theo_dust3r_frame *f, int width, int height, const theo_dust3r_frame_options *o,
                                 theo_error *err) {
    if (o->fit == THEO_DUST3R_NATIVE)
        THEO_TRY(native_frame(f, width, height, o, err));
    else
        *f = square_frame(width, height, o);
    if (f->net_width < o->patch || f->net_height < o->patch)
        return theo_fail(
            err, THEO_ARGUMENT, NULL, name_of(o),
            "a photo of %d x %d pixels is too elongated for a grid of %d: less than one patch of %d pixels is left of its "
            "shorter side",
            width, height, o->size, o->patch);
    if (f->net_width % o->patch || f->net_height % o->patch)
        return theo_fail(err, THEO_ARGUMENT, NULL, "size", "%d x %d pixels of the network are not whole patches of %d",
                         f->net_width, f->net_height, o->patch);
    return THEO_OK;
}

/* ---------------------------------------------------------------- pixels */

/* One channel to three, in place: from the last pixel on. */
static void spread_gray(uint8_t *rgb, size_t pixels) {
    for (size_t i = pixels; i-- > 0;)
        rgb[3 * i] = rgb[3 * i + 1] = rgb[3 * i + 2] = rgb[i];
}

static theo_status resize(theo_dust3r_input *in, const theo_plane *plane, uint8_t *out, theo_error *err) {
    size_t bytes = theo_plane_bytes(plane);
    void *workspace = bytes == SIZE_MAX ? NULL : theo_scratch_fit(&in->workspace, bytes);
    if (!workspace)
        return theo_fail(err, THEO_MEMORY, NULL, "image", "no memory to resize a photo of %d x %d pixels", plane->image->width,
                         plane->image->height);
    THEO_TRY(theo_plane_resize(plane, out, workspace, err));
    if (theo_plane_channels(plane) == 1)
        spread_gray(out, (size_t)plane->width * (size_t)plane->height);
    return THEO_OK;
}

theo_status theo_dust3r_input_fill(theo_dust3r_input *in, const theo_image *image, bool bgr, const theo_dust3r_frame *f,
                                   uint8_t *rgb, theo_error *err) {
    theo_plane plane = {.image = image, .pick = THEO_PICK_COLOR, .bgr = bgr, .filter = f->filter};
    if (f->fit != THEO_DUST3R_NATIVE) {
        plane.width = f->net_width;
        plane.height = f->net_height;
        plane.window_x = -f->offset_x;
        plane.window_y = -f->offset_y;
        plane.window_width = plane.window_height = f->square;
        plane.fill = GRAY;
        return resize(in, &plane, rgb, err);
    }
    plane.width = f->resized_width;
    plane.height = f->resized_height;
    uint8_t *whole = theo_scratch_fit(&in->resized, 3 * (size_t)plane.width * (size_t)plane.height);
    if (!whole)
        return theo_fail(err, THEO_MEMORY, NULL, "image", "no memory for a photo resized to %d x %d", plane.width, plane.height);
    THEO_TRY(resize(in, &plane, whole, err));
    for (int y = 0; y < f->net_height; y++)
        memcpy(rgb + 3 * (size_t)y * (size_t)f->net_width,
               whole + 3 * ((size_t)(y + f->crop_y) * (size_t)plane.width + (size_t)f->crop_x), 3 * (size_t)f->net_width);
    return THEO_OK;
}

void theo_dust3r_input_free(theo_dust3r_input *in) {
    theo_scratch_free(&in->workspace);
    theo_scratch_free(&in->resized);
}

void theo_dust3r_byte_table(float table[256]) {
    for (int u = 0; u < 256; u++)
        table[u] = ((float)u / 255.0f - 0.5f) / 0.5f;
}

/* ---------------------------------------------------------------- mask */

/* Does position i of the network's axis lie on the photo? */
static bool is_on_photo(const theo_dust3r_frame *f, int i, int offset, int size) {
    double at = floor((i + 0.5) * f->square / f->net_width) - offset;
    return at >= 0 && at < size;
}

void theo_dust3r_frame_mask(const theo_dust3r_frame *f, uint8_t *mask) {
    bool is_padded = f->fit == THEO_DUST3R_PAD;
    for (int y = 0; y < f->net_height; y++) {
        bool row = !is_padded || is_on_photo(f, y, f->offset_y, f->height);
        for (int x = 0; x < f->net_width; x++)
            *mask++ = row && (!is_padded || is_on_photo(f, x, f->offset_x, f->width));
    }
}

/* ---------------------------------------------------------------- coordinates */

/* The square's rule has no half pixel, as the program that it comes from; native resizing maps pixel edges to pixel edges:
 * (p + 1/2) scale - 1/2 - crop. */
theo_dust3r_map theo_dust3r_frame_map(const theo_dust3r_frame *f, int axis) {
    if (f->fit != THEO_DUST3R_NATIVE)
        return (theo_dust3r_map){axis ? f->offset_y : f->offset_x, (double)f->net_width / f->square};
    const double scale = axis ? (double)f->resized_height / f->height : (double)f->resized_width / f->width;
    return (theo_dust3r_map){0.5 - (0.5 + (axis ? f->crop_y : f->crop_x)) / scale, scale};
}
