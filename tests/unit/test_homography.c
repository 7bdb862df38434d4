/* test_homography.c - the robust homography on synthetic pictures of a plane: exact, noisy, polluted, degenerate. */
#include <theo/geometry.h>

#include "t.h"

enum { WIDTH = 800, HEIGHT = 640, MOST = 3000 };

static float xy_a[2 * MOST], xy_b[2 * MOST];
static uint8_t inliers[MOST];
static uint64_t state = 11;

static double uniform(void) { /* 0..1 */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 11) / (double)(1ull << 53);
}

static double gaussian(void) {
    return sqrt(-2 * log(uniform() + 1e-300)) * cos(6.283185307179586 * uniform());
}

static void map_point(const double H[9], double x, double y, double out[2]) {
    double w = H[6] * x + H[7] * y + H[8];
    out[0] = (H[0] * x + H[1] * y + H[2]) / w;
    out[1] = (H[3] * x + H[4] * y + H[5]) / w;
}

static double corner_error(const double H[9], const double truth[9]) {
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        double p[2], q[2];
        map_point(H, i % 2 * WIDTH, i / 2 * HEIGHT, p);
        map_point(truth, i % 2 * WIDTH, i / 2 * HEIGHT, q);
        sum += hypot(p[0] - q[0], p[1] - q[1]);
    }
    return sum / 4;
}

/* A view from the side, different for each number. */
static void random_homography(double H[9]) {
    double turn = 0.6 * (uniform() - 0.5), scale = 0.7 + 0.6 * uniform();
    const double values[9] = {scale * cos(turn),
                              -scale * sin(turn) + 0.2 * (uniform() - 0.5),
                              200 * (uniform() - 0.5),
                              scale * sin(turn),
                              scale * cos(turn),
                              200 * (uniform() - 0.5),
                              4e-4 * (uniform() - 0.5),
                              4e-4 * (uniform() - 0.5),
                              1};
    memcpy(H, values, sizeof values);
}

static void make_pairs(const double H[9], int count, double outlier_share, double noise) {
    for (int i = 0; i < count; i++) {
        double x = uniform() * WIDTH, y = uniform() * HEIGHT, q[2];
        map_point(H, x, y, q);
        if (i < outlier_share * count) {
            q[0] = uniform() * WIDTH;
            q[1] = uniform() * HEIGHT;
        } else {
            q[0] += noise * gaussian();
            q[1] += noise * gaussian();
        }
        xy_a[2 * i] = (float)(x + (i < outlier_share * count ? 0 : noise * gaussian()));
        xy_a[2 * i + 1] = (float)(y + (i < outlier_share * count ? 0 : noise * gaussian()));
        xy_b[2 * i] = (float)q[0];
        xy_b[2 * i + 1] = (float)q[1];
    }
}

static void check_scene(int count, double outlier_share, double noise, double bar) {
    for (int scene = 0; scene < 10; scene++) {
        double truth[9], first[9] = {0};
        random_homography(truth);
        make_pairs(truth, count, outlier_share, noise);
        for (uint64_t seed = 0; seed < 4; seed++) {
            theo_ransac_options options;
            theo_ransac_options_init(&options);
            options.seed = seed;
            double H[9];
            int n;
            bool found;
            const char *reason;
            CHECK(theo_fit_homography(xy_a, xy_b, count, &options, H, inliers, &n, &found, &reason, NULL) == THEO_OK);
            CHECK_MSG(found, "%d pairs, %g outliers: %s", count, outlier_share, reason ? reason : "");
            if (!found)
                continue;
            CHECK(H[8] == 1 && reason == NULL);
            double error = corner_error(H, truth);
            CHECK_MSG(error <= bar, "%d pairs, %g outliers, noise %g, scene %d, seed %d: corner error %g", count, outlier_share,
                      noise, scene, (int)seed, error);
            int marked = 0;
            for (int i = 0; i < count; i++)
                marked += inliers[i];
            CHECK(marked == n);
            /* The result must not hang on the luck of the draw. */
            if (!seed)
                memcpy(first, H, sizeof first);
            CHECK(corner_error(H, first) < 0.25 * bar);
        }
    }
}

static void check_repeats(void) {
    double truth[9], H[2][9];
    random_homography(truth);
    make_pairs(truth, 300, 0.5, 1);
    int n;
    bool found;
    for (int i = 0; i < 2; i++)
        CHECK(theo_fit_homography(xy_a, xy_b, 300, NULL, H[i], NULL, &n, &found, NULL, NULL) == THEO_OK && found);
    CHECK(memcmp(H[0], H[1], sizeof H[0]) == 0);
}

