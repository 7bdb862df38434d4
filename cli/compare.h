/* compare.h - two arrays of numbers compared: errors, correlation, gate. */
#ifndef THEO_CLI_COMPARE_H
#define THEO_CLI_COMPARE_H

#include <stdbool.h>
#include <theo/files.h>

/* Bounds: the largest error relative to the root mean square of the reference, and the least correlation. Infinite = no bound. */
typedef struct compare_gate {
    double max_rel, pcc;
} compare_gate;

typedef struct compare_result {
    double max_error; /* largest |ours - theirs| */
    double rms_error; /* root mean square of the difference, relative to `rms` */
    double rms;       /* of the reference */
    double pcc;       /* Pearson correlation; 1 for equal constants, NaN where it is not defined */
    bool ok;
    const char *problem; /* why the numbers were not compared (other shape, other type, not finite); static storage */
} compare_result;

/* ours is float32; theirs any floating-point type. */
compare_result compare_arrays(const theo_array *ours, const theo_array *theirs, const compare_gate *gate);

#endif
