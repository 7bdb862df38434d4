/* What becomes of a pair's maps: clouds, pictures, numbers, records, and the pose of a scene that is known. No network runs. */
#include "t.h"
#include <math.h>
#include <stdlib.h>
#include <theo/image.h>
#include <theo/pair.h>

enum { W = 32, H = 48, PIXELS = W * H };

typedef struct maps {
    float points[3 * PIXELS], confidence[PIXELS], depth[PIXELS];
    uint8_t rgb[3 * PIXELS], mask[PIXELS];
} maps;

static void fill_depth(maps *m) {
    for (int i = 0; i < PIXELS; i++)
        m->depth[i] = m->points[3 * i + 2];
}

static theo_pair_view view_of(const maps *m) {
    theo_pair_view v = {.width = W, .height = H, .points = m->points, .confidence = m->confidence};
    v.depth = m->depth;
    v.rgb = m->rgb;
    v.mask = m->mask;
    v.record = (theo_pair_record){.width = W, .height = H, .scale_x = 0.5, .scale_y = 0.5, .offset_x = 3, .offset_y = -2};
    return v;
}

/* ---------------------------------------------------------------- clouds, numbers, pictures */

/* Depths 1, 2, 3 .. and confidences 1, 2, 1, 2 .., with pixels that count for nothing. */
static void fill_plain(maps *m, float shift) {
    for (int i = 0; i < PIXELS; i++) {
        for (int k = 0; k < 3; k++) {
            m->points[3 * i + k] = (float)(i + 1) + shift;
            m->rgb[3 * i + k] = (uint8_t)(i + 50 * k);
        }
        m->confidence[i] = (float)(1 + i % 2);
        m->mask[i] = i >= 10;
    }
    m->points[3 * 20] = INFINITY;
    m->points[3 * 22 + 1] = NAN;
    m->points[3 * 24 + 2] = -INFINITY;
    m->confidence[26] = NAN;
    m->confidence[28] = INFINITY;
    fill_depth(m);
}

static void check_cloud(const maps *a, const maps *b) {
    theo_pair pair = {.views = {view_of(a), view_of(b)}};
    theo_point_cloud *cloud;
    theo_error err;
    CHECK(theo_pair_point_cloud(&pair, 1, &cloud, &err) == THEO_OK);
    CHECK(cloud->first_count == PIXELS - 10 - 4 && cloud->count == 2 * cloud->first_count);
    CHECK(cloud->points[0] == a->points[30] && cloud->points[3 * cloud->first_count] == b->points[30]);
    CHECK(cloud->colors[0] == 10 && cloud->colors[2] == 110 && cloud->colors[3 * 10] == 21); /* pixel 20 is left out */
    theo_point_cloud_free(cloud);
    CHECK(theo_pair_point_cloud(&pair, 1.5, &cloud, &err) == THEO_OK);
    CHECK(cloud->first_count == (PIXELS - 10) / 2 + 1); /* the odd ones, and 28 */
    theo_point_cloud_free(cloud);
    CHECK(theo_pair_point_cloud(&pair, 1e30, &cloud, &err) == THEO_OK && cloud->count == 2);
    theo_point_cloud_free(cloud);
    CHECK(theo_pair_point_cloud(&pair, INFINITY, &cloud, &err) == THEO_OK && cloud->count == 2);
    theo_point_cloud_free(cloud);
    CHECK(theo_pair_point_cloud(NULL, 1, &cloud, &err) == THEO_ARGUMENT && !cloud);
    uint8_t valid[PIXELS];
    theo_pair_valid(&pair.views[0], 1, valid);
    CHECK(!valid[9] && valid[10] && !valid[20] && !valid[22] && !valid[24] && !valid[26] && valid[28]);
}

static void check_summary(const maps *m) {
    theo_pair_view view = view_of(m);
    theo_pair_summary s;
    theo_error err;
    CHECK(theo_pair_summarise(&view, &s, &err) == THEO_OK);
    CHECK(s.conf_min == 1 && s.conf_max == 2);
    /* 26 and 28 would have been ones. */
    CHECK_NEAR(s.conf_mean, 1.0 * (PIXELS - 10 - 2 + (PIXELS - 10) / 2.0) / (PIXELS - 10 - 2), 1e-12);
    CHECK_NEAR(s.conf_median, 2, 0);
    CHECK_NEAR(s.depth_median, (11 + PIXELS + 1) / 2.0, 0); /* 11 .. PIXELS without 25 */
    CHECK_NEAR(s.photo_fraction, (PIXELS - 10.0) / PIXELS, 1e-15);
}

