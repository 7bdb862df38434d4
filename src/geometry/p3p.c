#include "geometry/p3p.h"
#include "geometry/linalg.h"
#include <math.h>
#include <string.h>

static void subtract(double out[3], const double a[3], const double b[3]) {
    for (int i = 0; i < 3; i++)
        out[i] = a[i] - b[i];
}

static double distance2(const double a[3], const double b[3]) {
    double d[3];
    subtract(d, a, b);
    return theo_vec3_dot(d, d);
}

/* Orthonormal axes of a triangle as the columns of F; false where its corners lie on a line. */
static bool axes_of(const double corner[3][3], double F[9]) {
    double along[3], other[3], normal[3], third[3];
    subtract(along, corner[1], corner[0]);
    subtract(other, corner[2], corner[0]);
    theo_vec3_cross(normal, along, other);
    if (!(theo_vec3_normalise(along) > 0) || !(theo_vec3_normalise(normal) > 0))
        return false;
    theo_vec3_cross(third, normal, along);
    for (int i = 0; i < 3; i++) {
        F[3 * i] = along[i];
        F[3 * i + 1] = third[i];
        F[3 * i + 2] = normal[i];
    }
    return true;
}

int theo_p3p(const double points[3][3], const double rays[3][3], double R[THEO_P3P_MOST][9], double t[THEO_P3P_MOST][3]) {
    /* Sides and angles opposite of one another: a and alpha belong to points 2 and 3. The unknowns are the distances s1, u s1 and
     * v s1 of the points; the law of cosines for each side leaves a polynomial in v. */
    double world[9];
    double a2 = distance2(points[1], points[2]), b2 = distance2(points[0], points[2]), c2 = distance2(points[0], points[1]);
    if (!axes_of(points, world) || !(b2 > 0))
        return 0;
    double alpha = theo_vec3_dot(rays[1], rays[2]), beta = theo_vec3_dot(rays[0], rays[2]),
           gamma = theo_vec3_dot(rays[0], rays[1]);
    double k = (a2 - c2) / b2, sum = (a2 + c2) / b2, cb = c2 / b2, ab = a2 / b2;
    const double quartic[5] = {
        (1 + k) * (1 + k) - 4 * ab * gamma * gamma,
        4 * (-k * (1 + k) * beta + 2 * ab * gamma * gamma * beta - (1 - sum) * alpha * gamma),
        2 * (k * k - 1 + 2 * k * k * beta * beta + 2 * (1 - cb) * alpha * alpha - 4 * sum * alpha * beta * gamma +
             2 * (1 - ab) * gamma * gamma),
        4 * (k * (1 - k) * beta - (1 - sum) * alpha * gamma + 2 * cb * alpha * alpha * beta),
        (k - 1) * (k - 1) - 4 * cb * alpha * alpha,
    };
    double roots[4];
    int count = 0, found = theo_real_roots(quartic, 4, roots);
    for (int i = 0; i < found; i++) {
        double v = roots[i], below = 2 * (gamma - v * alpha), s1 = b2 / (1 + v * v - 2 * v * beta);
        double u = ((k - 1) * v * v - 2 * k * beta * v + 1 + k) / below;
        if (!(v > 0) || !(u > 0) || !(s1 > 0) || !isfinite(u))
            continue;
        s1 = sqrt(s1);
        double seen[3][3], camera[9], back[9], moved[3];
        for (int axis = 0; axis < 3; axis++) {
            seen[0][axis] = s1 * rays[0][axis];
            seen[1][axis] = u * s1 * rays[1][axis];
            seen[2][axis] = v * s1 * rays[2][axis];
        }
        if (!axes_of(seen, camera))
            continue;
        theo_mat3_transpose(back, world);
        theo_mat3_multiply(R[count], camera, back);
        theo_mat3_apply(moved, R[count], points[0]);
        subtract(t[count++], seen[0], moved);
    }
    return count;
}
