/* pool.h - a fixed set of threads that share numbered tasks. The caller takes part. */
#ifndef THEO_BASE_POOL_H
#define THEO_BASE_POOL_H

#include <theo/theo.h>

enum { THEO_POOL_MAX_THREADS = 256 };

/* task: 0..tasks-1, each exactly once, in no fixed order (an atomic counter hands them out). worker: 0..threads-1, different for
 * threads that work at the same time: index of per-thread scratch. */
typedef void (*theo_task_fn)(void *context, int task, int worker);

int theo_pool_threads(const theo_pool *pool); /* 1 for NULL */

/* Runs all tasks and returns when the last one is done; what they wrote is visible then.
 *  - NULL pool, one thread or one task: inline on the caller, as worker 0.
 *  - From inside of a task (of any pool): inline too, as worker 0 of a region of its own, so nested code must bring its own
 * scratch.
 *  - Regions of concurrent callers take turns, in the order in which they came.
 * Never allocates. A thread without work spins for some microseconds (not when the pool has more threads than there are CPUs),
 * then sleeps. A worker that wakes up late finds the region closed and is not waited for. */
void theo_pool_run(theo_pool *pool, int tasks, theo_task_fn fn, void *context);

/* One more holder; theo_pool_close gives it up. The last close ends and joins the threads: not from inside of a task.
 * Threads do not survive fork(): a child process must not use its parent's pools. */
theo_pool *theo_pool_retain(theo_pool *pool);

#endif
