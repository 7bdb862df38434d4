/* Camera poses from points, focal lengths of point maps, values by rank: made scenes with known answers, and what has none. */
#include "base/error.h"
#include "geometry/linalg.h"
#include "geometry/order.h"
#include "geometry/p3p.h"
#include "t.h"
#include <math.h>
#include <string.h>
#include <theo/geometry.h>

static theo_error test_error;
static uint32_t state = 5;
static double uniform(double low, double high) {
    state = state * 1664525u + 1013904223u;
    return low + (high - low) * (double)state * 0x1p-32;
}

static const theo_intrinsics camera = {400, 410, 255, 190};

enum { MOST = 6000 };
static float xyz[3 * MOST], xy[2 * MOST];
static uint8_t inliers[MOST];

static void random_pose(double R[9], double t[3]) {
    const double w[3] = {uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)};
    theo_rotation_exp(R, w);
    for (int i = 0; i < 3; i++)
        t[i] = uniform(-0.5, 0.5);
    t[2] += 4;
}

/* Points in a cube (flat: in a plane), seen with that error; every `bad`-th one somewhere else (0: none). */
static void make_scene(const double R[9], const double t[3], int count, bool flat, double noise, int bad) {
    for (int i = 0; i < count; i++) {
        double X[3] = {uniform(-1, 1), uniform(-1, 1), flat ? 0.25 : uniform(-1, 1)}, at[3];
        theo_mat3_apply(at, R, X);
        for (int k = 0; k < 3; k++) {
            at[k] += t[k];
            xyz[3 * i + k] = (float)X[k];
        }
        xy[2 * i] = (float)(camera.fx * at[0] / at[2] + camera.cx + uniform(-noise, noise));
        xy[2 * i + 1] = (float)(camera.fy * at[1] / at[2] + camera.cy + uniform(-noise, noise));
        if (bad && i % bad == 0)
            xy[2 * i] += (float)uniform(30, 200);
    }
}

