/* results.h - memory of results: given back blocks are used again, by any thread and also after the session has gone. */
#ifndef THEO_API_RESULTS_H
#define THEO_API_RESULTS_H

#include "base/error.h"

/* Held by the session and by every result that is out. */
typedef struct theo_results theo_results;

theo_results *theo_results_new(void); /* NULL: out of memory */
/* The session ends: no block is kept any longer. NULL is allowed. */
void theo_results_close(theo_results *results);

/* A block of at least `bytes`, 64-byte aligned, contents undefined; NULL when out of memory. */
void *theo_results_take(theo_results *results, size_t bytes);
/* Back to where it came from. NULL is allowed. */
void theo_results_give(void *block);

#endif
