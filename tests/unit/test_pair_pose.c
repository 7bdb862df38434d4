/* Both recipes for the pose of two views, on made maps whose answer is known, and on maps that have none. */
#include "geometry/linalg.h"
#include "geometry/pair_pose.h"
#include "require.h"
#include "t.h"

enum { W1 = 64, H1 = 48, W2 = 40, H2 = 56, MOST = W1 * H1 }; /* a landscape and a portrait */

static const double focal[2] = {58, 51};
static const double true_scale[2] = {0.7, 1.9}; /* of the orders (i, j) and (j, i) to the scene's unit */

typedef struct scene {
    double R[9], t[3]; /* X_j = R X_i + t in the scene's unit */
    float pts_ii[3 * MOST], pts_ji[3 * MOST], pts_jj[3 * MOST], pts_ij[3 * MOST];
    float conf_ii[MOST], conf_ji[MOST], conf_jj[MOST], conf_ij[MOST];
} scene;

static scene s;

static theo_pair_maps maps_of(const scene *from) {
    return (theo_pair_maps){
        .width = {W1, W2},
        .height = {H1, H2},
        .pts_ii = from->pts_ii,
        .pts_ji = from->pts_ji,
        .pts_jj = from->pts_jj,
        .pts_ij = from->pts_ij,
        .conf_ii = from->conf_ii,
        .conf_ji = from->conf_ji,
        .conf_jj = from->conf_jj,
        .conf_ij = from->conf_ij,
    };
}

/* A view of bumpy ground: `own` in its camera's frame, `other` through X -> R X + t, each in its order's scale. */
static void fill_view(int width, int height, double f, const double R[9], const double t[3], float *own, double own_scale,
                      float *other, double other_scale) {
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++, own += 3, other += 3) {
            const double z = 2 + 0.5 * sin(0.3 * x) * cos(0.2 * y) + 0.01 * y,
                         X[3] = {(x - width / 2.0) / f * z, (y - height / 2.0) / f * z, z};
            double moved[3];
            theo_mat3_apply(moved, R, X);
            for (int k = 0; k < 3; k++) {
                own[k] = (float)(own_scale * X[k]);
                other[k] = (float)(other_scale * (moved[k] + t[k]));
            }
        }
}

static void fill_conf(float *conf, int count, float value) {
    for (int i = 0; i < count; i++)
        conf[i] = value + 0.001f * (float)(i % 97);
}

/* forward, backward: the level of the confidences of the two orders. */
static void make_scene(float forward, float backward) {
    const double turn[3] = {0.1, -0.4, 0.05}, t[3] = {0.5, -0.1, 0.2};
    double back[9], back_t[3];
    theo_rotation_exp(s.R, turn);
    memcpy(s.t, t, sizeof t);
    theo_mat3_transpose(back, s.R);
    theo_mat3_apply(back_t, back, t);
    for (int k = 0; k < 3; k++)
        back_t[k] = -back_t[k];
    fill_view(W1, H1, focal[0], s.R, t, s.pts_ii, true_scale[0], s.pts_ij, true_scale[1]);
    fill_view(W2, H2, focal[1], back, back_t, s.pts_jj, true_scale[1], s.pts_ji, true_scale[0]);
    fill_conf(s.conf_ii, W1 * H1, forward);
    fill_conf(s.conf_ji, W2 * H2, forward);
    fill_conf(s.conf_jj, W2 * H2, backward);
    fill_conf(s.conf_ij, W1 * H1, backward);
}

static theo_pair_solution solve(bool port, const theo_pair_pose_options *given, theo_pair_view_facts *facts) {
    const theo_pair_pose_options usual = {.confident_percent = 50}, *o = given ? given : &usual;
    const theo_pair_maps maps = maps_of(&s);
    theo_pair_solution pose;
    REQUIRE(port ? theo_pair_pose_port(&maps, o, &pose, &test_error)
                 : theo_pair_pose_pairviewer(&maps, o, &pose, facts, &test_error));
    CHECK(pose.found == !pose.reason);
    return pose;
}

static void check_pose(const theo_pair_solution *pose, double scale, double tolerance) {
    CHECK(pose->found);
    for (int i = 0; i < 9; i++)
        CHECK_NEAR(pose->R[i], s.R[i], tolerance);
    for (int i = 0; i < 3; i++)
        CHECK_NEAR(pose->t[i], scale * s.t[i], tolerance);
}

/* ---------------------------------------------------------------- the port's */

