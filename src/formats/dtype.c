#include "formats/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [THEO_DTYPE_F64] = {"F64", 8},   [THEO_DTYPE_F32] = {"F32", 4},   [THEO_DTYPE_F16] = {"F16", 2},
    [THEO_DTYPE_BF16] = {"BF16", 2}, [THEO_DTYPE_I64] = {"I64", 8},   [THEO_DTYPE_I32] = {"I32", 4},
    [THEO_DTYPE_I16] = {"I16", 2},   [THEO_DTYPE_I8] = {"I8", 1},     [THEO_DTYPE_U64] = {"U64", 8},
    [THEO_DTYPE_U32] = {"U32", 4},   [THEO_DTYPE_U16] = {"U16", 2},   [THEO_DTYPE_U8] = {"U8", 1},
    [THEO_DTYPE_BOOL] = {"BOOL", 1}, [THEO_DTYPE_TEXT] = {"text", 0},
};

enum { TYPES = sizeof types / sizeof types[0] };

size_t theo_dtype_bytes(theo_dtype dtype) {
    return (unsigned)dtype < TYPES ? types[dtype].bytes : 0;
}

const char *theo_dtype_name(theo_dtype dtype) {
    return (unsigned)dtype < TYPES ? types[dtype].name : "unknown";
}

bool theo_dtype_parse(theo_dtype *dtype, const char *name) {
    for (int i = 0; i < TYPES; i++)
        if (types[i].bytes && strcmp(types[i].name, name) == 0) {
            *dtype = (theo_dtype)i;
            return true;
        }
    return false;
}

bool theo_shape_bytes(const int64_t *shape, int rank, theo_dtype dtype, int64_t *elements, size_t *bytes) {
    int64_t count = 1, size;
    for (int i = 0; i < rank; i++)
        if (shape[i] < 0 || __builtin_mul_overflow(count, shape[i], &count))
            return false;
    if (__builtin_mul_overflow(count, (int64_t)theo_dtype_bytes(dtype), &size))
        return false;
    *elements = count;
    *bytes = (size_t)size;
    return true;
}

/* The loops below choose by masks instead of branches, so that compilers vectorise them for any instruction set. Widening is
 * exact and never touches a subnormal float: flush-to-zero in the caller's thread does not change it. */

static inline float as_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t as_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

void theo_f16_to_f32(float *out, const void *in, size_t count) {
    const unsigned char *bytes = in;
    for (size_t i = 0; i < count; i++) {
        uint16_t h;
        memcpy(&h, bytes + 2 * i, sizeof h);
        uint32_t sign = (uint32_t)(h & 0x8000) << 16;
        uint32_t magnitude = (uint32_t)(h & 0x7fff) << 13;
        uint32_t exponent = magnitude & 0x0f800000;
        uint32_t normal = magnitude + (112u << 23);
        uint32_t special = magnitude + (224u << 23); /* infinity and NaN keep an exponent of all ones */
        /* 2^-14 with the fraction, less 2^-14: the subnormal's value */
        uint32_t subnormal = as_bits(as_float(magnitude + (113u << 23)) - as_float(113u << 23));
        uint32_t value = exponent == 0x0f800000 ? special : exponent == 0 ? subnormal : normal;
        out[i] = as_float(value | sign);
    }
}

void theo_bf16_to_f32(float *out, const void *in, size_t count) {
    const unsigned char *bytes = in;
    for (size_t i = 0; i < count; i++) {
        uint16_t h;
        memcpy(&h, bytes + 2 * i, sizeof h);
        out[i] = as_float((uint32_t)h << 16);
    }
}

void theo_f32_to_f16(uint16_t *out, const float *in, size_t count) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = as_bits(in[i]);
        uint32_t sign = bits >> 16 & 0x8000;
        uint32_t magnitude = bits & 0x7fffffff;
        /* Round half to even: add just below half of the last kept place, and one more when that place is odd. A carry runs into
         * the exponent, up to infinity, as it should. */
        uint32_t rounded = (magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13;
        uint32_t normal = rounded - (112u << 10);
        /* Below 2^-14: adding 0.5 leaves the multiple of 2^-24 in the low bits, rounded to even by the addition itself. */
        uint32_t subnormal = as_bits(as_float(magnitude) + 0.5f) - as_bits(0.5f);
        uint32_t nan = 0x7e00 | (magnitude >> 13 & 0x3ff);
        uint32_t value = magnitude > 0x7f800000    ? nan
                         : magnitude >= 0x47800000 ? 0x7c00
                         : magnitude < 0x38800000  ? subnormal
                                                   : normal;
        out[i] = (uint16_t)(value | sign);
    }
}
