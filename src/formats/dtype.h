/* dtype.h - element types: size, safetensors name, and conversion to and from float32. */
#ifndef THEO_FORMATS_DTYPE_H
#define THEO_FORMATS_DTYPE_H

#include <theo/files.h>

size_t theo_dtype_bytes(theo_dtype dtype);     /* 1, 2, 4 or 8; 0 for THEO_DTYPE_TEXT */
const char *theo_dtype_name(theo_dtype dtype); /* as in safetensors: "F32" */
bool theo_dtype_parse(theo_dtype *dtype, const char *name);

/* Product of the dimensions and the bytes of that many elements. THEO_BOUNDS where a dimension is negative or a product
 * overflows. */
bool theo_shape_bytes(const int64_t *shape, int rank, theo_dtype dtype, int64_t *elements, size_t *bytes);

/* Exact; `in` may be unaligned. */
void theo_f16_to_f32(float *out, const void *in, size_t count);
void theo_bf16_to_f32(float *out, const void *in, size_t count);

#endif
