/* linalg.h - the small dense linear algebra of the robust fits. All in double, all matrices row-major, nothing allocates. */
#ifndef THEO_GEOMETRY_LINALG_H
#define THEO_GEOMETRY_LINALG_H

#include <stdbool.h>

enum { THEO_MAX_ORDER = 16 };

/* out = A B for 3x3 matrices; out may be neither. out = A x for a 3-vector; out may not be x. */
void theo_mat3_multiply(double out[9], const double a[9], const double b[9]);
void theo_mat3_apply(double out[3], const double a[9], const double x[3]);
void theo_mat3_transpose(double out[9], const double a[9]); /* out may not be a */
double theo_mat3_det(const double a[9]);
/* Inverse; false (out untouched) when the determinant is zero or not finite. */
bool theo_mat3_invert(double out[9], const double a[9]);

double theo_vec3_dot(const double a[3], const double b[3]);
void theo_vec3_cross(double out[3], const double a[3], const double b[3]); /* out may be neither */
/* Divides by the length and returns the length; a zero vector stays. */
double theo_vec3_normalise(double a[3]);

/* exp([w]x): rotation by |w| about w (Rodrigues). */
void theo_rotation_exp(double R[9], const double w[3]);

/* Eigenvalues (ascending) and eigenvectors (columns of V: V[i*n + k] is element i of vector k) of a symmetric n x n matrix by
 * cyclic Jacobi rotations (Golub and Van Loan, section 8.5). A is destroyed. n <= THEO_MAX_ORDER. */
void theo_eigen_symmetric(int n, double *A, double *values, double *V);

/* A = U diag(s) V^T of a 3x3 matrix, s descending, U and V orthogonal (their determinants may be -1). One-sided Jacobi: small
 * singular values keep their relative accuracy. */
void theo_svd3(const double A[9], double U[9], double s[3], double V[9]);

/* Solves A x = b for a symmetric positive definite A by Cholesky; A is destroyed, b becomes x. False when A is not positive
 * definite. n <= THEO_MAX_ORDER. */
bool theo_solve_spd(int n, double *A, double *b);

/* Gauss-Jordan elimination with row pivoting on a rows x columns matrix, rows <= columns: the left square becomes the identity,
 * the rest A^-1 times what it was. False when a pivot is below 1e-14: the entries should be of about unit size. */
bool theo_eliminate(int rows, int columns, double *A);

/* Orthonormal basis of the null space of a rows x columns matrix of full rank, rows < columns <= THEO_MAX_ORDER: basis gets
 * columns - rows vectors, one behind the other. Householder reflections; A is destroyed. */
void theo_null_space(int rows, int columns, double *A, double *basis);

/* Real roots of the polynomial c[0] + c[1] x + ... + c[degree] x^degree in ascending order, each once; returns their number.
 * Sturm sequences isolate them, bisection and Newton steps polish (Nister 2004, section 3.2). degree <= THEO_MAX_ORDER. */
int theo_real_roots(const double *c, int degree, double *roots);

/* ---- nonlinear least squares: Levenberg-Marquardt on a state with a local parametrisation */

typedef struct theo_minimisation {
    int parameters; /* of a step; <= THEO_MAX_ORDER */
    int state_size; /* doubles of a state; <= 4 * THEO_MAX_ORDER */
    const void *context;
    /* Cost of a state. Unless JtJ is NULL, also fills J^T W J [parameters^2] (lower triangle suffices) and J^T W r [parameters]
     * with respect to a step at zero, where W holds the derivatives of the robust kernel: cost = sum rho(r^2), W = rho'(r^2). May
     * return infinity. */
    double (*evaluate)(const void *context, const double *state, double *JtJ, double *Jtr);
    /* moved = state changed by the step. moved is not state. */
    void (*move)(const void *context, const double *state, const double *step, double *moved);
} theo_minimisation;

/* Improves `state` in at most `iterations` accepted or rejected steps, until the cost falls by less than 1e-12 of itself. Returns
 * the final cost. */
double theo_minimise(const theo_minimisation *problem, double *state, int iterations);

#endif
