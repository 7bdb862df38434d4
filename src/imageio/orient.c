/* orient.c - turning an image upright by its Exif orientation. */
#include "base/error.h"
#include "imageio/image.h"
#include <string.h>

/* The pixel that comes to (x, y) of the upright image lies at origin + x * right + y * down of the stored one, in pixels. */
typedef struct walk {
    ptrdiff_t origin, right, down;
    bool turned; /* width and height change places */
} walk;

/* w, h: stored size; s: stored row distance in pixels. Exif 2.32, tag Orientation. */
static walk walk_of(int orientation, ptrdiff_t w, ptrdiff_t h, ptrdiff_t s) {
    const ptrdiff_t last_column = w - 1, last_row = (h - 1) * s;
    switch (orientation) {
    case 2: /* mirrored left to right */
        return (walk){last_column, -1, s, false};
    case 3: /* half a turn */
        return (walk){last_row + last_column, -1, -s, false};
    case 4: /* mirrored top to bottom */
        return (walk){last_row, 1, -s, false};
    case 5: /* transposed */
        return (walk){0, s, 1, true};
    case 6: /* to be turned clockwise */
        return (walk){last_row, -s, 1, true};
    case 7: /* transposed about the other diagonal */
        return (walk){last_row + last_column, -s, -1, true};
    default: /* 8: to be turned counter-clockwise */
        return (walk){last_column, s, -1, true};
    }
}

/* Square blocks, so that a turned walk uses whole cache lines of both images. */
enum { BLOCK = 64 };

static inline __attribute__((always_inline)) void move(theo_image *to, const uint8_t *from, walk k, size_t size) {
    for (int y0 = 0; y0 < to->height; y0 += BLOCK)
        for (int x0 = 0; x0 < to->width; x0 += BLOCK) {
            const int y1 = to->height - y0 < BLOCK ? to->height : y0 + BLOCK,
                      x1 = to->width - x0 < BLOCK ? to->width : x0 + BLOCK;
            for (int y = y0; y < y1; y++) {
                uint8_t *dst = (uint8_t *)to->owner + (size_t)y * to->row_bytes + (size_t)x0 * size;
                const uint8_t *src = from + (k.origin + x0 * k.right + y * k.down) * (ptrdiff_t)size;
                for (int x = x0; x < x1; x++, dst += size, src += k.right * (ptrdiff_t)size)
                    memcpy(dst, src, size);
            }
        }
}

theo_status theo_image_orient(theo_image **image, int orientation, theo_error *err) {
    theo_image *old = *image, *made;
    if (orientation < 2 || orientation > 8)
        return THEO_OK;
    const walk k = walk_of(orientation, old->width, old->height, old->width);
    THEO_TRY(theo_image_make(&made, k.turned ? old->height : old->width, k.turned ? old->width : old->height, old->channels,
                             old->type, NULL, err));
    switch ((size_t)old->channels * theo_pixel_bytes(old->type)) {
    case 1:
        move(made, old->owner, k, 1);
        break;
    case 2:
        move(made, old->owner, k, 2);
        break;
    case 3:
        move(made, old->owner, k, 3);
        break;
    case 4:
        move(made, old->owner, k, 4);
        break;
    case 6:
        move(made, old->owner, k, 6);
        break;
    default: /* 16-bit RGBA: decoded images have no larger pixels */
        move(made, old->owner, k, 8);
    }
    made->exif_orientation = old->exif_orientation;
    made->exif_focal_35mm = old->exif_focal_35mm;
    made->truncated = old->truncated;
    made->format = old->format;
    theo_image_free(old);
    *image = made;
    return THEO_OK;
}