static void check_pictures(maps *m) {
    theo_pair_view view = view_of(m);
    theo_image *picture;
    theo_error err;
    double range[2];
    CHECK(theo_pair_picture_depth(&picture, &view, range, &err) == THEO_OK);
    const uint16_t *z = picture->pixels;
    CHECK(range[0] == 11 && range[1] == PIXELS);
    CHECK(z[9] == 0 && z[10] == 1 && z[24] == 0 && z[PIXELS - 1] == 65535);
    CHECK(z[100] == 1 + rint(65534.0 * 90 / (PIXELS - 11)));
    theo_image_free(picture);
    CHECK(theo_pair_picture_confidence(&picture, &view, &err) == THEO_OK);
    const uint8_t *c = picture->pixels;
    CHECK(c[0] == 0 && c[1] == 128 && c[26] == 0 && c[28] == 255);
    theo_image_free(picture);

    m->depth[10] = -4; /* behind the first camera */
    CHECK(theo_pair_picture_depth(&picture, &view, NULL, &err) == THEO_OK && ((const uint16_t *)picture->pixels)[10] == 1);
    theo_image_free(picture);
    for (int i = 0; i < PIXELS; i++)
        m->depth[i] = 7;
    CHECK(theo_pair_picture_depth(&picture, &view, range, &err) == THEO_OK && range[1] == 7);
    CHECK(((const uint16_t *)picture->pixels)[10] == 1);
    theo_image_free(picture);
    for (int i = 0; i < PIXELS; i++)
        m->depth[i] = m->confidence[i] = NAN;
    theo_pair_summary s;
    CHECK(theo_pair_picture_depth(&picture, &view, range, &err) == THEO_OK && isnan(range[0]) && isnan(range[1]));
    CHECK(((const uint16_t *)picture->pixels)[40] == 0);
    theo_image_free(picture);
    CHECK(theo_pair_summarise(&view, &s, &err) == THEO_OK && isnan(s.conf_min) && isnan(s.conf_mean) && isnan(s.depth_median));
}

static void check_records(void) {
    const theo_pair_record r = {.scale_x = 512 / 779.0, .scale_y = 512 / 779.0, .offset_x = 0, .offset_y = 129};
    const double photo[4] = {0, 0, 389.5, 260.5};
    double grid[4], back[4];
    theo_pair_to_grid(&r, photo, 2, grid);
    CHECK_NEAR(grid[1], 129 * 512 / 779.0, 1e-12);
    CHECK_NEAR(grid[2], 256, 1e-12);
    theo_pair_to_photo(&r, grid, 2, back);
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(back[i], photo[i], 1e-12);
    const theo_intrinsics camera = {700, 710, 389.5, 259.5}, k = theo_pair_intrinsics_to_grid(&r, camera);
    CHECK_NEAR(k.fy, 710 * 512 / 779.0, 1e-12);
    CHECK_NEAR(k.cy, (259.5 + 129) * 512 / 779, 1e-12);
    const theo_intrinsics again = theo_pair_intrinsics_to_photo(&r, k);
    CHECK_NEAR(again.cy, camera.cy, 1e-12);
    CHECK_NEAR(again.fx, camera.fx, 1e-12);
}

/* ---------------------------------------------------------------- a pose that is known */

/* Camera 2 is turned by `angle` around y: X2 = R X1 + t. */
typedef struct scene {
    double R[9], t[3], focal;
} scene;

static void transform(const scene *s, const double x[3], double y[3]) {
    for (int r = 0; r < 3; r++)
        y[r] = s->R[3 * r] * x[0] + s->R[3 * r + 1] * x[1] + s->R[3 * r + 2] * x[2] + s->t[r];
}

static void back(const scene *s, const double y[3], double x[3]) {
    for (int r = 0; r < 3; r++)
        x[r] = s->R[r] * (y[0] - s->t[0]) + s->R[3 + r] * (y[1] - s->t[1]) + s->R[6 + r] * (y[2] - s->t[2]);
}

