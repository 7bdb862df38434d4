/* test_essential.c - the five-point solver and the robust relative pose on synthetic scenes: general, planar, turning,
 * degenerate. */
#include "geometry/fivepoint.h"
#include "geometry/linalg.h"
#include <theo/geometry.h>

#include "t.h"

enum { MOST = 2000 };

static const theo_intrinsics cameras[2] = {{600, 610, 320, 240}, {580, 585, 315, 245}};
static float xy_a[2 * MOST], xy_b[2 * MOST];
static uint8_t inliers[MOST];
static uint64_t state = 17;

static double uniform(void) { /* 0..1 */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / (double)(1ull << 53);
}

static double gaussian(void) {
    return sqrt(-2 * log(uniform() + 1e-300)) * cos(6.283185307179586 * uniform());
}

static void random_pose(double R[9], double t[3], double angle) {
    double w[3];
    for (int i = 0; i < 3; i++) {
        w[i] = gaussian();
        t[i] = gaussian();
    }
    theo_vec3_normalise(w);
    theo_vec3_normalise(t);
    for (int i = 0; i < 3; i++)
        w[i] *= angle;
    theo_rotation_exp(R, w);
}

typedef enum scene_kind { GENERAL, PLANE, TURN } scene_kind;

/* A point seen by both cameras, in front of them: normalised image points. */
static void make_point(scene_kind kind, const double R[9], const double t[3], double a[2], double b[2]) {
    double X[3], Y[3];
    do {
        X[2] = 3 + 5 * uniform();
        X[0] = 0.5 * (2 * uniform() - 1);
        X[1] = 0.4 * (2 * uniform() - 1);
        if (kind == PLANE)
            X[2] = 4 / (1 - 0.5 * X[0] + 0.3 * X[1]);
        X[0] *= X[2];
        X[1] *= X[2];
        theo_mat3_apply(Y, R, X);
        for (int i = 0; kind != TURN && i < 3; i++)
            Y[i] += t[i];
    } while (Y[2] < 0.5 || fabs(Y[0] / Y[2]) > 1 || fabs(Y[1] / Y[2]) > 1);
    for (int i = 0; i < 2; i++) {
        a[i] = X[i] / X[2];
        b[i] = Y[i] / Y[2];
    }
}

static void make_pairs(scene_kind kind, const double R[9], const double t[3], int count, double outlier_share, double noise) {
    for (int i = 0; i < count; i++) {
        double a[2], b[2], px[4];
        make_point(kind, R, t, a, b);
        px[0] = cameras[0].fx * a[0] + cameras[0].cx;
        px[1] = cameras[0].fy * a[1] + cameras[0].cy;
        px[2] = cameras[1].fx * b[0] + cameras[1].cx;
        px[3] = cameras[1].fy * b[1] + cameras[1].cy;
        for (int k = 0; k < 4; k++)
            px[k] += noise * gaussian();
        if (i < outlier_share * count) {
            px[2] = 640 * uniform();
            px[3] = 480 * uniform();
        }
        for (int k = 0; k < 2; k++) {
            xy_a[2 * i + k] = (float)px[k];
            xy_b[2 * i + k] = (float)px[2 + k];
        }
    }
}

static double degrees_between_rotations(const double P[9], const double Q[9]) {
    double chord = 0; /* of the difference: |P - Q|^2 = 8 sin^2(angle / 2); exact for small angles */
    for (int i = 0; i < 9; i++)
        chord += (P[i] - Q[i]) * (P[i] - Q[i]);
    return 2 * asin(fmin(1, sqrt(chord / 8))) * 57.29577951308232;
}

static double degrees_between_directions(const double p[3], const double q[3]) {
    double c[3];
    theo_vec3_cross(c, p, q);
    return atan2(sqrt(theo_vec3_dot(c, c)), theo_vec3_dot(p, q)) * 57.29577951308232;
}

