/* Resizing: bit for bit what Pillow 9.4 gives, for all filters and channels; planes taken straight from images of every type. */
#include "image_files.h"
#include "imageio/resize.h"

static uint64_t splitmix(uint64_t z) {
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static void fill(uint8_t *data, size_t count, bool sharp) {
    for (size_t i = 0; i < count; i++) {
        const uint64_t z = splitmix((i + 1) * 0x9E3779B97F4A7C15u);
        data[i] = sharp ? (z >> 63 ? 255 : 0) : (uint8_t)(z >> 56);
    }
}

static void test_against_pillow(void) {
    FILE *table = fopen("tests/data/resize/expected.txt", "r");
    int channels, width, height, new_width, new_height, filter, sharp, count = 0;
    unsigned crc;
    CHECK(table != NULL);
    while (table && fscanf(table, "%d %d %d %d %d %d %d %x", &channels, &width, &height, &new_width, &new_height, &filter, &sharp,
                           &crc) == 8) {
        theo_image *image, *out;
        theo_error err;
        count++;
        CHECK(theo_image_new(&image, width, height, channels, THEO_U8, &err) == THEO_OK);
        fill(theo_image_pixels(image), (size_t)width * (size_t)height * (size_t)channels, sharp);
        CHECK(theo_image_resize(&out, image, new_width, new_height, (theo_filter)filter, &err) == THEO_OK);
        if (out)
            CHECK_MSG(out->width == new_width && out->height == new_height && out->channels == channels && image_crc(out) == crc,
                      "%d channels %d x %d to %d x %d filter %d sharp %d: CRC %08x, expected %08x", channels, width, height,
                      new_width, new_height, filter, sharp, image_crc(out), crc);
        theo_image_free(image);
        theo_image_free(out);
    }
    CHECK(count >= 200);
    if (table)
        fclose(table);
}

/* Padded rows and a workspace full of rubbish, of exactly the size asked for, change nothing. */
static void test_strides_and_workspace(void) {
    enum { W = 41, H = 33, OW = 24, OH = 50, PAD = 7 };
    for (int channels = 1; channels <= 4; channels++) {
        const theo_resize job = {W, H, OW, OH, channels, THEO_BICUBIC};
        const size_t c = (size_t)channels, bytes = theo_resize_bytes(&job);
        uint8_t *tight = malloc(W * H * c), *padded = malloc((W * c + PAD) * H),
                *out[2] = {malloc(OW * OH * c), malloc((OW * c + PAD) * OH)};
        void *workspace = malloc(bytes);
        fill(tight, W * H * c, false);
        memset(padded, 0xaa, (W * c + PAD) * H);
        for (size_t y = 0; y < H; y++)
            memcpy(padded + y * (W * c + PAD), tight + y * W * c, W * c);
        for (int i = 0; i < 2; i++) {
            memset(workspace, i ? 0xff : 0, bytes);
            memset(out[i], 0x77, i ? (OW * c + PAD) * OH : OW * OH * c);
            theo_resize_u8(&job, out[i], OW * c + (i ? PAD : 0), i ? padded : tight, i ? W * c + PAD : W * c, workspace);
        }
        int wrong = 0;
        for (size_t y = 0; y < OH; y++) {
            wrong += memcmp(out[0] + y * OW * c, out[1] + y * (OW * c + PAD), OW * c) != 0;
            wrong += out[1][y * (OW * c + PAD) + OW * c] != 0x77;
        }
        CHECK(wrong == 0);
        free(tight);
        free(padded);
        free(out[0]);
        free(out[1]);
        free(workspace);
    }
}

/* A plane of an image is the same, whether picked before or after, and whatever the samples are stored as. */
static void test_planes(void) {
    enum { W = 52, H = 31, OW = 40, OH = 24, N = W * H };
    static uint8_t u8[N * 4], plane[N], want[OW * OH * 3], got[OW * OH * 3];
    static uint16_t u16[N * 4];
    static float f32[N * 4];
    theo_error err;
    for (int channels = 1; channels <= 4; channels++)
        for (int pick = THEO_PICK_COLOR; pick <= THEO_PICK_LUMA; pick++)
            for (int type = THEO_U8; type <= THEO_F32; type++)
                for (int bgr = 0; bgr < 2; bgr++) {
                    fill(u8, sizeof u8, false);
                    for (size_t i = 0; i < N * 4; i++) {
                        u16[i] = (uint16_t)(u8[i] << 8 | (uint8_t)(i * 77));
                        f32[i] = (float)u8[i] / 255.0f;
                    }
                    const void *stored[] = {u8, u16, f32};
                    const theo_image image = {
                        .width = W, .height = H, .channels = channels, .type = (theo_pixel)type, .pixels = stored[type]};
                    const theo_plane job = {
                        .image = &image, .pick = (theo_pick)pick, .bgr = bgr, .width = OW, .height = OH, .filter = THEO_BILINEAR};
                    const int out = pick == THEO_PICK_COLOR && channels >= 3 ? 3 : 1;
                    CHECK(theo_plane_channels(&job) == out);
                    void *workspace = malloc(theo_plane_bytes(&job));
                    CHECK(theo_plane_resize(&job, got, workspace, &err) == THEO_OK);
                    free(workspace);

                    int wrong = 0;
                    for (int c = 0; c < out; c++) {
                        for (size_t i = 0; i < N; i++) {
                            const uint8_t *p = u8 + i * (size_t)channels;
                            const bool color = channels >= 3;
                            const uint32_t r = p[color && bgr ? 2 : 0], g = p[color], b = p[color && !bgr ? 2 : 0];
                            plane[i] = (uint8_t)(!color                   ? p[0]
                                                 : pick == THEO_PICK_LUMA ? (19595 * r + 38470 * g + 7471 * b + 32768) >> 16
                                                 : c == 0                 ? r
                                                 : c == 1                 ? g
                                                                          : b);
                        }
                        const theo_resize single = {W, H, OW, OH, 1, THEO_BILINEAR};
                        workspace = malloc(theo_resize_bytes(&single));
                        theo_resize_u8(&single, want, OW, plane, W, workspace);
                        free(workspace);
                        for (int i = 0; i < OW * OH; i++)
                            wrong += got[i * out + c] != want[i];
                    }
                    CHECK_MSG(wrong == 0, "channels %d pick %d type %d bgr %d: %d samples differ", channels, pick, type, bgr,
                              wrong);
                }
}

/* Floats: clamped, rounded half to even, refused when not finite. */
static void test_floats(void) {
    static const struct {
        float in;
        int out;
    } cases[] = {{0.0f, 0},          {1.0f, 255},        {-3.0f, 0}, {7.5f, 255}, {0.5f, 128},   {0.1f, 26},
                 {1.5f / 255.0f, 2}, {2.5f / 255.0f, 2}, {-0.0f, 0}, {1e-30f, 0}, {0.998f, 254}, {0.9981f, 255}};
    enum { N = sizeof cases / sizeof *cases };
    float in[N];
    uint8_t out[N];
    const theo_row_rule rule = {.channels = 1, .type = THEO_F32, .pick = THEO_PICK_RED};
    for (int i = 0; i < N; i++)
        in[i] = cases[i].in;
    CHECK(theo_row_u8(out, in, N, &rule));
    for (int i = 0; i < N; i++)
        CHECK_MSG(out[i] == cases[i].out, "%g became %d, expected %d", (double)in[i], out[i], cases[i].out);
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        in[3] = bad[i];
        const theo_image image = {.width = N, .height = 1, .channels = 1, .type = THEO_F32, .pixels = in};
        const theo_plane job = {
            .image = &image, .pick = THEO_PICK_RED, .bgr = false, .width = 4, .height = 1, .filter = THEO_BILINEAR};
        void *workspace = malloc(theo_plane_bytes(&job));
        theo_error err;
        CHECK(theo_plane_resize(&job, out, workspace, &err) == THEO_ARGUMENT && strstr(err.message, "finite"));
        free(workspace);
    }
}

