/* zip_write.h - writes a zip archive, into a file or into memory, entry by entry; deterministic (every entry is dated
 * 1980-01-01). */
#ifndef THEO_FORMATS_ZIP_WRITE_H
#define THEO_FORMATS_ZIP_WRITE_H

#include "base/file.h"
#include "formats/text.h"

typedef enum theo_zip_style {
    THEO_ZIP_PLAIN, /* sizes and CRC in the local headers; zip64 records where a number does not fit */
    THEO_ZIP_TORCH  /* as torch.save: data at multiples of 64, sizes and CRC behind the data, zip64 end record always */
} theo_zip_style;

typedef struct theo_zip_writer {
    theo_file file;  /* of an archive in a file */
    uint8_t *memory; /* the archive in memory, or NULL */
    size_t room;     /* bytes of `memory` */
    theo_zip_style style;
    uint64_t at; /* bytes written */
    uint64_t entries;
    theo_text directory; /* central directory so far */
    uint32_t limit;      /* numbers from here on go to zip64 records: UINT32_MAX. Tests lower it */
    theo_pool *pool;     /* for compression and copies: NULL (the calling thread) until set */
} theo_zip_writer;

theo_status theo_zip_create(theo_zip_writer *zip, const char *path, theo_zip_style style, theo_error *err);
/* A PLAIN archive in memory, which must not need more than `room` bytes; theo_zip_bound tells for a body, or (name NULL) for the
 * archive's end. After theo_zip_finish `memory` and `at` are the caller's. */
theo_status theo_zip_create_in_memory(theo_zip_writer *zip, size_t room, theo_error *err);
size_t theo_zip_bound(const char *name, size_t bytes);
/* An entry that consists of head followed by body. `deflate`: the body (PLAIN only) is compressed unless that gains nothing. */
theo_status theo_zip_add(theo_zip_writer *zip, const char *name, const void *head, size_t head_bytes, const void *body,
                         size_t body_bytes, bool deflate, theo_error *err);
/* Writes the directory and gives the file its name. The writer is closed also on failure. */
theo_status theo_zip_finish(theo_zip_writer *zip, theo_error *err);
/* Removes what was written; nothing happens after theo_zip_finish. */
void theo_zip_abandon(theo_zip_writer *zip);

#endif
