/* sample.h - descriptors at given points of a coarse map. */
#ifndef THEO_GEOMETRY_SAMPLE_H
#define THEO_GEOMETRY_SAMPLE_H

#include <theo/theo.h>

/* Descriptors of cells, or of a rectangle of the cells of a larger image. A cell covers 8 x 8 pixels. */
typedef struct theo_cells {
    const float *data;            /* cell (origin_x, origin_y); a cell's channels are contiguous */
    size_t cell_pitch, row_pitch; /* floats from a cell to its right and lower neighbour */
    int channels;
    int origin_x, origin_y;        /* first stored cell, in the whole map */
    int width, height;             /* stored cells */
    int whole_width, whole_height; /* cells of the whole map: cells beyond it count as zero */
    int net_width, net_height;     /* pixels of the network's input (rule b_old) */
} theo_cells;

/* Cells of the whole map that the sample at (x, y) reads: [first, first + 1] in each direction, not clipped to the map. A tile
 * can serve the point if it stores those of them that lie in the whole map. */
void theo_sample_footprint(const theo_cells *map, theo_sampling rule, float x, float y, int *first_x, int *first_y);

/* out: [count, channels]. xy: [count, 2] in pixels of the network input, any finite values. Bilinear with zeros outside of the
 * whole map, then L2-normalised (norm at least 1e-12; a point wholly outside gives zeros). */
void theo_sample_descriptors(float *out, const theo_cells *map, theo_sampling rule, const float *xy, int count);

#endif
