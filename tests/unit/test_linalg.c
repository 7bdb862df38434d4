/* test_linalg.c - the small linear algebra against definitions and closed forms. */
#include "geometry/linalg.h"
#include "t.h"

#include <stdint.h>

static uint64_t state = 3;

static double next_random(void) { /* -1..1 */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / (double)(1ull << 52) - 1;
}

static void check_mat3(void) {
    for (int trial = 0; trial < 50; trial++) {
        double a[9], inverse[9], product[9];
        for (int i = 0; i < 9; i++)
            a[i] = next_random();
        CHECK(theo_mat3_invert(inverse, a));
        theo_mat3_multiply(product, a, inverse);
        for (int i = 0; i < 9; i++)
            CHECK_NEAR(product[i], i % 4 == 0, 1e-9 / fabs(theo_mat3_det(a)));
    }
    const double singular[9] = {1, 2, 3, 2, 4, 6, 1, 0, 1};
    double untouched[9] = {42};
    CHECK(!theo_mat3_invert(untouched, singular) && untouched[0] == 42);
}

static void check_rotation(void) {
    for (int trial = 0; trial < 50; trial++) {
        double w[3], R[9], Rt[9], product[9], moved[3], scale = trial < 25 ? 3 : 1e-5;
        for (int i = 0; i < 3; i++)
            w[i] = scale * next_random();
        theo_rotation_exp(R, w);
        theo_mat3_transpose(Rt, R);
        theo_mat3_multiply(product, R, Rt);
        for (int i = 0; i < 9; i++)
            CHECK_NEAR(product[i], i % 4 == 0, 1e-14);
        CHECK_NEAR(theo_mat3_det(R), 1, 1e-14);
        theo_mat3_apply(moved, R, w); /* the axis stays */
        for (int i = 0; i < 3; i++)
            CHECK_NEAR(moved[i], w[i], 1e-14);
        CHECK_NEAR(R[0] + R[4] + R[8], 1 + 2 * cos(sqrt(theo_vec3_dot(w, w))), 1e-14);
    }
}

static void check_eigen(void) {
    for (int n = 1; n <= 12; n++) {
        double A[144], copy[144], values[12], V[144];
        for (int i = 0; i < n; i++)
            for (int j = 0; j <= i; j++)
                A[i * n + j] = A[j * n + i] = n == 7 && i != j ? 0.25 : next_random(); /* n = 7: close eigenvalues */
        memcpy(copy, A, sizeof A);
        theo_eigen_symmetric(n, A, values, V);
        for (int k = 0; k < n; k++) {
            CHECK(k == 0 || values[k] >= values[k - 1]);
            for (int i = 0; i < n; i++) {
                double sum = 0, dot = 0;
                for (int j = 0; j < n; j++) {
                    sum += copy[i * n + j] * V[j * n + k];
                    dot += V[j * n + i] * V[j * n + k];
                }
                CHECK_NEAR(sum, values[k] * V[i * n + k], 1e-13);
                CHECK_NEAR(dot, i == k, 1e-13);
            }
        }
    }
}

static void check_svd(void) {
    for (int trial = 0; trial < 60; trial++) {
        double A[9], U[9], s[3], V[9];
        for (int i = 0; i < 9; i++)
            A[i] = next_random();
        int rank = trial % 4;
        for (int i = 0; i < 3; i++) { /* rank 0 to 3 */
            if (rank < 3)
                A[3 * i + 2] = A[3 * i] - 2 * A[3 * i + 1];
            if (rank < 2)
                A[3 * i + 1] = 3 * A[3 * i], A[3 * i + 2] = -A[3 * i];
            if (rank < 1)
                A[3 * i] = A[3 * i + 1] = A[3 * i + 2] = 0;
        }
        theo_svd3(A, U, s, V);
        CHECK(s[0] >= s[1] && s[1] >= s[2] && s[2] >= 0);
        CHECK((rank < 1) == (s[0] < 1e-13) && (rank < 2) == (s[1] < 1e-13) && (rank < 3) == (s[2] < 1e-13));
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++) {
                double a = 0, u = 0, v = 0;
                for (int k = 0; k < 3; k++) {
                    a += U[3 * i + k] * s[k] * V[3 * j + k];
                    u += U[3 * k + i] * U[3 * k + j];
                    v += V[3 * k + i] * V[3 * k + j];
                }
                CHECK_NEAR(a, A[3 * i + j], 1e-13);
                CHECK_NEAR(u, i == j, 1e-13);
                CHECK_NEAR(v, i == j, 1e-13);
            }
    }
}

