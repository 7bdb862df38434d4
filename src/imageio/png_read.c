/* png_read.c - PNG by libspng, row by row.
 *
 * The library is shown the chunks that make pixels, and no others: texts, profiles and animation frames are skipped unread, so
 * that no compressed text can grow in memory and nothing broken in them matters. Samples are unpacked here, at the depth of the
 * file. */
#include "base/error.h"
#include "imageio/decode.h"
#include "imageio/exif.h"
#include <string.h>

#include <spng.h>

enum { SIGNATURE_BYTES = 8, CHUNK_FRAME = 12 /* length, type, CRC */ };

typedef struct chunk {
    const uint8_t *type; /* 4 letters; then the content */
    size_t bytes;        /* of the content, as the chunk says */
    size_t end;          /* where the next chunk starts, or past the end of the file */
} chunk;

/* The chunk at `at`; false if not even its head is there. */
static bool chunk_at(const theo_decoder *d, size_t at, chunk *c) {
    if (at > d->bytes || d->bytes - at < 8)
        return false;
    const uint8_t *p = d->data + at;
    c->bytes = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    c->type = p + 4;
    c->end = at + CHUNK_FRAME + c->bytes;
    return true;
}

static bool is(const chunk *c, const char *type) {
    return memcmp(c->type, type, 4) == 0;
}

static void read_exif(const theo_decoder *d, theo_image *image) {
    chunk c;
    for (size_t at = SIGNATURE_BYTES; chunk_at(d, at, &c) && c.end <= d->bytes; at = c.end) {
        if (!is(&c, "eXIf"))
            continue;
        const theo_exif exif = theo_exif_parse(c.type + 4, c.bytes);
        image->exif_orientation = exif.orientation;
        image->exif_focal_35mm = exif.focal_35mm;
        return;
    }
}

/* ---------------------------------------------------------------- the library's view of the file */

typedef struct feed {
    const theo_decoder *of;
    size_t at, end; /* next byte; end of the chunk that is being shown */
    bool with_alpha;
} feed;

static bool is_shown(const feed *f, const chunk *c) {
    const bool critical = !(c->type[0] & 0x20);
    return critical || (f->with_alpha && is(c, "tRNS"));
}

static int feed_read(spng_ctx *spng, void *user, void *to, size_t bytes) {
    feed *f = user;
    (void)spng;
    while (bytes) {
        if (f->at == f->end) {
            chunk c;
            if (!chunk_at(f->of, f->at, &c))
                return SPNG_IO_EOF;
            if (is_shown(f, &c))
                f->end = c.end;
            else
                f->at = f->end = c.end;
            continue;
        }
        const size_t end = f->end < f->of->bytes ? f->end : f->of->bytes;
        if (f->at >= end)
            return SPNG_IO_EOF;
        const size_t n = end - f->at < bytes ? end - f->at : bytes;
        memcpy(to, f->of->data + f->at, n);
        f->at += n;
        to = (uint8_t *)to + n;
        bytes -= n;
    }
    return 0;
}

/* ---------------------------------------------------------------- samples */

typedef struct picture {
    struct spng_ihdr head;
    struct spng_trns trns;
    bool has_trns;
    int channels;            /* of the unpacked rows */
    uint8_t palette[256][4]; /* R,G,B,A */
    size_t packed_bytes;     /* of a row as stored */
    void *packed, *row;
} picture;

static int stored_channels(const picture *p) {
    switch (p->head.color_type) {
    case SPNG_COLOR_TYPE_TRUECOLOR:
        return 3;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
        return 2;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA:
        return 4;
    default: /* gray or an index */
        return 1;
    }
}

static bool is_indexed(const picture *p) {
    return p->head.color_type == SPNG_COLOR_TYPE_INDEXED;
}

/* Sample i of a row of 1, 2, 4 or 8 bits, the first one in the highest bits of its byte. */
static inline uint32_t bits_at(const uint8_t *packed, size_t i, unsigned depth) {
    const size_t bit = i * depth;
    return (uint32_t)(packed[bit / 8] >> (8 - depth - bit % 8)) & ((1u << depth) - 1);
}