/* The maps of a camera's own view: a wavy surface. */
static void own_point(const scene *s, int x, int y, double point[3]) {
    const double z = 3 + 0.5 * sin(0.4 * x) + 0.4 * cos(0.3 * y);
    point[0] = (x - W / 2.0) * z / s->focal;
    point[1] = (y - H / 2.0) * z / s->focal;
    point[2] = z;
}

/* `scale`: of the order that the map belongs to. */
static void fill_map(maps *m, const scene *s, double scale, void (*move)(const scene *, const double *, double *),
                     float confidence) {
    for (int i = 0; i < PIXELS; i++) {
        double own[3], moved[3];
        own_point(s, i % W, i / W, own);
        if (move)
            move(s, own, moved);
        for (int k = 0; k < 3; k++)
            m->points[3 * i + k] = (float)(scale * (move ? moved[k] : own[k]));
        m->confidence[i] = confidence;
        m->mask[i] = 1;
    }
    fill_depth(m);
}

static void check_pose(void) {
    const double angle = 0.2;
    const scene s = {{cos(angle), 0, sin(angle), 0, 1, 0, -sin(angle), 0, cos(angle)}, {0.3, -0.1, 0.2}, 40};
    static maps ii, ji, jj, ij;
    fill_map(&ii, &s, 1, NULL, 5);
    fill_map(&ji, &s, 1, back, 5);
    fill_map(&jj, &s, 2, NULL, 9);
    fill_map(&ij, &s, 2, transform, 9);
    theo_pair forward = {.views = {view_of(&ii), view_of(&ji)}}, backward = {.views = {view_of(&jj), view_of(&ij)}};
    theo_pair_options o;
    theo_pose pose;
    theo_error err;
    theo_pair_options_init(&o);
    for (int method = THEO_POSE_PORT; method <= THEO_POSE_PAIRVIEWER; method++) {
        o.pose = (theo_pose_method)method;
        CHECK(theo_pair_pose(&forward, &backward, &o, &pose, &err) == THEO_OK && pose.found);
        const double unit = method == THEO_POSE_PAIRVIEWER ? 2 : 1; /* the order (2, 1) is the surer one */
        CHECK(pose.edge[0] == (method == THEO_POSE_PAIRVIEWER ? 2 : 0));
        for (int k = 0; k < 9; k++)
            CHECK_NEAR(pose.R[k], s.R[k], 1e-4);
        for (int k = 0; k < 3; k++)
            CHECK_NEAR(pose.t[k], unit * s.t[k], 1e-3);
        CHECK_NEAR(pose.focals[0], 40, 1e-3);
        CHECK_NEAR(pose.focals[1], 40, 1e-3);
        CHECK(pose.inlier_count == PIXELS);
    }
    /* What view 2's camera is told decides the port's fit: a wrong one shows. In pixels of the photo, twice those of the grid. */
    o.pose = THEO_POSE_PORT;
    o.intrinsics[1] = (theo_intrinsics){80, 80, W - 3, H + 2};
    CHECK(theo_pair_pose(&forward, &backward, &o, &pose, &err) == THEO_OK && pose.found);
    CHECK_NEAR(pose.t[2], s.t[2], 1e-3);
    o.intrinsics[1].fx = o.intrinsics[1].fy = 120;
    CHECK(theo_pair_pose(&forward, &backward, &o, &pose, &err) == THEO_OK && (!pose.found || fabs(pose.t[2] - s.t[2]) > 0.1));
    o.conf_pct = 0; /* the most confident value alone: here all are alike */
    o.intrinsics[1] = (theo_intrinsics){0};
    CHECK(theo_pair_pose(&forward, &backward, &o, &pose, &err) == THEO_OK && pose.found);
    ji.confidence[0] = 6;
    CHECK(theo_pair_pose(&forward, &backward, &o, &pose, &err) == THEO_OK && !pose.found && strstr(pose.reason, "fewer than 50"));
    backward.views[0].width = 16;
    CHECK(theo_pair_pose(&forward, &backward, &o, &pose, &err) == THEO_ARGUMENT && strstr(err.message, "view 2"));
    CHECK(theo_pair_pose(&forward, NULL, &o, &pose, &err) == THEO_ARGUMENT);
}

int main(void) {
    static maps a, b;
    fill_plain(&a, 0);
    fill_plain(&b, 1000);
    check_cloud(&a, &b);
    check_summary(&a);
    check_pictures(&a);
    check_records();
    check_pose();
    return t_done("pair results");
}
