/* test_focal.c - MoGe's focal length and shift, and its coordinates of pixels. */
#include "geometry/focal.h"
#include "geometry/view_plane.h"
#include "t.h"

/* ---- coordinates */

/* Written by the original for a picture of 16:9; several are not what rounding the formula once would give. */
static void test_coordinates_are_rounded_as_in_the_original(void) {
    static const struct {
        int i;
        float u;
    } known[] = {{0, -0x1.b66af4p-1f},  {1, -0x1.a6c290p-1f}, {9, -0x1.297f70p-1f}, {15, -0x1.971a2ep-2f},
                 {20, -0x1.f50c86p-3f}, {28, -0x1p-26f},      {29, 0x1.f50c70p-6f}, {40, 0x1.77c964p-2f},
                 {47, 0x1.297f70p-1f},  {48, 0x1.3927d4p-1f}, {56, 0x1.b66af4p-1f}};
    theo_view_plane plane = theo_view_plane_of(16.0 / 9);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        float u = theo_view_plane_at(plane.x, 57, known[k].i);
        CHECK_MSG(u == known[k].u, "pixel %d: %a, expected %a", known[k].i, (double)u, (double)known[k].u);
    }
}

static void test_coordinates_follow_the_formula(void) {
    for (int n = 1; n < 200; n++)
        for (int i = 0; i < n; i++)
            CHECK_NEAR((double)theo_view_plane_at(0.75, n, i), 0.75 * (2 * i + 1 - n) / n, 1e-6);
}

static void test_map_of_coordinates(void) {
    enum { H = 5, W = 7, PITCH = 3 };
    float map[H * W * PITCH];
    theo_view_plane plane = theo_view_plane_of(1.4);
    CHECK_NEAR(plane.x * plane.x + plane.y * plane.y, 1, 1e-15);
    CHECK_NEAR(plane.x / plane.y, 1.4, 1e-15);
    for (int i = 0; i < H * W * PITCH; i++)
        map[i] = 9;
    theo_view_plane_fill(&plane, H, W, map, PITCH);
    for (int i = 0; i < H * W; i++) {
        CHECK(map[PITCH * i] == theo_view_plane_at(plane.x, W, i % W));
        CHECK(map[PITCH * i + 1] == theo_view_plane_at(plane.y, H, i / W));
        CHECK(map[PITCH * i + 2] == 9);
    }
}

/* ---- focal length and shift */

enum { HEIGHT = 48, WIDTH = 96 };
static float points[HEIGHT * WIDTH * 3], mask[HEIGHT * WIDTH];

/* A rippled, tilted surface seen with some noise, shifted by -0.4. */
static theo_focal_problem surface(void) {
    double a = (double)WIDTH / HEIGHT, r = sqrt(1 + a * a);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            float *p = points + 3 * (y * WIDTH + x);
            double u = a / r * (2 * x + 1 - WIDTH) / WIDTH, v = 1 / r * (2 * y + 1 - HEIGHT) / HEIGHT;
            double z = 1 + 0.5 * sin(0.13 * x) + 0.02 * y + 0.01 * ((5 * x + 3 * y) % 7);
            p[0] = (float)(u * (z + 0.4) / 1.3 * (1 + 0.01 * ((3 * x + 11 * y) % 5 - 2)));
            p[1] = (float)(v * (z + 0.4) / 1.3 * (1 + 0.01 * ((7 * x + 2 * y) % 5 - 2)));
            p[2] = (float)z;
            mask[y * WIDTH + x] = (x + 2 * y) % 9 != 0;
        }
    return (theo_focal_problem){.points = points, .mask = mask, .threshold = 0.5f, .width = WIDTH, .height = HEIGHT, .aspect = a};
}

static void test_focal_and_shift(void) {
    theo_focal_problem p = surface();
    theo_focal_result r = theo_focal_solve(&p);
    CHECK_NEAR((double)r.focal, 1.2999244, 1e-6);
    CHECK_NEAR((double)r.shift, 0.4003303, 1e-6);
    CHECK_MSG(r.evaluations == 9, "%d evaluations", r.evaluations);
    CHECK(!r.is_degenerate);
}

static void test_shift_with_a_known_focal(void) {
    theo_focal_problem p = surface();
    p.focal = 1.2773744;
    theo_focal_result r = theo_focal_solve(&p);
    CHECK(r.focal == 1.2773744f);
    CHECK_NEAR((double)r.shift, 0.3719693, 1e-6);
}

static void test_too_few_points(void) {
    theo_focal_problem p = surface();
    for (int i = 1; i < HEIGHT * WIDTH; i++)
        mask[i] = 0;
    theo_focal_result r = theo_focal_solve(&p);
    CHECK(r.is_degenerate && r.focal == 1 && r.shift == 0 && r.evaluations == 0);
    p.focal = 0.7;
    r = theo_focal_solve(&p);
    CHECK(r.is_degenerate && r.focal == 0.7f && r.shift == 0);
}

static void test_numbers_that_are_none_are_left_out(void) {
    theo_focal_problem p = surface();
    theo_focal_result whole = theo_focal_solve(&p);
    points[3 * (12 * WIDTH + 30) + 2] = INFINITY;
    points[3 * (HEIGHT / 2 * WIDTH + WIDTH / 2)] = NAN;
    theo_focal_result r = theo_focal_solve(&p);
    CHECK_NEAR((double)r.focal, (double)whole.focal, 1e-3);
    CHECK_NEAR((double)r.shift, (double)whole.shift, 1e-3);
    CHECK(!r.is_degenerate);
}

static void test_nearest_index(void) {
    CHECK(theo_nearest_index(0, 8, 64) == 0);
    CHECK(theo_nearest_index(63, 8, 64) == 7);
    CHECK(theo_nearest_index(63, 1920, 64) == 1890);
    CHECK(theo_nearest_index(9, 100, 64) == 14);
}

int main(void) {
    test_coordinates_are_rounded_as_in_the_original();
    test_coordinates_follow_the_formula();
    test_map_of_coordinates();
    test_focal_and_shift();
    test_shift_with_a_known_focal();
    test_too_few_points();
    test_numbers_that_are_none_are_left_out();
    test_nearest_index();
    return t_done("test_focal");
}
