/* order.h - values by their rank. */
#ifndef THEO_GEOMETRY_ORDER_H
#define THEO_GEOMETRY_ORDER_H

#include <stddef.h>

/* The value that would stand at `rank` (from 0) of the sorted values; reorders them. No NaN among them, rank < count. */
double theo_value_of_rank(double *values, size_t count, size_t rank);
/* NumPy's percentile (linear between two ranks), 0 to 100; 50 is the median. Reorders the values; count >= 1. */
double theo_percentile(double *values, size_t count, double percent);

#endif
