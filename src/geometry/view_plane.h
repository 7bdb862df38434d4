/* view_plane.h - MoGe's coordinates of pixels: on the plane at the distance of half the picture's diagonal. */
#ifndef THEO_GEOMETRY_VIEW_PLANE_H
#define THEO_GEOMETRY_VIEW_PLANE_H

#include <stddef.h>

/* Half the extent of the plane along x and y, for width / height of the picture: a / sqrt(1 + a^2) and 1 / sqrt(1 + a^2). */
typedef struct theo_view_plane {
    double x, y;
} theo_view_plane;
theo_view_plane theo_view_plane_of(double aspect);

/* Centre of pixel i of n along an axis of that half extent: half (2 i + 1 - n) / n, rounded as the original rounds it, which
 * counts where the focal length is nearly free: theo_focal_solve. The original's is torch.linspace in float32 on x86-64 with AVX2
 * and FMA: from the start in the first half and from the end in the second; whole sixteens of elements as two vectors of eight,
 * of which the first lane alone is a fused product. */
float theo_view_plane_at(double half, int n, int i);

/* The map [h, w, 2] of (u, v), pixels `pitch` floats apart. */
void theo_view_plane_fill(const theo_view_plane *plane, int h, int w, float *out, size_t pitch);

#endif