static void check_pose_is_consistent(const theo_relative_pose *p) {
    const double cross[9] = {0, -p->t[2], p->t[1], p->t[2], 0, -p->t[0], -p->t[1], p->t[0], 0};
    double E[9], Rt[9], product[9], size = 0;
    theo_mat3_multiply(E, cross, p->R);
    theo_mat3_transpose(Rt, p->R);
    theo_mat3_multiply(product, p->R, Rt);
    for (int i = 0; i < 9; i++) {
        CHECK_NEAR(E[i], p->E[i], 1e-12);
        CHECK_NEAR(product[i], i % 4 == 0, 1e-12);
        size += p->E[i] * p->E[i];
    }
    CHECK_NEAR(size, 2, 1e-12);
    CHECK_NEAR(theo_mat3_det(p->R), 1, 1e-12);
    CHECK_NEAR(theo_vec3_dot(p->t, p->t), 1, 1e-12);
}

/* Every solution satisfies the equations, and the true one is among them. */
static void check_five_point(void) {
    int missed = 0, inaccurate = 0; /* nearly degenerate fives */
    for (int trial = 0; trial < 500; trial++) {
        double R[9], t[3], a[5][2], b[5][2], E[THEO_FIVE_POINT_MOST][9], truth[9];
        random_pose(R, t, 0.5 * uniform());
        for (int i = 0; i < 5; i++)
            make_point(trial % 5 ? GENERAL : PLANE, R, t, a[i], b[i]);
        const double cross[9] = {0, -t[2], t[1], t[2], 0, -t[0], -t[1], t[0], 0};
        theo_mat3_multiply(truth, cross, R);
        int count = theo_five_point((const double(*)[2])a, (const double(*)[2])b, E);
        CHECK(count <= THEO_FIVE_POINT_MOST);
        double closest = 1;
        for (int n = 0; n < count; n++) {
            for (int i = 0; i < 5; i++) {
                const double p[3] = {a[i][0], a[i][1], 1}, q[3] = {b[i][0], b[i][1], 1};
                double line[3];
                theo_mat3_apply(line, E[n], p);
                CHECK_NEAR(theo_vec3_dot(q, line), 0, 1e-8);
            }
            double U[9], s[3], V[9], dot = 0;
            theo_svd3(E[n], U, s, V);
            inaccurate += s[0] - s[1] > 1e-5 || s[2] > 1e-5;
            for (int i = 0; i < 9; i++)
                dot += E[n][i] * truth[i] / sqrt(2);
            closest = fmin(closest, 1 - fabs(dot));
        }
        missed += closest > 1e-8;
    }
    CHECK_MSG(missed <= 5, "the true matrix is missing in %d of 500 trials", missed);
    CHECK_MSG(inaccurate <= 5, "%d solutions are no essential matrices", inaccurate);
    const double same[5][2] = {{0.1, 0.2}, {0.1, 0.2}, {0.1, 0.2}, {0.1, 0.2}, {0.1, 0.2}};
    double E[THEO_FIVE_POINT_MOST][9];
    theo_five_point(same, same, E); /* anything, but no trap */
}

static void check_scene(int count, double outlier_share, double noise, double bar_degrees) {
    for (int scene = 0; scene < 6; scene++) {
        double R[9], t[3];
        random_pose(R, t, 0.3);
        make_pairs(GENERAL, R, t, count, outlier_share, noise);
        theo_relative_pose first = {.found = false};
        for (uint64_t seed = 0; seed < 3; seed++) {
            theo_ransac_options options;
            theo_ransac_options_init(&options);
            options.seed = seed;
            theo_relative_pose pose;
            CHECK(theo_fit_essential(xy_a, xy_b, count, cameras, &options, &pose, inliers, NULL) == THEO_OK);
            CHECK_MSG(pose.found, "%d pairs, %g outliers, scene %d: %s", count, outlier_share, scene,
                      pose.reason ? pose.reason : "");
            if (!pose.found)
                continue;
            check_pose_is_consistent(&pose);
            double turn = degrees_between_rotations(pose.R, R), direction = degrees_between_directions(pose.t, t);
            CHECK_MSG(turn <= bar_degrees / 2 && direction <= bar_degrees,
                      "%d pairs, %g outliers, noise %g, scene %d: rotation %g, direction %g degrees", count, outlier_share, noise,
                      scene, turn, direction);
            int marked = 0;
            for (int i = 0; i < count; i++)
                marked += inliers[i];
            CHECK(marked == pose.inlier_count && marked >= (1 - outlier_share) * count * 0.95);
            if (!seed)
                first = pose;
            double change = degrees_between_directions(pose.t, first.t);
            CHECK_MSG(change < bar_degrees, "%d pairs, noise %g, scene %d: seed %d moves the direction by %g degrees", count,
                      noise, scene, (int)seed, change);
        }
    }
}

