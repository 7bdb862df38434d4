/* focal_estimate.h - focal lengths of point maps, as DUSt3R's programs find them. */
#ifndef THEO_GEOMETRY_FOCAL_ESTIMATE_H
#define THEO_GEOMETRY_FOCAL_ESTIMATE_H

#include <theo/geometry.h>

/* theo_focal_median with the caller's room for votes [2 width height]. */
double theo_focal_median_in(const theo_point_map *map, double *votes);

#endif
