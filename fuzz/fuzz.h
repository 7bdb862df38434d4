/* fuzz.h - what the fuzz targets share. */
#ifndef THEO_FUZZ_H
#define THEO_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The target. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that must hold whatever the input is. */
#define MUST(condition)                                                                                                          \
    do {                                                                                                                         \
        if (!(condition)) {                                                                                                      \
            fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #condition);                                           \
            abort();                                                                                                             \
        }                                                                                                                        \
    } while (0)

/* Reads every byte, so that sanitizers see a range that is not there. */
static inline void fuzz_touch(const void *data, size_t bytes) {
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < bytes; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)data)[i]);
}

#endif
