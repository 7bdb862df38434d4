/* focal.h - the focal length and the shift along z that turn MoGe's affine points into a camera's view (docs/models/moge2.md). */
#ifndef THEO_GEOMETRY_FOCAL_H
#define THEO_GEOMETRY_FOCAL_H

#include <theo/theo.h>

enum { THEO_FOCAL_SAMPLES = 64 }; /* per axis: the maps are read at 64 x 64 places */

typedef struct theo_focal_problem {
    const float *points; /* [height, width, 3] affine */
    const float *mask;   /* [height, width]; NULL: every point counts */
    float threshold;     /* a point counts where its mask is above */
    int width, height;
    double aspect; /* width / height of the camera's picture */
    double focal;  /* in half diagonals of the picture, > 0: given, the shift alone is looked for; 0: both */
} theo_focal_problem;

typedef struct theo_focal_result {
    float focal;        /* in half diagonals */
    float shift;        /* to be added to z */
    int evaluations;    /* of the residuals; 0: fewer than two points counted, nothing was solved */
    bool is_degenerate; /* nothing usable came out: shift 0 */
} theo_focal_result;

/* Minimises |xy / (z + shift) * focal - uv|^2 over the shift, in which the best focal length is a closed form. The steps are
 * those of MINPACK's lmdif (Moré, Garbow, Hillstrom 1980) for one variable with SciPy's settings and ftol 1e-3: on hard scenes it
 * stops at points that are not the minimum, and so must this. */
theo_focal_result theo_focal_solve(const theo_focal_problem *problem);

/* min(floor(o * (in / out)), in - 1) in float32: where nearest sampling reads. */
int theo_nearest_index(int o, int in, int out);

#endif
