/* tiles.h - cuts a picture into overlapping windows such that a convolutional network gives the very bits of the uncut run.
 *
 * How wide the overlap must be. A 4x4 tile of Winograd's F(4x4, 3x3) carries the rounding of more inputs than its definition
 * reads. Along an axis, with inputs d0..d5 of a tile and outputs y0..y3 (interpolation points 0, +-1, +-2, infinity): d0 enters
 * y0 alone, d5 enters y3 alone, d1..d4 enter all four. So y0 depends on d0..d4, y1 and y2 on d1..d4, y3 on d1..d5, and an output
 * has the bits of the uncut run if these inputs have.
 *
 * Followed back through SuperPoint from an output block that starts at cell c, a multiple of 4, so that windows cut the same
 * grid of tiles at every scale. Each line: the first pixel of its input that a layer reads.
 *
 *     1/8   heads c - 1, conv4b c - 4, conv4a c - 5
 *     1/4   pool3 2c - 10, conv3b 2c - 12, conv3a 2c - 13
 *     1/2   pool2 4c - 26, conv2b 4c - 28, conv2a 4c - 29
 *     1/1   pool1 8c - 58, conv1b 8c - 60, conv1a 8c - 61
 *
 * Hence 64 pixels; on the other side likewise 60. There another 32 are added, so that the cells behind the last one of a
 * window's own part are exact too: bilinear sampling at a point of the own part reads the next cell. */
#ifndef THEO_MODELS_TILES_H
#define THEO_MODELS_TILES_H

#include <stdint.h>

enum {
    THEO_TILE_ALIGN = 32,  /* windows and own parts start at multiples of this */
    THEO_TILE_BEFORE = 64, /* overlap on the side of smaller coordinates */
    THEO_TILE_AFTER = 96,
};

/* Windows along one axis: number i is [i * step, i * step + window), the last one ends at `length`. */
typedef struct theo_tile_axis {
    int length, count, window, step;
} theo_tile_axis;

typedef struct theo_tile_grid {
    theo_tile_axis x, y;
} theo_tile_grid;

/* [start, start + size): what the network reads. [own_start, own_end): its own part, what is taken of the result;
 * own parts cover the axis once. */
typedef struct theo_tile_span {
    int start, size, own_start, own_end;
} theo_tile_span;

/* About `tile_pixels` per window; 0, or a picture that is not larger: one window. */
theo_tile_grid theo_tile_grid_make(int width, int height, int64_t tile_pixels);
theo_tile_span theo_tile_span_at(const theo_tile_axis *axis, int index);
/* Index of the window in whose own part a coordinate lies; beyond the ends: the first or the last. */
int theo_tile_owner(const theo_tile_axis *axis, int coordinate);

#endif