static void test_port(void) {
    make_scene(5, 4);
    theo_pair_solution pose = solve(true, NULL, NULL);
    check_pose(&pose, true_scale[0], 1e-5);
    CHECK_NEAR(pose.focal[0], focal[0], 1e-4);
    CHECK_NEAR(pose.focal[1], focal[1], 1e-4);
    CHECK(!pose.is_swapped && pose.inlier_count == pose.used && pose.inlier_rms < 0.01);
    /* 97 levels of confidence; those from the median on go in. */
    CHECK_MSG(pose.used >= W2 * H2 / 2 && pose.used <= W2 * H2 / 2 + W2 * H2 / 97 + 1, "%d points", pose.used);
    const theo_pair_solution again = solve(true, NULL, NULL);
    CHECK(!memcmp(pose.R, again.R, sizeof pose.R) && !memcmp(pose.t, again.t, sizeof pose.t));
}

/* Points that are wrong, but known to be: they lie below the percentile. */
static void test_port_percent(void) {
    make_scene(5, 4);
    for (int i = 0; i < W2 * H2; i++)
        if (i % 5 < 3) {
            s.conf_ji[i] = 1.5f;
            s.pts_ji[3 * i + 1] += (float)(1 + i % 11);
        }
    theo_pair_pose_options o = {.confident_percent = 30};
    theo_pair_solution pose = solve(true, &o, NULL);
    check_pose(&pose, true_scale[0], 1e-5);
    CHECK(pose.inlier_count == pose.used && pose.threshold >= 5);
    o.confident_percent = 100;
    pose = solve(true, &o, NULL);
    CHECK(pose.used == W2 * H2 && pose.inlier_count < pose.used / 2);
    check_pose(&pose, true_scale[0], 1e-4);
}

/* A camera of view j is used, one of view i is only reported. */
static void test_port_cameras(void) {
    make_scene(5, 4);
    const theo_intrinsics wrong = {30, 34, 1, 2}, right = {focal[1], focal[1], W2 / 2.0, H2 / 2.0};
    theo_pair_pose_options o = {.confident_percent = 50, .cameras = {&wrong, NULL}};
    theo_pair_solution pose = solve(true, &o, NULL);
    check_pose(&pose, true_scale[0], 1e-5);
    CHECK_NEAR(pose.focal[0], 32, 1e-12);
    for (int i = 0; i < 3 * W2 * H2; i++)
        s.pts_jj[i] = 1; /* no focal length comes from these */
    o.cameras[1] = &right;
    pose = solve(true, &o, NULL);
    check_pose(&pose, true_scale[0], 1e-5);
}

static void has_no_port_pose(const char *why) {
    const theo_pair_solution pose = solve(true, NULL, NULL);
    CHECK(!pose.found && pose.inlier_count == 0);
    CHECK_MSG(pose.reason && strstr(pose.reason, why), "%s", pose.reason ? pose.reason : "found");
}

static void set_all(float *values, int count, float value) {
    for (int i = 0; i < count; i++)
        values[i] = value;
}

static void test_port_degenerate(void) {
    make_scene(5, 4);
    set_all(s.pts_ji, 3 * W2 * H2, 0.3f);
    has_no_port_pose("in one place");
    set_all(s.pts_ji, 3 * W2 * H2, 0);
    has_no_port_pose("in one place");
    set_all(s.pts_ji, 3 * W2 * H2, NAN);
    has_no_port_pose("fewer than 50");
    make_scene(5, 4);
    set_all(s.conf_ji, W2 * H2, NAN);
    has_no_port_pose("fewer than 50");

    make_scene(5, 4); /* 49 points are left, then 50 */
    for (int i = 0; i < W2 * H2; i++)
        s.conf_ji[i] = i % 45 ? 2 : 9;
    for (int kept = 49; kept <= 50; kept++) {
        int high = 0;
        for (int i = 0; i < W2 * H2; i++)
            high += s.conf_ji[i] > 5;
        for (int i = 0; high > kept; i++)
            if (s.conf_ji[i] > 5) {
                s.conf_ji[i] = 2;
                high--;
            }
        for (int i = 1; high < kept; i++)
            if (s.conf_ji[i] < 5) {
                s.conf_ji[i] = 9;
                high++;
            }
        const theo_pair_pose_options o = {.confident_percent = 100.0 * (kept - 1) / (W2 * H2 - 1)};
        const theo_pair_solution pose = solve(true, &o, NULL);
        CHECK_MSG(pose.used == kept && pose.found == (kept == 50), "%d points, %s", pose.used, pose.reason);
    }

    make_scene(5, 4); /* some points that are no numbers are passed over */
    for (int i = 0; i < W2 * H2; i += 3)
        s.pts_ji[3 * i + i % 3] = i % 2 ? NAN : INFINITY;
    for (int i = 0; i < W1 * H1; i += 7)
        s.pts_ii[3 * i + i % 3] = NAN;
    const theo_pair_solution pose = solve(true, NULL, NULL);
    check_pose(&pose, true_scale[0], 1e-5);
    CHECK_NEAR(pose.focal[0], focal[0], 1e-4);
}

