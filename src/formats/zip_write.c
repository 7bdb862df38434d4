/* Layout: PKWARE APPNOTE 6.3; section numbers in the comments are its. */
#include "formats/zip_write.h"

#include "base/deflate.h"
#include "base/error.h"
#include "base/pool.h"
#include "formats/bytes.h"

#include <libdeflate.h>
#include <string.h>

enum {
    DATE_1980_01_01 = 0x21,
    VERSION = 20, /* needed to extract: deflate */
    VERSION_ZIP64 = 45,
    FLAG_DESCRIPTOR = 0x0008, /* sizes and CRC follow the data */
    FLAG_UTF8 = 0x0800,
    METHOD_DEFLATE = 8,
    TORCH_ALIGNMENT = 64,
    LARGEST_STORED_BLOCK = 65535 /* of deflate */
};

/* What the headers of an entry say. */
typedef struct entry {
    const char *name;
    uint32_t crc;
    uint64_t bytes, data_bytes, offset;
    bool deflated;
} entry;

/* ---------------------------------------------------------------- where it goes */

enum { COPY_PIECE = 1 << 18 }; /* bytes that a task copies */

typedef struct copy {
    uint8_t *to;
    const uint8_t *from;
    size_t bytes;
} copy;

static void copy_piece(void *context, int task, int worker) {
    const copy *c = context;
    const size_t first = (size_t)task * COPY_PIECE, rest = c->bytes - first;
    (void)worker;
    memcpy(c->to + first, c->from + first, rest < COPY_PIECE ? rest : COPY_PIECE);
}

static theo_status append(theo_zip_writer *zip, const void *data, size_t bytes, theo_error *err) {
    const uint64_t at = zip->at;
    zip->at += bytes;
    if (!zip->memory)
        return theo_file_append(&zip->file, data, bytes, err);
    if (zip->at > zip->room)
        return theo_fail(err, THEO_INTERNAL, NULL, "zip", "%llu bytes do not fit into the %zu that were foreseen",
                         (unsigned long long)zip->at, zip->room);
    copy c = {zip->memory + at, data, bytes};
    theo_pool_run(zip->pool, (int)((bytes + COPY_PIECE - 1) / COPY_PIECE), copy_piece, &c);
    return THEO_OK;
}

/* Writes and forgets a header. */
static theo_status flush(theo_zip_writer *zip, theo_text *text, theo_error *err) {
    theo_status status = text->failed ? theo_fail(err, THEO_MEMORY, zip->file.path, NULL, "out of memory for a zip header")
                                      : append(zip, text->data, text->length, err);
    theo_text_free(text);
    return status;
}

theo_status theo_zip_create(theo_zip_writer *zip, const char *path, theo_zip_style style, theo_error *err) {
    *zip = (theo_zip_writer){.style = style, .limit = UINT32_MAX};
    return theo_file_open(&zip->file, path, err);
}

theo_status theo_zip_create_in_memory(theo_zip_writer *zip, size_t room, theo_error *err) {
    *zip = (theo_zip_writer){.style = THEO_ZIP_PLAIN, .limit = UINT32_MAX, .file = {.fd = -1}, .room = room};
    zip->memory = theo_alloc_aligned(room);
    return zip->memory ? THEO_OK : theo_fail(err, THEO_MEMORY, NULL, "zip", "no memory for an archive of %zu bytes", room);
}

size_t theo_zip_bound(const char *name, size_t bytes) {
    enum { LOCAL = 30 + 20, CENTRAL = 46 + 28, END = 56 + 20 + 22 }; /* with zip64's records */
    return name ? LOCAL + CENTRAL + 2 * strlen(name) + bytes : END;
}

/* ---------------------------------------------------------------- headers */

static unsigned flags_of(const theo_zip_writer *zip, const char *name) {
    bool ascii = true;
    for (const char *c = name; *c; c++)
        ascii = ascii && (unsigned char)*c < 0x80;
    return zip->style == THEO_ZIP_TORCH ? FLAG_DESCRIPTOR | FLAG_UTF8 : ascii ? 0 : FLAG_UTF8;
}

static bool is_large(const theo_zip_writer *zip, const entry *e) {
    return e->bytes >= zip->limit || e->data_bytes >= zip->limit;
}

/* The fields that local header and central directory have in common, from "version needed" to "extra length". */
static void add_common(theo_text *text, const theo_zip_writer *zip, const entry *e, bool local, bool zip64, size_t extra) {
    bool later = local && zip->style == THEO_ZIP_TORCH, large = is_large(zip, e);
    theo_text_add16(text, zip64 ? VERSION_ZIP64 : VERSION);
    theo_text_add16(text, flags_of(zip, e->name));
    theo_text_add16(text, e->deflated ? METHOD_DEFLATE : 0);
    theo_text_add16(text, 0);
    theo_text_add16(text, DATE_1980_01_01);
    theo_text_add32(text, later ? 0 : e->crc);
    theo_text_add32(text, later ? 0 : large ? UINT32_MAX : e->data_bytes);
    theo_text_add32(text, later ? 0 : large ? UINT32_MAX : e->bytes);
    theo_text_add16(text, (unsigned)strlen(e->name));
    theo_text_add16(text, (unsigned)extra);
}

