/* fivepoint.c - the five-point problem (D. Nister, "An efficient solution to the five-point relative pose problem", PAMI 2004).
 *
 * Five pairs leave E = x X + y Y + z Z + W. That its determinant vanishes and 2 E E^T E = trace(E E^T) E gives ten cubic
 * equations in x, y, z. Elimination leaves three that are linear in x and y with polynomials in z as factors; their determinant
 * has degree ten. */
#include "geometry/fivepoint.h"

#include "geometry/linalg.h"

#include <math.h>
#include <string.h>

/* Polynomials in x, y, z by their coefficients:
 *   linear [4]:  x y z 1
 *   square [10]: xx xy xz x yy yz y zz z 1
 *   cubic [20]:  x3 y3 x2y xy2 x2z x2 y2z y2 xyz xy | xz2 xz x | yz2 yz y | z3 z2 z 1 (Nister's order) */
enum { LINEAR = 4, SQUARE = 10, CUBIC = 20 };

static const int square_of[LINEAR][LINEAR] = {{0, 1, 2, 3}, {1, 4, 5, 6}, {2, 5, 7, 8}, {3, 6, 8, 9}};
static const int cubic_of[SQUARE][LINEAR] = {{0, 2, 4, 5},     {2, 3, 8, 9},    {4, 8, 10, 11}, {5, 9, 11, 12},
                                             {3, 1, 6, 7},     {8, 6, 13, 14},  {9, 7, 14, 15}, {10, 13, 16, 17},
                                             {11, 14, 17, 18}, {12, 15, 18, 19}};

/* out += scale * p * q */
static void add_square(double out[SQUARE], const double p[LINEAR], const double q[LINEAR], double scale) {
    for (int i = 0; i < LINEAR; i++)
        for (int j = 0; j < LINEAR; j++)
            out[square_of[i][j]] += scale * p[i] * q[j];
}

static void add_cubic(double out[CUBIC], const double p[SQUARE], const double q[LINEAR]) {
    for (int i = 0; i < SQUARE; i++)
        for (int j = 0; j < LINEAR; j++)
            out[cubic_of[i][j]] += p[i] * q[j];
}

/* The ten equations; e[i] is element i of E. */
static void fill_equations(double out[10][CUBIC], double e[9][LINEAR]) {
    memset(out, 0, sizeof(double) * 10 * CUBIC);
    for (int i = 0; i < 3; i++) { /* det E: row 0 times the cross product of rows 1 and 2 */
        double cofactor[SQUARE] = {0};
        int j = (i + 1) % 3, k = (i + 2) % 3;
        add_square(cofactor, e[3 + j], e[6 + k], 1);
        add_square(cofactor, e[3 + k], e[6 + j], -1);
        add_cubic(out[0], cofactor, e[i]);
    }
    double product[3][3][SQUARE] = {{{0}}}; /* E E^T - trace(E E^T) / 2 */
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++)
                add_square(product[i][j], e[3 * i + k], e[3 * j + k], 1);
    for (int m = 0; m < SQUARE; m++) {
        double half = (product[0][0][m] + product[1][1][m] + product[2][2][m]) / 2;
        for (int i = 0; i < 3; i++)
            product[i][i][m] -= half;
    }
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < 3; k++)
            add_cubic(out[1 + i], product[i / 3][k], e[3 * k + i % 3]);
}

/* Polynomials in z, lowest power first: the factor of x (degree 3), of y (3), and the rest (4) of one equation. */
typedef struct row {
    double x[4], y[4], one[5];
} row;

/* Equation `first` minus z times equation `second`, whose leading monomials then cancel. */
static row subtract_shifted(const double first[CUBIC], const double second[CUBIC]) {
    row r = {{0}, {0}, {0}};
    for (int k = 0; k < 3; k++) { /* columns hold z^2, z, 1 */
        r.x[2 - k] += first[10 + k];
        r.x[3 - k] -= second[10 + k];
        r.y[2 - k] += first[13 + k];
        r.y[3 - k] -= second[13 + k];
    }
    for (int k = 0; k < 4; k++) { /* z^3, z^2, z, 1 */
        r.one[3 - k] += first[16 + k];
        r.one[4 - k] -= second[16 + k];
    }
    return r;
}

