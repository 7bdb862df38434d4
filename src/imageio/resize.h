/* resize.h - Pillow-exact separable resampling of 8-bit images, without allocation, and of one plane straight from any image. */
#ifndef THEO_IMAGEIO_RESIZE_H
#define THEO_IMAGEIO_RESIZE_H

#include "imageio/rows.h"
#include <theo/image.h>

typedef struct theo_resize {
    int src_width, src_height, dst_width, dst_height; /* each >= 1 */
    int channels;                                     /* 1..4, all treated alike: alpha is a channel like the others */
    theo_filter filter;
} theo_resize;

/* Bytes of workspace, SIZE_MAX when the sizes overflow. Any alignment of 8 will do. */
size_t theo_resize_bytes(const theo_resize *resize);

/* dst [dst_height][dst_width][channels] from src [src_height][src_width][channels]; the rows may be padded. */
void theo_resize_u8(const theo_resize *resize, uint8_t *dst, size_t dst_row_bytes, const uint8_t *src, size_t src_row_bytes,
                    void *workspace);

/* What a network reads: the picked channels of an image as 8 bits, resized. */
typedef struct theo_plane {
    const theo_image *image; /* U8, U16 or F32 */
    theo_pick pick;
    bool bgr;
    int width, height; /* of the result */
    theo_filter filter;
    /* What is resized: the whole image where window_width is 0, else this rectangle of it, which may reach beyond the image; what
     * lies outside has the value `fill` in every channel. */
    int window_x, window_y, window_width, window_height;
    uint8_t fill;
} theo_plane;

/* Channels of the result: 1 (red, luma), or with THEO_PICK_COLOR 1 or 3. */
int theo_plane_channels(const theo_plane *plane);

/* Bytes of workspace, SIZE_MAX when the sizes overflow. It does not grow with the image's area. */
size_t theo_plane_bytes(const theo_plane *plane);

/* dst [height][width][channels], tightly packed. Row by row: no plane of the image's size is ever held.
 * THEO_ARGUMENT when a float sample is NaN or infinite (then dst is partly written). */
theo_status theo_plane_resize(const theo_plane *plane, uint8_t *dst, void *workspace, theo_error *err);

#endif
