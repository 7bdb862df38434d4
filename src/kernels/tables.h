/* tables.h - what fills a level's table. Each function overrides the entries that its files implement. */
#ifndef THEO_KERNELS_TABLES_H
#define THEO_KERNELS_TABLES_H

#include "kernels/kernels.h"

void theo_kernels_add_c(theo_kernels *table);
void theo_kernels_add_avx2(theo_kernels *table);
void theo_kernels_add_avx512(theo_kernels *table);
void theo_kernels_add_neon(theo_kernels *table);

#endif
