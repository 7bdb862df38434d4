/* The pool: every task once, on the right workers, nested, from several callers at once; then how long a region takes. */
#include "base/clock.h"
#include "base/pool.h"
#include "t.h"
#include <pthread.h>
#include <stdatomic.h>
#include <theo/inspect.h>

enum { MAX_TASKS = 1000 };

typedef struct counts {
    theo_pool *pool;
    int threads;
    _Atomic int done[MAX_TASKS];
    _Atomic int busy[THEO_POOL_MAX_THREADS]; /* tasks that a worker is in: never two */
    _Atomic int wrong;
    int plain[MAX_TASKS]; /* not atomic: the pool itself must order it */
} counts;

static void count_task(void *context, int task, int worker) {
    counts *c = context;
    if (worker < 0 || worker >= c->threads || atomic_fetch_add(&c->busy[worker], 1) != 0)
        atomic_fetch_add(&c->wrong, 1);
    atomic_fetch_add(&c->done[task], 1);
    c->plain[task]++;
    atomic_fetch_sub(&c->busy[worker], 1);
}

static void check_region(theo_pool *pool, int tasks) {
    static counts c;
    memset(&c, 0, sizeof c);
    c.threads = theo_pool_threads(pool);
    theo_pool_run(pool, tasks, count_task, &c);
    int good = 0, beyond = 0;
    for (int i = 0; i < MAX_TASKS; i++) {
        good += i < tasks && c.done[i] == 1 && c.plain[i] == 1;
        beyond += i >= tasks && c.done[i] != 0;
    }
    CHECK_MSG(good == tasks && beyond == 0 && c.wrong == 0, "%d threads, %d tasks: %d done once, %d strangers, %d wrong workers",
              c.threads, tasks, good, beyond, c.wrong);
}

static void sizes(void) {
    for (int threads = 1; threads <= 8; threads++) {
        theo_pool *pool;
        CHECK(theo_pool_open(&pool, threads, NULL) == THEO_OK);
        CHECK(theo_pool_threads(pool) == threads);
        for (int round = 0; round < 20; round++)
            for (int tasks = 0; tasks <= MAX_TASKS; tasks = tasks < 12 ? tasks + 1 : tasks * 3)
                check_region(pool, tasks);
        theo_pool_close(pool);
    }
    check_region(NULL, 17);
    CHECK(theo_pool_threads(NULL) == 1);
}

static void inner(void *context, int task, int worker) {
    counts *c = context;
    if (worker != 0)
        atomic_fetch_add(&c->wrong, 1);
    atomic_fetch_add(&c->done[task], 1);
}

static void outer(void *context, int task, int worker) {
    counts *c = context;
    (void)task, (void)worker;
    theo_pool_run(c->pool, 10, inner, c);
}

static void nested(void) {
    static counts c;
    CHECK(theo_pool_open(&c.pool, 4, NULL) == THEO_OK);
    theo_pool_run(c.pool, 50, outer, &c);
    theo_pool_run(c.pool, 1, outer, &c); /* inline: nested all the same */
    for (int i = 0; i < 10; i++)
        CHECK(c.done[i] == 51);
    CHECK(c.wrong == 0);
    check_region(c.pool, 100); /* and the pool is as before */
    theo_pool_close(c.pool);
}

typedef struct caller {
    theo_pool *pool;
    int64_t sum;
    int wrong;
} caller;

static void add_task(void *context, int task, int worker) {
    (void)worker;
    ((int *)context)[task] += task;
}

static void *call_often(void *argument) {
    caller *me = argument;
    for (int round = 0; round < 300; round++) {
        int values[37] = {0};
        theo_pool_run(me->pool, 37, add_task, values);
        for (int i = 0; i < 37; i++)
            me->wrong += values[i] != i;
    }
    theo_pool_close(me->pool);
    return NULL;
}

static void concurrent_callers(void) {
    theo_pool *pool;
    CHECK(theo_pool_open(&pool, 3, NULL) == THEO_OK);
    caller callers[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        callers[i] = (caller){.pool = theo_pool_retain(pool)};
        CHECK(pthread_create(&threads[i], NULL, call_often, &callers[i]) == 0);
    }
    theo_pool_close(pool); /* the callers hold it */
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK(callers[i].wrong == 0);
    }
}

static void opening(void) {
    theo_pool *pool;
    theo_error e;
    int bad[] = {-1, THEO_POOL_MAX_THREADS + 1};
    for (int i = 0; i < 2; i++) {
        CHECK(theo_pool_open(&pool, bad[i], &e) == THEO_ARGUMENT && pool == NULL);
        CHECK_STR(e.place, "threads");
        CHECK(strstr(e.message, "1 to 256"));
    }
    CHECK(theo_pool_open(&pool, 0, NULL) == THEO_OK);
    CHECK(theo_pool_threads(pool) == theo_default_threads());
    uint64_t before = theo_allocation_count();
    for (int i = 0; i < 100; i++)
        check_region(pool, 50);
    CHECK(theo_allocation_count() == before);
    theo_pool_close(pool);
    theo_pool_close(NULL);
}

static void nothing(void *context, int task, int worker) {
    (void)context, (void)task, (void)worker;
}

/* Not a check: the machine may be busy. */
static void print_cost(void) {
    theo_pool *pool;
    if (theo_pool_open(&pool, 2, NULL))
        return;
    double best = 1e9;
    for (int i = 0; i < 2000; i++) {
        double start = theo_clock_ms();
        theo_pool_run(pool, 2, nothing, NULL);
        double took = theo_clock_ms() - start;
        best = took < best ? took : best;
    }
    double start = theo_clock_ms();
    for (int i = 0; i < 2000; i++)
        theo_pool_run(pool, 2, nothing, NULL);
    printf("an empty region on 2 threads: %.2f us at best, %.2f us on average\n", 1e3 * best, (theo_clock_ms() - start) / 2);
    theo_pool_close(pool);
}

int main(void) {
    opening();
    sizes();
    nested();
    concurrent_callers();
    print_cost();
    return t_done("test_pool");
}
