/* png_write.c - PNG (W3C Recommendation, second edition; section numbers are its) in strips of rows, filtered and compressed by
 * any number of threads. Into a file without ever holding it, or into memory.
 *
 * Every row takes the Paeth filter: of depth, normals, coloured depth and photos it leaves as little as choosing a filter for
 * each row by the usual rule does (docs/speed.md). */
#include "base/deflate.h"
#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "imageio/image.h"
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

enum {
    CHUNK_FRAME = 12, /* length, type, CRC */
    ZLIB_HEAD = 2,    /* RFC 1950 */
    FILTER_PAETH = 4, /* 9.2 */
    STRIP_BYTES = 1 << 17,
    STRIPS_AT_ONCE = 64, /* that are in memory */
    LONGEST_ROW = 1 << 29
};

/* ---------------------------------------------------------------- where the bytes go */

typedef struct sink {
    theo_file *file; /* NULL: memory */
    uint8_t *data;
    size_t bytes, capacity;
    theo_error *err;
} sink;

static theo_status grow(sink *s, size_t bytes) {
    if (bytes <= s->capacity - s->bytes)
        return THEO_OK;
    size_t capacity = s->capacity ? s->capacity : (size_t)1 << 16;
    while (capacity - s->bytes < bytes)
        capacity += capacity / 2;
    uint8_t *data = theo_realloc(s->data, capacity, 1);
    if (!data)
        return theo_fail(s->err, THEO_MEMORY, NULL, "PNG", "no memory for %zu bytes of the encoded image", capacity);
    s->data = data;
    s->capacity = capacity;
    return THEO_OK;
}

static theo_status append(sink *s, const void *from, size_t bytes) {
    if (s->file)
        return theo_file_append(s->file, from, bytes, s->err);
    THEO_TRY(grow(s, bytes));
    memcpy(s->data + s->bytes, from, bytes);
    s->bytes += bytes;
    return THEO_OK;
}

/* ---------------------------------------------------------------- chunks (5.3) */

