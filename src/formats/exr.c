/* exr.c - OpenEXR files of float maps, by OpenEXR's library in C. The blocks of 16 rows are compressed here, on the threads of a
 * pool, as the format's ZIP method wants it; the library writes header, blocks and table of offsets. */
#include "base/error.h"

#include <theo/export.h>

#ifndef THEO_OPENEXR

bool theo_exr_available(void) {
    return false;
}

theo_status theo_exr_write(const char *path, const float *map, int width, int height, int channels, theo_pool *pool,
                           theo_error *err) {
    (void)map, (void)width, (void)height, (void)channels, (void)pool;
    return theo_fail(err, THEO_UNSUPPORTED, path, NULL,
                     "this build cannot write EXR files: it was made without OpenEXR's library");
}

#else

#include "base/deflate.h"
#include "base/file.h"
#include "base/pool.h"

#include <errno.h>
#include <libdeflate.h>
#include <string.h>
#include <unistd.h>

#include <openexr.h>

enum { BLOCK_ROWS = 16, ZLIB_HEAD = 2, ZLIB_SUM = 4, BLOCKS_AT_ONCE = 64, LARGEST_SIDE = 1 << 24 };

bool theo_exr_available(void) {
    return true;
}

/* ---------------------------------------------------------------- blocks */

typedef struct blocks {
    const float *map;
    int width, height, channels, first; /* first: block of task 0 */
    size_t raw_bytes, packed_capacity;  /* of a whole block; of one compressed */
    uint8_t *raw, *split;               /* [threads][raw_bytes] */
    uint8_t *packed;                    /* [BLOCKS_AT_ONCE][packed_capacity] */
    size_t packed_bytes[BLOCKS_AT_ONCE];
} blocks;

static int rows_of(const blocks *b, int block) {
    const int rest = b->height - block * BLOCK_ROWS;
    return rest < BLOCK_ROWS ? rest : BLOCK_ROWS;
}

/* Row by row, in each row channel by channel in the order of the alphabet: B, G, R. */
static size_t gather(const blocks *b, int block, uint8_t *out) {
    const size_t width = (size_t)b->width, channels = (size_t)b->channels;
    const size_t first = (size_t)block * BLOCK_ROWS, rows = (size_t)rows_of(b, block);
    for (size_t y = first; y < first + rows; y++)
        for (size_t c = channels; c-- > 0;) {
            const float *in = b->map + y * width * channels + c;
            for (size_t x = 0; x < width; x++, out += 4)
                memcpy(out, in + x * channels, 4);
        }
    return rows * width * channels * 4;
}

/* What compresses better: the bytes at even places, then those at odd ones, each as the difference to the one before plus 128. */
static void split(uint8_t *out, const uint8_t *raw, size_t bytes) {
    const size_t half = (bytes + 1) / 2;
    uint8_t even = 0, odd = raw[bytes - 2]; /* `half` is whole: bytes is a multiple of 4 */
    for (size_t i = 0; i < half; i++) {
        const uint8_t a = raw[2 * i];
        out[i] = (uint8_t)(a - even + 128);
        even = a;
    }
    for (size_t i = 0; i < bytes - half; i++) {
        const uint8_t a = raw[2 * i + 1];
        out[half + i] = (uint8_t)(a - odd + 128);
        odd = a;
    }
    out[0] = raw[0];
}

/* A zlib stream (RFC 1950), or the raw block where that is not shorter or lacks memory. */
static size_t pack(uint8_t *out, const uint8_t *raw, const uint8_t *split_bytes, size_t bytes) {
    static const uint8_t head[ZLIB_HEAD] = {0x78, 0x01};
    size_t size = 0;
    memcpy(out, head, ZLIB_HEAD);
    size += ZLIB_HEAD;
    bool complete = true;
    for (size_t at = 0; at < bytes; at += THEO_DEFLATE_PIECE) {
        const size_t part = bytes - at < THEO_DEFLATE_PIECE ? bytes - at : THEO_DEFLATE_PIECE;
        const size_t made = theo_deflate_piece(out + size, split_bytes + at, part, at + part == bytes);
        complete &= made > 0;
        size += made;
    }
    const uint32_t sum = libdeflate_adler32(1, split_bytes, bytes);
    for (int i = 0; i < ZLIB_SUM; i++)
        out[size++] = (uint8_t)(sum >> (24 - 8 * i));
    if (complete && size < bytes)
        return size;
    memcpy(out, raw, bytes);
    return bytes;
}

static void pack_block(void *context, int task, int worker) {
    blocks *b = context;
    uint8_t *raw = b->raw + (size_t)worker * b->raw_bytes, *halves = b->split + (size_t)worker * b->raw_bytes;
    const size_t bytes = gather(b, b->first + task, raw);
    split(halves, raw, bytes);
    b->packed_bytes[task] = pack(b->packed + (size_t)task * b->packed_capacity, raw, halves, bytes);
}

