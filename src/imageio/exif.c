/* exif.c - see exif.h. Layout: TIFF 6.0 section 2; tags: Exif 2.32 (CIPA DC-008). */
#include "imageio/exif.h"

enum { TAG_ORIENTATION = 0x0112, TAG_EXIF_IFD = 0x8769, TAG_FOCAL_35MM = 0xA405 };
enum { TYPE_SHORT = 3, TYPE_LONG = 4 };

typedef struct block {
    const uint8_t *data;
    size_t bytes;
    bool big_endian;
} block;

static uint32_t u16_at(const block *b, size_t at) {
    const uint8_t *p = b->data + at;
    return b->big_endian ? (uint32_t)p[0] << 8 | p[1] : (uint32_t)p[1] << 8 | p[0];
}

static uint32_t u32_at(const block *b, size_t at) {
    const uint32_t first = u16_at(b, at), second = u16_at(b, at + 2);
    return b->big_endian ? first << 16 | second : second << 16 | first;
}

/* The value of a tag in the directory at `ifd`, given as one SHORT or LONG; 0 if it is not there or anything is out of range.
 * A directory: u16 count, then entries of 12 bytes: u16 tag, u16 type, u32 count, value. */
static uint32_t find(const block *b, size_t ifd, uint32_t tag) {
    if (ifd < 8 || ifd > b->bytes || b->bytes - ifd < 2)
        return 0;
    const size_t count = u16_at(b, ifd);
    for (size_t i = 0, at = ifd + 2; i < count && b->bytes - at >= 12; i++, at += 12) {
        if (u16_at(b, at) != tag || u32_at(b, at + 4) != 1)
            continue;
        const uint32_t type = u16_at(b, at + 2);
        return type == TYPE_SHORT ? u16_at(b, at + 8) : type == TYPE_LONG ? u32_at(b, at + 8) : 0;
    }
    return 0;
}

theo_exif theo_exif_parse(const uint8_t *data, size_t bytes) {
    theo_exif exif = {0};
    block b = {data, bytes, false};
    if (bytes < 8 || data[0] != data[1] || (data[0] != 'I' && data[0] != 'M'))
        return exif;
    b.big_endian = data[0] == 'M';
    if (u16_at(&b, 2) != 42)
        return exif;

    const size_t ifd0 = u32_at(&b, 4);
    const uint32_t orientation = find(&b, ifd0, TAG_ORIENTATION);
    const uint32_t focal = find(&b, find(&b, ifd0, TAG_EXIF_IFD), TAG_FOCAL_35MM);
    exif.orientation = orientation <= 8 ? (int)orientation : 0;
    exif.focal_35mm = focal <= UINT16_MAX ? (int)focal : 0;
    return exif;
}