static bool fails(const float *a, const float *b, int count, const char *words) {
    double H[9];
    int n = -1;
    bool found = true;
    const char *reason = NULL;
    theo_status status = theo_fit_homography(a, b, count, NULL, H, inliers, &n, &found, &reason, NULL);
    return status == THEO_OK && !found && n == 0 && reason && strstr(reason, words);
}

static void check_degenerate(void) {
    float line[2 * 50], other[2 * 50], same[2 * 50];
    for (int i = 0; i < 50; i++) {
        line[2 * i] = (float)i;
        line[2 * i + 1] = (float)(2 * i);
        other[2 * i] = (float)(37 * i % 50);
        other[2 * i + 1] = (float)(i * i % 61);
        same[2 * i] = same[2 * i + 1] = 5;
    }
    CHECK(fails(NULL, NULL, 0, "fewer than 4"));
    CHECK(fails(line, other, 3, "fewer than 4"));
    CHECK(fails(same, other, 50, "coincide"));
    CHECK(fails(line, other, 50, "quadrangle"));
    CHECK(fails(other, line, 50, "quadrangle"));

    /* Four pairs determine it exactly. */
    const float a[] = {0, 0, 100, 0, 100, 100, 0, 100}, b[] = {10, 5, 120, 12, 110, 130, -3, 90};
    double H[9];
    int n;
    bool found;
    CHECK(theo_fit_homography(a, b, 4, NULL, H, inliers, &n, &found, NULL, NULL) == THEO_OK && found && n == 4);
    for (int i = 0; i < 4; i++) {
        double q[2];
        map_point(H, (double)a[2 * i], (double)a[2 * i + 1], q);
        CHECK_NEAR(q[0], (double)b[2 * i], 1e-9);
        CHECK_NEAR(q[1], (double)b[2 * i + 1], 1e-9);
    }
    /* A mirror image is a homography too. */
    for (int i = 0; i < 50; i++) {
        same[2 * i] = 60 - other[2 * i];
        same[2 * i + 1] = other[2 * i + 1];
    }
    CHECK(theo_fit_homography(other, same, 50, NULL, H, inliers, &n, &found, NULL, NULL) == THEO_OK && found && n == 50);
    CHECK_NEAR(H[0], -1, 1e-9);
    CHECK_NEAR(H[2], 60, 1e-6);
}

static void check_arguments(void) {
    double H[9];
    int n;
    bool found;
    theo_error err;
    float bad[] = {0, 0, 1, 0, 1, 1, 0, NAN}, good[] = {0, 0, 1, 0, 1, 1, 0, 1};
    CHECK(theo_fit_homography(bad, good, 4, NULL, H, NULL, &n, &found, NULL, &err) == THEO_ARGUMENT);
    CHECK(strstr(err.message, "point 3") && strstr(err.message, "xy_a"));
    bad[7] = INFINITY;
    CHECK(theo_fit_homography(good, bad, 4, NULL, H, NULL, &n, &found, NULL, &err) == THEO_ARGUMENT &&
          strstr(err.message, "xy_b"));
    CHECK(theo_fit_homography(NULL, good, 4, NULL, H, NULL, &n, &found, NULL, &err) == THEO_ARGUMENT);
    CHECK(theo_fit_homography(good, good, -1, NULL, H, NULL, &n, &found, NULL, &err) == THEO_ARGUMENT);
    CHECK(theo_fit_homography(good, good, 4, NULL, NULL, NULL, &n, &found, NULL, &err) == THEO_ARGUMENT);
    for (int i = 0; i < 4; i++) {
        theo_ransac_options options;
        theo_ransac_options_init(&options);
        *(i == 0 ? &options.threshold : &options.confidence) = i == 0 ? -1 : i == 1 ? 1 : 0.5;
        if (i == 2)
            options.max_iterations = 0;
        if (i == 3)
            options.size = 0;
        CHECK(theo_fit_homography(good, good, 4, &options, H, NULL, &n, &found, NULL, &err) == THEO_ARGUMENT);
        CHECK(strstr(err.message, "theo_ransac_options"));
    }
}

int main(void) {
    check_scene(20, 0, 0, 1e-3);
    check_scene(500, 0.3, 0, 1e-3);
    check_scene(500, 0.3, 0.7, 1.0);
    check_scene(500, 0.5, 0.7, 1.2);
    check_scene(500, 0.8, 0.7, 3.0);
    check_scene(3000, 0.6, 0.5, 0.5);
    check_repeats();
    check_degenerate();
    check_arguments();
    return t_done("homography");
}
