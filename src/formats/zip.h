/* zip.h - the directory of a zip archive in memory, checked, and its entries' bytes. For torch checkpoints and npz files.
 *
 * The central directory is what counts; every local header must agree with it. Zip64 and data descriptors are understood.
 * Encrypted, split and self-extracting archives are refused, and so are doubled names and entries that overlap. */
#ifndef THEO_FORMATS_ZIP_H
#define THEO_FORMATS_ZIP_H

#include "formats/bump.h"
#include "formats/names.h"

#include <theo/theo.h>

enum { THEO_ZIP_STORED = 0, THEO_ZIP_DEFLATED = 8 };

typedef struct theo_zip_entry {
    const char *name;
    int method;     /* one of the two above */
    uint32_t crc;   /* CRC-32 of the `bytes` bytes */
    uint64_t bytes; /* when unpacked: a claim of the file, and bounded for deflated entries by what deflate can reach at all */
    const uint8_t *data; /* as stored in the file */
    uint64_t data_bytes;
} theo_zip_entry;

typedef struct theo_zip {
    const char *file; /* for messages */
    int count;
    const theo_zip_entry *entries; /* in the order of the directory */
    const theo_named_value *index;
} theo_zip;

/* Everything lives in `memory`, data pointers point into the archive. THEO_CONTAINER, THEO_UNSUPPORTED (other methods,
 * encryption), THEO_MEMORY. */
theo_status theo_zip_parse(theo_zip *zip, theo_bump *memory, const uint8_t *data, size_t bytes, const char *file,
                           theo_error *err);

/* Entry of that name, or NULL. */
const theo_zip_entry *theo_zip_find(const theo_zip *zip, const char *name);

/* Unpacks into out[entry->bytes] and compares the CRC: THEO_CONTAINER (bad deflate stream), THEO_CHECKSUM. */
theo_status theo_zip_unpack(const theo_zip *zip, const theo_zip_entry *entry, void *out, theo_error *err);

/* CRC of a stored entry's bytes: THEO_CHECKSUM. */
theo_status theo_zip_check(const theo_zip *zip, const theo_zip_entry *entry, theo_error *err);

#endif
