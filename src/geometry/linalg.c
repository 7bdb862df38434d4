/* linalg.c - small dense linear algebra: 3x3 helpers, symmetric eigenvalues, SVD, elimination, polynomial roots,
 * Levenberg-Marquardt. */
#include "geometry/linalg.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- 3x3 */

void theo_mat3_multiply(double out[9], const double a[9], const double b[9]) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
}

void theo_mat3_apply(double out[3], const double a[9], const double x[3]) {
    for (int i = 0; i < 3; i++)
        out[i] = theo_vec3_dot(a + 3 * i, x);
}

void theo_mat3_transpose(double out[9], const double a[9]) {
    for (int i = 0; i < 9; i++)
        out[i] = a[i % 3 * 3 + i / 3];
}

double theo_mat3_det(const double a[9]) {
    double c[3];
    theo_vec3_cross(c, a + 3, a + 6);
    return theo_vec3_dot(a, c);
}

bool theo_mat3_invert(double out[9], const double a[9]) {
    double det = theo_mat3_det(a);
    if (det == 0 || !isfinite(det))
        return false;
    double rows[9]; /* of the transposed adjugate */
    theo_vec3_cross(rows, a + 3, a + 6);
    theo_vec3_cross(rows + 3, a + 6, a);
    theo_vec3_cross(rows + 6, a, a + 3);
    for (int i = 0; i < 9; i++)
        out[i] = rows[i % 3 * 3 + i / 3] / det;
    return true;
}

double theo_vec3_dot(const double a[3], const double b[3]) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

void theo_vec3_cross(double out[3], const double a[3], const double b[3]) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

double theo_vec3_normalise(double a[3]) {
    double length = sqrt(theo_vec3_dot(a, a));
    if (length > 0)
        for (int i = 0; i < 3; i++)
            a[i] /= length;
    return length;
}

void theo_rotation_exp(double R[9], const double w[3]) {
    double angle2 = theo_vec3_dot(w, w), angle = sqrt(angle2);
    /* Series near zero, where the quotients lose their digits. */
    double a = angle < 1e-4 ? 1 - angle2 / 6 : sin(angle) / angle;
    double b = angle < 1e-4 ? 0.5 - angle2 / 24 : (1 - cos(angle)) / angle2;
    const double skew[9] = {0, -w[2], w[1], w[2], 0, -w[0], -w[1], w[0], 0};
    double square[9];
    theo_mat3_multiply(square, skew, skew);
    for (int i = 0; i < 9; i++)
        R[i] = (i % 4 == 0) + a * skew[i] + b * square[i];
}

/* ---------------------------------------------------------------- eigenvalues, singular values */

/* Cosine and sine of the rotation that annihilates the off-diagonal element apq of a symmetric 2x2 matrix. */
static void jacobi_rotation(double app, double aqq, double apq, double *c, double *s) {
    double tau = (aqq - app) / (2 * apq);
    double t = (tau >= 0 ? 1 : -1) / (fabs(tau) + sqrt(1 + tau * tau));
    *c = 1 / sqrt(1 + t * t);
    *s = t * *c;
}

/* Exchanges columns i and j of an n x n matrix. */
static void swap_columns(int n, double *M, int i, int j) {
    for (int row = 0; row < n; row++) {
        double t = M[row * n + i];
        M[row * n + i] = M[row * n + j];
        M[row * n + j] = t;
    }
}

void theo_eigen_symmetric(int n, double *A, double *values, double *V) {
    for (int i = 0; i < n * n; i++)
        V[i] = i % (n + 1) == 0;
    for (int sweep = 0; sweep < 50; sweep++) {
        double off = 0, diagonal = 0;
        for (int i = 0; i < n; i++) {
            diagonal += A[i * n + i] * A[i * n + i];
            for (int j = 0; j < i; j++)
                off += A[i * n + j] * A[i * n + j];
        }
        if (off <= DBL_EPSILON * DBL_EPSILON * diagonal || off == 0)
            break;
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) {
                if (A[p * n + q] == 0)
                    continue;
                double c, s;
                jacobi_rotation(A[p * n + p], A[q * n + q], A[p * n + q], &c, &s);
                for (int k = 0; k < n; k++) {
                    double x = A[k * n + p], y = A[k * n + q];
                    A[k * n + p] = c * x - s * y;
                    A[k * n + q] = s * x + c * y;
                }
                for (int k = 0; k < n; k++) {
                    double x = A[p * n + k], y = A[q * n + k];
                    A[p * n + k] = c * x - s * y;
                    A[q * n + k] = s * x + c * y;
                    x = V[k * n + p];
                    y = V[k * n + q];
                    V[k * n + p] = c * x - s * y;
                    V[k * n + q] = s * x + c * y;
                }
            }
    }
    for (int i = 0; i < n; i++)
        values[i] = A[i * n + i];
    for (int i = 0; i < n; i++) {
        int least = i;
        for (int j = i + 1; j < n; j++)
            if (values[j] < values[least])
                least = j;
        double t = values[i];
        values[i] = values[least];
        values[least] = t;
        swap_columns(n, V, i, least);
    }
}