/* 4.3.7, with the extra fields zip64 (4.5.3) and torch's padding "FB". */
static theo_status write_local(theo_zip_writer *zip, const entry *e, theo_error *err) {
    theo_text text = {0};
    bool large = is_large(zip, e);
    size_t zip64_bytes = large ? 20 : 0, padding = 0;
    if (zip->style == THEO_ZIP_TORCH) {
        uint64_t start = e->offset + 30 + strlen(e->name) + zip64_bytes + 4;
        padding = 4 + (size_t)(-start % TORCH_ALIGNMENT);
    }
    theo_text_add32(&text, 0x04034b50);
    add_common(&text, zip, e, true, large, zip64_bytes + padding);
    theo_text_add(&text, e->name, strlen(e->name));
    if (large) {
        theo_text_add16(&text, 0x0001);
        theo_text_add16(&text, 16);
        theo_text_add64(&text, e->bytes);
        theo_text_add64(&text, e->data_bytes);
    }
    if (padding) {
        static const char fill[TORCH_ALIGNMENT] = {0};
        theo_text_add(&text, "FB", 2);
        theo_text_add16(&text, (unsigned)padding - 4);
        theo_text_add(&text, fill, padding - 4);
    }
    return flush(zip, &text, err);
}

/* 4.3.9 */
static theo_status write_descriptor(theo_zip_writer *zip, const entry *e, theo_error *err) {
    theo_text text = {0};
    void (*add)(theo_text *, uint64_t) = is_large(zip, e) ? theo_text_add64 : theo_text_add32;
    theo_text_add32(&text, 0x08074b50);
    theo_text_add32(&text, e->crc);
    add(&text, e->data_bytes);
    add(&text, e->bytes);
    return flush(zip, &text, err);
}

/* 4.3.12 */
static void add_central(theo_zip_writer *zip, const entry *e) {
    bool large = is_large(zip, e), far = e->offset >= zip->limit;
    size_t extra = (large ? 16u : 0) + (far ? 8u : 0);
    theo_text *text = &zip->directory;
    theo_text_add32(text, 0x02014b50);
    theo_text_add16(text, large || far ? VERSION_ZIP64 : VERSION);
    add_common(text, zip, e, false, large || far, extra ? extra + 4 : 0);
    theo_text_add16(text, 0); /* comment */
    theo_text_add16(text, 0); /* disk */
    theo_text_add16(text, 0); /* attributes */
    theo_text_add32(text, 0);
    theo_text_add32(text, far ? UINT32_MAX : e->offset);
    theo_text_add(text, e->name, strlen(e->name));
    if (extra) {
        theo_text_add16(text, 0x0001);
        theo_text_add16(text, (unsigned)extra);
    }
    if (large) {
        theo_text_add64(text, e->bytes);
        theo_text_add64(text, e->data_bytes);
    }
    if (far)
        theo_text_add64(text, e->offset);
}

/* ---------------------------------------------------------------- compression */

/* A body compressed in pieces, each in a slot of its own. */
typedef struct packed {
    const uint8_t *body;
    size_t body_bytes;
    int pieces;
    uint8_t *slots;
    size_t *bytes; /* [pieces] */
    size_t total;  /* 0: not packed, the body is to be stored */
} packed;

static void pack_piece(void *context, int task, int worker) {
    packed *p = context;
    const size_t from = (size_t)task * THEO_DEFLATE_PIECE;
    const bool last = task == p->pieces - 1;
    (void)worker;
    p->bytes[task] = theo_deflate_piece(p->slots + (size_t)task * theo_deflate_bound(THEO_DEFLATE_PIECE), p->body + from,
                                        last ? p->body_bytes - from : THEO_DEFLATE_PIECE, last);
}

/* Without memory, and where it gains less than `least` bytes, the body stays as it is. */
static void pack(packed *p, const void *body, size_t bytes, size_t least, theo_pool *pool) {
    *p = (packed){.body = body, .body_bytes = bytes};
    p->pieces = (int)((bytes + THEO_DEFLATE_PIECE - 1) / THEO_DEFLATE_PIECE);
    p->slots = theo_alloc_aligned((size_t)p->pieces * theo_deflate_bound(THEO_DEFLATE_PIECE));
    p->bytes = theo_alloc((size_t)p->pieces, sizeof *p->bytes);
    if (!p->slots || !p->bytes)
        return;
    theo_pool_run(pool, p->pieces, pack_piece, p);
    bool complete = true;
    for (int i = 0; i < p->pieces; i++) {
        p->total += p->bytes[i];
        complete &= p->bytes[i] > 0;
    }
    if (!complete || p->total + least > bytes)
        p->total = 0;
}

static void free_packed(const packed *p) {
    theo_free_aligned(p->slots);
    theo_free(p->bytes);
}

/* The deflate stream of head and body: the head as a stored block that is not the last one, which ends on a byte, then the body's
 * own blocks. Saves a copy of both into one buffer. */
