/* Layout: PKWARE APPNOTE 6.3; section numbers in the comments are its. */
#include "formats/zip.h"

#include "base/error.h"
#include "formats/bytes.h"
#include "formats/text.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOCAL_HEADER = 0x04034b50,   /* 4.3.7 */
    CENTRAL_HEADER = 0x02014b50, /* 4.3.12 */
    END = 0x06054b50,            /* 4.3.16 */
    END64 = 0x06064b50,          /* 4.3.14 */
    LOCATOR64 = 0x07064b50,      /* 4.3.15 */
    LOCAL_BYTES = 30,
    CENTRAL_BYTES = 46,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR64_BYTES = 20,
    LONGEST_COMMENT = 65535,
    EXTRA_ZIP64 = 0x0001,
    FLAG_ENCRYPTED = 1
};

/* A deflate block codes at most 258 bytes in 2 bits: no stream grows by more than this factor. */
enum { DEFLATE_GROWTH = 1032 };

typedef struct reader {
    const uint8_t *data;
    size_t bytes;
    const char *file;
    theo_bump *memory;
    theo_error *err;
    uint64_t entries, directory, directory_bytes; /* of the central directory: count, offset, size */
} reader;

/* Local header and data of an entry in the file: for the overlap check. */
typedef struct extent {
    uint64_t begin, end;
    const char *name;
} extent;