/* A unit vector orthogonal to the unit vector a. */
static void any_orthogonal(double out[3], const double a[3]) {
    double axis[3] = {0, 0, 0};
    int least = fabs(a[0]) < fabs(a[1]) ? 0 : 1;
    axis[fabs(a[2]) < fabs(a[least]) ? 2 : least] = 1;
    theo_vec3_cross(out, a, axis);
    theo_vec3_normalise(out);
}

void theo_svd3(const double A[9], double U[9], double s[3], double V[9]) {
    double columns[3][3], right[3][3]; /* columns of A V, and of V */
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            columns[j][i] = A[3 * i + j];
            right[j][i] = i == j;
        }
    for (int sweep = 0; sweep < 50; sweep++) {
        bool rotated = false;
        for (int p = 0; p < 2; p++)
            for (int q = p + 1; q < 3; q++) {
                double pp = theo_vec3_dot(columns[p], columns[p]), qq = theo_vec3_dot(columns[q], columns[q]);
                double pq = theo_vec3_dot(columns[p], columns[q]);
                if (fabs(pq) <= DBL_EPSILON * sqrt(pp * qq))
                    continue;
                rotated = true;
                double c, sn;
                jacobi_rotation(pp, qq, pq, &c, &sn);
                for (int k = 0; k < 3; k++) {
                    double x = columns[p][k], y = columns[q][k];
                    columns[p][k] = c * x - sn * y;
                    columns[q][k] = sn * x + c * y;
                    x = right[p][k];
                    y = right[q][k];
                    right[p][k] = c * x - sn * y;
                    right[q][k] = sn * x + c * y;
                }
            }
        if (!rotated)
            break;
    }
    int order[3] = {0, 1, 2};
    double length[3];
    for (int i = 0; i < 3; i++)
        length[i] = theo_vec3_normalise(columns[i]);
    for (int i = 0; i < 2; i++)
        for (int j = i + 1; j < 3; j++)
            if (length[order[j]] > length[order[i]]) {
                int t = order[i];
                order[i] = order[j];
                order[j] = t;
            }
    double left[3][3];
    for (int i = 0; i < 3; i++) {
        s[i] = length[order[i]];
        memcpy(left[i], columns[order[i]], sizeof left[i]);
    }
    /* A vanished column has no direction of its own. */
    double negligible = s[0] * 1e-15;
    if (s[0] == 0) {
        left[0][0] = 1;
        left[0][1] = left[0][2] = 0;
    }
    if (s[1] <= negligible)
        any_orthogonal(left[1], left[0]);
    if (s[2] <= negligible)
        theo_vec3_cross(left[2], left[0], left[1]);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            U[3 * i + j] = left[j][i];
            V[3 * i + j] = right[order[j]][i];
        }
}

/* ---------------------------------------------------------------- systems */

bool theo_solve_spd(int n, double *A, double *b) {
    for (int i = 0; i < n; i++) { /* A = L L^T, row by row */
        for (int j = 0; j <= i; j++) {
            double sum = A[i * n + j];
            for (int k = 0; k < j; k++)
                sum -= A[i * n + k] * A[j * n + k];
            if (i != j)
                A[i * n + j] = sum / A[j * n + j];
            else if (sum > 0 && isfinite(sum))
                A[i * n + i] = sqrt(sum);
            else
                return false;
        }
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i; k++)
            b[i] -= A[i * n + k] * b[k];
        b[i] /= A[i * n + i];
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int k = i + 1; k < n; k++)
            b[i] -= A[k * n + i] * b[k];
        b[i] /= A[i * n + i];
    }
    return true;
}