static void put_big(uint8_t *out, uint32_t value) {
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Completes a chunk whose content stands at chunk + 8; its size. */
static size_t close_chunk(uint8_t *chunk, const char *type, size_t content) {
    put_big(chunk, (uint32_t)content);
    memcpy(chunk + 4, type, 4);
    put_big(chunk + 8 + content, (uint32_t)crc32(0, chunk + 4, (uInt)content + 4));
    return content + CHUNK_FRAME;
}

static theo_status write_header(sink *s, const theo_image *image) {
    static const uint8_t signature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'}, color_types[5] = {0, 0, 4, 2, 6};
    uint8_t chunk[CHUNK_FRAME + 13] = {0};
    put_big(chunk + 8, (uint32_t)image->width);
    put_big(chunk + 12, (uint32_t)image->height);
    chunk[16] = image->type == THEO_U16 ? 16 : 8;
    chunk[17] = color_types[image->channels];
    THEO_TRY(append(s, signature, sizeof signature));
    return append(s, chunk, close_chunk(chunk, "IHDR", 13));
}

/* Keywords are 1 to 79 printable Latin-1 characters without leading, trailing or double spaces (11.3.4.2). */
static bool is_keyword(const char *keyword) {
    const size_t length = strlen(keyword);
    if (length < 1 || length > 79 || keyword[0] == ' ' || keyword[length - 1] == ' ' || strstr(keyword, "  "))
        return false;
    for (const uint8_t *c = (const uint8_t *)keyword; *c; c++)
        if (*c < 32 || (*c > 126 && *c < 161))
            return false;
    return true;
}

static theo_status write_text(sink *s, const theo_png_text *text) {
    const size_t keyword = strlen(text->keyword), value = strlen(text->text), content = keyword + 1 + value;
    if (value > INT32_MAX / 2)
        return theo_fail(s->err, THEO_BOUNDS, NULL, "texts", "a text of %zu bytes; at most 2^30 are possible", value);
    uint8_t *chunk = theo_alloc(content + CHUNK_FRAME, 1);
    if (!chunk)
        return theo_fail(s->err, THEO_MEMORY, NULL, "PNG", "no memory for a text of %zu bytes", value);
    memcpy(chunk + 8, text->keyword, keyword + 1);
    memcpy(chunk + 8 + keyword + 1, text->text, value);
    const theo_status status = append(s, chunk, close_chunk(chunk, "tEXt", content));
    theo_free(chunk);
    return status;
}

/* ---------------------------------------------------------------- strips of rows */

typedef struct strips {
    const theo_image *image;
    size_t row_bytes, pixel_bytes, rows; /* rows of a strip; the last one may have fewer */
    int count, first;                    /* first: strip of task 0 */
    size_t worker_bytes, slot_bytes;
    uint8_t *scratch;                   /* [threads][worker_bytes]: two rows of 16-bit samples, the filtered strip */
    uint8_t *slots;                     /* [STRIPS_AT_ONCE][slot_bytes]: IDAT chunks */
    size_t chunk_bytes[STRIPS_AT_ONCE]; /* 0: out of memory */
    uint32_t sums[STRIPS_AT_ONCE];      /* Adler-32 of the filtered strips */
} strips;

static size_t filtered_bytes(const strips *p, int strip) {
    const size_t rest = (size_t)p->image->height - (size_t)strip * p->rows;
    return (rest < p->rows ? rest : p->rows) * (p->row_bytes + 1);
}

/* Row y as PNG stores it: 16-bit samples have their high byte first. `swapped` is room for one row. */
static const uint8_t *row_at(const strips *p, size_t y, uint8_t *swapped) {
    const uint8_t *row = (const uint8_t *)p->image->pixels + y * theo_image_row_bytes(p->image);
    if (p->image->type == THEO_U8)
        return row;
    for (size_t i = 0; i < p->row_bytes; i += 2) {
        uint16_t sample;
        memcpy(&sample, row + i, 2);
        swapped[i] = (uint8_t)(sample >> 8);
        swapped[i + 1] = (uint8_t)sample;
    }
    return swapped;
}

/* Of left, up and their common neighbour, what is nearest to left + up - corner (9.4). Selections instead of branches: the loop
 * that calls it becomes vectors. */
static inline int paeth(int left, int up, int corner) {
    const int to_left = abs(up - corner), to_up = abs(left - corner), to_corner = abs(left + up - 2 * corner);
    const int other = to_up <= to_corner ? up : corner;
    const bool is_left = (to_left <= to_up) & (to_left <= to_corner);
    return is_left ? left : other;
}

/* up: the row above; NULL, which counts as zeros, for none: Paeth's choice is then always the left one. */
static void filter_row(uint8_t *restrict out, const uint8_t *restrict row, const uint8_t *restrict up, size_t bytes,
                       size_t pixel) {
    *out++ = FILTER_PAETH;
    for (size_t i = 0; i < pixel; i++)
        out[i] = (uint8_t)(row[i] - (up ? up[i] : 0));
    if (up)
        for (size_t i = pixel; i < bytes; i++)
            out[i] = (uint8_t)(row[i] - paeth(row[i - pixel], up[i], up[i - pixel]));
    else
        for (size_t i = pixel; i < bytes; i++)
            out[i] = (uint8_t)(row[i] - row[i - pixel]);
}

static void filter_strip(const strips *p, int strip, uint8_t *out, uint8_t *room[2]) {
    const size_t first = (size_t)strip * p->rows, end = first + filtered_bytes(p, strip) / (p->row_bytes + 1);
    const uint8_t *up = first ? row_at(p, first - 1, room[1]) : NULL;
    for (size_t y = first; y < end; y++, out += p->row_bytes + 1) {
        const uint8_t *row = row_at(p, y, room[(y - first) % 2]);
        filter_row(out, row, up, p->row_bytes, p->pixel_bytes);
        up = row;
    }
}

/* 0: out of memory. */
static size_t deflate_strip(uint8_t *out, const uint8_t *filtered, size_t bytes, bool last) {
    size_t size = 0;
    for (size_t at = 0; at < bytes; at += THEO_DEFLATE_PIECE) {
        const size_t part = bytes - at < THEO_DEFLATE_PIECE ? bytes - at : THEO_DEFLATE_PIECE;
        const size_t made = theo_deflate_piece(out + size, filtered + at, part, last && at + part == bytes);
        if (!made)
            return 0;
        size += made;
    }
    return size;
}

static void make_chunk(void *context, int task, int worker) {
    static const uint8_t zlib_head[ZLIB_HEAD] = {0x78, 0x01};
    strips *p = context;
    const int strip = p->first + task;
    uint8_t *rows = p->scratch + (size_t)worker * p->worker_bytes, *filtered = rows + 2 * p->row_bytes;
    uint8_t *chunk = p->slots + (size_t)task * p->slot_bytes, *content = chunk + 8;
    const size_t bytes = filtered_bytes(p, strip);
    filter_strip(p, strip, filtered, (uint8_t *[2]){rows, rows + p->row_bytes});
    if (strip == 0) {
        memcpy(content, zlib_head, ZLIB_HEAD);
        content += ZLIB_HEAD;
    }
    const size_t made = deflate_strip(content, filtered, bytes, strip == p->count - 1);
    p->sums[task] = (uint32_t)adler32(1, filtered, (uInt)bytes);
    p->chunk_bytes[task] = made ? close_chunk(chunk, "IDAT", (size_t)(content - chunk) + made - 8) : 0;
}

static theo_status new_strips(strips *p, const theo_image *image, theo_pool *pool, theo_error *err) {
    *p = (strips){.image = image, .pixel_bytes = (size_t)image->channels * theo_pixel_bytes(image->type)};
    p->row_bytes = (size_t)image->width * p->pixel_bytes;
    if (p->row_bytes > LONGEST_ROW)
        return theo_fail(err, THEO_BOUNDS, NULL, "image", "rows of %zu bytes; a PNG is written with at most %d", p->row_bytes,
                         (int)LONGEST_ROW);
    p->rows = STRIP_BYTES / (p->row_bytes + 1);
    p->rows = p->rows ? p->rows : 1;
    p->count = (int)(((size_t)image->height + p->rows - 1) / p->rows);
    const size_t strip_bytes = p->rows * (p->row_bytes + 1), pieces = strip_bytes / THEO_DEFLATE_PIECE + 1;
    p->worker_bytes = 2 * p->row_bytes + strip_bytes;
    p->slot_bytes = CHUNK_FRAME + ZLIB_HEAD + pieces * theo_deflate_bound(THEO_DEFLATE_PIECE);
    const size_t slots = p->count < STRIPS_AT_ONCE ? (size_t)p->count : STRIPS_AT_ONCE;
    p->scratch = theo_alloc_aligned((size_t)theo_pool_threads(pool) * p->worker_bytes);
    p->slots = theo_alloc_aligned(slots * p->slot_bytes);
    if (!p->scratch || !p->slots)
        return theo_fail(err, THEO_MEMORY, NULL, "PNG", "no memory to encode rows of %d pixels", image->width);
    return THEO_OK;
}

static void free_strips(const strips *p) {
    theo_free_aligned(p->scratch);
    theo_free_aligned(p->slots);
}

/* The checksum of the whole stream has a chunk of its own. */
static theo_status write_strips(sink *s, strips *p, theo_pool *pool) {
    uint32_t sum = 1;
    for (p->first = 0; p->first < p->count; p->first += STRIPS_AT_ONCE) {
        const int now = p->count - p->first < STRIPS_AT_ONCE ? p->count - p->first : STRIPS_AT_ONCE;
        theo_pool_run(pool, now, make_chunk, p);
        for (int i = 0; i < now; i++) {
            if (!p->chunk_bytes[i])
                return theo_fail(s->err, THEO_MEMORY, NULL, "PNG", "no memory to compress the rows of the image");
            sum = (uint32_t)adler32_combine(sum, p->sums[i], (z_off_t)filtered_bytes(p, p->first + i));
            THEO_TRY(append(s, p->slots + (size_t)i * p->slot_bytes, p->chunk_bytes[i]));
        }
    }
    uint8_t chunk[CHUNK_FRAME + 4];
    put_big(chunk + 8, sum);
    return append(s, chunk, close_chunk(chunk, "IDAT", 4));
}

/* ---------------------------------------------------------------- the file */

static theo_status check(const theo_image *image, const theo_png_text *texts, int text_count, theo_error *err) {
    THEO_TRY(theo_image_check(image, "image", err));
    if (image->type == THEO_F32)
        return theo_fail(err, THEO_ARGUMENT, NULL, "image", "a float image has no PNG form; 8 and 16 bits have");
    if (text_count < 0 || (text_count > 0 && !texts))
        return theo_fail(err, THEO_ARGUMENT, NULL, "texts", "%d texts were announced and none given", text_count);
    for (int i = 0; i < text_count; i++)
        if (!texts[i].keyword || !texts[i].text || !texts[i].text[0] || !is_keyword(texts[i].keyword))
            return theo_fail(
                err, THEO_ARGUMENT, NULL, "texts",
                "text %d needs a keyword of 1 to 79 printable characters without spaces at its ends, and a text of 1 at least",
                i);
    return THEO_OK;
}

static theo_status write_to(sink *s, const theo_image *image, const theo_png_text *texts, int text_count, theo_pool *pool) {
    uint8_t end[CHUNK_FRAME];
    strips p;
    THEO_TRY(write_header(s, image));
    for (int i = 0; i < text_count; i++)
        THEO_TRY(write_text(s, &texts[i]));
    theo_status status = new_strips(&p, image, pool, s->err);
    if (!status)
        status = write_strips(s, &p, pool);
    free_strips(&p);
    return status ? status : append(s, end, close_chunk(end, "IEND", 0));
}

theo_status theo_image_save_png(const theo_image *image, const char *path, const theo_png_text *texts, int text_count,
                                theo_pool *pool, theo_error *err) {
    theo_file file;
    sink s = {.file = &file, .err = err};
    THEO_TRY(check(image, texts, text_count, err));
    THEO_TRY(theo_file_open(&file, path, err));
    const theo_status status = write_to(&s, image, texts, text_count, pool);
    if (status == THEO_OK)
        return theo_file_commit(&file, err);
    theo_file_abandon(&file);
    return status;
}

theo_status theo_image_encode_png(const theo_image *image, const theo_png_text *texts, int text_count, theo_pool *pool,
                                  void **data, size_t *bytes, theo_error *err) {
    sink s = {.err = err};
    *data = NULL;
    *bytes = 0;
    THEO_TRY(check(image, texts, text_count, err));
    const theo_status status = write_to(&s, image, texts, text_count, pool);
    if (status != THEO_OK) {
        theo_free(s.data);
        return status;
    }
    *data = s.data;
    *bytes = s.bytes;
    return THEO_OK;
}

void theo_buffer_free(void *data) {
    theo_free(data);
}
