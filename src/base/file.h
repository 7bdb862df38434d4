/* file.h - files written beside their final name and renamed at the end, so that a reader never sees half of one. */
#ifndef THEO_BASE_FILE_H
#define THEO_BASE_FILE_H

#include <theo/theo.h>

typedef struct theo_file {
    int fd;       /* for seeking and rewriting; -1 when closed */
    char *path;   /* final name, symbolic links resolved */
    char *beside; /* name until the end; NULL: `path` is a pipe or device, written to directly */
} theo_file;

/* The folder must exist. On failure there is nothing to close. */
theo_status theo_file_open(theo_file *file, const char *path, theo_error *err);
theo_status theo_file_append(theo_file *file, const void *data, size_t bytes, theo_error *err);

/* Records that are made while they are written. make: gives `count` records from number `first` on, as `scratch` (which has room
 * for them) after filling it, or as memory that holds them already. Called from several threads at once. */
typedef const void *(*theo_make_fn)(const void *context, int64_t first, int64_t count, void *scratch);
/* Appends `records` of record_bytes bytes each, a part at a time, on the threads of the pool. */
theo_status theo_file_append_made(theo_file *file, int64_t records, size_t record_bytes, theo_make_fn make, const void *context,
                                  theo_pool *pool, theo_error *err);

/* Closes and renames; the file is closed also on failure. An existing file is replaced and its permissions are kept. */
theo_status theo_file_commit(theo_file *file, theo_error *err);
/* Closes and removes; nothing happens after theo_file_commit. */
void theo_file_abandon(theo_file *file);

#endif
