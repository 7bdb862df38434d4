/* bytes.h - little-endian numbers at any address. */
#ifndef THEO_FORMATS_BYTES_H
#define THEO_FORMATS_BYTES_H

#include <stdint.h>

static inline uint16_t theo_get16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t theo_get32(const uint8_t *p) {
    return theo_get16(p) | (uint32_t)theo_get16(p + 2) << 16;
}
static inline uint64_t theo_get64(const uint8_t *p) {
    return theo_get32(p) | (uint64_t)theo_get32(p + 4) << 32;
}

static inline void theo_put16(uint8_t *p, uint16_t value) {
    p[0] = (uint8_t)value;
    p[1] = (uint8_t)(value >> 8);
}

static inline void theo_put32(uint8_t *p, uint32_t value) {
    theo_put16(p, (uint16_t)value);
    theo_put16(p + 2, (uint16_t)(value >> 16));
}

static inline void theo_put64(uint8_t *p, uint64_t value) {
    theo_put32(p, (uint32_t)value);
    theo_put32(p + 4, (uint32_t)(value >> 32));
}

#endif
