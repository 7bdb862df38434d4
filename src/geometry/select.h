/* select.h - from a score map to a list of points: suppression of non-maxima, threshold, border, order, cut at k.
 *
 * The map may be given whole, or in bands of rows from the top down (for maps that are never in memory as a whole); the result is
 * the same to the last point. A selector keeps its buffers: maps like those it has seen allocate nothing. */
#ifndef THEO_GEOMETRY_SELECT_H
#define THEO_GEOMETRY_SELECT_H

#include <theo/theo.h>

typedef struct theo_select_rule {
    theo_nms nms;
    int radius;      /* of the window, Chebyshev distance; >= 0 */
    float threshold; /* >= 0; greedy keeps score >= threshold, the others score > threshold */
    int border;      /* >= 0; four: keeps border <= x < width - border, and y alike; hf: x, y >= border */
    theo_border border_mode;
    theo_order order; /* raster order only where the list was not cut */
    int max_points;   /* -1 = all, else the best max_points */
} theo_select_rule;

/* The rule that the options of theo_detect stand for. */
theo_select_rule theo_select_rule_of(const theo_detect_options *options);

typedef struct theo_selected {
    int32_t x, y; /* pixel of the map */
    float score;
} theo_selected;

/* A block of memory that only grows. */
typedef struct theo_growing {
    void *data;
    size_t bytes;
} theo_growing;

/* All zero is a valid empty selector. Only count and points are for the caller. */
typedef struct theo_selector {
    int count;                   /* valid after theo_select or theo_select_end */
    const theo_selected *points; /* [count], until the next begin */

    theo_select_rule rule;
    int width, height;
    size_t key_count;
    theo_growing keys, sorted;             /* uint64 [key_count]: see select.c */
    theo_growing plane, row_max;           /* float: scores above the threshold; their maxima along the rows */
    theo_growing scratch;                  /* float [2][width + 2 radius] */
    theo_growing columns, kept;            /* int32: x of the candidates, and of those kept in this round, row by row */
    theo_growing column_start, kept_start; /* size_t [rows + 1] */
    theo_growing mask;                     /* greedy: one bit a pixel */
    theo_growing result;                   /* theo_selected [count] */
} theo_selector;

void theo_selector_free(theo_selector *selector);

/* A whole map: [height, width] floats, rows `pitch` floats apart. width * height <= 2^32 - 1 (else THEO_BOUNDS). NaN is never
 * selected. */
theo_status theo_select(theo_selector *selector, const theo_select_rule *rule, const float *map, int width, int height,
                        size_t pitch, theo_error *err);

/* The same in bands: begin, then rows for bands that follow each other from row 0 to row `height`, then end.
 * rows: takes the points of map rows [first, first + count). `map` points to row `map_first`; rows [map_first, map_first +
 * map_count) are there. They must include theo_select_halo rows more on either side, as far as the map goes. */
int theo_select_halo(const theo_select_rule *rule);
theo_status theo_select_begin(theo_selector *selector, const theo_select_rule *rule, int width, int height, theo_error *err);
theo_status theo_select_rows(theo_selector *selector, const float *map, size_t pitch, int map_first, int map_count, int first,
                             int count, theo_error *err);
theo_status theo_select_end(theo_selector *selector, theo_error *err);

#endif
