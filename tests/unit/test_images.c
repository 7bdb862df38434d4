/* The shared test images: all of them against Pillow's pixels, Exif orientation, the golden resize cases, and paths that are no
 * images. */
#include "formats/json.h"
#include "image_files.h"
#include "imageio/resize.h"
#include <sys/stat.h>
#include <unistd.h>

static const char *images, *golden;

/* "FOLDER/NAME"; a few of them live at once. */
static const char *join(const char *folder, const char *name) {
    static char paths[4][1024];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder, name);
    return paths[turn];
}

static void test_expected(void) {
    FILE *table = fopen("tests/data/images/expected.txt", "r");
    char line[512], name[256];
    int count = 0, refused = 0;
    CHECK(table != NULL);
    while (table && fgets(line, sizeof line, table)) {
        int width, height, channels;
        unsigned crc;
        const int fields = sscanf(line, "%255s %d %d %d %x", name, &width, &height, &channels, &crc);
        theo_image *image;
        theo_error err;
        const theo_status status = theo_image_load(&image, join(images, name), NULL, &err);
        if (fields != 5) {
            refused++;
            CHECK_MSG(status == THEO_CONTAINER || status == THEO_UNSUPPORTED || status == THEO_CHECKSUM, "%s: status %d", name,
                      (int)status);
            CHECK_MSG(is_clear(&err, name), "%s", err.message);
        } else {
            count++;
            CHECK_MSG(status == THEO_OK, "%s", err.message);
            if (image)
                CHECK_MSG(image->width == width && image->height == height && image->channels == channels &&
                              image_crc(image) == crc,
                          "%s: %d x %d x %d, CRC %08x; expected %d x %d x %d, %08x", name, image->width, image->height,
                          image->channels, image_crc(image), width, height, channels, crc);
        }
        theo_image_free(image);
    }
    CHECK(count >= 200 && refused == 17);
    if (table)
        fclose(table);
}

/* One landscape stored in all eight ways: upright they look alike, apart from the number drawn into each. */
static void test_orientation(void) {
    theo_image *first = NULL;
    for (int i = 1; i <= 8; i++) {
        char name[64];
        theo_decode_options options = decode_options();
        theo_image *image;
        theo_error err;
        snprintf(name, sizeof name, "decode/exif/Landscape_%d.jpg", i);
        options.orientation = THEO_ORIENTATION_APPLY;
        CHECK_MSG(theo_image_load(&image, join(images, name), &options, &err) == THEO_OK, "%s", err.message);
        if (!image)
            continue;
        CHECK(image->exif_orientation == i && image->width == 1800 && image->height == 1200);
        double difference = 0;
        const uint8_t *a = image->pixels, *b = first ? first->pixels : a;
        for (size_t k = 0; k < 1800 * 1200 * 3; k++)
            difference += abs(a[k] - b[k]);
        CHECK_MSG(difference / (1800 * 1200 * 3) < 6, "%s differs by %.2f from the first", name, difference / (1800 * 1200 * 3));
        if (first)
            theo_image_free(image);
        else
            first = image;
    }
    theo_image_free(first);

    theo_image *image;
    theo_error err;
    CHECK(theo_image_load(&image, join(images, "decode/exif/Landscape_0.jpg"), NULL, &err) == THEO_OK &&
          image->exif_orientation == 0);
    theo_image_free(image);
    CHECK(theo_image_load(&image, join(images, "decode/pngsuite/exif2c08.png"), NULL, &err) == THEO_OK &&
          image->exif_orientation == 1);
    theo_image_free(image);
}

/* ---------------------------------------------------------------- golden resize cases */

static const char *text(const theo_json *object, const char *key) {
    const theo_json *value = theo_json_get(object, key);
    return value && value->type == THEO_JSON_STRING ? value->string : "";
}

static int number(const theo_json *array, int index) {
    const theo_json *value = theo_json_at(array, index);
    return value ? (int)value->integer : 0;
}

static void check_plane(const theo_plane *job, const theo_json *c, const char *crc_key, const char *name) {
    uint8_t *out = malloc((size_t)job->width * (size_t)job->height);
    void *workspace = malloc(theo_plane_bytes(job));
    theo_error err;
    CHECK(theo_plane_resize(job, out, workspace, &err) == THEO_OK);
    const unsigned crc = (unsigned)crc32(0, out, (uInt)(job->width * job->height));
    CHECK_MSG(crc == strtoul(text(c, crc_key), NULL, 16), "%s: CRC %08x, expected %s", name, crc, text(c, crc_key));
    free(workspace);
    free(out);
}

/* A plane stored as .npy: its bytes follow a header whose length stands at byte 8. */
static void golden_plane(const theo_json *c) {
    const theo_json *test = theo_json_get(c, "test"), *input = theo_json_at(theo_json_get(test, "inputs"), 0);
    const theo_json *size = theo_json_get(theo_json_get(test, "options"), "size"), *shape = theo_json_get(input, "shape");
    size_t bytes;
    uint8_t *file = read_file(join(golden, text(input, "file")), &bytes);
    CHECK_MSG(file && bytes > 10, "%s", text(input, "file"));
    if (!file)
        return;
    const size_t start = 10u + file[8] + 256u * file[9];
    const theo_image image = {.width = number(shape, 1), .height = number(shape, 0), .channels = 1, .pixels = file + start};
    CHECK(bytes - start == (size_t)image.width * (size_t)image.height);
    const theo_plane job = {.image = &image,
                            .pick = THEO_PICK_RED,
                            .bgr = false,
                            .width = number(size, 1),
                            .height = number(size, 0),
                            .filter = THEO_BILINEAR};
    check_plane(&job, c, "out_crc32", text(c, "name"));
    free(file);
}

