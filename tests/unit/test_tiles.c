/* Windows cover an axis once, on the common grid, with the overlap that exactness needs; tiled runs give the bits of whole ones.
 */
#include "models/tiles.h"
#include "superpoint_fixture.h"

static void test_geometry(void) {
    for (int length = 8; length < 6000; length += 37)
        for (int64_t side = 100; side < 2500; side += 173) {
            theo_tile_grid grid = theo_tile_grid_make(length, length, side * side);
            int position = 0;
            bool good = true;
            for (int i = 0; i < grid.x.count; i++) {
                theo_tile_span s = theo_tile_span_at(&grid.x, i);
                bool first = i == 0, last = i == grid.x.count - 1;
                good &= s.own_start == position && s.own_end > s.own_start;
                good &= s.start % THEO_TILE_ALIGN == 0 && s.own_start % THEO_TILE_ALIGN == 0;
                good &= s.start >= 0 && s.start + s.size <= length;
                good &= first ? s.start == 0 : s.own_start - s.start >= THEO_TILE_BEFORE;
                good &= last ? s.start + s.size == length : s.start + s.size - s.own_end >= THEO_TILE_AFTER;
                for (int x = s.own_start; x < s.own_end; x += 5)
                    good &= theo_tile_owner(&grid.x, x) == i;
                position = s.own_end;
            }
            CHECK_MSG(good && position == length, "length %d, side %lld", length, (long long)side);
        }
    theo_tile_grid strip = theo_tile_grid_make(100000, 8, 1 << 19);
    CHECK(strip.y.count == 1 && strip.x.count == 2 && strip.x.window <= (1 << 19) / 8);
    theo_tile_grid never = theo_tile_grid_make(100000, 3000, 0);
    CHECK(never.x.count == 1 && never.y.count == 1);
    CHECK(theo_tile_owner(&strip.x, -8) == 0 && theo_tile_owner(&strip.x, 200000) == 1);
}

/* Whole and tiled, both with everything that reads the map: all points, no border, a wide window. */
static void compare(theo_model *model, int width, int height, int64_t tile_pixels, theo_nms nms, int radius, theo_sampling rule) {
    theo_session *whole = open_session(model, 0, NULL, NULL), *tiled = open_session(model, tile_pixels, NULL, NULL);
    theo_image *image = picture(width, height, 3);
    theo_detect_options o = native_options();
    o.nms = nms;
    o.nms_radius = radius;
    o.border = 0;
    o.threshold = 1e-4f;
    o.sampling = rule;
    theo_keypoints *a = detect(whole, image, &o), *b = detect(tiled, image, &o);
    CHECK_MSG(a->count > 20 && same_keypoints(a, b), "%dx%d in tiles of %lld: %d and %d points", width, height,
              (long long)tile_pixels, a->count, b->count);

    /* Given points, also between pixels and far outside. */
    enum { POINTS = 200 };
    float xy[2 * POINTS];
    for (int i = 0; i < POINTS; i++) {
        xy[2 * i] = (float)(width * ((i * 37) % POINTS) * 1.1 / POINTS) - 20.25f;
        xy[2 * i + 1] = (float)(height * ((i * 61) % POINTS) * 1.1 / POINTS) - 10.5f;
    }
    theo_keypoints *c, *d;
    REQUIRE(theo_describe(whole, image, xy, POINTS, &o, &c, &test_error));
    REQUIRE(theo_describe(tiled, image, xy, POINTS, &o, &d, &test_error));
    CHECK_MSG(same_keypoints(c, d), "%dx%d: described points", width, height);

    theo_keypoints_free(a);
    theo_keypoints_free(b);
    theo_keypoints_free(c);
    theo_keypoints_free(d);
    theo_image_free(image);
    theo_session_close(whole);
    theo_session_close(tiled);
}

static void test_bits(void) {
    theo_model *small = formula_model(SMALL_NETWORK, 2);
    compare(small, 1100, 700, 400 * 400, THEO_NMS_ITERATIVE, 4, THEO_SAMPLING_A);
    compare(small, 903, 1001, 360 * 360, THEO_NMS_ITERATIVE, 9, THEO_SAMPLING_C);
    compare(small, 1000, 1400, 360 * 360, THEO_NMS_ITERATIVE, 64, THEO_SAMPLING_A); /* looks further than a window reaches */
    compare(small, 3000, 60, 30000, THEO_NMS_SINGLE, 3, THEO_SAMPLING_B);
    compare(small, 61, 2500, 30000, THEO_NMS_GREEDY, 4, THEO_SAMPLING_B_OLD);
    compare(small, 8, 9000, 20000, THEO_NMS_ITERATIVE, 1, THEO_SAMPLING_A);
    theo_model_close(small);
    /* The published widths: other kernels may be chosen for them. */
    theo_model *full = open_model("models/superpoint-open.safetensors", 2);
    compare(full, 700, 420, 384 * 384, THEO_NMS_ITERATIVE, 4, THEO_SAMPLING_A);
    theo_model_close(full);
}

int main(void) {
    test_geometry();
    test_bits();
    return t_done("test_tiles");
}
