#include "base/clock.h"
#include "base/pool.h"
#include "kernels/kernels.h"
#include <theo/inspect.h>

/* A region lasts about this long: the pool's start and end are then noise. */
static const double region_ms = 2.0, total_ms = 50.0;

typedef struct job {
    const theo_kernels *kernels;
    int64_t rounds;
    volatile float sink;
} job;

static void run(void *context, int task, int worker) {
    job *j = context;
    (void)task;
    (void)worker;
    float sum = j->kernels->fma_rounds(j->rounds);
    if (sum < 0.0f) /* never: but the compiler cannot know */
        j->sink = sum;
}

static double region(job *j, theo_pool *pool, int threads) {
    double start = theo_clock_ms();
    theo_pool_run(pool, threads, run, j);
    return theo_clock_ms() - start;
}

double theo_measure_peak_gflops(int threads) {
    if (threads < 1)
        threads = 1;
    theo_pool *pool = NULL;
    if (threads > 1 && theo_pool_open(&pool, threads, NULL) != THEO_OK)
        return 0.0;
    job j = {.kernels = theo_kernels_for(theo_cpu_level_in_use()), .rounds = 1024};
    double start = theo_clock_ms(), ms = region(&j, pool, threads);
    while (ms < region_ms) {
        j.rounds *= 2;
        ms = region(&j, pool, threads);
    }
    double least = ms;
    while (theo_clock_ms() - start < total_ms) {
        ms = region(&j, pool, threads);
        least = ms < least ? ms : least;
    }
    theo_pool_close(pool);
    return (double)threads * (double)j.rounds * j.kernels->fma_flops / (least * 1e6);
}
