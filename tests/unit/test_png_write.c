/* Writing PNG: round trips of every kind, texts, strides, and refusals. */
#include "image_files.h"
#include <sys/stat.h>
#include <unistd.h>

static void test_round_trips(void) {
    static const int sizes[][2] = {{1, 1}, {1, 50}, {50, 1}, {37, 23}, {200, 150}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int channels = 1; channels <= 4; channels++)
            for (int type = THEO_U8; type <= THEO_U16; type++) {
                theo_image *image, *back = NULL;
                theo_error err;
                void *data;
                size_t bytes;
                CHECK(theo_image_new(&image, sizes[s][0], sizes[s][1], channels, (theo_pixel)type, &err) == THEO_OK);
                uint8_t *p = theo_image_pixels(image);
                const size_t count = image->row_bytes * (size_t)image->height;
                for (size_t i = 0; i < count; i++)
                    p[i] = (uint8_t)(i * i / 7 + (i >> 4));
                CHECK(theo_image_encode_png(image, NULL, 0, NULL, &data, &bytes, &err) == THEO_OK);
                theo_decode_options options = decode_options();
                options.keep_16_bit = options.keep_alpha = true;
                CHECK(theo_image_decode(&back, data, bytes, NULL, &options, &err) == THEO_OK);
                CHECK(back && back->type == image->type && back->channels == channels && back->width == image->width &&
                      memcmp(back->pixels, p, count) == 0);
                theo_image_free(back);

                /* The same pixels with padded rows give the same file. */
                uint8_t *padded = calloc(image->row_bytes + 6, (size_t)image->height);
                for (int y = 0; y < image->height; y++)
                    memcpy(padded + (size_t)y * (image->row_bytes + 6), p + (size_t)y * image->row_bytes, image->row_bytes);
                theo_image view = *image;
                view.pixels = padded;
                view.row_bytes += 6;
                view.owner = NULL;
                void *again;
                size_t again_bytes;
                CHECK(theo_image_encode_png(&view, NULL, 0, NULL, &again, &again_bytes, &err) == THEO_OK);
                CHECK(again_bytes == bytes && memcmp(again, data, bytes) == 0);
                free(padded);
                theo_buffer_free(again);
                theo_buffer_free(data);
                theo_image_free(image);
            }
}

/* Several strips, and rows longer than a strip: what is read back, and the same bytes on three threads. */
static void test_strips(void) {
    static const int sizes[][3] = {{1500, 700, 3}, {100, 5000, 1}, {150001, 3, 4}, {70000, 2, 2}};
    theo_pool *pool;
    theo_error err;
    CHECK(theo_pool_open(&pool, 3, &err) == THEO_OK);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int type = THEO_U8; type <= THEO_U16; type++) {
            theo_image *image, *back;
            void *one, *three;
            size_t one_bytes, three_bytes;
            CHECK(theo_image_new(&image, sizes[s][0], sizes[s][1], sizes[s][2], (theo_pixel)type, &err) == THEO_OK);
            uint8_t *p = theo_image_pixels(image);
            const size_t count = image->row_bytes * (size_t)image->height;
            for (size_t i = 0; i < count; i++)
                p[i] = (uint8_t)(i % 100000 < 30000 ? 7 : i * i / 91 + (i >> 9));
            CHECK(theo_image_encode_png(image, NULL, 0, NULL, &one, &one_bytes, &err) == THEO_OK);
            CHECK(theo_image_encode_png(image, NULL, 0, pool, &three, &three_bytes, &err) == THEO_OK);
            CHECK(one_bytes == three_bytes && memcmp(one, three, one_bytes) == 0);
            theo_decode_options options = decode_options();
            options.keep_16_bit = options.keep_alpha = true;
            CHECK_MSG(theo_image_decode(&back, one, one_bytes, NULL, &options, &err) == THEO_OK, "%s", err.message);
            CHECK(back && back->row_bytes == image->row_bytes && memcmp(back->pixels, p, count) == 0);
            theo_image_free(back);
            theo_image_free(image);
            theo_buffer_free(one);
            theo_buffer_free(three);
        }
    theo_pool_close(pool);
}

static bool contains(const uint8_t *data, size_t bytes, const char *what, size_t length) {
    return memmem(data, bytes, what, length) != NULL;
}

static void test_texts(const theo_image *image) {
    static const theo_png_text texts[] = {{"theo:depth_scale", "0.001"}, {"Comment", "a b"}};
    static const char *const bad[] = {"",
                                      " x",
                                      "x ",
                                      "a  b",
                                      "line\nfeed",
                                      "no text",
                                      "12345678901234567890123456789012345678901234567890123456789012345678901234567890"};
    theo_error err;
    void *data;
    size_t bytes;
    CHECK(theo_image_encode_png(image, texts, 2, NULL, &data, &bytes, &err) == THEO_OK);
    CHECK(contains(data, bytes, "tEXttheo:depth_scale\0000.001", 26) && contains(data, bytes, "tEXtComment\0a b", 15));
    theo_buffer_free(data);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const theo_png_text text = {bad[i], strcmp(bad[i], "no text") == 0 ? "" : "value"};
        CHECK(theo_image_encode_png(image, &text, 1, NULL, &data, &bytes, &err) == THEO_ARGUMENT && !data && bytes == 0);
    }
}

static void test_files(const theo_image *image) {
    char path[] = "/tmp/theo-test-png-XXXXXX", longer[64];
    theo_error err;
    const int fd = mkstemp(path);
    if (fd < 0)
        return;
    close(fd);
    theo_image *back;
    CHECK(theo_image_save_png(image, path, NULL, 0, NULL, &err) == THEO_OK);
    CHECK(theo_image_load(&back, path, NULL, &err) == THEO_OK && image_crc(back) == image_crc(image));
    theo_image_free(back);
    snprintf(longer, sizeof longer, "%s/no/folder.png", path);
    CHECK(theo_image_save_png(image, longer, NULL, 0, NULL, &err) == THEO_IO && strstr(err.message, "folder.png"));
    CHECK(theo_image_save_png(image, "/tmp", NULL, 0, NULL, &err) == THEO_IO && strstr(err.message, "directory"));
    CHECK(theo_image_save_png(image, "/dev/full", NULL, 0, NULL, &err) == THEO_IO || access("/dev/full", W_OK) != 0);
    unlink(path);
}

int main(void) {
    theo_image *image;
    theo_error err;
    void *data;
    size_t bytes;
    test_round_trips();
    test_strips();
    CHECK(theo_image_new(&image, 5, 4, 3, THEO_U8, &err) == THEO_OK);
    memset(theo_image_pixels(image), 77, 60);
    test_texts(image);
    test_files(image);
    CHECK(theo_image_encode_png(NULL, NULL, 0, NULL, &data, &bytes, &err) == THEO_ARGUMENT);
    CHECK(theo_image_encode_png(image, NULL, 2, NULL, &data, &bytes, &err) == THEO_ARGUMENT);
    theo_image_free(image);
    CHECK(theo_image_new(&image, 5, 4, 3, THEO_F32, &err) == THEO_OK);
    CHECK(theo_image_encode_png(image, NULL, 0, NULL, &data, &bytes, &err) == THEO_ARGUMENT && strstr(err.message, "float"));
    theo_image_free(image);
    return t_done("test_png_write");
}
