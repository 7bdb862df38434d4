/* image.h - decode, orient and resize photos; encode PNG. Links with libtheo. See theo.h for the rules that hold everywhere. */
#ifndef THEO_IMAGE_H
#define THEO_IMAGE_H

#include <theo/theo.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum theo_orientation { THEO_ORIENTATION_IGNORE = 0, THEO_ORIENTATION_APPLY } theo_orientation;

/* What is kept of a colour picture: a network that reads one plane needs no memory for the others. */
typedef enum theo_channels {
    THEO_CHANNELS_ALL = 0,
    THEO_CHANNELS_RED, /* one channel: red; a gray picture as it is */
    THEO_CHANNELS_LUMA /* one channel: (19595 R + 38470 G + 7471 B + 32768) >> 16, as Pillow's L; a gray picture as it is */
} theo_channels;

typedef struct theo_decode_options {
    size_t size;
    theo_orientation orientation; /* EXIF; default ignore */
    bool allow_truncated;         /* false: a JPEG that ends early is an error */
    int64_t max_pixels;           /* 100,000,000; checked from the header before anything is allocated */
    bool keep_16_bit;             /* false: 16-bit samples become their top 8 bits, as the keypoint networks want */
    bool keep_alpha;              /* false: alpha is dropped without compositing; true: kept where the file has it */
    theo_channels channels;       /* all; with red and luma the whole picture is never held in colour */
} theo_decode_options;

THEO_API void theo_decode_options_init(theo_decode_options *options);

/* JPEG (gray, RGB, YCbCr, CMYK, YCCK; baseline, progressive, arithmetic) or PNG (all kinds), told by magic number, never by name.
 * Gives 1 (gray) or 3 (RGB) channels, 2 or 4 with keep_alpha; palettes are expanded; CMYK becomes RGB by Pillow's integer
 * formula. Peak memory: the pixels kept, a few rows, and for progressive JPEG its coefficients (2 bytes for each sample). Errors:
 * io (file), container (broken), checksum (PNG), unsupported (other formats, 12-bit JPEG), bounds (max_pixels), memory. */
THEO_API theo_status theo_image_load(theo_image **image, const char *path, const theo_decode_options *options, theo_error *err);

/* The same from memory; `name` stands in error messages and may be NULL. */
THEO_API theo_status theo_image_decode(theo_image **image, const void *data, size_t bytes, const char *name,
                                       const theo_decode_options *options, theo_error *err);

typedef enum theo_filter { THEO_BILINEAR = 0, THEO_BICUBIC, THEO_LANCZOS } theo_filter;

/* U8 images of 1 to 4 channels: bit-exact to Pillow 9.4 (antialiased when shrinking, horizontal pass first). */
THEO_API theo_status theo_image_resize(theo_image **out, const theo_image *in, int width, int height, theo_filter filter,
                                       theo_error *err);

/* A new image of that size and kind with zeroed pixels; write through theo_image_pixels. */
THEO_API theo_status theo_image_new(theo_image **image, int width, int height, int channels, theo_pixel type, theo_error *err);

/* Writable pixels of an image that the library allocated; NULL for one over caller memory. */
THEO_API void *theo_image_pixels(theo_image *image);

/* A text chunk to be stored with a PNG: Latin-1 keyword (1 to 79 characters) and text (1 at least). */
typedef struct theo_png_text {
    const char *keyword, *text;
} theo_png_text;

/* Writes an 8- or 16-bit PNG of 1 to 4 channels: beside `path` first, then renamed, so that no half-written file is ever seen.
 * Made fast rather than small. pool: may be NULL; the bytes do not depend on it. */
THEO_API theo_status theo_image_save_png(const theo_image *image, const char *path, const theo_png_text *texts, int text_count,
                                         theo_pool *pool, theo_error *err);

/* A baseline JPEG into memory: gray or colour by the image (alpha is dropped, 16-bit samples give their top 8 bits), colours at
 * full resolution. quality: 1 to 100. Release *data with theo_buffer_free. */
THEO_API theo_status theo_image_encode_jpeg(const theo_image *image, int quality, void **data, size_t *bytes, theo_error *err);

/* A new RGB image of 8 bits: gray repeated, alpha dropped, 16-bit samples by their top 8 bits, floats rounded. */
THEO_API theo_status theo_image_to_rgb(theo_image **out, const theo_image *image, theo_error *err);

/* PNG into memory; release *data with theo_buffer_free. */
THEO_API theo_status theo_image_encode_png(const theo_image *image, const theo_png_text *texts, int text_count, theo_pool *pool,
                                           void **data, size_t *bytes, theo_error *err);
THEO_API void theo_buffer_free(void *data);

#ifdef __cplusplus
}
#endif
#endif