/* A plane seen twice has two relative poses; either must explain all points. */
static void check_plane(void) {
    for (int scene = 0; scene < 10; scene++) {
        double R[9], t[3];
        random_pose(R, t, 0.2);
        make_pairs(PLANE, R, t, 300, 0.3, 0.5);
        theo_relative_pose pose;
        CHECK(theo_fit_essential(xy_a, xy_b, 300, cameras, NULL, &pose, inliers, NULL) == THEO_OK);
        CHECK_MSG(pose.found, "%s", pose.reason ? pose.reason : "");
        CHECK_MSG(pose.inlier_count >= 200, "%d inliers", pose.inlier_count);
        if (pose.found)
            check_pose_is_consistent(&pose);
    }
}

static void check_rotation_alone(void) {
    for (int scene = 0; scene < 10; scene++) {
        double R[9], t[3], noise = scene % 2 ? 0.5 : 0;
        random_pose(R, t, 0.2);
        make_pairs(TURN, R, t, 300, 0.2, noise);
        theo_relative_pose pose;
        CHECK(theo_fit_essential(xy_a, xy_b, 300, cameras, NULL, &pose, NULL, NULL) == THEO_OK);
        CHECK_MSG(!pose.found && pose.reason && strstr(pose.reason, "rotation alone"), "scene %d", scene);
        CHECK_MSG(degrees_between_rotations(pose.R, R) < 0.1, "%g degrees", degrees_between_rotations(pose.R, R));
    }
}

static void check_bounds(void) {
    theo_relative_pose pose;
    theo_error err;
    double R[9], t[3];
    random_pose(R, t, 0.2);
    make_pairs(GENERAL, R, t, 5, 0, 0);
    CHECK(theo_fit_essential(NULL, NULL, 0, cameras, NULL, &pose, NULL, NULL) == THEO_OK && !pose.found &&
          strstr(pose.reason, "fewer than 5"));
    CHECK(theo_fit_essential(xy_a, xy_b, 4, cameras, NULL, &pose, inliers, NULL) == THEO_OK && !pose.found &&
          strstr(pose.reason, "fewer than 5"));
    CHECK(theo_fit_essential(xy_a, xy_b, 5, cameras, NULL, &pose, inliers, NULL) == THEO_OK);
    CHECK(!pose.found || pose.inlier_count == 5);
    float same[2 * 20];
    for (int i = 0; i < 40; i++)
        same[i] = 100;
    CHECK(theo_fit_essential(same, same, 20, cameras, NULL, &pose, inliers, NULL) == THEO_OK); /* found or not, but sane */
    CHECK(pose.found == !pose.reason);

    theo_intrinsics bad[2] = {cameras[0], cameras[1]};
    bad[1].fy = 0;
    CHECK(theo_fit_essential(xy_a, xy_b, 5, bad, NULL, &pose, NULL, &err) == THEO_ARGUMENT && strstr(err.message, "cameras[1]"));
    bad[1].fy = NAN;
    CHECK(theo_fit_essential(xy_a, xy_b, 5, bad, NULL, &pose, NULL, &err) == THEO_ARGUMENT);
    CHECK(theo_fit_essential(xy_a, xy_b, 5, NULL, NULL, &pose, NULL, &err) == THEO_ARGUMENT);
    CHECK(theo_fit_essential(xy_a, xy_b, 5, cameras, NULL, NULL, NULL, &err) == THEO_ARGUMENT);
    xy_b[3] = NAN;
    CHECK(theo_fit_essential(xy_a, xy_b, 5, cameras, NULL, &pose, NULL, &err) == THEO_ARGUMENT && strstr(err.message, "point 1"));
    CHECK(!pose.found);
}

int main(void) {
    check_five_point();
    check_scene(20, 0, 0, 0.01);
    check_scene(500, 0.3, 0, 0.01);
    check_scene(500, 0.3, 0.5, 1.5);
    check_scene(1000, 0.6, 0.5, 1.5);
    check_plane();
    check_rotation_alone();
    check_bounds();
    return t_done("essential");
}