static void check_systems(void) {
    enum { N = 9 };
    double B[N][N], A[N * N], x[N], b[N] = {0}, wide[N * (N + 2)];
    for (int i = 0; i < N; i++) {
        x[i] = next_random();
        for (int j = 0; j < N; j++)
            B[i][j] = next_random();
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            A[i * N + j] = i == j ? 0.1 : 0;
            for (int k = 0; k < N; k++)
                A[i * N + j] += B[i][k] * B[j][k];
            b[i] += A[i * N + j] * x[j];
        }
    CHECK(theo_solve_spd(N, A, b));
    for (int i = 0; i < N; i++)
        CHECK_NEAR(b[i], x[i], 1e-10);
    double indefinite[4] = {1, 2, 2, 1}, right[2] = {1, 1};
    CHECK(!theo_solve_spd(2, indefinite, right));

    for (int i = 0; i < N; i++) {
        wide[i * (N + 2) + N] = wide[i * (N + 2) + N + 1] = 0;
        for (int j = 0; j < N; j++) {
            wide[i * (N + 2) + j] = B[i][j];
            wide[i * (N + 2) + N] += B[i][j] * x[j];
            wide[i * (N + 2) + N + 1] -= B[i][j] * x[N - 1 - j];
        }
    }
    CHECK(theo_eliminate(N, N + 2, wide));
    for (int i = 0; i < N; i++) {
        CHECK_NEAR(wide[i * (N + 2) + N], x[i], 1e-10);
        CHECK_NEAR(wide[i * (N + 2) + N + 1], -x[N - 1 - i], 1e-10);
    }
    double flat[6] = {1, 2, 3, 2, 4, 6};
    CHECK(!theo_eliminate(2, 3, flat));
}

static void check_null_space(void) {
    enum { ROWS = 5, COLUMNS = 9 };
    double A[ROWS][COLUMNS], copy[ROWS][COLUMNS], basis[COLUMNS - ROWS][COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        (&A[0][0])[i] = (&copy[0][0])[i] = i < COLUMNS ? i == 0 : next_random(); /* the first row is e_0 already */
    theo_null_space(ROWS, COLUMNS, &A[0][0], &basis[0][0]);
    for (int n = 0; n < COLUMNS - ROWS; n++) {
        for (int r = 0; r < ROWS; r++) {
            double dot = 0;
            for (int j = 0; j < COLUMNS; j++)
                dot += copy[r][j] * basis[n][j];
            CHECK_NEAR(dot, 0, 1e-14);
        }
        for (int m = 0; m <= n; m++) {
            double dot = 0;
            for (int j = 0; j < COLUMNS; j++)
                dot += basis[m][j] * basis[n][j];
            CHECK_NEAR(dot, m == n, 1e-14);
        }
    }
}

/* Coefficients of prod (x - r_i). */
static void expand(const double *roots, int n, double *c) {
    memset(c, 0, sizeof(double) * (size_t)(n + 1));
    c[0] = 1;
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k >= 0; k--)
            c[k] = (k ? c[k - 1] : 0) - roots[i] * c[k];
}

static void check_roots(void) {
    double c[THEO_MAX_ORDER + 1], found[THEO_MAX_ORDER];
    for (int n = 1; n <= 10; n++) {
        double roots[10];
        for (int i = 0; i < n; i++)
            roots[i] = -2 + 0.43 * i + 0.1 * next_random();
        expand(roots, n, c);
        CHECK_MSG(theo_real_roots(c, n, found) == n, "degree %d", n);
        for (int i = 0; i < n; i++)
            CHECK_NEAR(found[i], roots[i], 1e-7);
    }
    const double no_root[] = {1, 0, 1}, constant[] = {3, 0, 0}, twice[] = {1, -2, 1}, large[] = {-1e6, 1}, zero[] = {0, 0};
    CHECK(theo_real_roots(no_root, 2, found) == 0);
    CHECK(theo_real_roots(constant, 2, found) == 0);
    CHECK(theo_real_roots(zero, 1, found) == 0);
    CHECK(theo_real_roots(twice, 2, found) == 1);
    CHECK_NEAR(found[0], 1, 1e-6);
    CHECK(theo_real_roots(large, 1, found) == 1);
    CHECK_NEAR(found[0], 1e6, 1e-3);
}

/* Rosenbrock's valley as a least squares problem: r = (10 (y - x^2), 1 - x). */
static double valley(const void *context, const double *p, double *JtJ, double *Jtr) {
    (void)context;
    double r0 = 10 * (p[1] - p[0] * p[0]), r1 = 1 - p[0];
    if (JtJ) {
        double a = -20 * p[0], b = 10;
        JtJ[0] = a * a + 1;
        JtJ[1] = JtJ[2] = a * b;
        JtJ[3] = b * b;
        Jtr[0] = a * r0 - r1;
        Jtr[1] = b * r0;
    }
    return r0 * r0 + r1 * r1;
}

static void add(const void *context, const double *p, const double *step, double *moved) {
    (void)context;
    moved[0] = p[0] + step[0];
    moved[1] = p[1] + step[1];
}

static void check_minimise(void) {
    const theo_minimisation problem = {.parameters = 2, .state_size = 2, .evaluate = valley, .move = add};
    double p[2] = {-1.2, 1};
    CHECK(theo_minimise(&problem, p, 100) < 1e-18);
    CHECK_NEAR(p[0], 1, 1e-8);
    CHECK_NEAR(p[1], 1, 1e-8);
}

int main(void) {
    check_mat3();
    check_rotation();
    check_eigen();
    check_svd();
    check_systems();
    check_null_space();
    check_roots();
    check_minimise();
    return t_done("linalg");
}
