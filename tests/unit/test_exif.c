/* The Exif parser: tags in both byte orders, and blocks that lie about themselves. */
#include "imageio/exif.h"
#include "t.h"

/* Parses a copy of exactly that size. */
static theo_exif parse(const void *data, size_t bytes) {
    uint8_t *exact = malloc(bytes ? bytes : 1);
    memcpy(exact, data, bytes);
    const theo_exif exif = theo_exif_parse(exact, bytes);
    free(exact);
    return exif;
}

/* Directory at 8: orientation 6 (SHORT), Exif directory at 38: FocalLengthIn35mmFilm 28 (SHORT). */
static const uint8_t little[] = {'I', 'I', 42,   0,    8,    0, 0, 0, 2, 0, 0x12, 1,  3, 0, 1, 0, 0, 0, 6,
                                 0,   0,   0,    0x69, 0x87, 4, 0, 1, 0, 0, 0,    38, 0, 0, 0, 0, 0, 0, 0,
                                 1,   0,   0x05, 0xA4, 3,    0, 1, 0, 0, 0, 28,   0,  0, 0, 0, 0, 0, 0};
static const uint8_t big[] = {'M', 'M', 0,    42,   0,    0, 0, 8, 0, 2, 1, 0x12, 0, 3,  0,  0, 0, 1, 0,
                              6,   0,   0,    0x87, 0x69, 0, 4, 0, 0, 0, 1, 0,    0, 0,  38, 0, 0, 0, 0,
                              0,   1,   0xA4, 0x05, 0,    4, 0, 0, 0, 1, 0, 0,    0, 28, 0,  0, 0, 0};

int main(void) {
    theo_exif exif = parse(little, sizeof little);
    CHECK(exif.orientation == 6 && exif.focal_35mm == 28);
    exif = parse(big, sizeof big);
    CHECK(exif.orientation == 6 && exif.focal_35mm == 28);

    /* Cut anywhere: what is whole is read, nothing beyond the end. */
    for (size_t n = 0; n < sizeof little; n++) {
        exif = parse(little, n);
        CHECK(exif.orientation == (n >= 22 ? 6 : 0) && exif.focal_35mm == (n >= 52 ? 28 : 0));
    }
    uint8_t changed[sizeof little];
    for (size_t i = 0; i < sizeof little; i++)
        for (int v = 0; v < 256; v += 5) {
            memcpy(changed, little, sizeof little);
            changed[i] = (uint8_t)v;
            exif = parse(changed, sizeof changed);
            CHECK(exif.orientation >= 0 && exif.orientation <= 8 && exif.focal_35mm >= 0);
        }

    memcpy(changed, little, sizeof little);
    for (int v = 0; v <= 20; v++) {
        changed[18] = (uint8_t)v;
        CHECK(parse(changed, sizeof changed).orientation == (v <= 8 ? v : 0));
    }
    changed[18] = 6;
    changed[12] = 5; /* a RATIONAL */
    CHECK(parse(changed, sizeof changed).orientation == 0);
    changed[12] = 3;
    changed[14] = 2; /* two values */
    CHECK(parse(changed, sizeof changed).orientation == 0);
    changed[14] = 1;
    changed[4] = 0; /* a directory over the header */
    CHECK(parse(changed, sizeof changed).orientation == 0);
    changed[4] = 8;
    changed[30] = 8; /* the Exif directory is the first one again */
    CHECK(parse(changed, sizeof changed).orientation == 6 && parse(changed, sizeof changed).focal_35mm == 0);
    CHECK(parse("", 0).orientation == 0);
    CHECK(parse("IM*\0\10\0\0\0", 8).orientation == 0);
    return t_done("test_exif");
}
