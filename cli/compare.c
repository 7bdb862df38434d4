#include "compare.h"
#include <math.h>
#include <string.h>

static double from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* IEEE binary16: 1 sign, 5 exponent, 10 fraction bits. */
static double from_half(uint16_t half) {
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double size = exponent == 31 ? (fraction ? NAN : INFINITY)
                  : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                 : ldexp(fraction, -24);
    return half & 0x8000 ? -size : size;
}

static bool is_float(theo_dtype type) {
    return type == THEO_DTYPE_F64 || type == THEO_DTYPE_F32 || type == THEO_DTYPE_F16 || type == THEO_DTYPE_BF16;
}

static double element(const theo_array *array, int64_t i) {
    switch (array->dtype) {
    case THEO_DTYPE_F64:
        return ((const double *)array->data)[i];
    case THEO_DTYPE_F32:
        return (double)((const float *)array->data)[i];
    case THEO_DTYPE_F16:
        return from_half(((const uint16_t *)array->data)[i]);
    default: /* bfloat16: the upper half of a float32 */
        return from_bits((uint32_t)((const uint16_t *)array->data)[i] << 16);
    }
}

static int64_t element_count(const theo_array *array) {
    int64_t count = 1;
    for (int i = 0; i < array->rank; i++)
        count *= array->shape[i];
    return count;
}

static const char *find_problem(const theo_array *ours, const theo_array *theirs) {
    if (!is_float(theirs->dtype))
        return "the reference is no floating-point tensor";
    if (ours->rank != theirs->rank)
        return "the reference has another number of dimensions";
    for (int i = 0; i < ours->rank; i++)
        if (ours->shape[i] != theirs->shape[i])
            return "the reference has another shape";
    return element_count(ours) == 0 ? "there are no elements" : NULL;
}

compare_result compare_arrays(const theo_array *ours, const theo_array *theirs, const compare_gate *gate) {
    compare_result result = {.max_error = NAN, .rms_error = NAN, .rms = NAN, .pcc = NAN, .problem = find_problem(ours, theirs)};
    if (result.problem)
        return result;

    int64_t n = element_count(ours);
    double sum_x = 0, sum_y = 0, squares_y = 0, squares_error = 0, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = element(ours, i), y = element(theirs, i), error = fabs(x - y);
        if (!isfinite(x) || !isfinite(y)) {
            result.problem = "there are values that are not finite";
            return result;
        }
        sum_x += x;
        sum_y += y;
        squares_y += y * y;
        squares_error += error * error;
        largest = fmax(largest, error);
    }
    double mean_x = sum_x / (double)n, mean_y = sum_y / (double)n, xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = element(ours, i) - mean_x, y = element(theirs, i) - mean_y;
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    result.max_error = largest;
    result.rms = sqrt(squares_y / (double)n);
    result.rms_error = result.rms > 0 ? sqrt(squares_error / (double)n) / result.rms : largest > 0 ? INFINITY : 0;
    result.pcc = xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : largest > 0 ? NAN : 1; /* a constant correlates with nothing else */
    result.ok = isinf(gate->max_rel) || largest <= gate->max_rel * result.rms;
    if (isfinite(gate->pcc))
        result.ok = result.ok && result.pcc >= gate->pcc;
    return result;
}
