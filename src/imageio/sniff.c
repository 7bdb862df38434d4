/* sniff.c - see sniff.h. */
#include "imageio/sniff.h"
#include "base/error.h"
#include <string.h>

#define PNG_SIGNATURE "\x89PNG\r\n\x1a\n"

static bool has(const uint8_t *data, size_t bytes, size_t at, const char *magic, size_t length) {
    return bytes >= at + length && memcmp(data + at, magic, length) == 0;
}

theo_format theo_sniff(const uint8_t *data, size_t bytes) {
    if (has(data, bytes, 0, "\xff\xd8\xff", 3))
        return THEO_FORMAT_JPEG;
    if (has(data, bytes, 0, PNG_SIGNATURE, 8))
        return THEO_FORMAT_PNG;
    return THEO_FORMAT_OTHER;
}

/* Formats that people do hand in. */
static const struct {
    size_t at, length;
    const char *magic, *what;
} others[] = {
    {0, 2, "BM", "a BMP image"},
    {0, 4, "GIF8", "a GIF image"},
    {8, 4, "WEBP", "a WebP image"},
    {4, 8, "ftypheic", "an HEIC image"},
    {4, 8, "ftypheix", "an HEIC image"},
    {4, 8, "ftypmif1", "an HEIF image"},
    {4, 8, "ftypmsf1", "an HEIF image"},
    {4, 8, "ftypavif", "an AVIF image"},
    {4, 8, "ftypcrx ", "a Canon CR3 raw image"},
    {4, 4, "ftyp", "an MP4 or QuickTime film"},
    {0, 4, "II*\0", "a TIFF or raw camera image"},
    {0, 4, "MM\0*", "a TIFF or raw camera image"},
    {0, 4, "II+\0", "a BigTIFF image"},
    {0, 4, "MM\0+", "a BigTIFF image"},
    {0, 12, "\0\0\0\x0cJXL \r\n\x87\n", "a JPEG XL image"},
    {0, 2, "\xff\x0a", "a JPEG XL image"},
    {0, 12, "\0\0\0\x0cjP  \r\n\x87\n", "a JPEG 2000 image"},
    {0, 4, "\xff\x4f\xff\x51", "a JPEG 2000 codestream"},
    {0, 4, "8BPS", "a Photoshop document"},
    {0, 4, "\x76\x2f\x31\x01", "an OpenEXR image"},
    {0, 2, "#?", "a Radiance HDR image"},
    {0, 4, "qoif", "a QOI image"},
    {0, 4, "DDS ", "a DDS texture"},
    {0, 4, "\x8aMNG", "an MNG animation"},
    {0, 4, "%PDF", "a PDF document"},
    {0, 4, "PK\x03\x04", "a zip archive"},
    {0, 3, "\x1f\x8b\x08", "a gzip file"},
    {0, 6, "\x93NUMPY", "a NumPy array"},
    {0, 5, "<?xml", "an XML or SVG document"},
    {0, 4, "<svg", "an SVG drawing"},
    {0, 9, "<!DOCTYPE", "a web page"},
    {0, 5, "<html", "a web page"},
};

/* P1 to P6, Pf, PF and white space. */
static bool is_netpbm(const uint8_t *data, size_t bytes) {
    return bytes >= 3 && data[0] == 'P' && ((data[1] >= '1' && data[1] <= '7') || data[1] == 'f' || data[1] == 'F') &&
           (data[2] == '\n' || data[2] == ' ' || data[2] == '\r' || data[2] == '\t');
}

theo_status theo_sniff_refuse(const uint8_t *data, size_t bytes, const char *name, theo_error *err) {
    static const char *const advice = "JPEG and PNG are read: please convert it";
    if (has(data, bytes, 1, "PNG", 3) || has(data, bytes, 0, "\x89PN", 3) || has(data, bytes, 4, "\r\n\x1a\n", 4))
        return theo_fail(err, THEO_CONTAINER, name, "signature",
                         "a PNG image whose first eight bytes are damaged, perhaps by a transfer as text");
    if (is_netpbm(data, bytes))
        return theo_fail(err, THEO_UNSUPPORTED, name, NULL, "is a PBM, PGM, PPM or PFM image; %s", advice);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (has(data, bytes, others[i].at, others[i].magic, others[i].length))
            return theo_fail(err, THEO_UNSUPPORTED, name, NULL, "is %s; %s", others[i].what, advice);
    return theo_fail(err, THEO_UNSUPPORTED, name, NULL, "is not an image of a known format; JPEG and PNG are read");
}