static void test_arguments(void) {
    theo_image *image, *out;
    theo_error err;
    CHECK(theo_image_new(&image, 4, 4, 3, THEO_U8, &err) == THEO_OK);
    CHECK(theo_image_resize(&out, image, 0, 4, THEO_BILINEAR, &err) == THEO_ARGUMENT && !out);
    CHECK(theo_image_resize(&out, image, 4, 4, (theo_filter)9, &err) == THEO_ARGUMENT && !out);
    CHECK(theo_image_resize(&out, NULL, 4, 4, THEO_BILINEAR, &err) == THEO_ARGUMENT && !out);
    theo_image_free(image);
    CHECK(theo_image_new(&image, 4, 4, 3, THEO_F32, &err) == THEO_OK);
    CHECK(theo_image_resize(&out, image, 8, 8, THEO_BILINEAR, &err) == THEO_ARGUMENT && !out);
    theo_image_free(image);
    CHECK(theo_image_new(&image, 0x7fffffff, 0x7fffffff, 4, THEO_F32, &err) == THEO_MEMORY && !image);
    CHECK(theo_image_new(&image, 4, 4, 5, THEO_U8, &err) == THEO_ARGUMENT && !image);
    theo_image_free(NULL);
}

int main(void) {
    test_against_pillow();
    test_strides_and_workspace();
    test_planes();
    test_floats();
    test_arguments();
    return t_done("test_resize");
}