/* Colours that the palette lacks stay a gray ramp, as in Pillow. */
static void make_palette(picture *p, const struct spng_plte *plte) {
    for (uint32_t i = 0; i < 256; i++) {
        uint8_t *entry = p->palette[i];
        entry[0] = entry[1] = entry[2] = (uint8_t)i;
        entry[3] = 255;
        if (i < plte->n_entries)
            memcpy(entry, (uint8_t[]){plte->entries[i].red, plte->entries[i].green, plte->entries[i].blue}, 3);
        if (p->has_trns && i < p->trns.n_type3_entries)
            entry[3] = p->trns.type3_alpha[i];
    }
}

static void unpack_indexed(const picture *p) {
    uint8_t *to = p->row;
    const size_t channels = (size_t)p->channels;
    for (size_t x = 0; x < p->head.width; x++, to += channels)
        memcpy(to, p->palette[bits_at(p->packed, x, p->head.bit_depth)], channels);
}

/* Gray of 1, 2 and 4 bits: spread so that the largest value becomes 255. */
static void unpack_gray(const picture *p, uint8_t *to) {
    const uint32_t scale = 255u / ((1u << p->head.bit_depth) - 1);
    for (size_t x = 0; x < p->head.width; x++)
        to[x] = (uint8_t)(scale * bits_at(p->packed, x, p->head.bit_depth));
}

/* Adds the alpha channel of a picture that names one colour (at the depth of the file) as transparent. */
static void add_alpha(const picture *p) {
    const size_t n = p->head.width;
    const unsigned depth = p->head.bit_depth;
    if (p->channels == 2) {
        const uint32_t key = p->trns.gray;
        for (size_t x = 0; x < n; x++) {
            if (depth == 16) {
                const uint16_t v = ((const uint16_t *)p->packed)[x];
                memcpy((uint16_t *)p->row + 2 * x, (uint16_t[]){v, v == key ? 0 : 65535}, 4);
            } else {
                const uint32_t v = bits_at(p->packed, x, depth);
                memcpy((uint8_t *)p->row + 2 * x, (uint8_t[]){(uint8_t)(v * (255u / ((1u << depth) - 1))), v == key ? 0 : 255},
                       2);
            }
        }
        return;
    }
    for (size_t x = 0; x < n; x++) {
        if (depth == 16) {
            const uint16_t *v = (const uint16_t *)p->packed + 3 * x;
            const bool clear = v[0] == p->trns.red && v[1] == p->trns.green && v[2] == p->trns.blue;
            memcpy((uint16_t *)p->row + 4 * x, (uint16_t[]){v[0], v[1], v[2], clear ? 0 : 65535}, 8);
        } else {
            const uint8_t *v = (const uint8_t *)p->packed + 3 * x;
            const bool clear = v[0] == p->trns.red && v[1] == p->trns.green && v[2] == p->trns.blue;
            memcpy((uint8_t *)p->row + 4 * x, (uint8_t[]){v[0], v[1], v[2], clear ? 0 : 255}, 4);
        }
    }
}

/* The row as samples of 8 or 16 bits: p->packed itself where it is that already. */
static const void *unpack(const picture *p) {
    if (is_indexed(p))
        unpack_indexed(p);
    else if (p->has_trns)
        add_alpha(p);
    else if (p->head.bit_depth < 8)
        unpack_gray(p, p->row);
    else
        return p->packed;
    return p->row;
}

/* ---------------------------------------------------------------- decoding */

