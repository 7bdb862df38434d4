/* jpeg.c - JPEG by libjpeg-turbo, through its libjpeg interface: rows arrive one by one, so that a plane can be kept of a picture
 * whose colours would not fit in memory, every warning comes with its number, and scans can be counted.
 *
 * The settings are the ones of Pillow: the accurate integer DCT and "fancy" upsampling of the chroma, both the library's
 * defaults. */
#include "base/error.h"
#include "imageio/decode.h"
#include "imageio/exif.h"
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

/* A progressive file may hold any number of scans, each of which goes over the whole picture, so that some kilobytes can keep a
 * machine busy for hours. Encoders make about ten scans. */
enum { MAX_SCANS = 100 };

typedef struct reader {
    struct jpeg_decompress_struct lib;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    theo_decoder *to;
    theo_error *err;
    theo_status status; /* of a failure that is not the library's; else THEO_OK */
    int damage;         /* message code of the first warning that means wrong pixels, or 0 */
    uint8_t *row;       /* a row as the library gives it */
    uint8_t *rgb;       /* CMYK only: the row converted */
} reader;

/* The library casts its own structs the same way. */
static reader *reader_of(j_common_ptr lib) {
    return (reader *)(void *)lib;
}

/* ---------------------------------------------------------------- errors */

static theo_status status_of(int code) {
    switch (code) {
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE:
        return THEO_MEMORY;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_CCIR601_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_EMPTY_IMAGE:
        return THEO_UNSUPPORTED;
    default:
        return THEO_CONTAINER;
    }
}

static void on_error(j_common_ptr lib) {
    reader *r = reader_of(lib);
    char text[JMSG_LENGTH_MAX];
    lib->err->format_message(lib, text);
    if (lib->err->msg_code == JERR_BAD_PRECISION)
        snprintf(text, sizeof text, "a JPEG of %d bits a sample; 8 bits are read", lib->err->msg_parm.i[0]);
    r->status = theo_fail(r->err, status_of(lib->err->msg_code), r->to->name, "JPEG", "%s", text);
    longjmp(r->escape, 1);
}

/* Warnings (level -1) that mean wrong pixels. The rest (odd headers, bytes between segments) is harmless. */
static bool is_damage(int code) {
    return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_ARITH_BAD_CODE ||
           code == JWRN_MUST_RESYNC;
}

static void on_message(j_common_ptr lib, int level) {
    reader *r = reader_of(lib);
    if (level >= 0 || !is_damage(lib->err->msg_code) || r->damage)
        return;
    r->damage = lib->err->msg_code;
    if (r->to->options.allow_truncated)
        return;
    if (r->damage == JWRN_JPEG_EOF) {
        r->status = theo_fail(r->err, THEO_CONTAINER, r->to->name, "JPEG",
                              "the file is truncated: it ends before its picture does (allow-truncated decodes what there is)");
    } else {
        char text[JMSG_LENGTH_MAX];
        lib->err->format_message(lib, text);
        r->status = theo_fail(r->err, THEO_CONTAINER, r->to->name, "JPEG", "%s (allow-truncated decodes what there is)", text);
    }
    longjmp(r->escape, 1);
}

static void on_output(j_common_ptr lib) {
    (void)lib;
}

static void on_progress(j_common_ptr lib) {
    reader *r = reader_of(lib);
    if (r->lib.input_scan_number <= MAX_SCANS)
        return;
    r->status = theo_fail(r->err, THEO_BOUNDS, r->to->name, "JPEG", "more than %d scans: no encoder makes that many", MAX_SCANS);
    longjmp(r->escape, 1);
}

/* ---------------------------------------------------------------- metadata and colours */

static void read_exif(const struct jpeg_decompress_struct *lib, theo_image *image) {
    for (jpeg_saved_marker_ptr m = lib->marker_list; m; m = m->next) {
        if (m->marker != JPEG_APP0 + 1 || m->data_length < 6 || memcmp(m->data, "Exif\0\0", 6) != 0)
            continue;
        const theo_exif exif = theo_exif_parse(m->data + 6, m->data_length - 6);
        image->exif_orientation = exif.orientation;
        image->exif_focal_35mm = exif.focal_35mm;
        return;
    }
}