static int compare_extents(const void *a, const void *b) {
    const extent *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static theo_status broken(const reader *r, const char *place, const char *what) {
    return theo_fail(r->err, THEO_CONTAINER, r->file, place, "zip: %s", what);
}

/* Offset of the end record: it stands last, before a comment that reaches to the end of the file. */
static bool find_end(const reader *r, size_t *at) {
    if (r->bytes < END_BYTES)
        return false;
    size_t last = r->bytes - END_BYTES, first = last > LONGEST_COMMENT ? last - LONGEST_COMMENT : 0;
    for (size_t i = last + 1; i-- > first;)
        if (theo_get32(r->data + i) == END && theo_get16(r->data + i + 20) == last - i) {
            *at = i;
            return true;
        }
    return false;
}

static theo_status read_end(reader *r) {
    size_t at;
    if (!find_end(r, &at))
        return broken(r, NULL, "no end record: the file is truncated or not a zip archive");
    const uint8_t *end = r->data + at;
    uint64_t limit = at; /* the central directory lies before the first end record */
    r->entries = theo_get16(end + 10);
    r->directory_bytes = theo_get32(end + 12);
    r->directory = theo_get32(end + 16);
    bool split = theo_get16(end + 4) != 0 || theo_get16(end + 6) != 0 || theo_get16(end + 8) != r->entries;

    if (at >= LOCATOR64_BYTES && theo_get32(end - LOCATOR64_BYTES) == LOCATOR64) {
        uint64_t offset = theo_get64(end - LOCATOR64_BYTES + 8);
        if (at < LOCATOR64_BYTES + END64_BYTES || offset > at - LOCATOR64_BYTES - END64_BYTES ||
            theo_get32(r->data + offset) != END64)
            return broken(r, NULL, "the zip64 locator does not point to an end record");
        const uint8_t *end64 = r->data + offset;
        limit = offset;
        r->entries = theo_get64(end64 + 32);
        r->directory_bytes = theo_get64(end64 + 40);
        r->directory = theo_get64(end64 + 48);
        split = theo_get32(end64 + 16) != 0 || theo_get32(end64 + 20) != 0 || theo_get64(end64 + 24) != r->entries;
    }
    if (split)
        return broken(r, NULL, "archives in several parts are not allowed");
    if (r->directory > limit || r->directory_bytes > limit - r->directory)
        return broken(r, NULL, "the central directory lies outside of the file");
    if (r->entries > r->directory_bytes / CENTRAL_BYTES || r->entries > INT32_MAX)
        return broken(r, NULL, "the central directory is too short for its number of entries");
    return THEO_OK;
}

/* Extra field 0x0001 (4.5.3) holds, in this order, those of the three that are all ones in the header. */
static bool read_zip64(const uint8_t *extra, size_t length, uint64_t *bytes, uint64_t *data_bytes, uint64_t *offset) {
    uint64_t *const fields[3] = {bytes, data_bytes, offset};
    while (length >= 4) {
        size_t size = theo_get16(extra + 2);
        if (size > length - 4)
            return false;
        if (theo_get16(extra) == EXTRA_ZIP64) {
            const uint8_t *at = extra + 4, *end = at + size;
            for (int i = 0; i < 3; i++) {
                if (*fields[i] != UINT32_MAX)
                    continue;
                if (end - at < 8)
                    return false;
                *fields[i] = theo_get64(at);
                at += 8;
            }
            return true;
        }
        extra += 4 + size;
        length -= 4 + size;
    }
    return *bytes != UINT32_MAX && *data_bytes != UINT32_MAX && *offset != UINT32_MAX;
}

/* Checks the local header at `offset` and points entry->data behind it. */
static theo_status read_local(const reader *r, theo_zip_entry *entry, uint64_t offset, size_t name_length) {
    if (r->directory < LOCAL_BYTES || offset > r->directory - LOCAL_BYTES || theo_get32(r->data + offset) != LOCAL_HEADER)
        return broken(r, entry->name, "the entry's offset does not point to a local header");
    const uint8_t *local = r->data + offset;
    size_t length = theo_get16(local + 26), extra = theo_get16(local + 28);
    uint64_t begin = offset + LOCAL_BYTES + length + extra;
    if (begin > r->directory || entry->data_bytes > r->directory - begin)
        return broken(r, entry->name, "the entry reaches past the end of the file");
    if (length != name_length || memcmp(local + LOCAL_BYTES, entry->name, length) != 0 || theo_get16(local + 8) != entry->method)
        return broken(r, entry->name, "local header and central directory disagree");
    entry->data = r->data + begin;
    return THEO_OK;
}

static bool is_clean_name(const char *name, size_t length) {
    for (size_t i = 0, n; i < length; i += n) {
        n = theo_utf8_length(name + i, length - i);
        if (!n || (unsigned char)name[i] < 0x20)
            return false;
    }
    return true;
}

/* The directory's entry at *at, which is moved behind it. */
static theo_status read_entry(const reader *r, uint64_t *at, theo_zip_entry *entry, extent *where) {
    const uint8_t *p = r->data + *at;
    uint64_t left = r->directory + r->directory_bytes - *at;
    if (left < CENTRAL_BYTES || theo_get32(p) != CENTRAL_HEADER)
        return broken(r, NULL, "a central directory entry is missing");
    size_t name_length = theo_get16(p + 28), extra_length = theo_get16(p + 30), comment_length = theo_get16(p + 32);
    if (left - CENTRAL_BYTES < name_length + extra_length + comment_length)
        return broken(r, NULL, "a central directory entry is cut");
    *at += CENTRAL_BYTES + name_length + extra_length + comment_length;
    if (!is_clean_name((const char *)p + CENTRAL_BYTES, name_length))
        return broken(r, NULL, "an entry's name is not UTF-8 or contains control characters");
    char *name = theo_bump_text(r->memory, (const char *)p + CENTRAL_BYTES, name_length);
    if (!name)
        return theo_fail(r->err, THEO_MEMORY, r->file, NULL, "out of memory for the zip directory");
    entry->name = name;
    entry->method = theo_get16(p + 10);
    entry->crc = theo_get32(p + 16);
    entry->data_bytes = theo_get32(p + 20);
    entry->bytes = theo_get32(p + 24);
    uint64_t offset = theo_get32(p + 42);
    if (!read_zip64(p + CENTRAL_BYTES + name_length, extra_length, &entry->bytes, &entry->data_bytes, &offset))
        return broken(r, name, "a malformed extra field");
    if (theo_get16(p + 8) & FLAG_ENCRYPTED)
        return theo_fail(r->err, THEO_UNSUPPORTED, r->file, name, "zip: encrypted entries are not supported");
    if (entry->method != THEO_ZIP_STORED && entry->method != THEO_ZIP_DEFLATED)
        return theo_fail(r->err, THEO_UNSUPPORTED, r->file, name, "zip: compression method %d is not supported", entry->method);
    THEO_TRY(read_local(r, entry, offset, name_length));
    if (entry->method == THEO_ZIP_STORED ? entry->bytes != entry->data_bytes : entry->bytes / DEFLATE_GROWTH > entry->data_bytes)
        return broken(r, name, "the sizes before and after compression cannot belong together");
    *where = (extent){offset, (uint64_t)(entry->data - r->data) + entry->data_bytes, name};
    return THEO_OK;
}

static theo_status read_directory(reader *r, theo_zip *zip) {
    int count = (int)r->entries;
    theo_zip_entry *entries = theo_bump_alloc(r->memory, r->entries, sizeof *entries);
    theo_named_value *index = theo_bump_alloc(r->memory, r->entries, sizeof *index);
    extent *extents = theo_alloc(r->entries + 1, sizeof *extents);
    theo_status status = THEO_OK;
    if (!entries || !index || !extents)
        status = theo_fail(r->err, THEO_MEMORY, r->file, NULL, "out of memory for the zip directory");
    uint64_t at = r->directory;
    for (int i = 0; i < count && !status; i++) {
        status = read_entry(r, &at, &entries[i], &extents[i]);
        index[i] = (theo_named_value){entries[i].name, i};
    }
    if (!status) {
        const char *twice = theo_names_sort(index, count);
        if (twice)
            status = broken(r, twice, "two entries have this name");
    }
    if (!status && count > 1)
        qsort(extents, (size_t)count, sizeof *extents, compare_extents);
    for (int i = 1; i < count && !status; i++)
        if (extents[i].begin < extents[i - 1].end)
            status = broken(r, extents[i].name, "the entry lies inside of another one");
    theo_free(extents);
    zip->count = count;
    zip->entries = entries;
    zip->index = index;
    return status;
}

theo_status theo_zip_parse(theo_zip *zip, theo_bump *memory, const uint8_t *data, size_t bytes, const char *file,
                           theo_error *err) {
    reader r = {.data = data, .bytes = bytes, .file = file, .memory = memory, .err = err};
    *zip = (theo_zip){.file = file};
    THEO_TRY(read_end(&r));
    return read_directory(&r, zip);
}

const theo_zip_entry *theo_zip_find(const theo_zip *zip, const char *name) {
    int i = theo_names_find(zip->index, zip->count, name);
    return i < 0 ? NULL : &zip->entries[i];
}

static theo_status compare_crc(const theo_zip *zip, const theo_zip_entry *entry, const void *data, theo_error *err) {
    uint32_t crc = libdeflate_crc32(0, data, (size_t)entry->bytes);
    if (crc == entry->crc)
        return THEO_OK;
    return theo_fail(err, THEO_CHECKSUM, zip->file, entry->name,
                     "the data's CRC-32 is %08x, the zip directory says %08x: the file is damaged", crc, entry->crc);
}

theo_status theo_zip_check(const theo_zip *zip, const theo_zip_entry *entry, theo_error *err) {
    return compare_crc(zip, entry, entry->data, err);
}

theo_status theo_zip_unpack(const theo_zip *zip, const theo_zip_entry *entry, void *out, theo_error *err) {
    if (entry->method == THEO_ZIP_STORED) {
        if (entry->bytes)
            memcpy(out, entry->data, (size_t)entry->bytes);
    } else {
        struct libdeflate_decompressor *inflate = libdeflate_alloc_decompressor();
        if (!inflate)
            return theo_fail(err, THEO_MEMORY, zip->file, entry->name, "out of memory to inflate");
        size_t used = 0, made = 0;
        enum libdeflate_result result = libdeflate_deflate_decompress_ex(inflate, entry->data, (size_t)entry->data_bytes, out,
                                                                         (size_t)entry->bytes, &used, &made);
        libdeflate_free_decompressor(inflate);
        if (result != LIBDEFLATE_SUCCESS || used != entry->data_bytes || made != entry->bytes)
            return theo_fail(err, THEO_CONTAINER, zip->file, entry->name,
                             "zip: the deflate stream is damaged or of another length");
    }
    return compare_crc(zip, entry, out, err);
}