static theo_status fail(const theo_decoder *d, int code, theo_error *err) {
    switch (code) {
    case SPNG_EMEM:
        return theo_fail(err, THEO_MEMORY, d->name, "PNG", "no memory for its rows");
    case SPNG_EOVERFLOW:
        return theo_fail(err, THEO_BOUNDS, d->name, "header", "the picture is larger than any memory (limit max-pixels = %lld)",
                         (long long)d->options.max_pixels);
    case SPNG_ECHUNK_CRC:
        return theo_fail(err, THEO_CHECKSUM, d->name, "PNG",
                         "the checksum of a chunk does not fit its content: the file is damaged");
    case SPNG_IO_EOF:
    case SPNG_EOF:
        return theo_fail(err, THEO_CONTAINER, d->name, "PNG", "the file is truncated: it ends before its picture does");
    default:
        return theo_fail(err, THEO_CONTAINER, d->name, "PNG", "%s", spng_strerror(code));
    }
}

/* Adam7: where the pixels of a pass lie in their rows. */
static const int pass_first[7] = {0, 4, 0, 2, 0, 1, 0}, pass_step[7] = {8, 8, 4, 4, 2, 2, 1};

static theo_status decode(theo_decoder *d, spng_ctx *spng, picture *p, theo_error *err) {
    int code = spng_get_ihdr(spng, &p->head);
    if (code)
        return fail(d, code, err);
    if (p->head.width > INT32_MAX || p->head.height > INT32_MAX)
        return fail(d, SPNG_EWIDTH, err);
    if (d->options.keep_alpha && d->options.channels == THEO_CHANNELS_ALL)
        p->has_trns = spng_get_trns(spng, &p->trns) == 0;
    if (is_indexed(p)) {
        struct spng_plte plte;
        code = spng_get_plte(spng, &plte);
        if (code)
            return fail(d, code == SPNG_ECHUNKAVAIL ? SPNG_ENOPLTE : code, err);
        make_palette(p, &plte);
    }

    const unsigned depth = p->head.bit_depth;
    p->channels = (is_indexed(p) ? 3 : stored_channels(p)) + p->has_trns;
    THEO_TRY(theo_decoder_begin(d, (int)p->head.width, (int)p->head.height, p->channels, depth == 16 ? THEO_U16 : THEO_U8, err));
    read_exif(d, d->image);
    d->image->format = "png";

    p->packed_bytes = ((size_t)p->head.width * (size_t)stored_channels(p) * depth + 7) / 8;
    p->packed = theo_alloc(p->packed_bytes, 1);
    p->row = theo_alloc(p->head.width, (size_t)p->channels * 2);
    if (!p->packed || !p->row)
        return fail(d, SPNG_EMEM, err);

    code = spng_decode_image(spng, NULL, 0, SPNG_FMT_PNG, SPNG_DECODE_PROGRESSIVE);
    while (!code) {
        struct spng_row_info info;
        code = spng_get_row_info(spng, &info);
        if (code)
            break;
        /* The library adds the bits of interlaced samples smaller than a byte to what is there. */
        if (p->head.interlace_method && depth < 8)
            memset(p->packed, 0, p->packed_bytes);
        code = spng_decode_row(spng, p->packed, p->packed_bytes);
        if (code && code != SPNG_EOI)
            break;
        const int pass = p->head.interlace_method ? info.pass : 6;
        theo_decoder_take(d, (int)info.row_num, unpack(p), pass_first[pass], pass_step[pass]);
    }
    if (code != SPNG_EOI)
        return fail(d, code, err);
    /* What follows the picture, for the checksum of its last chunk. */
    code = spng_decode_chunks(spng);
    return code ? fail(d, code, err) : THEO_OK;
}

theo_status theo_png_decode(theo_decoder *d, theo_error *err) {
    feed f = {.of = d, .at = 0, .end = SIGNATURE_BYTES, .with_alpha = d->options.keep_alpha};
    picture *p = theo_alloc(1, sizeof *p);
    spng_ctx *spng = spng_ctx_new(0);
    theo_status status;
    if (!p || !spng) {
        status = theo_fail(err, THEO_MEMORY, d->name, NULL, "no memory for a PNG decoder");
    } else {
        spng_set_png_stream(spng, feed_read, &f);
        status = decode(d, spng, p, err);
    }
    if (p) {
        theo_free(p->packed);
        theo_free(p->row);
    }
    theo_free(p);
    spng_ctx_free(spng);
    return status;
}