static size_t make_stored_block(uint8_t out[5], size_t bytes) {
    out[0] = 0;
    theo_put16(out + 1, (uint16_t)bytes);
    theo_put16(out + 3, (uint16_t)~bytes);
    return 5;
}

static theo_status append_packed(theo_zip_writer *zip, const packed *p, theo_error *err) {
    for (int i = 0; i < p->pieces; i++)
        THEO_TRY(append(zip, p->slots + (size_t)i * theo_deflate_bound(THEO_DEFLATE_PIECE), p->bytes[i], err));
    return THEO_OK;
}

/* ---------------------------------------------------------------- entries */

static theo_status write_entry(theo_zip_writer *zip, entry *e, const void *head, size_t head_bytes, const packed *body,
                               theo_error *err) {
    uint8_t block[5];
    THEO_TRY(write_local(zip, e, err));
    if (e->deflated)
        THEO_TRY(append(zip, block, make_stored_block(block, head_bytes), err));
    THEO_TRY(append(zip, head, head_bytes, err));
    THEO_TRY(e->deflated ? append_packed(zip, body, err) : append(zip, body->body, body->body_bytes, err));
    if (zip->style == THEO_ZIP_TORCH)
        THEO_TRY(write_descriptor(zip, e, err));
    add_central(zip, e);
    zip->entries++;
    return THEO_OK;
}

theo_status theo_zip_add(theo_zip_writer *zip, const char *name, const void *head, size_t head_bytes, const void *body,
                         size_t body_bytes, bool deflate, theo_error *err) {
    if (strlen(name) > UINT16_MAX)
        return theo_fail(err, THEO_ARGUMENT, zip->file.path, NULL, "a name is longer than a zip archive can hold");
    entry e = {.name = name, .bytes = (uint64_t)head_bytes + body_bytes, .offset = zip->at};
    e.data_bytes = e.bytes;
    if (head_bytes) /* a null pointer would mean "start anew" */
        e.crc = libdeflate_crc32(e.crc, head, head_bytes);
    if (body_bytes)
        e.crc = libdeflate_crc32(e.crc, body, body_bytes);
    packed p = {.body = body, .body_bytes = body_bytes};
    if (deflate && body_bytes > 64 && head_bytes <= LARGEST_STORED_BLOCK)
        pack(&p, body, body_bytes, 8, zip->pool); /* must win more than the stored block's 5 bytes */
    if (p.total) {
        e.deflated = true;
        e.data_bytes = 5 + head_bytes + p.total;
    }
    const theo_status status = write_entry(zip, &e, head, head_bytes, &p, err);
    free_packed(&p);
    return status;
}

/* 4.3.14 and 4.3.15 */
static void add_end64(theo_text *text, const theo_zip_writer *zip, uint64_t directory, uint64_t directory_bytes) {
    theo_text_add32(text, 0x06064b50);
    theo_text_add64(text, 44); /* bytes of this record from here on */
    theo_text_add16(text, VERSION_ZIP64);
    theo_text_add16(text, VERSION_ZIP64);
    theo_text_add32(text, 0);
    theo_text_add32(text, 0);
    theo_text_add64(text, zip->entries);
    theo_text_add64(text, zip->entries);
    theo_text_add64(text, directory_bytes);
    theo_text_add64(text, directory);
    theo_text_add32(text, 0x07064b50);
    theo_text_add32(text, 0);
    theo_text_add64(text, directory + directory_bytes);
    theo_text_add32(text, 1);
}

static theo_status write_end(theo_zip_writer *zip, theo_error *err) {
    uint64_t directory = zip->at, bytes = zip->directory.length;
    THEO_TRY(flush(zip, &zip->directory, err));
    bool many = zip->entries >= UINT16_MAX, far = directory >= zip->limit, long_directory = bytes >= zip->limit;
    theo_text text = {0};
    if (many || far || long_directory || zip->style == THEO_ZIP_TORCH)
        add_end64(&text, zip, directory, bytes);
    unsigned entries = many ? UINT16_MAX : (unsigned)zip->entries;
    theo_text_add32(&text, 0x06054b50); /* 4.3.16 */
    theo_text_add32(&text, 0);
    theo_text_add16(&text, entries);
    theo_text_add16(&text, entries);
    theo_text_add32(&text, long_directory ? UINT32_MAX : bytes);
    theo_text_add32(&text, far ? UINT32_MAX : directory);
    theo_text_add16(&text, 0);
    return flush(zip, &text, err);
}

theo_status theo_zip_finish(theo_zip_writer *zip, theo_error *err) {
    theo_status status = write_end(zip, err);
    if (status)
        theo_zip_abandon(zip);
    else if (!zip->memory)
        status = theo_file_commit(&zip->file, err);
    return status;
}

void theo_zip_abandon(theo_zip_writer *zip) {
    theo_text_free(&zip->directory);
    theo_free_aligned(zip->memory);
    zip->memory = NULL;
    theo_file_abandon(&zip->file);
}
