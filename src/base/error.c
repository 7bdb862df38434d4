#include "base/error.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <theo/inspect.h>
#include <unistd.h>

/* ---- errors */

/* A text that was cut to fit must not end within a UTF-8 character. */
static void drop_partial_character(char *text) {
    size_t end = strlen(text), start = end;
    while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start == 0)
        return;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t wanted = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (end - (start - 1) < wanted)
        text[start - 1] = '\0';
}

static bool is_continuation(unsigned char c) {
    return (c & 0xC0) == 0x80;
}

/* Length of the UTF-8 character at a terminated text; 0: there is none (RFC 3629: neither overlong forms nor surrogates). */
static size_t character_length(const unsigned char *s) {
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xC2 || s[0] > 0xF4 || !is_continuation(s[1]))
        return 0;
    if (s[0] < 0xE0)
        return 2;
    const unsigned char low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    const unsigned char high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    if (s[1] < low || s[1] > high || !is_continuation(s[2]))
        return 0;
    if (s[0] < 0xF0)
        return 3;
    return is_continuation(s[3]) ? 4 : 0;
}

/* File names and the system's messages are any bytes: what is not UTF-8 becomes '?'. */
static void make_utf8(char *text) {
    for (unsigned char *s = (unsigned char *)text; *s;) {
        size_t n = character_length(s);
        if (!n)
            *s = '?';
        s += n ? n : 1;
    }
}

static void copy_text(char *out, size_t capacity, const char *text) {
    if ((size_t)snprintf(out, capacity, "%s", text ? text : "") >= capacity)
        drop_partial_character(out);
    make_utf8(out);
}

/* The sentence is built beside *err, because its arguments may point into *err. */
static theo_status fill(theo_error *err, theo_status status, const char *file, const char *place, const char *format,
                        va_list arguments) {
    theo_error e = {.status = status};
    copy_text(e.file, sizeof e.file, file);
    copy_text(e.place, sizeof e.place, place);
    int used = snprintf(e.message, sizeof e.message, "%s%s%s%s", e.file, *e.file ? ": " : "", e.place, *e.place ? ": " : "");
    size_t room = sizeof e.message - (size_t)used; /* file, place and their separators are shorter than the message */
    if ((size_t)vsnprintf(e.message + used, room, format, arguments) >= room)
        drop_partial_character(e.message);
    make_utf8(e.message);
    *err = e;
    return status;
}

theo_status theo_fail(theo_error *err, theo_status status, const char *file, const char *place, const char *format, ...) {
    if (err) {
        va_list arguments;
        va_start(arguments, format);
        fill(err, status, file, place, format, arguments);
        va_end(arguments);
    }
    return status;
}

theo_status theo_fail_errno(theo_error *err, const char *file, const char *what) {
    int number = errno;
    char text[128];
    const char *reason = strerror_r(number, text, sizeof text); /* the GNU form: thread-safe, may return static storage */
    return theo_fail(err, number == ENOENT ? THEO_MISSING : THEO_IO, file, NULL, "%s: %s", what, reason);
}

void theo_error_clear(theo_error *err) {
    if (err)
        *err = (theo_error){.status = THEO_OK};
}

const char *theo_status_name(theo_status status) {
    static const char *const names[] = {
        [THEO_OK] = "ok",
        [THEO_ARGUMENT] = "argument",
        [THEO_IO] = "io",
        [THEO_CONTAINER] = "container",
        [THEO_PICKLE] = "pickle",
        [THEO_SECURITY] = "security",
        [THEO_BOUNDS] = "bounds",
        [THEO_UNSUPPORTED] = "unsupported",
        [THEO_CHECKSUM] = "checksum",
        [THEO_STRUCTURE] = "structure",
        [THEO_SHAPE] = "shape",
        [THEO_MISSING] = "missing",
        [THEO_MEMORY] = "memory",
        [THEO_BUSY] = "busy",
        [THEO_CANCELLED] = "cancelled",
        [THEO_INTERNAL] = "internal",
    };
    size_t index = (size_t)status;
    return index < sizeof names / sizeof *names ? names[index] : "unknown";
}

/* ---- memory */

enum { CACHE_LINE = 64 };
static const size_t huge_page = (size_t)2 << 20;

static _Atomic uint64_t allocations;

static void count_one(void) {
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

uint64_t theo_allocation_count(void) {
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

void *theo_alloc(size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) /* calloc checks too, but AddressSanitizer's ends the program then */
        return NULL;
    count_one();
    return calloc(bytes ? bytes : 1, 1); /* nothing asked still gives a block */
}

void *theo_realloc(void *old, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    count_one();
    return realloc(old, bytes ? bytes : 1);
}

void *theo_alloc_aligned(size_t bytes) {
    void *block = NULL;
    bool large = bytes >= huge_page;
    count_one();
    if (posix_memalign(&block, large ? huge_page : CACHE_LINE, bytes ? bytes : 1))
        return NULL;
    if (large) /* advice only: where it is refused, small pages do */
        (void)madvise(block, bytes / huge_page * huge_page, MADV_HUGEPAGE);
    return block;
}

void theo_free(void *block) {
    free(block);
}

void theo_free_aligned(void *block) {
    free(block);
}

char *theo_strdup(const char *text) {
    size_t bytes = strlen(text) + 1;
    char *copy = theo_alloc(bytes, 1);
    return copy ? memcpy(copy, text, bytes) : NULL;
}
