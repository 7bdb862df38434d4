/* p3p.h - the poses from which three points are seen along three rays. */
#ifndef THEO_GEOMETRY_P3P_H
#define THEO_GEOMETRY_P3P_H

enum { THEO_P3P_MOST = 4 };

/* points: three in the world; rays: their directions from the camera, of length 1. Poses X_camera = R X + t into R[k][9],
 * t[k][3]; returns their number, 0 to 4. Grunert 1841, in the form of Haralick et al. 1994 ("Review and analysis of solutions of
 * the three point perspective pose estimation problem"). */
int theo_p3p(const double points[3][3], const double rays[3][3], double R[THEO_P3P_MOST][9], double t[THEO_P3P_MOST][3]);

#endif
