/* PNG: every colour type, depth, filter and both interlacings, made here from a formula; then everything that can be wrong with a
 * file. */
#include "image_files.h"

/* ---------------------------------------------------------------- a small PNG writer of our own */

enum { GRAY = 0, RGB = 2, INDEXED = 3, GRAY_ALPHA = 4, RGBA = 6 };

typedef struct png {
    uint8_t *data;
    size_t bytes;
} png;

static void put(png *p, const void *data, size_t bytes) {
    p->data = realloc(p->data, p->bytes + bytes);
    if (!p->data)
        abort();
    if (bytes)
        memcpy(p->data + p->bytes, data, bytes);
    p->bytes += bytes;
}

static void put_u32(png *p, uint32_t v) {
    const uint8_t b[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    put(p, b, 4);
}

static void chunk(png *p, const char *type, const void *data, size_t bytes) {
    put_u32(p, (uint32_t)bytes);
    put(p, type, 4);
    put(p, data, bytes);
    put_u32(p, (uint32_t)crc32(0, p->data + p->bytes - bytes - 4, (uInt)bytes + 4));
}

typedef struct layout {
    int width, height, depth, type, interlaced;
} layout;

static png start(layout l) {
    png p = {0};
    put(&p, "\x89PNG\r\n\x1a\n", 8);
    const uint8_t head[13] = {(uint8_t)(l.width >> 24),
                              (uint8_t)(l.width >> 16),
                              (uint8_t)(l.width >> 8),
                              (uint8_t)l.width,
                              (uint8_t)(l.height >> 24),
                              (uint8_t)(l.height >> 16),
                              (uint8_t)(l.height >> 8),
                              (uint8_t)l.height,
                              (uint8_t)l.depth,
                              (uint8_t)l.type,
                              0,
                              0,
                              (uint8_t)l.interlaced};
    chunk(&p, "IHDR", head, sizeof head);
    return p;
}

static int channels_of(int type) {
    return type == RGB ? 3 : type == GRAY_ALPHA ? 2 : type == RGBA ? 4 : 1;
}

/* The formula: sample c of pixel (x, y), of `depth` bits. */
static unsigned sample(layout l, int x, int y, int c) {
    uint32_t h = (uint32_t)x * 2654435761u ^ (uint32_t)y * 2246822519u ^ (uint32_t)c * 3266489917u;
    h ^= h >> 15;
    h *= 2246822519u;
    return (h >> 8) & ((1u << l.depth) - 1);
}

static uint8_t paeth(int a, int b, int c) {
    const int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);
    return (uint8_t)(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

/* Rows of one pass, filtered by each type in turn. */
static void put_pass(png *raw, layout l, int x0, int dx, int y0, int dy) {
    const int bits = l.depth * channels_of(l.type), columns = (l.width - x0 + dx - 1) / dx, back = bits < 8 ? 1 : bits / 8;
    const int bytes = (columns * bits + 7) / 8;
    uint8_t *above = calloc((size_t)bytes + 8, 1), *row = calloc((size_t)bytes + 8, 1);
    for (int y = y0; columns > 0 && y < l.height; y += dy) {
        memset(row, 0, (size_t)bytes);
        for (int i = 0, bit = 0; i < columns; i++)
            for (int c = 0; c < channels_of(l.type); c++, bit += l.depth) {
                const unsigned v = sample(l, x0 + i * dx, y, c);
                if (l.depth == 16) {
                    row[bit / 8] = (uint8_t)(v >> 8);
                    row[bit / 8 + 1] = (uint8_t)v;
                } else {
                    row[bit / 8] |= (uint8_t)(v << (8 - l.depth - bit % 8));
                }
            }
        const uint8_t filter = (uint8_t)((y / dy) % 5);
        put(raw, &filter, 1);
        for (int i = 0; i < bytes; i++) {
            const int a = i >= back ? row[i - back] : 0, b = above[i], c = i >= back ? above[i - back] : 0;
            const int guess = filter == 0 ? 0 : filter == 1 ? a : filter == 2 ? b : filter == 3 ? (a + b) / 2 : paeth(a, b, c);
            const uint8_t byte = (uint8_t)(row[i] - guess);
            put(raw, &byte, 1);
        }
        uint8_t *swap = above;
        above = row;
        row = swap;
    }
    free(above);
    free(row);
}

static void finish(png *p, layout l) {
    static const int x0[] = {0, 4, 0, 2, 0, 1, 0}, dx[] = {8, 8, 4, 4, 2, 2, 1}, y0[] = {0, 0, 4, 0, 2, 0, 1},
                     dy[] = {8, 8, 8, 4, 4, 2, 2};
    png raw = {0};
    if (l.interlaced)
        for (int i = 0; i < 7; i++)
            put_pass(&raw, l, x0[i], dx[i], y0[i], dy[i]);
    else
        put_pass(&raw, l, 0, 1, 0, 1);
    uLongf bytes = compressBound(raw.bytes);
    uint8_t *packed = malloc(bytes);
    if (!packed || compress(packed, &bytes, raw.data, raw.bytes) != Z_OK)
        abort();
    /* In two chunks, as large files have many. */
    chunk(p, "IDAT", packed, bytes / 3);
    chunk(p, "IDAT", packed + bytes / 3, bytes - bytes / 3);
    chunk(p, "IEND", NULL, 0);
    free(packed);
    free(raw.data);
}

static uint8_t palette[256 * 3], palette_alpha[200];

static void put_palette(png *p, layout l) {
    for (size_t i = 0; i < sizeof palette; i++)
        palette[i] = (uint8_t)(i * 37 + 11);
    for (size_t i = 0; i < sizeof palette_alpha; i++)
        palette_alpha[i] = (uint8_t)(i * 5);
    chunk(p, "PLTE", palette, 3u << l.depth);
}

/* ---------------------------------------------------------------- reading it back */

static theo_image *decode(const png *p, const theo_decode_options *options, theo_error *err) {
    uint8_t *exact = malloc(p->bytes ? p->bytes : 1);
    theo_image *image;
    memcpy(exact, p->data, p->bytes);
    const theo_status status = theo_image_decode(&image, exact, p->bytes, "made.png", options, err);
    CHECK((status == THEO_OK) == (image != NULL));
    CHECK(status != THEO_INTERNAL);
    free(exact);
    return image;
}

static unsigned read_sample(const theo_image *image, int x, int y, int c) {
    const uint8_t *row = (const uint8_t *)image->pixels + (size_t)y * image->row_bytes;
    const size_t i = (size_t)x * (size_t)image->channels + (size_t)c;
    return image->type == THEO_U16 ? ((const uint16_t *)(const void *)row)[i] : row[i];
}

/* Sample c (3 = alpha) of pixel (x, y) as the decoder should give it; key: the transparent colour's pixel is at (key, 0), or -1.
 */
static unsigned want(layout l, int x, int y, int c, bool wide, int key) {
    if (l.type == INDEXED) {
        const unsigned i = sample(l, x, y, 0);
        return c < 3 ? palette[3 * i + (unsigned)c] : i < sizeof palette_alpha ? palette_alpha[i] : 255;
    }
    const bool gray = l.type == GRAY || l.type == GRAY_ALPHA, has_alpha = l.type == GRAY_ALPHA || l.type == RGBA;
    unsigned v;
    if (c == 3 && !has_alpha) {
        bool same = key >= 0;
        for (int k = 0; k < channels_of(l.type) && same; k++)
            same = sample(l, x, y, k) == sample(l, key, 0, k);
        v = same ? 0 : wide ? 65535 : 255;
        return v;
    }
    v = sample(l, x, y, gray ? (c == 3) : c);
    if (l.depth == 16)
        return wide ? v : v >> 8;
    return v * 255 / ((1u << l.depth) - 1);
}

static void compare(layout l, const theo_image *image, bool wide, int key, const char *what) {
    const int colors = image->channels <= 2 ? 1 : 3;
    int wrong = 0;
    for (int y = 0; y < l.height; y++)
        for (int x = 0; x < l.width; x++)
            for (int c = 0; c < image->channels; c++)
                wrong += read_sample(image, x, y, c) != want(l, x, y, c < colors ? c : 3, wide, key);
    CHECK_MSG(wrong == 0, "type %d depth %d interlaced %d %d x %d %s: %d samples differ", l.type, l.depth, l.interlaced, l.width,
              l.height, what, wrong);
}

static void test_one(layout l, bool with_trns) {
    png p = start(l);
    const bool alpha = l.type == GRAY_ALPHA || l.type == RGBA || with_trns;
    const int key = with_trns && l.type != INDEXED ? l.width - 1 : -1;
    if (l.type == INDEXED)
        put_palette(&p, l);
    if (with_trns) {
        uint8_t colors[6];
        for (int c = 0; c < channels_of(l.type); c++) {
            colors[2 * c] = (uint8_t)(sample(l, l.width - 1, 0, c) >> 8);
            colors[2 * c + 1] = (uint8_t)sample(l, l.width - 1, 0, c);
        }
        const size_t entries = (1u << l.depth) < sizeof palette_alpha ? 1u << l.depth : sizeof palette_alpha;
        if (l.type == INDEXED)
            chunk(&p, "tRNS", palette_alpha, entries);
        else
            chunk(&p, "tRNS", colors, 2 * (size_t)channels_of(l.type));
    }
    finish(&p, l);

    const int colors = l.type == GRAY || l.type == GRAY_ALPHA ? 1 : 3;
    for (int mode = 0; mode < 4; mode++) {
        theo_decode_options options = decode_options();
        theo_error err;
        options.keep_16_bit = mode & 1;
        options.keep_alpha = mode & 2;
        theo_image *image = decode(&p, &options, &err);
        CHECK_MSG(image, "%s", err.message);
        if (!image)
            continue;
        const bool wide = options.keep_16_bit && l.depth == 16;
        CHECK(image->channels == colors + (options.keep_alpha && alpha) && image->type == (wide ? THEO_U16 : THEO_U8));
        CHECK_STR(image->format, "png");
        compare(l, image, wide, key, with_trns ? "tRNS" : "");
        theo_image_free(image);
    }
    for (int channels = THEO_CHANNELS_RED; channels <= THEO_CHANNELS_LUMA; channels++) {
        theo_decode_options options = decode_options();
        theo_error err;
        int wrong = 0;
        options.channels = (theo_channels)channels;
        theo_image *image = decode(&p, &options, &err);
        CHECK(image && image->channels == 1);
        for (int y = 0; image && y < l.height; y++)
            for (int x = 0; x < l.width; x++) {
                const unsigned r = want(l, x, y, 0, false, -1), g = want(l, x, y, 1, false, -1), b = want(l, x, y, 2, false, -1);
                const bool luma = channels == THEO_CHANNELS_LUMA && colors == 3;
                wrong += read_sample(image, x, y, 0) != (luma ? (19595 * r + 38470 * g + 7471 * b + 32768) >> 16 : r);
            }
        CHECK_MSG(wrong == 0, "type %d depth %d plane %d: %d samples differ", l.type, l.depth, channels, wrong);
        theo_image_free(image);
    }
    free(p.data);
}

static void test_kinds(void) {
    static const int kinds[][2] = {{GRAY, 1},    {GRAY, 2},       {GRAY, 4},        {GRAY, 8},    {GRAY, 16},
                                   {RGB, 8},     {RGB, 16},       {INDEXED, 1},     {INDEXED, 2}, {INDEXED, 4},
                                   {INDEXED, 8}, {GRAY_ALPHA, 8}, {GRAY_ALPHA, 16}, {RGBA, 8},    {RGBA, 16}};
    static const int sizes[][2] = {{1, 1}, {1, 9}, {9, 1}, {5, 3}, {19, 23}, {32, 8}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int interlaced = 0; interlaced < 2; interlaced++) {
                const layout l = {sizes[s][0], sizes[s][1], kinds[k][1], kinds[k][0], interlaced};
                test_one(l, false);
                if (l.type <= INDEXED)
                    test_one(l, true);
            }
}

/* ---------------------------------------------------------------- files that are odd, or wrong */

static const layout small = {7, 5, 8, RGB, 0};

static void expect_error(png *p, theo_status status, const char *words) {
    theo_error err;
    theo_image *image = decode(p, NULL, &err);
    CHECK_MSG(!image && err.status == status && strstr(err.message, words), "%s: %s (wanted %s)", image ? "decoded" : "refused",
              image ? "" : err.message, words);
    theo_image_free(image);
    free(p->data);
}

static void expect_picture(png *p, layout l, const char *what) {
    theo_error err;
    theo_image *image = decode(p, NULL, &err);
    CHECK_MSG(image, "%s: %s", what, err.message);
    if (image)
        compare(l, image, false, -1, what);
    theo_image_free(image);
    free(p->data);
}

/* What stands between the head and the pixels is skipped unread. */
static void test_ancillary(void) {
    png p = start(small);
    enum { ZEROS = 64 << 20 };
    uint8_t *zeros = calloc(ZEROS, 1);
    uLongf bytes = compressBound(ZEROS);
    uint8_t *bomb = malloc(bytes + 16);
    memcpy(bomb, "name\0\0", 6);
    if (!zeros || !bomb || compress(bomb + 6, &bytes, zeros, ZEROS) != Z_OK)
        abort();
    for (int i = 0; i < 20; i++)
        chunk(&p, "zTXt", bomb, bytes + 6);
    chunk(&p, "iCCP", bomb, bytes + 6);
    chunk(&p, "acTL", "\0\0\0\2\0\0\0\0", 8);
    chunk(&p, "fcTL", bomb, 26);
    finish(&p, small);
    p.bytes -= 12; /* before IEND: the second frame of an animation */
    chunk(&p, "fdAT", bomb, 40);
    chunk(&p, "IEND", NULL, 0);
    free(zeros);
    free(bomb);
    expect_picture(&p, small, "with bombs and animation frames");

    p = start(small);
    chunk(&p, "gAMA", "x", 1);
    p.data[p.bytes - 1] ^= 1; /* CRC of a chunk that does not matter */
    chunk(&p, "tRNS", "broken", 3);
    finish(&p, small);
    expect_picture(&p, small, "with broken chunks that make no pixels");

    p = start(small);
    finish(&p, small);
    put(&p, "bytes after the end", 19);
    expect_picture(&p, small, "with bytes after the end");
}

static void test_exif(void) {
    static const uint8_t exif[] = {'I', 'I', 42, 0, 8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0};
    for (int behind = 0; behind < 2; behind++) {
        png p = start(small);
        theo_error err;
        theo_decode_options options = decode_options();
        options.orientation = THEO_ORIENTATION_APPLY;
        if (!behind)
            chunk(&p, "eXIf", exif, sizeof exif);
        finish(&p, small);
        if (behind) {
            p.bytes -= 12;
            chunk(&p, "eXIf", exif, sizeof exif);
            chunk(&p, "IEND", NULL, 0);
        }
        theo_image *image = decode(&p, &options, &err);
        CHECK(image && image->exif_orientation == 6 && image->orientation_applied && image->width == small.height);
        CHECK(image && read_sample(image, small.height - 1, 0, 0) == want(small, 0, 0, 0, false, -1));
        theo_image_free(image);
        free(p.data);
    }
}

static void test_wrong(void) {
    png p = start(small);
    finish(&p, small);
    for (size_t n = 0; n < p.bytes - 12; n++) {
        png cut = {p.data, n};
        theo_error err;
        CHECK_MSG(!decode(&cut, NULL, &err) && err.status != THEO_OK, "%zu of %zu bytes were taken for a picture", n, p.bytes);
    }
    for (size_t i = 8; i < p.bytes; i++) {
        theo_error err;
        p.data[i] ^= 0x55;
        theo_image *image = decode(&p, NULL, &err);
        CHECK(!image || i >= p.bytes - 12); /* every byte before IEND is covered by a CRC or by the structure */
        theo_image_free(image);
        p.data[i] ^= 0x55;
    }
    p.data[p.bytes - 12 - 1] ^= 1;
    expect_error(&p, THEO_CHECKSUM, "checksum");

    layout l = small;
    l.width = l.height = 0x7fffffff;
    p = start(l);
    expect_error(&p, THEO_BOUNDS, "max-pixels");
    p = start(l);
    chunk(&p, "IDAT", "", 0);
    expect_error(&p, THEO_BOUNDS, "max-pixels");
    l.width = l.height = 60000;
    p = start(l);
    chunk(&p, "IDAT", "", 0);
    expect_error(&p, THEO_BOUNDS, "60000 x 60000");
    l = small;
    l.width = 0;
    p = start(l);
    expect_error(&p, THEO_CONTAINER, "width");
    l = small;
    l.depth = 3;
    p = start(l);
    expect_error(&p, THEO_CONTAINER, "bit depth");

    l = (layout){7, 5, 8, INDEXED, 0};
    p = start(l);
    finish(&p, l);
    expect_error(&p, THEO_CONTAINER, "PLTE");
    p = start(small);
    chunk(&p, "CRIT", "?", 1);
    finish(&p, small);
    expect_error(&p, THEO_CONTAINER, "critical");
    p = start(small);
    chunk(&p, "IEND", NULL, 0);
    expect_error(&p, THEO_CONTAINER, "");
    l = small;
    l.height = 4;
    p = start(small);
    finish(&p, l); /* one row too few */
    expect_error(&p, THEO_CONTAINER, "");
    p = (png){0};
    put(&p, "\x89PNG\n\x1a\n\0\0\0\rIHDR", 15);
    expect_error(&p, THEO_CONTAINER, "transfer as text");
}

static void test_colors_missing_in_palette(void) {
    const layout l = {16, 16, 4, INDEXED, 0};
    png p = start(l);
    theo_error err;
    chunk(&p, "PLTE", "\x01\x02\x03\x04\x05\x06", 6);
    finish(&p, l);
    theo_image *image = decode(&p, NULL, &err);
    CHECK_MSG(image, "%s", err.message);
    int wrong = 0;
    for (int y = 0; image && y < l.height; y++)
        for (int x = 0; x < l.width; x++) {
            const unsigned i = sample(l, x, y, 0);
            wrong += read_sample(image, x, y, 1) != (i == 0 ? 2 : i == 1 ? 5 : i);
        }
    CHECK(wrong == 0);
    theo_image_free(image);
    free(p.data);
}

int main(void) {
    test_kinds();
    test_ancillary();
    test_exif();
    test_wrong();
    test_colors_missing_in_palette();
    return t_done("test_png");
}
