/* How photos get onto DUSt3R's grid: sizes and crops of known photos, what is refused, pixels of every kind of image, masks, and
 * where points go. (The resampling itself is test_resize's matter, and that of the golden cases.) */
#include "t.h"
#include "models/dust3r_input.h"
#include "require.h"

static theo_dust3r_frame frame_of(theo_dust3r_fit fit, int width, int height, int size, int patch, bool square_ok) {
    theo_dust3r_frame frame;
    const theo_dust3r_frame_options o = {fit, size, patch, square_ok, NULL};
    REQUIRE(theo_dust3r_frame_of(&frame, width, height, &o, &test_error));
    CHECK(frame.net_width % patch == 0 && frame.net_height % patch == 0);
    return frame;
}

/* ---------------------------------------------------------------- sizes */

static void test_native_sizes(void) {
    static const struct {
        int width, height, size, patch;
        bool square_ok;
        int resized_width, resized_height, net_width, net_height;
        theo_filter filter;
    } known[] = {
        {4032, 3024, 512, 16, false, 512, 384, 512, 384, THEO_LANCZOS},
        {1920, 1080, 512, 16, false, 512, 288, 512, 288, THEO_LANCZOS},
        {779, 520, 512, 16, false, 512, 342, 512, 336, THEO_LANCZOS},
        {1000, 1000, 512, 16, false, 512, 512, 512, 384, THEO_LANCZOS}, /* a square becomes 4:3 */
        {1000, 1000, 512, 16, true, 512, 512, 512, 512, THEO_LANCZOS},
        {2000, 900, 512, 16, false, 512, 230, 512, 224, THEO_LANCZOS},
        {3000, 4000, 512, 16, false, 384, 512, 384, 512, THEO_LANCZOS},
        {100, 90, 512, 16, false, 512, 461, 512, 448, THEO_BICUBIC}, /* enlarged */
        {512, 64, 512, 16, false, 512, 64, 512, 64, THEO_BICUBIC},
        {5000, 1000, 512, 16, false, 512, 102, 512, 96, THEO_LANCZOS},
        {1024, 33, 512, 16, false, 512, 16, 512, 16, THEO_LANCZOS}, /* 16.5 rounds to even: the least that is taken */
        {640, 480, 224, 16, false, 299, 224, 224, 224, THEO_LANCZOS},
        {100, 300, 224, 16, false, 224, 672, 224, 224, THEO_BICUBIC},
        {1000, 1000, 518, 14, true, 518, 518, 518, 518, THEO_LANCZOS},
        {640, 480, 518, 14, true, 518, 388, 518, 378, THEO_LANCZOS}, /* 388.5 rounds to even */
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const theo_dust3r_frame f =
            frame_of(THEO_DUST3R_NATIVE, known[i].width, known[i].height, known[i].size, known[i].patch, known[i].square_ok);
        CHECK_MSG(f.resized_width == known[i].resized_width && f.resized_height == known[i].resized_height &&
                      f.net_width == known[i].net_width && f.net_height == known[i].net_height && f.filter == known[i].filter,
                  "%d x %d: %d x %d, cut to %d x %d", known[i].width, known[i].height, f.resized_width, f.resized_height,
                  f.net_width, f.net_height);
        CHECK(f.crop_x == f.resized_width / 2 - f.net_width / 2 && f.crop_y == f.resized_height / 2 - f.net_height / 2);
    }
    CHECK(frame_of(THEO_DUST3R_NATIVE, 779, 520, 512, 16, false).crop_y == 3);
    CHECK(frame_of(THEO_DUST3R_NATIVE, 1000, 1000, 512, 16, false).crop_y == 64);
}

