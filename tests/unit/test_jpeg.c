/* JPEG: every kind that libjpeg writes against Pillow's pixels, cut and damaged files, limits, Exif orientation. */
#include "image_files.h"

#define FOLDER "tests/data/jpeg/"

static theo_image *decode(const uint8_t *data, size_t bytes, const theo_decode_options *options, theo_error *err) {
    theo_image *image;
    const theo_status status = theo_image_decode(&image, data, bytes, "made.jpg", options, err);
    CHECK((status == THEO_OK) == (image != NULL));
    return image;
}

/* ---------------------------------------------------------------- pixels */

static void test_planes(const char *path, const theo_image *whole) {
    for (int channels = THEO_CHANNELS_RED; channels <= THEO_CHANNELS_LUMA; channels++) {
        theo_decode_options options = decode_options();
        theo_image *plane;
        theo_error err;
        int wrong = 0;
        options.channels = (theo_channels)channels;
        CHECK(theo_image_load(&plane, path, &options, &err) == THEO_OK);
        if (!plane)
            continue;
        CHECK(plane->channels == 1 && plane->width == whole->width && plane->height == whole->height);
        for (int y = 0; y < whole->height; y++)
            for (int x = 0; x < whole->width; x++) {
                const uint8_t *p = pixel_at(whole, x, y);
                int want = p[0];
                if (channels == THEO_CHANNELS_LUMA && whole->channels == 3)
                    want = (19595 * p[0] + 38470 * p[1] + 7471 * p[2] + 32768) >> 16;
                wrong += *pixel_at(plane, x, y) != want;
            }
        CHECK_MSG(wrong == 0, "%s: %d samples differ", path, wrong);
        theo_image_free(plane);
    }
}

static void test_against_pillow(void) {
    FILE *table = fopen(FOLDER "expected.txt", "r");
    char name[64], path[128];
    int width, height, channels, count = 0;
    unsigned crc;
    CHECK(table != NULL);
    while (table && fscanf(table, "%63s %d %d %d %x", name, &width, &height, &channels, &crc) == 5) {
        theo_image *image;
        theo_error err;
        snprintf(path, sizeof path, FOLDER "%s", name);
        CHECK_MSG(theo_image_load(&image, path, NULL, &err) == THEO_OK, "%s", err.message);
        if (!image)
            continue;
        count++;
        CHECK_MSG(image->width == width && image->height == height && image->channels == channels, "%s: %d x %d x %d", name,
                  image->width, image->height, image->channels);
        CHECK_MSG(image_crc(image) == crc, "%s: CRC %08x, expected %08x", name, image_crc(image), crc);
        CHECK(image->exif_orientation == 0 && !image->orientation_applied && !image->truncated);
        CHECK_STR(image->format, "jpeg");
        test_planes(path, image);
        theo_image_free(image);
    }
    CHECK(count >= 20);
    if (table)
        fclose(table);
}

/* ---------------------------------------------------------------- damage */

/* Every way to cut a file: refused, or with allow_truncated decoded from some point on, with the flag. */
static void test_cut(const char *path, bool whole_rows_first) {
    size_t bytes;
    uint8_t *file = read_file(path, &bytes);
    theo_error err;
    CHECK(file != NULL);
    if (!file)
        return;
    theo_image *whole = decode(file, bytes, NULL, &err);
    theo_decode_options lenient = decode_options();
    lenient.allow_truncated = true;
    int decoded = 0;
    for (size_t n = 0; n < bytes; n += 1 + n / 100) {
        uint8_t *part = malloc(n ? n : 1);
        memcpy(part, file, n);
        theo_image *image = decode(part, n, NULL, &err);
        CHECK_MSG(!image && err.status != THEO_INTERNAL, "%zu of %zu bytes were taken for a picture", n, bytes);
        theo_image_free(image);
        image = decode(part, n, &lenient, &err);
        if (image) {
            decoded++;
            CHECK(image->truncated && image->width == whole->width);
            if (whole_rows_first && n > bytes * 3 / 4)
                CHECK(memcmp(image->pixels, whole->pixels, image->row_bytes * 8) == 0);
        }
        theo_image_free(image);
        free(part);
    }
    CHECK(decoded > 10);
    theo_image_free(whole);
    free(file);
}

