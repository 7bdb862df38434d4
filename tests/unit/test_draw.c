/* Drawn pictures: sizes, where ink lies and where it does not, points far outside, kinds of photos. */
#include "image_files.h"
#include "imageio/canvas.h"
#include <theo/draw.h>

static theo_image *gray_photo(int width, int height, int channels) {
    theo_image *image;
    theo_error err;
    CHECK(theo_image_new(&image, width, height, channels, THEO_U8, &err) == THEO_OK);
    memset(theo_image_pixels(image), 128, image->row_bytes * (size_t)height);
    return image;
}

/* Coverage sums to the area: the edges are smooth, and lie where they should. */
static void test_areas(void) {
    enum { N = 96 };
    static uint8_t pixels[N * N * 3];
    const theo_canvas canvas = {pixels, N, N};
    const theo_ink white = {255, 255, 255, 1.0f};
    const double pi = 3.14159265358979;
    for (int i = 0; i < 20; i++) {
        const float x = 40.0f + 0.37f * (float)i, y = 50.0f - 0.21f * (float)i, r = 4.0f + 0.9f * (float)i;
        double area[3] = {0};
        for (int shape = 0; shape < 3; shape++) {
            memset(pixels, 0, sizeof pixels);
            if (shape == 0)
                theo_canvas_disc(&canvas, x, y, r, white);
            else if (shape == 1)
                theo_canvas_ring(&canvas, x, y, r, 2.0f, white);
            else
                theo_canvas_line(&canvas, x, y, x + r, y - 0.7f * r + 5.0f, 3.0f, white);
            for (size_t k = 0; k < sizeof pixels; k += 3)
                area[shape] += pixels[k] / 255.0;
        }
        const double length = hypot((double)r, 5.0 - 0.7 * (double)r);
        CHECK_NEAR(area[0], pi * (double)(r * r), 0.03 * pi * (double)(r * r));
        CHECK_NEAR(area[1], 2 * pi * (double)r * 2.0, 0.03 * 4 * pi * (double)r);
        CHECK_NEAR(area[2], 3.0 * length + pi * 2.25, 0.05 * (3.0 * length + pi * 2.25));
    }
}

static void test_outside(void) {
    uint8_t guarded[3 * 16 * 16 + 64];
    const theo_canvas canvas = {guarded + 32, 16, 16};
    const theo_ink ink = {255, 0, 0, 0.5f};
    static const float far[] = {-1e30f, -1e9f, -100.0f, -0.6f, 0.0f, 15.4f, 16.0f, 1e9f, 3e38f, NAN, INFINITY, -INFINITY};
    enum { COUNT = sizeof far / sizeof *far };
    memset(guarded, 7, sizeof guarded);
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++) {
            theo_canvas_disc(&canvas, far[i], far[j], 3.0f, ink);
            theo_canvas_ring(&canvas, far[i], far[j], 5.0f, 1.0f, ink);
            for (int k = 0; k < COUNT; k++)
                theo_canvas_line(&canvas, far[i], far[j], far[k], far[(j + k) % COUNT], 2.0f, ink);
        }
    for (int i = 0; i < 32; i++)
        CHECK(guarded[i] == 7 && guarded[sizeof guarded - 1 - (size_t)i] == 7);
}

static void test_scale(void) {
    double before = -1;
    for (int i = 0; i <= 20; i++) {
        const theo_ink ink = theo_ink_scale((float)i / 20.0f);
        const double light = 0.2126 * pow(ink.r, 2.2) + 0.7152 * pow(ink.g, 2.2) + 0.0722 * pow(ink.b, 2.2);
        CHECK_MSG(light > before, "step %d is not brighter", i);
        before = light;
    }
}

static void test_keypoints(void) {
    static const float xy[] = {50, 40, 100, 20, 20, 60, 5000, -3, NAN, 4}, scores[] = {0.9f, 0.1f, 0.4f, 0.5f, 0.2f};
    for (int channels = 1; channels <= 4; channels++) {
        theo_image *photo = gray_photo(160, 90, channels), *out;
        theo_error err;
        const theo_keypoints points = {.count = 5, .xy = xy, .scores = scores}, none = {0};
        CHECK(theo_draw_keypoints(&out, photo, &points, &err) == THEO_OK);
        CHECK(out && out->width == 160 && out->height == 90 && out->channels == 3 && out->type == THEO_U8);
        if (!out)
            continue;
        const uint8_t *calm = pixel_at(out, 140, 80);
        CHECK(calm[0] == calm[1] && calm[1] == calm[2] && calm[0] > 60 && calm[0] < 128);
        int inked[2] = {0};
        for (int y = 0; y < 90; y++)
            for (int x = 0; x < 160; x++)
                if (memcmp(pixel_at(out, x, y), calm, 3) != 0) {
                    const bool strong = hypot(x - 50, y - 40) < 9;
                    inked[0] += strong;
                    inked[1] += !strong;
                    CHECK(strong || hypot(x - 100, y - 20) < 9 || hypot(x - 20, y - 60) < 9);
                }
        CHECK(inked[0] > 30 && inked[1] > 30);
        theo_image_free(out);
        CHECK(theo_draw_keypoints(&out, photo, &none, &err) == THEO_OK);
        theo_image_free(out);
        CHECK(theo_draw_keypoints(&out, photo, NULL, &err) == THEO_ARGUMENT && !out);
        theo_image_free(photo);
    }
}

static void test_matches(void) {
    static const float a[] = {10, 10, 90, 60, 30, 70}, b[] = {20, 20, 40, 30, 50, 10};
    static const int32_t pairs[] = {0, 1, 1, 0, 2, 2}, wrong[] = {0, -1};
    static const uint8_t inliers[] = {1, 0, 1};
    theo_image *one = gray_photo(100, 80, 1), *two = gray_photo(60, 40, 3), *out, *all;
    theo_error err;
    CHECK(theo_draw_matches(&out, one, two, a, b, pairs, inliers, 3, &err) == THEO_OK);
    CHECK(theo_draw_matches(&all, one, two, a, b, pairs, NULL, 3, &err) == THEO_OK);
    CHECK(out && all && out->width > 160 && out->width < 180 && out->height == 80 && image_crc(out) != image_crc(all));
    if (out) {
        const uint8_t *pad = pixel_at(out, out->width - 2, 79), *photo = pixel_at(out, 99, 1);
        CHECK(pad[0] == 24 && photo[0] > 60 && photo[0] == photo[2]);
    }
    theo_image_free(out);
    theo_image_free(all);
    CHECK(theo_draw_matches(&out, one, two, NULL, NULL, NULL, NULL, 0, &err) == THEO_OK);
    theo_image_free(out);
    CHECK(theo_draw_matches(&out, one, two, a, b, wrong, NULL, 1, &err) == THEO_ARGUMENT && !out);
    CHECK(theo_draw_matches(&out, one, NULL, a, b, pairs, NULL, 3, &err) == THEO_ARGUMENT && strstr(err.message, "second"));
    theo_image_free(one);
    theo_image_free(two);
}

int main(void) {
    test_areas();
    test_outside();
    test_scale();
    test_keypoints();
    test_matches();
    return t_done("test_draw");
}