static void test_squares(void) {
    theo_dust3r_frame f = frame_of(THEO_DUST3R_PAD, 779, 520, 512, 16, false);
    CHECK(f.square == 779 && f.offset_x == 0 && f.offset_y == 129 && f.net_width == 512 && f.net_height == 512);
    f = frame_of(THEO_DUST3R_PAD, 520, 779, 512, 16, false);
    CHECK(f.square == 779 && f.offset_x == 129 && f.offset_y == 0);
    f = frame_of(THEO_DUST3R_CROP, 779, 520, 512, 16, false);
    CHECK(f.square == 520 && f.offset_x == -129 && f.offset_y == 0);
    f = frame_of(THEO_DUST3R_CROP, 520, 779, 224, 16, false);
    CHECK(f.square == 520 && f.offset_x == 0 && f.offset_y == -129 && f.net_width == 224);
    f = frame_of(THEO_DUST3R_PAD, 1, 5000, 512, 16, false); /* thin, but defined */
    CHECK(f.square == 5000 && f.offset_x == 2499);
    for (int fit = THEO_DUST3R_PAD; fit <= THEO_DUST3R_CROP; fit++) {
        f = frame_of((theo_dust3r_fit)fit, 300, 300, 512, 16, false);
        CHECK(f.square == 300 && f.offset_x == 0 && f.offset_y == 0);
    }
}

static void is_refused(theo_dust3r_fit fit, int width, int height, int size, const char *why) {
    theo_dust3r_frame frame;
    const theo_dust3r_frame_options o = {fit, size, 16, false, "photo.png"};
    memset(&test_error, 0, sizeof test_error);
    CHECK(theo_dust3r_frame_of(&frame, width, height, &o, &test_error) == THEO_ARGUMENT);
    CHECK_MSG(strstr(test_error.message, why), "%d x %d: %s", width, height, test_error.message);
}

static void test_refusals(void) {
    is_refused(THEO_DUST3R_NATIVE, 600, 10, 512, "600 x 10");
    is_refused(THEO_DUST3R_NATIVE, 10, 600, 512, "less than one patch");
    is_refused(THEO_DUST3R_NATIVE, 1, 5000, 512, "less than one patch");
    is_refused(THEO_DUST3R_NATIVE, 1, 5000, 224, "224 x 1120000");
    is_refused(THEO_DUST3R_NATIVE, 5000, 1, 224, "too elongated");
    is_refused(THEO_DUST3R_NATIVE, 1, 1 << 30, 224, "too elongated");
    is_refused(THEO_DUST3R_PAD, 100, 100, 500, "whole patches of 16");
}

/* ---------------------------------------------------------------- pixels */

enum { MOST_PIXELS = 32 * 32 };

static uint8_t value_at(int x, int y, int channel) {
    return (uint8_t)(x + 16 * y + 80 * channel);
}

static theo_image *new_picture(int width, int height, int channels, theo_pixel type) {
    theo_image *image;
    REQUIRE(theo_image_new(&image, width, height, channels, type, &test_error));
    void *pixels = theo_image_pixels(image);
    for (int y = 0, i = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++, i++) {
                const uint8_t value = value_at(x, y, c);
                if (type == THEO_U8)
                    ((uint8_t *)pixels)[i] = value;
                else if (type == THEO_U16)
                    ((uint16_t *)pixels)[i] = (uint16_t)(value << 8 | 255); /* the lower byte must not count */
                else
                    ((float *)pixels)[i] = (float)value / 255.0f;
            }
    return image;
}

/* Pixel (x, y) of the grid, which has the photo's resolution, is pixel (x + dx, y + dy) of the photo, or gray. */
static void check_pixels(theo_dust3r_input *input, const theo_dust3r_frame *f, int channels, theo_pixel type, bool bgr, int dx,
                         int dy) {
    static uint8_t rgb[3 * MOST_PIXELS], mask[MOST_PIXELS];
    theo_image *image = new_picture(f->width, f->height, channels, type);
    REQUIRE(theo_dust3r_input_fill(input, image, bgr, f, rgb, &test_error));
    theo_dust3r_frame_mask(f, mask);
    int wrong = 0;
    for (int y = 0, i = 0; y < f->net_height; y++)
        for (int x = 0; x < f->net_width; x++, i++) {
            const int px = x + dx, py = y + dy;
            const bool is_photo = px >= 0 && px < f->width && py >= 0 && py < f->height;
            wrong += mask[i] != is_photo;
            for (int c = 0; c < 3; c++) {
                const int channel = channels < 3 ? 0 : bgr ? 2 - c : c;
                wrong += rgb[3 * i + c] != (is_photo ? value_at(px, py, channel) : 128);
            }
        }
    CHECK_MSG(wrong == 0, "%d channels, type %d, fit %d: %d samples differ", channels, (int)type, (int)f->fit, wrong);
    theo_image_free(image);
}

