/* Maps as pictures: depth, disparity, normals, masks, quantiles; and images as JPEG and as plain RGB. */
#include "image_files.h"

#include <theo/export.h>

enum { WIDTH = 61, HEIGHT = 47, PIXELS = WIDTH * HEIGHT };

static float depth[PIXELS];
static uint8_t valid[PIXELS];
static theo_pool *pool;

static void fill(void) {
    for (int i = 0; i < PIXELS; i++) {
        depth[i] = 0.5f + (float)((i * 7919) % 997) / 100;
        valid[i] = i % 11 != 3;
        if (i % 11 == 3)
            depth[i] = i % 2 ? INFINITY : NAN;
    }
    depth[7] = -1; /* valid says yes; it does not count */
}

static int compare(const void *a, const void *b) {
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static int sorted_depths(float *sorted) {
    int count = 0;
    for (int i = 0; i < PIXELS; i++)
        if (valid[i] && depth[i] > 0 && depth[i] < INFINITY)
            sorted[count++] = depth[i];
    qsort(sorted, (size_t)count, sizeof *sorted, compare);
    return count;
}

static double quantile_of(const float *sorted, int count, double q) {
    const double at = q * (count - 1);
    const int below = (int)at, above = below + 1 < count ? below + 1 : below;
    return (double)sorted[below] + ((double)sorted[above] - (double)sorted[below]) * (at - below);
}

static void test_quantiles(void) {
    static const double q[] = {0, 0.001, 0.25, 0.5, 0.99, 1};
    static float sorted[PIXELS];
    const theo_depth_map map = {WIDTH, HEIGHT, depth, valid};
    double values[6], bad = 1.5;
    int64_t counted;
    theo_error err;
    const int count = sorted_depths(sorted);
    CHECK(theo_depth_quantiles(&map, q, 6, values, &counted, pool, &err) == THEO_OK && counted == count);
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(values[i], quantile_of(sorted, count, q[i]), 1e-9);
    uint8_t none[PIXELS] = {0};
    const theo_depth_map empty = {WIDTH, HEIGHT, depth, none};
    CHECK(theo_depth_quantiles(&empty, q, 6, values, &counted, NULL, &err) == THEO_OK && counted == 0 && isnan(values[3]));
    CHECK(theo_depth_quantiles(&map, &bad, 1, values, &counted, NULL, &err) == THEO_ARGUMENT && strstr(err.message, "1.5"));
    const theo_depth_map nothing = {0, 0, NULL, NULL};
    CHECK(theo_depth_quantiles(&nothing, q, 1, values, &counted, NULL, &err) == THEO_ARGUMENT);
}

static void test_depth(void) {
    const theo_depth_map map = {WIDTH, HEIGHT, depth, valid};
    theo_image *image;
    double scale;
    theo_error err;
    CHECK(theo_picture_depth(&image, &map, &scale, pool, &err) == THEO_OK && image->type == THEO_U16 && image->channels == 1);
    const uint16_t *p = image->pixels;
    for (int i = 0; i < PIXELS; i++) {
        const bool counts = valid[i] && depth[i] > 0;
        CHECK(counts ? p[i] >= 1 && fabs(p[i] * scale - (double)depth[i]) <= 0.5001 * scale : p[i] == 0);
    }
    theo_image_free(image);

    float far[2] = {1e-9f, 1e9f};
    const theo_depth_map wide = {2, 1, far, NULL};
    CHECK(theo_picture_depth(&image, &wide, &scale, NULL, &err) == THEO_OK);
    p = image->pixels;
    CHECK(p[0] == 1 && p[1] == 65535);
    theo_image_free(image);

    uint8_t none[2] = {0};
    const theo_depth_map empty = {2, 1, far, none};
    CHECK(theo_picture_depth(&image, &empty, &scale, NULL, &err) == THEO_OK && scale == 0);
    p = image->pixels;
    CHECK(p[0] == 0 && p[1] == 0);
    theo_image_free(image);
}

static void test_disparity(void) {
    const theo_depth_map map = {WIDTH, HEIGHT, depth, valid};
    theo_image *image;
    double range[2], table[768];
    theo_error err;
    CHECK(theo_picture_disparity(&image, &map, NULL, range, pool, &err) == THEO_OK && image->channels == 3);
    theo_spectral_table(table);
    const uint8_t *p = image->pixels;
    CHECK(range[0] > 0 && range[1] > range[0]);
    for (int i = 0; i < PIXELS; i++) {
        const bool counts = valid[i] && depth[i] > 0;
        const double t = 1 - (1 / (double)depth[i] - range[0]) / (range[1] - range[0]);
        double index = floor(256 * t);
        index = index < 0 ? 0 : index > 255 ? 255 : index;
        bool near = !counts && p[3 * i] == 0 && p[3 * i + 1] == 0 && p[3 * i + 2] == 0;
        for (int step = -1; counts && step <= 1; step++) { /* rounding may fall to a neighbour */
            const int k = (int)index + step;
            near = near || (k >= 0 && k < 256 && p[3 * i] == (uint8_t)(255 * table[3 * k]));
        }
        CHECK_MSG(near, "pixel %d, depth %g", i, (double)depth[i]);
    }
    theo_image_free(image);

    float same[4] = {2, 2, 2, 2};
    const theo_depth_map flat = {2, 2, same, NULL};
    CHECK(theo_picture_disparity(&image, &flat, NULL, range, NULL, &err) == THEO_OK && range[0] == 0.5 && range[1] == 0.5);
    p = image->pixels;
    CHECK(p[0] == 158 && p[1] == 1 && p[2] == 66); /* the near end */
    theo_image_free(image);

    uint8_t none[4] = {0};
    const theo_depth_map empty = {2, 2, same, none};
    CHECK(theo_picture_disparity(&image, &empty, NULL, NULL, NULL, &err) == THEO_OK && ((const uint8_t *)image->pixels)[0] == 0);
    theo_image_free(image);

    theo_disparity_options options;
    theo_disparity_options_init(&options);
    options.low = 0.99;
    CHECK(theo_picture_disparity(&image, &map, &options, NULL, NULL, &err) == THEO_ARGUMENT && !image);
}

static void test_normals_and_masks(void) {
    static const float normals[] = {0, 0, 0, 1, -1, 0, 0, 0, 1, NAN, 2, -2};
    static const uint8_t camera[] = {128, 128, 128, 255, 0, 128, 128, 128, 255, 128, 255, 0};
    static const uint8_t published[] = {127, 127, 127, 255, 255, 127, 127, 127, 0};
    static const uint8_t mask[] = {0, 1, 2, 255};
    theo_image *image;
    theo_error err;
    CHECK(theo_picture_normal(&image, normals, 2, 2, THEO_NORMAL_CAMERA, pool, &err) == THEO_OK &&
          memcmp(image->pixels, camera, sizeof camera) == 0);
    theo_image_free(image);
    CHECK(theo_picture_normal(&image, normals, 2, 2, THEO_NORMAL_PUBLISHED, NULL, &err) == THEO_OK &&
          memcmp(image->pixels, published, sizeof published) == 0);
    theo_image_free(image);
    CHECK(theo_picture_normal(&image, NULL, 2, 2, THEO_NORMAL_CAMERA, NULL, &err) == THEO_ARGUMENT && !image);
    CHECK(theo_picture_normal(&image, normals, 2, 2, (theo_normal_axes)2, NULL, &err) == THEO_ARGUMENT && !image);
    CHECK(theo_picture_mask(&image, mask, 4, 1, &err) == THEO_OK && memcmp(image->pixels, "\0\xff\xff\xff", 4) == 0);
    theo_image_free(image);
    CHECK(theo_picture_mask(&image, NULL, 4, 1, &err) == THEO_ARGUMENT && !image);
}

/* ---- images of other kinds */

static theo_image *gradient(int width, int height, int channels, theo_pixel type) {
    theo_image *image;
    theo_error err;
    CHECK(theo_image_new(&image, width, height, channels, type, &err) == THEO_OK);
    for (size_t i = 0; i < (size_t)width * (size_t)height * (size_t)channels; i++) {
        const unsigned v = (unsigned)(i * 255 / ((size_t)width * (size_t)height * (size_t)channels));
        if (type == THEO_U8)
            ((uint8_t *)theo_image_pixels(image))[i] = (uint8_t)v;
        else if (type == THEO_U16)
            ((uint16_t *)theo_image_pixels(image))[i] = (uint16_t)(v << 8 | 77);
        else
            ((float *)theo_image_pixels(image))[i] = (float)v / 255;
    }
    return image;
}

static void test_jpeg(void) {
    for (int channels = 1; channels <= 4; channels++)
        for (int type = THEO_U8; type <= THEO_F32; type++) {
            theo_image *image = gradient(50, 40, channels, (theo_pixel)type), *back, *rgb = NULL, *back_rgb = NULL;
            void *data;
            size_t bytes;
            theo_error err;
            CHECK(theo_image_encode_jpeg(image, 95, &data, &bytes, &err) == THEO_OK);
            CHECK(theo_image_decode(&back, data, bytes, NULL, NULL, &err) == THEO_OK && back->channels == (channels < 3 ? 1 : 3));
            CHECK(theo_image_to_rgb(&rgb, image, &err) == THEO_OK && theo_image_to_rgb(&back_rgb, back, &err) == THEO_OK);
            const uint8_t *a = rgb->pixels, *b = back_rgb->pixels;
            int worst = 0;
            for (int i = 0; i < 50 * 40 * 3; i++)
                worst = abs(a[i] - b[i]) > worst ? abs(a[i] - b[i]) : worst;
            CHECK_MSG(worst <= 6, "%d channels, type %d: off by %d", channels, type, worst);
            theo_buffer_free(data);
            theo_image_free(back);
            theo_image_free(back_rgb);
            theo_image_free(rgb);
            theo_image_free(image);
        }
}

static void test_jpeg_refusals(void) {
    theo_image *image = gradient(50, 40, 3, THEO_F32), *rgb;
    void *data;
    size_t bytes;
    theo_error err;
    CHECK(theo_image_encode_jpeg(image, 0, &data, &bytes, &err) == THEO_ARGUMENT && strstr(err.message, "1 to 100"));
    CHECK(theo_image_encode_jpeg(NULL, 90, &data, &bytes, &err) == THEO_ARGUMENT);
    ((float *)theo_image_pixels(image))[5000] = NAN;
    CHECK(theo_image_encode_jpeg(image, 90, &data, &bytes, &err) == THEO_ARGUMENT && !data && strstr(err.message, "NaN"));
    CHECK(theo_image_to_rgb(&rgb, image, &err) == THEO_ARGUMENT && !rgb);
    theo_image_free(image);
    image = gradient(70000, 1, 1, THEO_U8);
    CHECK(theo_image_encode_jpeg(image, 90, &data, &bytes, &err) == THEO_BOUNDS && strstr(err.message, "65500"));
    theo_image_free(image);
}

int main(void) {
    theo_error err;
    CHECK(theo_pool_open(&pool, 3, &err) == THEO_OK);
    fill();
    test_quantiles();
    test_depth();
    test_disparity();
    test_normals_and_masks();
    test_jpeg();
    test_jpeg_refusals();
    theo_pool_close(pool);
    return t_done("test_map_pictures");
}
