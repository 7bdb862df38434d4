/* problems.h - everything that is wrong with a checkpoint, collected and reported together. */
#ifndef THEO_MODELS_PROBLEMS_H
#define THEO_MODELS_PROBLEMS_H

#include "formats/weights.h"

enum { THEO_TENSOR_NAME_BYTES = 160 };

typedef struct theo_problems {
    theo_status status; /* of the first one */
    int count, untold;
    size_t length;
    char first[THEO_TENSOR_NAME_BYTES]; /* tensor of the first one */
    char text[840];                     /* "; " between them */
} theo_problems;                        /* starts zeroed */

/* The sentence begins with the tensor's name. */
void theo_problems_note(theo_problems *problems, theo_status status, const char *tensor, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The tensor if it is there, floating-point and of this shape, else NULL and a note. want: a size of 0 or less stands for any up
 * to `limit`. */
const theo_weight *theo_problems_expect(theo_problems *problems, const theo_weights *weights, const char *name, int rank,
                                        const int64_t *want, int64_t limit);

/* THEO_OK without problems; else the status of the first, with all of them in one message. */
theo_status theo_problems_status(const theo_problems *problems, const char *path, const char *network, theo_error *err);

#endif