/* Single wrong bytes anywhere: an error or a picture, never a fault. */
static void test_wrong_bytes(const char *path) {
    size_t bytes;
    uint8_t *file = read_file(path, &bytes);
    CHECK(file != NULL);
    for (size_t i = 0; file && i < bytes; i++) {
        static const uint8_t flips[] = {0xff, 0x01, 0x80};
        for (size_t k = 0; k < sizeof flips; k++) {
            theo_decode_options options = decode_options();
            theo_error err;
            options.allow_truncated = k == 1;
            options.max_pixels = 1 << 20;
            file[i] ^= flips[k];
            theo_image *image = decode(file, bytes, &options, &err);
            CHECK(image || (err.status != THEO_INTERNAL && is_clear(&err, "made.jpg")));
            theo_image_free(image);
            file[i] ^= flips[k];
        }
    }
    free(file);
}

/* The first such marker at or after `from`. */
static size_t find_marker(const uint8_t *file, size_t bytes, size_t from, uint8_t marker) {
    while (from + 2 < bytes && !(file[from] == 0xff && file[from + 1] == marker))
        from++;
    return from;
}

/* The first scan of a progressive file, many times over. */
static void test_scan_bomb(void) {
    size_t bytes;
    theo_error err;
    uint8_t *file = read_file(FOLDER "420-progressive.jpg", &bytes);
    CHECK(file != NULL);
    if (!file)
        return;
    const size_t scan = find_marker(file, bytes, 2, 0xda), end = find_marker(file, bytes, scan, 0xc4), length = end - scan,
                 copies = 5000;
    uint8_t *bomb = malloc(bytes + copies * length);
    memcpy(bomb, file, end);
    for (size_t i = 0; i < copies; i++)
        memcpy(bomb + end + i * length, file + scan, length);
    memcpy(bomb + end + copies * length, file + end, bytes - end);
    theo_image *image = decode(bomb, bytes + copies * length, NULL, &err);
    CHECK(!image && err.status == THEO_BOUNDS);
    CHECK_MSG(strstr(err.message, "scans"), "%s", err.message);
    theo_image_free(image);
    free(bomb);
    free(file);
}

/* ---------------------------------------------------------------- limits and kinds that are not read */

static void test_refused(void) {
    size_t bytes;
    theo_error err;
    theo_decode_options options = decode_options();
    uint8_t *file = read_file(FOLDER "420.jpg", &bytes);
    CHECK(file != NULL);
    if (!file)
        return;
    options.max_pixels = 45 * 37 - 1;
    CHECK(!decode(file, bytes, &options, &err) && err.status == THEO_BOUNDS);
    CHECK_MSG(strstr(err.message, "45 x 37") && strstr(err.message, "1664"), "%s", err.message);
    options.max_pixels = 45 * 37;
    theo_image *image = decode(file, bytes, &options, &err);
    CHECK(image != NULL);
    theo_image_free(image);
    options.max_pixels = 0;
    CHECK(!decode(file, bytes, &options, &err) && err.status == THEO_ARGUMENT);
    options = decode_options();
    options.size = 1;
    CHECK(!decode(file, bytes, &options, &err) && err.status == THEO_ARGUMENT);
    options = decode_options();
    options.channels = (theo_channels)7;
    CHECK(!decode(file, bytes, &options, &err) && err.status == THEO_ARGUMENT);

    /* 65500 x 65500 from a file of some bytes: refused from the header. */
    const size_t sof = find_marker(file, bytes, 2, 0xc0);
    memcpy(file + sof + 5, "\xff\xdc\xff\xdc", 4);
    CHECK(!decode(file, bytes, NULL, &err) && err.status == THEO_BOUNDS);
    memcpy(file + sof + 5, "\0\x25\0\x2d", 4);

    file[sof + 4] = 12;
    CHECK(!decode(file, bytes, NULL, &err) && err.status == THEO_UNSUPPORTED);
    CHECK_MSG(strstr(err.message, "12 bits"), "%s", err.message);
    file[sof + 4] = 8;
    file[sof + 1] = 0xc3; /* lossless */
    CHECK(!decode(file, bytes, NULL, &err) && err.status == THEO_UNSUPPORTED);
    free(file);
}

/* ---------------------------------------------------------------- Exif orientation */

enum { EXIF_BYTES = 4 + 6 + 26 };

