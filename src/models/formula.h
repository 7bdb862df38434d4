/* formula.h - numbers that only depend on a name and an index: weights for tests that need no checkpoint.
 *
 * v(name, i) = (z >> 40) / 2^24 * 2 - 1, where z is the finaliser of splitmix64 applied to FNV-1a64(name) + (i + 1) *
 * 0x9E3779B97F4A7C15. */
#ifndef THEO_MODELS_FORMULA_H
#define THEO_MODELS_FORMULA_H

#include <stdint.h>

uint64_t theo_formula_seed(const char *name);
/* In [-1, 1), a multiple of 2^-23. */
double theo_formula_value(uint64_t seed, uint64_t index);

#endif
