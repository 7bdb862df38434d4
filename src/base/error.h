/* error.h - filling the caller's theo_error, and counted allocation. */
#ifndef THEO_BASE_ERROR_H
#define THEO_BASE_ERROR_H

#include <stdarg.h>
#include <theo/theo.h>

/* Fills *err (may be NULL) and returns `status`, so that a check reads: return theo_fail(err, THEO_BOUNDS, file, place, "...",
 * ...). file and place may be NULL. The message gets "FILE: PLACE: " in front of the sentence. Never allocates.
 * Bytes that are not UTF-8, of file names for instance, become '?'. */
theo_status theo_fail(theo_error *err, theo_status status, const char *file, const char *place, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* theo_fail with the text of errno appended: for failed system calls. Always THEO_IO, or THEO_MISSING for ENOENT. */
theo_status theo_fail_errno(theo_error *err, const char *file, const char *what);

/* Clears *err (may be NULL) to THEO_OK. */
void theo_error_clear(theo_error *err);

/* Passes on a failure: if (expression) return its status. */
#define THEO_TRY(expression)                                                                                                     \
    do {                                                                                                                         \
        theo_status theo_try_ = (expression);                                                                                    \
        if (theo_try_ != THEO_OK)                                                                                                \
            return theo_try_;                                                                                                    \
    } while (0)

/* ---- memory. All allocation of the library goes through these: they count (theo_allocation_count) and check products. */

/* count * size bytes, zeroed; NULL on overflow or exhaustion. */
void *theo_alloc(size_t count, size_t size);
/* realloc to count * size bytes; NULL on overflow or exhaustion, the old block then stays. */
void *theo_realloc(void *old, size_t count, size_t size);
/* 64-byte aligned, not zeroed, advised to use huge pages when large. Free with theo_free_aligned. */
void *theo_alloc_aligned(size_t bytes);
void theo_free(void *block);
void theo_free_aligned(void *block);
char *theo_strdup(const char *text);

#endif