static void golden_photo(const theo_json *c) {
    const theo_json *size = theo_json_get(theo_json_get(theo_json_get(c, "test"), "options"), "size");
    for (int channels = THEO_CHANNELS_ALL; channels <= THEO_CHANNELS_RED; channels++) {
        theo_decode_options options = decode_options();
        theo_image *image;
        theo_error err;
        options.channels = (theo_channels)channels;
        CHECK_MSG(theo_image_load(&image, join(images, text(c, "image")), &options, &err) == THEO_OK, "%s", err.message);
        if (!image)
            continue;
        const theo_plane same = {.image = image,
                                 .pick = THEO_PICK_RED,
                                 .bgr = false,
                                 .width = image->width,
                                 .height = image->height,
                                 .filter = THEO_BILINEAR};
        const theo_plane resized = {.image = image,
                                    .pick = THEO_PICK_RED,
                                    .bgr = false,
                                    .width = number(size, 1),
                                    .height = number(size, 0),
                                    .filter = THEO_BILINEAR};
        check_plane(&same, c, "red_crc32", text(c, "image"));
        check_plane(&resized, c, "out_480x640_crc32", text(c, "image"));
        theo_image_free(image);
    }
}

static void test_golden(void) {
    size_t bytes;
    uint8_t *file = read_file(join(golden, "resize/index.json"), &bytes);
    theo_bump memory = {0};
    const theo_json *root = NULL;
    const theo_json_options options = {.file = "resize/index.json"};
    theo_error err;
    int count = 0;
    CHECK(file && theo_json_parse(&root, &memory, (const char *)file, bytes, &options, &err) == THEO_OK);
    const theo_json *cases = theo_json_get(root, "cases"), *photos = theo_json_get(root, "photos_to_480x640");
    for (const theo_json *c = cases ? cases->first : NULL; c; c = c->next, count++)
        golden_plane(c);
    for (const theo_json *c = photos ? photos->first : NULL; c; c = c->next, count++)
        golden_photo(c);
    CHECK(count >= 41);
    theo_bump_free(&memory);
    free(file);
}

/* ---------------------------------------------------------------- paths that are no images */

static void expect(const char *path, theo_status status, const char *words) {
    theo_image *image;
    theo_error err;
    const theo_status got = theo_image_load(&image, path, NULL, &err);
    CHECK_MSG(got == status && !image && strstr(err.message, words) && strstr(err.message, path), "%s: status %d: %s", path,
              (int)got, err.message);
}

static void write_bytes(const char *path, const char *data, size_t bytes) {
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(data, 1, bytes, f) == bytes);
    if (f)
        fclose(f);
}

static void test_paths(void) {
    static const struct {
        const char *data;
        size_t bytes;
        const char *words;
    } formats[] = {{"BMxxxxxxxx", 10, "BMP"},
                   {"GIF89axxxx", 10, "GIF"},
                   {"RIFFxxxxWEBPVP8 ", 16, "WebP"},
                   {"II*\0xxxx", 8, "TIFF"},
                   {"\0\0\0\x18"
                    "ftypheic",
                    12, "HEIC"},
                   {"\0\0\0\x18"
                    "ftypavif",
                    12, "AVIF"},
                   {"P6\n1 1\n255\nabc", 14, "PPM"},
                   {"%PDF-1.4", 8, "PDF"},
                   {"hello", 5, "not an image"},
                   {"\xff", 1, "not an image"}};
    char folder[] = "/tmp/theo-test-images-XXXXXX";
    if (!mkdtemp(folder))
        return;
    const char *path = join(folder, "photo.jpg");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        write_bytes(path, formats[i].data, formats[i].bytes);
        expect(path, THEO_UNSUPPORTED, formats[i].words);
    }
    write_bytes(path, "", 0);
    expect(path, THEO_CONTAINER, "empty");
    write_bytes(path, "\xff\xd8\xff", 3);
    expect(path, THEO_CONTAINER, "");
    if (geteuid() != 0 && chmod(path, 0) == 0)
        expect(path, THEO_IO, "opened");
    unlink(path);
    expect(path, THEO_MISSING, "No such file");
    expect(folder, THEO_IO, "directory");
    CHECK(rmdir(folder) == 0);
}

int main(void) {
    images = getenv("THEO_IMAGES") ? getenv("THEO_IMAGES") : "../shared/images";
    const char *all = getenv("THEO_GOLDEN") ? getenv("THEO_GOLDEN") : "../shared/golden";
    golden = strdup(join(all, "superpoint"));
    test_paths();
    if (access(join(images, "README.md"), R_OK) != 0)
        return t_failures ? t_done("test_images") : t_skip("test_images", "no shared images (THEO_IMAGES)");
    test_expected();
    test_orientation();
    if (access(join(golden, "resize/index.json"), R_OK) == 0)
        test_golden();
    free((void *)golden);
    return t_done("test_images");
}
