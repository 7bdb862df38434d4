/* Quickselect (Hoare 1961) with the median of three as the pivot. */
#include "geometry/order.h"
#include <math.h>

static void swap(double *a, double *b) {
    double c = *a;
    *a = *b;
    *b = c;
}

/* Puts the median of the first, middle and last value first. */
static void choose_pivot(double *v, size_t count) {
    double *first = v, *middle = v + count / 2, *last = v + count - 1;
    if (*middle < *first)
        swap(middle, first);
    if (*last < *first)
        swap(last, first);
    if (*last < *middle)
        swap(last, middle);
    swap(first, middle);
}

double theo_value_of_rank(double *v, size_t count, size_t rank) {
    while (count > 1) {
        choose_pivot(v, count);
        double pivot = v[0];
        size_t low = 0, high = count - 1; /* v[.. low) <= pivot, v(high ..] >= pivot */
        while (low <= high) {
            while (v[low] < pivot)
                low++;
            while (v[high] > pivot)
                high--;
            if (low > high)
                break;
            swap(&v[low++], &v[high]);
            if (high == 0)
                break;
            high--;
        }
        if (rank <= high) {
            count = high + 1;
        } else if (rank >= low) {
            v += low;
            count -= low;
            rank -= low;
        } else {
            return pivot;
        }
    }
    return v[0];
}

double theo_percentile(double *values, size_t count, double percent) {
    double at = percent / 100 * (double)(count - 1);
    size_t low = (size_t)floor(at);
    double a = theo_value_of_rank(values, count, low), share = at - (double)low;
    if (share == 0 || low + 1 >= count)
        return a;
    const double b = theo_value_of_rank(values, count, low + 1);
    return a == b ? a : a + (b - a) * share; /* both may be infinite */
}