static theo_status new_blocks(blocks *b, const float *map, int width, int height, int channels, theo_pool *pool,
                              theo_error *err) {
    const size_t threads = (size_t)theo_pool_threads(pool);
    *b = (blocks){.map = map, .width = width, .height = height, .channels = channels};
    b->raw_bytes = (size_t)width * (size_t)channels * 4 * BLOCK_ROWS;
    const size_t pieces = b->raw_bytes / THEO_DEFLATE_PIECE + 1;
    b->packed_capacity = ZLIB_HEAD + ZLIB_SUM + pieces * theo_deflate_bound(THEO_DEFLATE_PIECE);
    b->raw = theo_alloc_aligned(threads * b->raw_bytes);
    b->split = theo_alloc_aligned(threads * b->raw_bytes);
    b->packed = theo_alloc_aligned(BLOCKS_AT_ONCE * b->packed_capacity);
    if (!b->raw || !b->split || !b->packed)
        return theo_fail(err, THEO_MEMORY, NULL, "EXR", "no memory to compress rows of %d pixels", width);
    return THEO_OK;
}

static void free_blocks(const blocks *b) {
    theo_free_aligned(b->raw);
    theo_free_aligned(b->split);
    theo_free_aligned(b->packed);
}

/* ---------------------------------------------------------------- the library */

typedef struct writer {
    theo_file file;
    exr_context_t exr;
    theo_error *err;
    theo_status status; /* of a write that failed */
} writer;

static int64_t on_write(exr_const_context_t exr, void *user, const void *data, uint64_t bytes, uint64_t place,
                        exr_stream_error_func_ptr_t error) {
    writer *w = user;
    const char *from = data;
    (void)error;
    (void)exr;
    for (uint64_t left = bytes; left;) {
        const ssize_t done = pwrite(w->file.fd, from, left, (off_t)place);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            w->status = theo_fail_errno(w->err, w->file.path, "cannot be written");
            return -1;
        }
        from += done;
        left -= (uint64_t)done;
        place += (uint64_t)done;
    }
    return (int64_t)bytes;
}

static void on_error(exr_const_context_t exr, exr_result_t code, const char *message) {
    (void)exr, (void)code, (void)message; /* the library would print it */
}

static theo_status check(writer *w, exr_result_t code) {
    if (code == EXR_ERR_SUCCESS)
        return THEO_OK;
    if (w->status)
        return w->status;
    if (code == EXR_ERR_OUT_OF_MEMORY)
        return theo_fail(w->err, THEO_MEMORY, w->file.path, NULL, "no memory for its header");
    return theo_fail(w->err, THEO_INTERNAL, w->file.path, NULL, "OpenEXR's library failed: %s",
                     exr_get_error_code_as_string(code));
}

static theo_status write_header(writer *w, const blocks *b) {
    static const char *const names[] = {"R", "G", "B"};
    int part;
    THEO_TRY(check(w, exr_add_part(w->exr, NULL, EXR_STORAGE_SCANLINE, &part)));
    THEO_TRY(check(w, exr_initialize_required_attr_simple(w->exr, part, b->width, b->height, EXR_COMPRESSION_ZIP)));
    for (int c = 0; c < b->channels; c++)
        THEO_TRY(check(w, exr_add_channel(w->exr, part, b->channels == 1 ? "Y" : names[c], EXR_PIXEL_FLOAT,
                                          EXR_PERCEPTUALLY_LOGARITHMIC, 1, 1)));
    return check(w, exr_write_header(w->exr));
}

static theo_status write_blocks(writer *w, blocks *b, theo_pool *pool) {
    const int count = (b->height + BLOCK_ROWS - 1) / BLOCK_ROWS;
    for (b->first = 0; b->first < count; b->first += BLOCKS_AT_ONCE) {
        const int now = count - b->first < BLOCKS_AT_ONCE ? count - b->first : BLOCKS_AT_ONCE;
        theo_pool_run(pool, now, pack_block, b);
        for (int i = 0; i < now; i++)
            THEO_TRY(check(w, exr_write_scanline_chunk(w->exr, 0, (b->first + i) * BLOCK_ROWS,
                                                       b->packed + (size_t)i * b->packed_capacity, b->packed_bytes[i])));
    }
    return THEO_OK;
}

static theo_status write_file(writer *w, blocks *b, theo_pool *pool) {
    exr_context_initializer_t setup = {.size = sizeof setup, .error_handler_fn = on_error, .user_data = w, .write_fn = on_write};
    THEO_TRY(check(w, exr_start_write(&w->exr, w->file.path, EXR_WRITE_FILE_DIRECTLY, &setup)));
    theo_status status = write_header(w, b);
    if (!status)
        status = write_blocks(w, b, pool);
    const theo_status finished = check(w, exr_finish(&w->exr)); /* writes the table of offsets */
    return status ? status : finished;
}

theo_status theo_exr_write(const char *path, const float *map, int width, int height, int channels, theo_pool *pool,
                           theo_error *err) {
    if (!map || width < 1 || height < 1 || width > LARGEST_SIDE || height > LARGEST_SIDE || (channels != 1 && channels != 3))
        return theo_fail(err, THEO_ARGUMENT, NULL, "EXR",
                         "a map of %d x %d pixels and %d channels: sizes are 1 to 2^24, channels 1 or 3", width, height,
                         channels);
    writer w = {.err = err};
    blocks b;
    theo_status status = new_blocks(&b, map, width, height, channels, pool, err);
    if (!status)
        status = theo_file_open(&w.file, path, err);
    if (!status) {
        status = write_file(&w, &b, pool);
        if (!status)
            status = theo_file_commit(&w.file, err);
        else
            theo_file_abandon(&w.file);
    }
    free_blocks(&b);
    return status;
}

#endif
