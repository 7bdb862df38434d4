/* file_made.c - large files whose content is made while it is written: every task makes a part and writes it to its place, so
 * that one thread computes while another one is in the kernel, and no more than a part a thread is ever in memory. */
#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

enum { PART_BYTES = 1 << 18 }; /* fits the second-level cache, and is long enough for a system call */

typedef struct job {
    theo_file *file;
    int64_t records, part; /* of the whole; of a task */
    size_t record_bytes;
    theo_make_fn make;
    const void *context;
    char *scratch;       /* [threads][part * record_bytes] */
    off_t start;         /* place of record 0 in the file */
    _Atomic int failure; /* errno of a task that failed, else 0 */
} job;

static int64_t part_at(const job *j, int64_t first) {
    return j->records - first < j->part ? j->records - first : j->part;
}

/* 0, or errno. */
static int write_at(int fd, const char *from, size_t bytes, off_t place) {
    while (bytes) {
        const ssize_t done = pwrite(fd, from, bytes, place);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        from += done;
        bytes -= (size_t)done;
        place += done;
    }
    return 0;
}

static void run_part(void *context, int task, int worker) {
    job *j = context;
    if (atomic_load(&j->failure))
        return;
    const int64_t first = task * j->part, count = part_at(j, first);
    const void *data = j->make(j->context, first, count, j->scratch + (size_t)worker * (size_t)j->part * j->record_bytes);
    const int failure =
        write_at(j->file->fd, data, (size_t)count * j->record_bytes, j->start + (off_t)first * (off_t)j->record_bytes);
    if (failure)
        atomic_store(&j->failure, failure);
}

/* Pipes and devices are written in order. */
static theo_status append_in_order(job *j, theo_error *err) {
    for (int64_t first = 0; first < j->records; first += j->part) {
        const int64_t count = part_at(j, first);
        const void *data = j->make(j->context, first, count, j->scratch);
        THEO_TRY(theo_file_append(j->file, data, (size_t)count * j->record_bytes, err));
    }
    return THEO_OK;
}

static theo_status append_anywhere(job *j, theo_pool *pool, theo_error *err) {
    j->start = lseek(j->file->fd, 0, SEEK_CUR);
    if (j->start >= 0) {
        theo_pool_run(pool, (int)((j->records + j->part - 1) / j->part), run_part, j);
        errno = atomic_load(&j->failure);
        if (!errno && lseek(j->file->fd, (off_t)j->records * (off_t)j->record_bytes, SEEK_CUR) >= 0)
            return THEO_OK;
    }
    return theo_fail_errno(err, j->file->path, "cannot be written");
}

theo_status theo_file_append_made(theo_file *file, int64_t records, size_t record_bytes, theo_make_fn make, const void *context,
                                  theo_pool *pool, theo_error *err) {
    if (records == 0)
        return THEO_OK;
    job j = {.file = file, .records = records, .record_bytes = record_bytes, .make = make, .context = context};
    j.part = record_bytes < PART_BYTES ? (int64_t)(PART_BYTES / record_bytes) : 1;
    j.scratch = theo_alloc((size_t)theo_pool_threads(pool) * (size_t)j.part, record_bytes);
    if (!j.scratch)
        return theo_fail(err, THEO_MEMORY, file->path, NULL, "no memory to write it");
    const theo_status status = file->beside ? append_anywhere(&j, pool, err) : append_in_order(&j, err);
    theo_free(j.scratch);
    return status;
}
