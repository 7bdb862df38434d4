/* clock.h - monotonic wall time. */
#ifndef THEO_CLI_CLOCK_H
#define THEO_CLI_CLOCK_H

#include <time.h>

/* Milliseconds since some fixed moment. */
static inline double clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

#endif