/* out += scale * p * q; the degrees are dp and dq. */
static void add_product(double *out, const double *p, int dp, const double *q, int dq, double scale) {
    for (int i = 0; i <= dp; i++)
        for (int j = 0; j <= dq; j++)
            out[i + j] += scale * p[i] * q[j];
}

/* out (degree 10) += det of the x and y factors of a and b, times the rest of c. */
static void add_minor(double out[11], const row *a, const row *b, const row *c) {
    double minor[7] = {0};
    add_product(minor, a->x, 3, b->y, 3, 1);
    add_product(minor, a->y, 3, b->x, 3, -1);
    add_product(out, minor, 6, c->one, 4, 1);
}

static double evaluate(const double *p, int degree, double z) {
    double sum = p[degree];
    for (int i = degree - 1; i >= 0; i--)
        sum = sum * z + p[i];
    return sum;
}

/* x and y that belong to the root z: the vector (x, y, 1) orthogonal to the three equations, from the two that differ most. */
static bool solve_for_xy(const row rows[3], double z, double xy[2]) {
    double v[3][3], best[3] = {0}, most = 0;
    for (int i = 0; i < 3; i++) {
        v[i][0] = evaluate(rows[i].x, 3, z);
        v[i][1] = evaluate(rows[i].y, 3, z);
        v[i][2] = evaluate(rows[i].one, 4, z);
        theo_vec3_normalise(v[i]);
    }
    for (int i = 0; i < 3; i++) {
        double n[3];
        theo_vec3_cross(n, v[i], v[(i + 1) % 3]);
        if (theo_vec3_dot(n, n) > most) {
            most = theo_vec3_dot(n, n);
            memcpy(best, n, sizeof best);
        }
    }
    xy[0] = best[0] / best[2];
    xy[1] = best[1] / best[2];
    return most > 0 && isfinite(xy[0]) && isfinite(xy[1]);
}

int theo_five_point(const double a[5][2], const double b[5][2], double E[THEO_FIVE_POINT_MOST][9]) {
    double epipolar[5][9], basis[4][9];
    for (int i = 0; i < 5; i++) {
        const double p[3] = {a[i][0], a[i][1], 1}, q[3] = {b[i][0], b[i][1], 1};
        for (int k = 0; k < 9; k++)
            epipolar[i][k] = q[k / 3] * p[k % 3];
    }
    theo_null_space(5, 9, &epipolar[0][0], &basis[0][0]);

    double elements[9][LINEAR], equations[10][CUBIC];
    for (int i = 0; i < 9; i++)
        for (int k = 0; k < LINEAR; k++)
            elements[i][k] = basis[k][i];
    fill_equations(equations, elements);
    if (!theo_eliminate(10, CUBIC, &equations[0][0]))
        return 0;

    /* The rows that lead with x2z and x2, y2z and y2, xyz and xy. */
    row rows[3];
    for (int i = 0; i < 3; i++)
        rows[i] = subtract_shifted(equations[4 + 2 * i], equations[5 + 2 * i]);
    double determinant[11] = {0}, roots[THEO_FIVE_POINT_MOST];
    add_minor(determinant, &rows[0], &rows[1], &rows[2]);
    add_minor(determinant, &rows[1], &rows[2], &rows[0]);
    add_minor(determinant, &rows[2], &rows[0], &rows[1]);

    int count = theo_real_roots(determinant, 10, roots), found = 0;
    for (int i = 0; i < count; i++) {
        double xy[2], size = 0, *e = E[found];
        if (!solve_for_xy(rows, roots[i], xy))
            continue;
        for (int k = 0; k < 9; k++) {
            e[k] = xy[0] * basis[0][k] + xy[1] * basis[1][k] + roots[i] * basis[2][k] + basis[3][k];
            size += e[k] * e[k];
        }
        if (!isfinite(size))
            continue;
        for (int k = 0; k < 9; k++)
            e[k] /= sqrt(size);
        found++;
    }
    return found;
}
