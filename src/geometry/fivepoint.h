/* fivepoint.h - essential matrices through five pairs. */
#ifndef THEO_GEOMETRY_FIVEPOINT_H
#define THEO_GEOMETRY_FIVEPOINT_H

enum { THEO_FIVE_POINT_MOST = 10 };

/* All real E of unit norm with b^T E a = 0 for five pairs of normalised image points (x, y, 1). Returns their number, 0 for
 * degenerate pairs. */
int theo_five_point(const double a[5][2], const double b[5][2], double E[THEO_FIVE_POINT_MOST][9]);

#endif