/* Pillow's rule, which takes every CMYK file for an inverted one, as Adobe writes them: a stored v stands for an ink of 255 - v.
 * R = k - round(C k / 255) with k = 255 - K. */
static void rgb_from_cmyk(uint8_t *rgb, const uint8_t *cmyk, int count) {
    for (int i = 0; i < count; i++, rgb += 3, cmyk += 4) {
        const uint32_t k = cmyk[3];
        for (int c = 0; c < 3; c++) {
            const uint32_t t = (255u - cmyk[c]) * k + 128;
            rgb[c] = (uint8_t)(k - ((t + (t >> 8)) >> 8));
        }
    }
}

/* ---------------------------------------------------------------- decoding */

static void give_up(reader *r, theo_status status) {
    r->status = status;
    longjmp(r->escape, 1);
}

static void read_header(reader *r) {
    struct jpeg_decompress_struct *lib = &r->lib;
    jpeg_mem_src(lib, r->to->data, r->to->bytes);
    jpeg_save_markers(lib, JPEG_APP0 + 1, 0xffff);
    jpeg_read_header(lib, TRUE);

    int channels = 3;
    if (lib->num_components == 1) {
        channels = 1;
        lib->out_color_space = JCS_GRAYSCALE;
    } else if (lib->num_components == 3) {
        lib->out_color_space = JCS_RGB;
    } else if (lib->num_components == 4) {
        lib->out_color_space = JCS_CMYK;
    } else {
        give_up(r, theo_fail(r->err, THEO_UNSUPPORTED, r->to->name, "JPEG",
                             "%d components; 1 (gray), 3 (colour) and 4 (CMYK) are read", lib->num_components));
    }
    const theo_status status =
        theo_decoder_begin(r->to, (int)lib->image_width, (int)lib->image_height, channels, THEO_U8, r->err);
    if (status)
        give_up(r, status);
    read_exif(lib, r->to->image);
    r->to->image->format = "jpeg";
}

static void read_rows(reader *r) {
    struct jpeg_decompress_struct *lib = &r->lib;
    const bool cmyk = lib->out_color_space == JCS_CMYK;
    jpeg_start_decompress(lib);
    r->row = theo_alloc(lib->output_width, (size_t)lib->output_components);
    r->rgb = cmyk ? theo_alloc(lib->output_width, 3) : NULL;
    if (!r->row || (cmyk && !r->rgb))
        give_up(r, theo_fail(r->err, THEO_MEMORY, r->to->name, "JPEG", "no memory for a row of %u pixels", lib->output_width));

    while (lib->output_scanline < lib->output_height) {
        const int y = (int)lib->output_scanline;
        uint8_t *place = cmyk ? NULL : theo_decoder_place(r->to, y);
        JSAMPROW row = place ? place : r->row;
        jpeg_read_scanlines(lib, &row, 1);
        if (cmyk)
            rgb_from_cmyk(r->rgb, r->row, (int)lib->output_width);
        if (!place)
            theo_decoder_take(r->to, y, cmyk ? r->rgb : r->row, 0, 1);
    }
    r->to->image->truncated = r->damage != 0;
}

/* Apart from its caller, since locals that change after setjmp would be lost. */
static void decode(reader *r) {
    if (setjmp(r->escape))
        return;
    jpeg_create_decompress(&r->lib);
    r->lib.progress = &r->progress;
    read_header(r);
    read_rows(r);
}

theo_status theo_jpeg_decode(theo_decoder *d, theo_error *err) {
    reader *r = theo_alloc(1, sizeof *r);
    if (!r)
        return theo_fail(err, THEO_MEMORY, d->name, NULL, "no memory for a JPEG decoder");
    r->to = d;
    r->err = err;
    r->lib.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = on_error;
    r->errors.emit_message = on_message;
    r->errors.output_message = on_output;
    r->progress.progress_monitor = on_progress;

    decode(r);

    jpeg_destroy_decompress(&r->lib);
    const theo_status status = r->status;
    theo_free(r->row);
    theo_free(r->rgb);
    theo_free(r);
    return status;
}
