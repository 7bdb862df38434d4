/* t.h - the small test harness: plain mains, every check counted, a failure says what and where. */
#ifndef THEO_TESTS_T_H
#define THEO_TESTS_T_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int t_checks, t_failures;

#define CHECK(condition)                                                                                                         \
    do {                                                                                                                         \
        t_checks++;                                                                                                              \
        if (!(condition)) {                                                                                                      \
            t_failures++;                                                                                                        \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                                              \
        }                                                                                                                        \
    } while (0)

/* With words of one's own: CHECK_MSG(n == 3, "n = %d", n). */
#define CHECK_MSG(condition, ...)                                                                                                \
    do {                                                                                                                         \
        t_checks++;                                                                                                              \
        if (!(condition)) {                                                                                                      \
            t_failures++;                                                                                                        \
            fprintf(stderr, "%s:%d: failed: %s: ", __FILE__, __LINE__, #condition);                                              \
            fprintf(stderr, __VA_ARGS__);                                                                                        \
            fputc('\n', stderr);                                                                                                 \
        }                                                                                                                        \
    } while (0)

#define CHECK_NEAR(got, want, tolerance)                                                                                         \
    do {                                                                                                                         \
        double t_got = (got), t_want = (want);                                                                                   \
        CHECK_MSG(fabs(t_got - t_want) <= (tolerance), "%.9g, expected %.9g", t_got, t_want);                                    \
    } while (0)

#define CHECK_STR(got, want) CHECK_MSG(strcmp((got), (want)) == 0, "\"%s\", expected \"%s\"", (got), (want))

/* Last line of main: return t_done("name"); a test that checked nothing has failed. */
static inline int t_done(const char *name) {
    if (!t_checks) {
        fprintf(stderr, "%s: nothing was checked\n", name);
        return 1;
    }
    printf("%s: %d checks, %d failed\n", name, t_checks, t_failures);
    return t_failures != 0;
}

/* Ends the test as skipped, saying why. */
static inline int t_skip(const char *name, const char *why) {
    printf("%s: skipped: %s\n", name, why);
    return 77;
}

#endif
