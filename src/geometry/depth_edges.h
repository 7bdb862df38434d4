/* depth_edges.h - where a depth map jumps: rows of flags, for theo_depth_edges and for meshes. */
#ifndef THEO_GEOMETRY_DEPTH_EDGES_H
#define THEO_GEOMETRY_DEPTH_EDGES_H

#include <theo/export.h>

/* THEO_ARGUMENT unless sizes, pointers and threshold of the two public calls make sense. */
theo_status theo_depth_map_check(const theo_depth_map *map, float threshold, theo_error *err);

/* Row y of what a map holds: edge[x] as theo_depth_edges says, kept[x] = 1 for pixels that count and are no edges. Either may be
 * NULL. scratch: 3 * width floats. */
void theo_depth_edge_row(const theo_depth_map *map, float threshold, int y, uint8_t *edge, uint8_t *kept, float *scratch);

#endif