static void test_pixels(void) {
    static const theo_pixel types[] = {THEO_U8, THEO_U16, THEO_F32};
    theo_dust3r_input input = {{0}, {0}};
    const theo_dust3r_frame padded = frame_of(THEO_DUST3R_PAD, 16, 7, 16, 16, false),
                            upright = frame_of(THEO_DUST3R_PAD, 5, 32, 32, 16, false),
                            cut = frame_of(THEO_DUST3R_CROP, 25, 16, 16, 16, false),
                            native = frame_of(THEO_DUST3R_NATIVE, 32, 23, 32, 16, false),
                            square = frame_of(THEO_DUST3R_NATIVE, 32, 32, 32, 16, true);
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int channels = 1; channels <= 4; channels++)
            for (int bgr = 0; bgr < 2; bgr++) {
                check_pixels(&input, &padded, channels, types[t], bgr, 0, -4);
                check_pixels(&input, &upright, channels, types[t], bgr, -13, 0);
                check_pixels(&input, &cut, channels, types[t], bgr, 4, 0);
                check_pixels(&input, &native, channels, types[t], bgr, 0, 3);
                check_pixels(&input, &square, channels, types[t], bgr, 0, 0);
            }
    uint8_t rgb[3 * 256];
    theo_image *image = new_picture(16, 7, 3, THEO_F32);
    ((float *)theo_image_pixels(image))[50] = NAN;
    CHECK(theo_dust3r_input_fill(&input, image, false, &padded, rgb, &test_error) == THEO_ARGUMENT);
    theo_image_free(image);
    theo_dust3r_input_free(&input);
}

/* Borders that do not fall on whole pixels of the grid: the nearest sample decides. */
static void test_mask_of_shrunk_photo(void) {
    static uint8_t mask[512 * 512];
    const theo_dust3r_frame f = frame_of(THEO_DUST3R_PAD, 779, 520, 512, 16, false);
    theo_dust3r_frame_mask(&f, mask);
    for (int y = 0; y < 512; y++) {
        const double at = floor((y + 0.5) * 779 / 512);
        CHECK(mask[512 * y] == (at >= 129 && at < 649) && mask[512 * y + 511] == mask[512 * y]);
    }
}

static void test_byte_table(void) {
    float table[256];
    theo_dust3r_byte_table(table);
    CHECK(table[0] == -1 && table[255] == 1);
    for (int u = 0; u < 256; u++)
        CHECK_NEAR((double)table[u], u / 127.5 - 1, 1e-7);
}

/* ---------------------------------------------------------------- points */

static double mapped(const theo_dust3r_frame *f, int axis, double p) {
    const theo_dust3r_map m = theo_dust3r_frame_map(f, axis);
    return (p + m.offset) * m.scale;
}

static void test_maps(void) {
    theo_dust3r_frame f = frame_of(THEO_DUST3R_PAD, 1000, 500, 512, 16, false);
    CHECK_NEAR(mapped(&f, 0, 0), 0, 1e-12); /* no half pixels */
    CHECK_NEAR(mapped(&f, 0, 1000), 512, 1e-12);
    CHECK_NEAR(mapped(&f, 1, 0), 128, 1e-12);
    CHECK_NEAR(mapped(&f, 1, 250), 256, 1e-12);
    f = frame_of(THEO_DUST3R_CROP, 1000, 500, 512, 16, false);
    CHECK_NEAR(mapped(&f, 0, 250), 0, 1e-12);
    CHECK_NEAR(mapped(&f, 0, 750), 512, 1e-12);
    CHECK_NEAR(mapped(&f, 1, 500), 512, 1e-12);
    f = frame_of(THEO_DUST3R_NATIVE, 779, 520, 512, 16, false); /* edges to edges, 512 x 342, 3 rows cut off */
    CHECK_NEAR(mapped(&f, 0, -0.5), -0.5, 1e-9);
    CHECK_NEAR(mapped(&f, 0, 778.5), 511.5, 1e-9);
    CHECK_NEAR(mapped(&f, 1, -0.5), -3.5, 1e-9);
    CHECK_NEAR(mapped(&f, 1, 519.5), 338.5, 1e-9);
}

int main(void) {
    test_native_sizes();
    test_squares();
    test_refusals();
    test_pixels();
    test_mask_of_shrunk_photo();
    test_byte_table();
    test_maps();
    return t_done("dust3r_input");
}
