/* rows.c - see rows.h. Every loop is written once; the compiler makes a copy for each sample type. */
#include "imageio/rows.h"
#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

int theo_row_channels(const theo_row_rule *rule) {
    if (rule->pick == THEO_PICK_ALL)
        return rule->channels;
    return rule->pick == THEO_PICK_COLOR && rule->channels >= 3 ? 3 : 1;
}

bool theo_row_is_copy(const theo_row_rule *rule) {
    bool swapped = rule->bgr && rule->channels >= 3;
    return rule->type == THEO_U8 && theo_row_channels(rule) == rule->channels && !swapped;
}

INLINE uint32_t quantise(float v) {
    v = v < 0.0f ? 0.0f : v > 1.0f ? 1.0f : v;
    return (uint32_t)lrintf(255.0f * v);
}

/* Sample i of a row, brought to 8 bits unless `wide`. */
INLINE uint32_t sample(const void *src, size_t i, theo_pixel type, bool wide) {
    if (type == THEO_U8)
        return ((const uint8_t *)src)[i];
    if (type == THEO_U16)
        return wide ? ((const uint16_t *)src)[i] : (uint32_t)((const uint16_t *)src)[i] >> 8;
    return quantise(((const float *)src)[i]);
}

INLINE void put(void *dst, size_t i, uint32_t value, bool wide) {
    if (wide)
        ((uint16_t *)dst)[i] = (uint16_t)value;
    else
        ((uint8_t *)dst)[i] = (uint8_t)value;
}

/* 65535 * 65536 + 32768 still fits 32 bits, so that the rule holds for 16-bit samples too. */
INLINE uint32_t luma(uint32_t r, uint32_t g, uint32_t b) {
    return (19595u * r + 38470u * g + 7471u * b + 32768u) >> 16;
}

INLINE void convert(void *dst, const void *src, int count, const theo_row_rule *rule, theo_pixel type, bool wide) {
    const size_t n = (size_t)count, step = (size_t)rule->channels;
    const size_t red = rule->bgr && step >= 3 ? 2 : 0, blue = 2 - red;
    const int out = theo_row_channels(rule);

    if (out == 1 && rule->pick == THEO_PICK_LUMA && step >= 3) {
        for (size_t i = 0; i < n; i++) {
            const size_t at = i * step;
            put(dst, i,
                luma(sample(src, at + red, type, wide), sample(src, at + 1, type, wide), sample(src, at + blue, type, wide)),
                wide);
        }
    } else if (out == 1) {
        for (size_t i = 0; i < n; i++)
            put(dst, i, sample(src, i * step + red, type, wide), wide);
    } else if (out == 2) {
        for (size_t i = 0; i < 2 * n; i++)
            put(dst, i, sample(src, i, type, wide), wide);
    } else {
        const size_t to = (size_t)out;
        for (size_t i = 0; i < n; i++) {
            put(dst, i * to, sample(src, i * step + red, type, wide), wide);
            put(dst, i * to + 1, sample(src, i * step + 1, type, wide), wide);
            put(dst, i * to + 2, sample(src, i * step + blue, type, wide), wide);
            if (out == 4)
                put(dst, i * to + 3, sample(src, i * step + 3, type, wide), wide);
        }
    }
}

/* v * 0 is 0 for every finite v and NaN for all others. */
static bool all_finite(const float *v, size_t count) {
    float sum = 0.0f;
    for (size_t i = 0; i < count; i++)
        sum += v[i] * 0.0f;
    return sum == 0.0f;
}

bool theo_row_u8(uint8_t *dst, const void *src, int count, const theo_row_rule *rule) {
    switch (rule->type) {
    case THEO_U8:
        if (theo_row_is_copy(rule))
            memcpy(dst, src, (size_t)count * (size_t)rule->channels);
        else
            convert(dst, src, count, rule, THEO_U8, false);
        return true;
    case THEO_U16:
        convert(dst, src, count, rule, THEO_U16, false);
        return true;
    default:
        if (!all_finite(src, (size_t)count * (size_t)rule->channels))
            return false;
        convert(dst, src, count, rule, THEO_F32, false);
        return true;
    }
}

void theo_row_u16(uint16_t *dst, const uint16_t *src, int count, const theo_row_rule *rule) {
    convert(dst, src, count, rule, THEO_U16, true);
}
