/* kernels.h - the table of computing kernels: plain functions on pointers. They know nothing of threads, memory or models.
 *
 * One const table per CPU level; a level overrides what it implements and keeps the rest of the level below. The C level is the
 * readable reference. `check_kernels` proves every entry against it.
 *
 * Panel formats. KU = 16 everywhere.
 *   A panel: MR rows, K cut into chunks of 16:  [ceil(K/16)][MR][16], zero padded. A row's 16 values are contiguous, so packing
 *            is copying, and every address inside a chunk is a compile-time displacement.
 *   B panel: NR columns:  [K rounded up to 16][NR], zero padded.
 * MR and NR belong to the level (table members mr, nr). */
#ifndef THEO_KERNELS_KERNELS_H
#define THEO_KERNELS_KERNELS_H

#include "base/cpu.h"
#include <stddef.h>
#include <stdint.h>

typedef struct theo_kernels theo_kernels;

/* The table of a level (capped to what was compiled in). Never NULL. */
const theo_kernels *theo_kernels_for(theo_cpu level);

#endif