bool theo_eliminate(int rows, int columns, double *A) {
    for (int c = 0; c < rows; c++) {
        int pivot = c;
        for (int r = c + 1; r < rows; r++)
            if (fabs(A[r * columns + c]) > fabs(A[pivot * columns + c]))
                pivot = r;
        double value = A[pivot * columns + c];
        if (!(fabs(value) > 1e-14))
            return false;
        for (int j = c; j < columns; j++) {
            double t = A[pivot * columns + j];
            A[pivot * columns + j] = A[c * columns + j];
            A[c * columns + j] = t / value;
        }
        for (int r = 0; r < rows; r++) {
            double factor = A[r * columns + c];
            if (r == c || factor == 0)
                continue;
            for (int j = c; j < columns; j++)
                A[r * columns + j] -= factor * A[c * columns + j];
        }
    }
    return true;
}

void theo_null_space(int rows, int columns, double *A, double *basis) {
    /* Reflections that make A lower triangular from the right: A Q = [L 0]. The last columns of Q are the basis. Reflection k is
     * I - 2 v v^T; v replaces row k of A from element k on. */
    for (int k = 0; k < rows; k++) {
        double *v = A + k * columns, length2 = 0;
        for (int j = k; j < columns; j++)
            length2 += v[j] * v[j];
        v[k] += v[k] < 0 ? -sqrt(length2) : sqrt(length2);
        double norm2 = 0;
        for (int j = k; j < columns; j++)
            norm2 += v[j] * v[j];
        for (int j = k; norm2 > 0 && j < columns; j++)
            v[j] /= sqrt(norm2);
        for (int r = k + 1; r < rows; r++) {
            double *row = A + r * columns, dot = 0;
            for (int j = k; j < columns; j++)
                dot += row[j] * v[j];
            for (int j = k; j < columns; j++)
                row[j] -= 2 * dot * v[j];
        }
    }
    for (int n = 0; n < columns - rows; n++) {
        double *x = basis + n * columns;
        for (int j = 0; j < columns; j++)
            x[j] = j == rows + n;
        for (int k = rows - 1; k >= 0; k--) {
            const double *v = A + k * columns;
            double dot = 0;
            for (int j = k; j < columns; j++)
                dot += x[j] * v[j];
            for (int j = k; j < columns; j++)
                x[j] -= 2 * dot * v[j];
        }
    }
}

/* ---------------------------------------------------------------- polynomials */

typedef struct polynomial {
    int degree;
    double c[THEO_MAX_ORDER + 1];
} polynomial;

static double value_at(const polynomial *p, double x) {
    double sum = p->c[p->degree];
    for (int i = p->degree - 1; i >= 0; i--)
        sum = sum * x + p->c[i];
    return sum;
}

static polynomial derivative(const polynomial *p) {
    polynomial d = {.degree = p->degree - 1};
    for (int i = 1; i <= p->degree; i++)
        d.c[i - 1] = i * p->c[i];
    return d;
}

/* Divides by the largest coefficient and drops leading ones that are nothing but rounding. False when all vanish. */
static bool condition(polynomial *p, double negligible) {
    double most = 0;
    for (int i = 0; i <= p->degree; i++)
        most = fmax(most, fabs(p->c[i]));
    if (!(most > negligible) || !isfinite(most))
        return false;
    for (int i = 0; i <= p->degree; i++)
        p->c[i] /= most;
    while (p->degree > 0 && fabs(p->c[p->degree]) < 1e-14)
        p->degree--;
    return true;
}

/* Minus the remainder of a / b. */
static polynomial negated_remainder(const polynomial *a, const polynomial *b) {
    polynomial r = *a;
    for (int top = a->degree; top >= b->degree; top--) {
        double factor = r.c[top] / b->c[b->degree];
        for (int i = 0; i <= b->degree; i++)
            r.c[top - b->degree + i] -= factor * b->c[i];
    }
    r.degree = b->degree - 1;
    for (int i = 0; i <= r.degree; i++)
        r.c[i] = -r.c[i];
    return r;
}

typedef struct sturm_chain {
    int length;
    polynomial p[THEO_MAX_ORDER + 1];
} sturm_chain;

static int sign_changes(const sturm_chain *chain, double x) {
    int changes = 0;
    double last = 0;
    for (int i = 0; i < chain->length; i++) {
        double v = value_at(&chain->p[i], x);
        if (v == 0)
            continue;
        changes += v * last < 0;
        last = v > 0 ? 1 : -1;
    }
    return changes;
}