static double turned_by(const double a[9], const double b[9]) { /* degrees */
    double sum = 0;
    for (int i = 0; i < 9; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return 2 * asin(fmin(sqrt(sum / 8), 1)) * 180 / 3.14159265358979323846;
}

static void recovers(int count, bool flat, double noise, int bad, double degrees) {
    double R[9], t[3];
    theo_camera_pose pose;
    random_pose(R, t);
    make_scene(R, t, count, flat, noise, bad);
    CHECK(theo_fit_pose(xyz, xy, count, &camera, NULL, &pose, inliers, &test_error) == THEO_OK);
    CHECK(pose.found && !pose.reason);
    CHECK_MSG(turned_by(pose.R, R) <= degrees, "%d points: %g degrees off", count, turned_by(pose.R, R));
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(pose.t[i], t[i], degrees * 0.2);
    int counted = 0;
    for (int i = 0; i < count; i++) {
        counted += inliers[i];
        CHECK(!bad || i % bad || !inliers[i]);
    }
    CHECK(pose.inlier_rms <= noise + 0.01);
    CHECK(counted == pose.inlier_count && counted >= (bad ? count - count / bad - 1 : count));
}

static void test_recovery(void) {
    recovers(6, false, 0, 0, 1e-3);
    recovers(500, false, 0, 0, 1e-4);
    recovers(500, true, 0, 0, 1e-3);
    recovers(1000, false, 0.5, 0, 0.05);
    recovers(1000, false, 0.5, 3, 0.1);
    recovers(1000, true, 0.2, 4, 0.2);
    recovers(MOST, false, 0.5, 2, 0.05); /* more points than are scored */
}

static void test_same_again(void) {
    double R[9], t[3];
    theo_camera_pose first, second;
    random_pose(R, t);
    make_scene(R, t, 800, false, 1, 3);
    CHECK(!theo_fit_pose(xyz, xy, 800, &camera, NULL, &first, NULL, &test_error));
    CHECK(!theo_fit_pose(xyz, xy, 800, &camera, NULL, &second, NULL, &test_error));
    CHECK(!memcmp(first.R, second.R, sizeof first.R) && !memcmp(first.t, second.t, sizeof first.t));
}

static void has_none(int count) {
    theo_camera_pose pose;
    CHECK(theo_fit_pose(xyz, xy, count, &camera, NULL, &pose, inliers, &test_error) == THEO_OK);
    CHECK(!pose.found && pose.reason && pose.inlier_count == 0);
    for (int i = 0; i < count; i++)
        CHECK(!inliers[i]);
}

static void test_degenerate(void) {
    double R[9], t[3];
    random_pose(R, t);
    has_none(0);
    make_scene(R, t, 3, false, 0, 0);
    has_none(3);
    make_scene(R, t, 100, false, 0, 0);
    for (int i = 0; i < 300; i++)
        xyz[i] = 1.5f; /* one place */
    has_none(100);
    for (int i = 0; i < 300; i++)
        xyz[i] = (float)(i / 3) * 0.01f; /* a line */
    has_none(100);
    for (int i = 0; i < 100; i++) { /* a line that single precision rounds: every point agrees with many poses */
        const double at = 0.02 * i - 1, X[3] = {0.3 - 0.7 * at, 0.1 + 0.9 * at, 3 + 0.4 * at};
        for (int k = 0; k < 3; k++)
            xyz[3 * i + k] = (float)X[k];
        xy[2 * i] = (float)(camera.fx * X[0] / X[2] + camera.cx);
        xy[2 * i + 1] = (float)(camera.fy * X[1] / X[2] + camera.cy);
    }
    has_none(100);
    for (int i = 0; i < 300; i++)
        xyz[i] = NAN;
    has_none(100);

    make_scene(R, t, 200, false, 0, 0); /* some that are not finite are passed over */
    for (int i = 0; i < 50; i++)
        xyz[12 * i] = i % 2 ? NAN : INFINITY;
    theo_camera_pose pose;
    CHECK(!theo_fit_pose(xyz, xy, 200, &camera, NULL, &pose, inliers, &test_error));
    CHECK(pose.found && pose.inlier_count == 150 && turned_by(pose.R, R) < 1e-3);

    theo_intrinsics wrong = camera;
    wrong.fx = 0;
    CHECK(theo_fit_pose(xyz, xy, 200, &wrong, NULL, &pose, NULL, &test_error) == THEO_ARGUMENT);
    CHECK(theo_fit_pose(NULL, xy, 200, &camera, NULL, &pose, NULL, &test_error) == THEO_ARGUMENT);
    CHECK(theo_fit_pose(xyz, xy, -1, &camera, NULL, &pose, NULL, &test_error) == THEO_ARGUMENT);
}

/* Every sample's poses see the three points along the rays, and the true one is among them. */
static void test_p3p(void) {
    for (int i = 0; i < 300; i++) {
        double R[9], t[3], points[3][3], rays[3][3], found_R[THEO_P3P_MOST][9], found_t[THEO_P3P_MOST][3], nearest = 180;
        random_pose(R, t);
        for (int k = 0; k < 3; k++) {
            for (int axis = 0; axis < 3; axis++)
                points[k][axis] = uniform(-1, 1);
            theo_mat3_apply(rays[k], R, points[k]);
            for (int axis = 0; axis < 3; axis++)
                rays[k][axis] += t[axis];
            theo_vec3_normalise(rays[k]);
        }
        int count = theo_p3p(points, rays, found_R, found_t);
        for (int c = 0; c < count; c++) {
            nearest = fmin(nearest, turned_by(found_R[c], R));
            CHECK_NEAR(theo_mat3_det(found_R[c]), 1, 1e-6);
        }
        CHECK_MSG(nearest < 0.01, "sample %d: %d poses, the nearest %g degrees off", i, count, nearest);
    }
}

static void test_focals(void) {
    enum { W = 40, H = 30 };
    static float points[3 * W * H];
    double focal;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            float *p = points + 3 * (y * W + x), z = (float)uniform(1, 3);
            p[0] = (float)((x - W / 2.0) / 35) * z;
            p[1] = (float)((y - H / 2.0) / 35) * z;
            p[2] = z;
        }
    theo_point_map map = {W, H, points};
    CHECK(!theo_focal_median(&map, &focal, &test_error));
    CHECK_NEAR(focal, 35, 1e-4);
    CHECK(!theo_focal_weiszfeld(&map, &focal, &test_error));
    CHECK_NEAR(focal, 35, 1e-4);
    memset(points, 0, sizeof points);
    CHECK(!theo_focal_median(&map, &focal, &test_error));
    CHECK_NEAR(focal, 0.2 * W / (2 * tan(0.5235987755982988)), 1e-9); /* the lowest that is given */
    CHECK(theo_focal_median(&(theo_point_map){0, H, points}, &focal, &test_error) == THEO_ARGUMENT);
}

static void test_order(void) {
    for (int n = 1; n < 60; n++) {
        double values[60], sorted[60];
        for (int i = 0; i < n; i++)
            values[i] = sorted[i] = floor(uniform(0, 12)); /* many equal ones */
        for (int i = 1; i < n; i++)
            for (int k = i; k > 0 && sorted[k] < sorted[k - 1]; k--) {
                double other = sorted[k];
                sorted[k] = sorted[k - 1];
                sorted[k - 1] = other;
            }
        for (int i = 0; i < n; i++)
            CHECK_NEAR(theo_value_of_rank(values, (size_t)n, (size_t)i), sorted[i], 0);
    }
    double values[] = {4, 1, 3, 2};
    CHECK_NEAR(theo_percentile(values, 4, 0), 1, 0);
    CHECK_NEAR(theo_percentile(values, 4, 50), 2.5, 0);
    CHECK_NEAR(theo_percentile(values, 4, 75), 3.25, 0);
    CHECK_NEAR(theo_percentile(values, 4, 100), 4, 0);
    double endless[] = {INFINITY, 1, INFINITY, INFINITY};
    CHECK(theo_percentile(endless, 4, 50) == (double)INFINITY && theo_percentile(endless, 4, 0) == 1);
}

int main(void) {
    test_recovery();
    test_same_again();
    test_degenerate();
    test_p3p();
    test_focals();
    test_order();
    return t_done("pose");
}