/* An APP1 segment with one tag, or 0 bytes for orientation -1. */
static size_t exif_segment(uint8_t *to, int orientation, bool big_endian) {
    if (orientation < 0)
        return 0;
    const uint8_t o = (uint8_t)orientation;
    const uint8_t big[] = {0xff, 0xe1, 0, EXIF_BYTES - 2, 'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8,
                           0,    1,    1, 0x12,           0,   3,   0,   0,   0, 1, 0,   o,   0, 0,  0, 0, 0, 0};
    const uint8_t little[] = {0xff, 0xe1, 0, EXIF_BYTES - 2, 'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0, 0,
                              0,    1,    0, 0x12,           1,   3,   0,   1,   0, 0, 0,   o,   0,  0, 0, 0, 0,
                              0,    0};
    memcpy(to, big_endian ? big : little, EXIF_BYTES);
    return EXIF_BYTES;
}

/* Where pixel (x, y) of the upright picture lies in the stored one of w x h pixels, by the definition: the stored row 0 and
 * column 0 are the upright picture's top and left (1), top and right (2), bottom and right (3), bottom and left (4), left and top
 * (5), right and top (6), right and bottom (7), left and bottom (8) side. */
static void stored_place(int orientation, int w, int h, int x, int y, int *sx, int *sy) {
    const bool turned = orientation >= 5,
               row_zero_is_far = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7,
               column_zero_is_far = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const int along_rows = turned ? x : y, along_columns = turned ? y : x;
    *sy = row_zero_is_far ? h - 1 - along_rows : along_rows;
    *sx = column_zero_is_far ? w - 1 - along_columns : along_columns;
}

static void test_orientation(const char *path) {
    size_t bytes;
    theo_error err;
    uint8_t *file = read_file(path, &bytes), made[64 * 1024];
    CHECK(file && bytes + EXIF_BYTES < sizeof made);
    if (!file)
        return;
    theo_decode_options apply = decode_options();
    apply.orientation = THEO_ORIENTATION_APPLY;
    theo_image *stored = decode(file, bytes, NULL, &err);
    for (int orientation = -1; orientation <= 9; orientation++) {
        const size_t extra = exif_segment(made + 2, orientation, orientation % 2);
        memcpy(made, file, 2);
        memcpy(made + 2 + extra, file + 2, bytes - 2);
        const bool valid = orientation >= 1 && orientation <= 8;

        theo_image *plain = decode(made, bytes + extra, NULL, &err), *upright = decode(made, bytes + extra, &apply, &err);
        CHECK(plain && upright);
        if (!plain || !upright)
            continue;
        CHECK(plain->exif_orientation == (valid ? orientation : 0) && !plain->orientation_applied);
        CHECK(image_crc(plain) == image_crc(stored));
        CHECK(upright->exif_orientation == (valid ? orientation : 0) && upright->orientation_applied);
        const bool turned = valid && orientation >= 5;
        CHECK(upright->width == (turned ? stored->height : stored->width) &&
              upright->height == (turned ? stored->width : stored->height));
        int wrong = 0;
        for (int y = 0; y < upright->height; y++)
            for (int x = 0; x < upright->width; x++) {
                int sx, sy;
                stored_place(valid ? orientation : 1, stored->width, stored->height, x, y, &sx, &sy);
                wrong += memcmp(pixel_at(upright, x, y), pixel_at(stored, sx, sy), (size_t)stored->channels) != 0;
            }
        CHECK_MSG(wrong == 0, "orientation %d: %d pixels are out of place", orientation, wrong);
        theo_image_free(plain);
        theo_image_free(upright);
    }
    theo_image_free(stored);
    free(file);
}

int main(void) {
    test_against_pillow();
    test_cut(FOLDER "420.jpg", true);
    test_cut(FOLDER "420-restart.jpg", true);
    test_cut(FOLDER "420-progressive.jpg", false);
    test_wrong_bytes(FOLDER "420-restart.jpg");
    test_wrong_bytes(FOLDER "420-progressive.jpg");
    test_wrong_bytes(FOLDER "ycck.jpg");
    test_scan_bomb();
    test_refused();
    test_orientation(FOLDER "420.jpg");
    test_orientation(FOLDER "gray.jpg");
    return t_done("test_jpeg");
}
