/* tiles.h - cuts a picture into overlapping windows such that a convolutional network gives the very bits of the uncut run.
 *
 * How wide the overlap must be. A Winograd F(4x4, 3x3) output depends, in its rounding, on all 6x6 inputs of its tile, not only on the
 * 3x3 of its definition. So a value keeps its bits if its whole 4x4 tile sees only inputs that kept theirs. Followed back through
 * SuperPoint from an output block that starts at cell c (a multiple of 4 cells, so that windows cut the same 4x4 grid at 1/8, 1/4, 1/2
 * and full size):
 *     heads  c      reads from c - 1        (1/8)     conv3b 2c - 20  reads from 2c - 21     (1/4)     conv2b 4c - 52   reads from 4c - 53  (1/2)
 *     conv4b c - 4  reads from c - 5                  conv3a 2c - 24  reads from 2c - 25               conv2a 4c - 56   reads from 4c - 57
 *     conv4a c - 8  reads from c - 9                  pool: 4c - 50                                    conv1b 8c - 116  reads from 8c - 117, conv1a 8c - 118 (1/1)
 * 118 pixels, hence 128; the same on the other side. There another 32 are added, so that the cell behind the last one of a
 * window's own part is exact too: bilinear sampling at a point of the own part reads it. */
#ifndef THEO_MODELS_TILES_H
#define THEO_MODELS_TILES_H

#include <stdint.h>

enum {
    THEO_TILE_ALIGN = 32,   /* windows and own parts start at multiples of this */
    THEO_TILE_BEFORE = 128, /* overlap on the side of smaller coordinates */
    THEO_TILE_AFTER = 160,
};

/* Windows along one axis: number i is [i * step, i * step + window), the last one ends at `length`. */
typedef struct theo_tile_axis {
    int length, count, window, step;
} theo_tile_axis;

typedef struct theo_tile_grid {
    theo_tile_axis x, y;
} theo_tile_grid;

/* [start, start + size): what the network reads. [own_start, own_end): what is taken of its result; own parts cover the axis once. */
typedef struct theo_tile_span {
    int start, size, own_start, own_end;
} theo_tile_span;

/* About `tile_pixels` per window; 0, or a picture that is not larger: one window. */
theo_tile_grid theo_tile_grid_make(int width, int height, int64_t tile_pixels);
theo_tile_span theo_tile_span_at(const theo_tile_axis *axis, int index);
/* Index of the window in whose own part a coordinate lies; beyond the ends: the first or the last. */
int theo_tile_owner(const theo_tile_axis *axis, int coordinate);

#endif