/* The single root in (low, high]: bisection by sign where the sign changes (by the chain where it touches), then Newton. */
static double polish(const sturm_chain *chain, double low, double high, int changes_low) {
    const polynomial *p = &chain->p[0], *slope = &chain->p[1];
    double at_low = value_at(p, low);
    bool crosses = at_low * value_at(p, high) < 0;
    for (int i = 0; i < 60 && high - low > 1e-10 * (1 + fabs(low)); i++) {
        double middle = 0.5 * (low + high);
        bool is_left = crosses ? at_low * value_at(p, middle) <= 0 : sign_changes(chain, middle) < changes_low;
        if (is_left)
            high = middle;
        else
            low = middle;
    }
    double x = 0.5 * (low + high);
    for (int i = 0; i < 4; i++) {
        double s = value_at(slope, x), step = s != 0 ? value_at(p, x) / s : 0;
        if (!(x - step >= low && x - step <= high))
            break;
        x -= step;
    }
    return x;
}

/* Roots in (low, high], left to right. */
static int isolate(const sturm_chain *chain, double low, double high, int changes_low, int changes_high, int depth,
                   double *roots) {
    int count = changes_low - changes_high;
    if (count <= 0)
        return 0;
    if (count == 1 || depth == 0) { /* roots that bisection cannot part count as one */
        roots[0] = polish(chain, low, high, changes_low);
        return 1;
    }
    double middle = 0.5 * (low + high);
    int changes = sign_changes(chain, middle);
    int found = isolate(chain, low, middle, changes_low, changes, depth - 1, roots);
    return found + isolate(chain, middle, high, changes, changes_high, depth - 1, roots + found);
}

int theo_real_roots(const double *c, int degree, double *roots) {
    sturm_chain chain = {.length = 2};
    chain.p[0].degree = degree;
    memcpy(chain.p[0].c, c, (size_t)(degree + 1) * sizeof *c);
    if (!condition(&chain.p[0], 0) || chain.p[0].degree == 0)
        return 0;
    const polynomial *p = &chain.p[0];
    chain.p[1] = derivative(p);
    while (chain.p[chain.length - 1].degree > 0) {
        polynomial next = negated_remainder(&chain.p[chain.length - 2], &chain.p[chain.length - 1]);
        if (!condition(&next, 1e-14))
            break; /* a multiple root: the chain ends with the common divisor */
        chain.p[chain.length++] = next;
    }
    double bound = 0; /* Fujiwara's bound on the size of all roots */
    for (int i = 0; i < p->degree; i++)
        bound = fmax(bound, pow(fabs(p->c[i] / p->c[p->degree]), 1.0 / (p->degree - i)));
    bound = 2 * bound + 1e-9;
    return isolate(&chain, -bound, bound, sign_changes(&chain, -bound), sign_changes(&chain, bound), 60, roots);
}

/* ---------------------------------------------------------------- Levenberg-Marquardt */

double theo_minimise(const theo_minimisation *problem, double *state, int iterations) {
    enum { N = THEO_MAX_ORDER };
    int n = problem->parameters;
    double JtJ[N * N], Jtr[N], damped[N * N], step[N], moved[4 * N];
    double cost = problem->evaluate(problem->context, state, JtJ, Jtr), damping = 1e-3;
    for (int i = 0; i < iterations && isfinite(cost); i++) {
        memcpy(damped, JtJ, sizeof(double) * (size_t)(n * n));
        for (int k = 0; k < n; k++) {
            damped[k * n + k] += damping * damped[k * n + k] + 1e-300;
            step[k] = -Jtr[k];
        }
        double next = INFINITY;
        if (theo_solve_spd(n, damped, step)) {
            problem->move(problem->context, state, step, moved);
            next = problem->evaluate(problem->context, moved, NULL, NULL);
        }
        if (next < cost) {
            bool is_done = cost - next <= 1e-12 * cost;
            memcpy(state, moved, sizeof(double) * (size_t)problem->state_size);
            cost = next;
            if (is_done)
                break;
            damping = fmax(damping * 0.1, 1e-12);
            problem->evaluate(problem->context, state, JtJ, Jtr);
        } else {
            damping *= 10;
            if (damping > 1e12)
                break;
        }
    }
    return cost;
}
