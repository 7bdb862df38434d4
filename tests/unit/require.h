/* require.h - calls that a test cannot go on without. */
#ifndef THEO_TESTS_REQUIRE_H
#define THEO_TESTS_REQUIRE_H

#include <stdio.h>
#include <stdlib.h>
#include <theo/theo.h>

static theo_error test_error;

/* Ends the test program: what follows could only repeat the failure. The call fills test_error. */
#define REQUIRE(status)                                                                                                          \
    do {                                                                                                                         \
        if ((status) != THEO_OK) {                                                                                               \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #status, test_error.message);                                 \
            exit(1);                                                                                                             \
        }                                                                                                                        \
    } while (0)

#endif
