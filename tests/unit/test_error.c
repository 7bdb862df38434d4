/* Errors: what the caller reads, and that nothing overflows. Memory: counted, products checked. */
#include "base/error.h"
#include "base/log.h"
#include "t.h"
#include <errno.h>
#include <theo/inspect.h>

static void messages(void) {
    theo_error e;
    memset(&e, 0x55, sizeof e);
    CHECK(theo_fail(&e, THEO_BOUNDS, "a.pt", "conv1a.weight", "ends %d bytes past the file", 12) == THEO_BOUNDS);
    CHECK(e.status == THEO_BOUNDS);
    CHECK_STR(e.file, "a.pt");
    CHECK_STR(e.place, "conv1a.weight");
    CHECK_STR(e.message, "a.pt: conv1a.weight: ends 12 bytes past the file");
    theo_fail(&e, THEO_ARGUMENT, NULL, "threads", "no");
    CHECK_STR(e.message, "threads: no");
    theo_fail(&e, THEO_ARGUMENT, NULL, NULL, "no");
    CHECK_STR(e.message, "no");
    CHECK_STR(e.file, "");
    CHECK(theo_fail(NULL, THEO_IO, "a", "b", "c") == THEO_IO);

    /* arguments that lie in the error itself */
    theo_fail(&e, THEO_IO, "in.png", NULL, "first");
    theo_fail(&e, THEO_CONTAINER, e.file, e.place, "second after \"%s\"", e.message);
    CHECK_STR(e.message, "in.png: second after \"in.png: first\"");

    theo_error_clear(&e);
    CHECK(e.status == THEO_OK && e.message[0] == '\0' && e.file[0] == '\0');
    theo_error_clear(NULL);
}

/* Everything too long, in two-byte characters at odd places: cut between characters. */
static void long_texts(void) {
    char text[4096];
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 2 < sizeof text; i += 2)
            memcpy(text + i, "\xc3\xa9", 3);
        theo_error e;
        theo_fail(&e, THEO_IO, text, text, "%s", text);
        CHECK(strlen(e.file) < sizeof e.file && strlen(e.file) > sizeof e.file - 4);
        CHECK(strlen(e.place) < sizeof e.place && strlen(e.place) > sizeof e.place - 4);
        CHECK(strlen(e.message) < sizeof e.message && strlen(e.message) > sizeof e.message - 4);
        const char *texts[] = {e.file, e.place, e.message};
        for (int i = 0; i < 3; i++)
            CHECK_MSG((texts[i][strlen(texts[i]) - 1] & 0x7f) == 0x29, "text %d does not end in a whole character", i);
    }
}

static void system_errors(void) {
    theo_error e;
    errno = ENOENT;
    CHECK(theo_fail_errno(&e, "nowhere", "cannot be opened") == THEO_MISSING);
    CHECK_STR(e.message, "nowhere: cannot be opened: No such file or directory");
    errno = EACCES;
    CHECK(theo_fail_errno(&e, "secret", "cannot be opened") == THEO_IO);
    CHECK(strstr(e.message, "Permission denied"));
    CHECK_STR(theo_status_name(THEO_CHECKSUM), "checksum");
    CHECK_STR(theo_status_name(THEO_INTERNAL), "internal");
    CHECK_STR(theo_status_name((theo_status)1000), "unknown");
    CHECK_STR(theo_status_name((theo_status)-1), "unknown");
}

/* File names may be any bytes; errors are UTF-8. */
static void bad_bytes(void) {
    static const struct {
        const char *name, *want;
    } cases[] = {
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x93\xb7", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x93\xb7"},
        {"caf\xe9.jpg", "caf?.jpg"},         /* Latin-1 */
        {"\xc0\xaf \xe0\x80\xaf", "?? ???"}, /* overlong */
        {"\xed\xa0\x80", "???"},             /* a surrogate */
        {"\xf4\x90\x80\x80 \xff", "???? ?"}, /* over U+10FFFF */
        {"\xe2\x82", "??"},                  /* cut */
        {"\xed\x9f\xbf\xf4\x8f\xbf\xbf", "\xed\x9f\xbf\xf4\x8f\xbf\xbf"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        theo_error e;
        theo_fail(&e, THEO_IO, cases[i].name, cases[i].name, "and %s", cases[i].name);
        char message[200];
        snprintf(message, sizeof message, "%s: %s: and %s", cases[i].want, cases[i].want, cases[i].want);
        CHECK_STR(e.file, cases[i].want);
        CHECK_STR(e.place, cases[i].want);
        CHECK_STR(e.message, message);
    }
}

static void memory(void) {
    uint64_t before = theo_allocation_count();
    unsigned char *a = theo_alloc(1000, 3);
    CHECK(a && a[0] == 0 && a[2999] == 0);
    a = theo_realloc(a, 5000, 1);
    char *b = theo_strdup("text");
    CHECK_STR(b, "text");
    CHECK(theo_allocation_count() == before + 3);

    CHECK(theo_alloc(SIZE_MAX / 2, 3) == NULL);
    CHECK(theo_realloc(a, SIZE_MAX / 2, 3) == NULL); /* a is still there */
    a[4999] = 1;
    theo_free(a);
    theo_free(b);
    theo_free(NULL);

    size_t sizes[] = {0, 1, 63, 64, 4097, (size_t)9 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *block = theo_alloc_aligned(sizes[i]);
        CHECK(block && (uintptr_t)block % 64 == 0);
        memset(block, 1, sizes[i]);
        theo_free_aligned(block);
    }
    void *nothing = theo_alloc(0, 8);
    CHECK(nothing);
    theo_free(nothing);
}

static void keep_line(void *user, theo_log_level level, const char *message) {
    snprintf(user, 100, "%d %.90s", (int)level, message);
}

static void logging(void) {
    char line[100] = "";
    theo_logger logger = {.log = keep_line, .user = line};
    theo_log(logger, THEO_LOG_INFO, "%d threads", 2);
    CHECK_STR(line, "2 2 threads");
    theo_log((theo_logger){0}, THEO_LOG_WARNING, "to nobody");
    CHECK_STR(line, "2 2 threads");
}

int main(void) {
    messages();
    long_texts();
    bad_bytes();
    system_errors();
    memory();
    logging();
    return t_done("test_error");
}