/* ---------------------------------------------------------------- PairViewer's */

static void test_viewer(void) {
    for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
        theo_pair_view_facts facts;
        make_scene(is_swapped ? 4 : 5, is_swapped ? 5 : 4);
        const theo_pair_solution pose = solve(false, NULL, &facts);
        check_pose(&pose, true_scale[is_swapped], 1e-5); /* in the unit of the order that won */
        CHECK(pose.is_swapped == is_swapped && facts.reference == is_swapped && facts.cameras[0].found && facts.cameras[1].found);
        CHECK_NEAR(pose.focal[0], focal[0], 1e-4);
        CHECK_NEAR(pose.focal[1], focal[1], 1e-4);
        CHECK(facts.used[0] == W1 * H1 && facts.used[1] == W2 * H2);
        CHECK((facts.scores[0] > facts.scores[1]) == !is_swapped);
        CHECK_NEAR(facts.scores[is_swapped], 5.048 * 5.048, 0.01);
        for (int k = 0; k < 3; k++) /* camera j in the frame of i, in the first order's unit, whichever won */
            CHECK_NEAR(facts.cameras[1].t[k], true_scale[0] * s.t[k], 1e-5);
    }
}

/* A point counts where either order is confident of it, and not at 3 itself. */
static void test_viewer_mask(void) {
    theo_pair_view_facts facts;
    make_scene(5, 4);
    set_all(s.conf_ji, W2 * H2, 2);
    set_all(s.conf_jj, W2 * H2, 3);
    for (int i = 0; i < 100; i++) {
        s.conf_ji[20 * i] = 9;
        s.conf_jj[20 * i + 1] = 9;
    }
    theo_pair_solution pose = solve(false, NULL, &facts);
    CHECK(facts.used[1] == 200 && facts.cameras[1].found && facts.cameras[1].inlier_count == 200);
    set_all(s.conf_ji, W2 * H2, 3);
    set_all(s.conf_jj, W2 * H2, 3);
    set_all(s.conf_ij, W1 * H1, 1); /* the first order wins, and has no pose */
    pose = solve(false, NULL, &facts);
    CHECK(!pose.found && strstr(pose.reason, "above 3") && facts.used[1] == 0 && facts.reference == 0);
    CHECK(facts.cameras[0].found);
}

static void test_viewer_degenerate(void) {
    theo_pair_view_facts facts;
    make_scene(5, 4);
    set_all(s.pts_jj, 3 * W2 * H2, 0);
    theo_pair_solution pose = solve(false, NULL, &facts);
    CHECK(!pose.found && strstr(pose.reason, "no focal length"));
    make_scene(5, 4);
    set_all(s.pts_ji, 3 * W2 * H2, 0.3f);
    pose = solve(false, NULL, NULL);
    CHECK(!pose.found && strstr(pose.reason, "in one place"));
    const theo_intrinsics known = {focal[1], focal[1], W2 / 2.0, H2 / 2.0};
    const theo_pair_pose_options o = {.confident_percent = 50, .cameras = {NULL, &known}};
    make_scene(5, 4);
    set_all(s.pts_jj, 3 * W2 * H2, 0);
    pose = solve(false, &o, NULL);
    check_pose(&pose, true_scale[0], 1e-5);
}

/* Confidences that overflow are confident; those that are no numbers decide nothing. */
static void test_confidences(void) {
    theo_pair_view_facts facts;
    make_scene(5, 4);
    set_all(s.conf_ji, W2 * H2, INFINITY);
    theo_pair_solution pose = solve(true, NULL, NULL);
    check_pose(&pose, true_scale[0], 1e-5);
    CHECK(pose.used == W2 * H2);
    for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
        make_scene(is_swapped ? 4 : 5, is_swapped ? 5 : 4);
        s.conf_ii[3] = s.conf_ji[4] = s.conf_jj[5] = s.conf_ij[6] = NAN;
        s.conf_ii[7] = INFINITY;
        pose = solve(false, NULL, &facts);
        check_pose(&pose, true_scale[is_swapped], 1e-5);
        CHECK(facts.reference == is_swapped && isfinite(facts.scores[0]) && isfinite(facts.scores[1]));
    }
    set_all(s.conf_jj, W2 * H2, NAN);
    pose = solve(false, NULL, &facts);
    CHECK(facts.reference == 0 && facts.scores[1] == 0);
    check_pose(&pose, true_scale[0], 1e-5);
}

int main(void) {
    test_port();
    test_port_percent();
    test_port_cameras();
    test_port_degenerate();
    test_viewer();
    test_viewer_mask();
    test_viewer_degenerate();
    test_confidences();
    return t_done("pair_pose");
}
