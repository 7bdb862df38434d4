/* bench_model.h - the model that theo bench measures. */
#ifndef THEO_CLI_BENCH_MODEL_H
#define THEO_CLI_BENCH_MODEL_H

#include "common.h"

enum { BENCH_LOADS = 5 }; /* at most */

/* Opens the model some times, as long as that takes no longer than a second together; the last one stays open. loads[count]: how
 * long each took. `synthetic`: formula weights in the layout of the catalogue's `name`, in a temporary file that is gone
 * afterwards. EXIT_DONE, or the exit code after saying what is wrong. */
int bench_model_open(engine *opened, const arguments *args, const char *name, bool synthetic, double loads[BENCH_LOADS],
                     int *count);

#endif
