/* finite.h - are numbers numbers? */
#ifndef THEO_BASE_FINITE_H
#define THEO_BASE_FINITE_H

#include <stdbool.h>
#include <stddef.h>

/* Neither NaN nor infinity among x[0 .. count-1]. At the speed of the memory. */
bool theo_all_finite(const float *x, size_t count);

#endif
