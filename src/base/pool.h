/* pool.h - a fixed set of threads that share numbered tasks. The caller takes part. */
#ifndef THEO_BASE_POOL_H
#define THEO_BASE_POOL_H

#include <theo/theo.h>

/* task: 0..tasks-1, each exactly once, in no fixed order (dynamic: an atomic counter). worker: 0..threads-1, stable within one call: index of per-thread scratch. */
typedef void (*theo_task_fn)(void *context, int task, int worker);

int theo_pool_threads(const theo_pool *pool); /* 1 for NULL */

/* Runs all tasks and returns when the last one is done. NULL pool, one thread or one task: inline on the caller. A call from inside a task runs inline
 * (worker = the calling worker's index is NOT kept: it is 0 of a nested region, so nested code must bring its own scratch). Regions of concurrent callers take turns.
 * Never allocates. Waiting threads spin for some microseconds, then sleep. */
void theo_pool_run(theo_pool *pool, int tasks, theo_task_fn fn, void *context);

theo_pool *theo_pool_retain(theo_pool *pool); /* one more holder; theo_pool_close gives it up */

#endif
