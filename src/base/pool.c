/* How a region runs: the caller takes its turn, writes the region (fn, context, tasks), opens the gate and raises the epoch.
 * Workers wait for a new epoch; then each tries to enter: the gate counts who is inside. Caller and workers draw task numbers
 * until none are left. The caller closes the gate, so that nobody enters any more, and waits until it is empty: only workers that
 * did enter are waited for, not those that the system has yet to schedule.
 *
 * All waiting is "spin, then sleep in the kernel on the word that will change" (futex). */
#include "base/pool.h"

#include "base/clock.h"
#include "base/cpus.h"
#include "base/error.h"
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The gate: the number of workers inside, and two flags. */
#define GATE_OPEN    0x80000000u /* workers may enter */
#define GATE_WAITING 0x40000000u /* the caller sleeps until the last one has left */

typedef struct worker {
    theo_pool *pool;
    int index; /* 1..threads-1 */
    pthread_t thread;
} worker;

/* Words that different threads write lie on cache lines of their own. */
struct theo_pool {
    _Alignas(64) theo_task_fn fn; /* the region: written by the caller before the gate opens */
    void *context;
    int tasks;
    _Alignas(64) _Atomic int next; /* the next task to hand out */
    _Alignas(64) _Atomic uint32_t gate;
    _Alignas(64) _Atomic uint32_t epoch; /* raised with each region, and at the end */
    _Atomic uint32_t sleepers;           /* workers that sleep on `epoch` */
    _Atomic bool ending;
    _Alignas(64) _Atomic uint32_t turn_taken, turn_served; /* a ticket lock, so that callers alternate */
    _Alignas(64) _Atomic int holders;
    int threads;
    double spin_ms;
    worker workers[]; /* [threads - 1] */
};

/* This thread is inside of a task: regions that it starts run inline. */
static _Thread_local bool inside_task;

/* ---- waiting */

static void futex_wait(_Atomic uint32_t *word, uint32_t while_it_is) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_it_is, NULL, NULL, 0); /* may return early: callers loop */
}

static void futex_wake(_Atomic uint32_t *word, int count) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* `yield` takes no time on most cores */
#endif
}

/* Spins until the word differs from `value`; gives its last value. */
static uint32_t spin_while(_Atomic uint32_t *word, uint32_t value, double spin_ms) {
    uint32_t now = atomic_load_explicit(word, memory_order_acquire);
    if (now != value || spin_ms <= 0)
        return now;
    double end = theo_clock_ms() + spin_ms;
    do {
        for (int i = 0; i < 16; i++) {
            relax();
            now = atomic_load_explicit(word, memory_order_acquire);
            if (now != value)
                return now;
        }
    } while (theo_clock_ms() < end);
    return now;
}

/* ---- regions */

static void draw_tasks(theo_pool *pool, int index) {
    theo_task_fn fn = pool->fn;
    void *context = pool->context;
    int tasks = pool->tasks;
    inside_task = true;
    for (;;) {
        int task = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (task >= tasks)
            break;
        fn(context, task, index);
    }
    inside_task = false;
}

static bool enter(theo_pool *pool) {
    uint32_t gate = atomic_load_explicit(&pool->gate, memory_order_relaxed);
    while (gate & GATE_OPEN)
        if (atomic_compare_exchange_weak_explicit(&pool->gate, &gate, gate + 1, memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

static void leave(theo_pool *pool) {
    if (atomic_fetch_sub_explicit(&pool->gate, 1, memory_order_release) == (GATE_WAITING | 1))
        futex_wake(&pool->gate, 1);
}

/* Closes the gate and waits until the workers are out. */
static void finish_region(theo_pool *pool) {
    uint32_t gate = atomic_fetch_and_explicit(&pool->gate, ~GATE_OPEN, memory_order_acquire) & ~GATE_OPEN;
    double end = theo_clock_ms() + pool->spin_ms;
    while (gate & ~GATE_WAITING) {
        if (pool->spin_ms > 0 && theo_clock_ms() < end) {
            gate = spin_while(&pool->gate, gate, pool->spin_ms);
        } else if (!(gate & GATE_WAITING)) {
            gate = atomic_fetch_or_explicit(&pool->gate, GATE_WAITING, memory_order_acquire) | GATE_WAITING;
        } else {
            futex_wait(&pool->gate, gate);
            gate = atomic_load_explicit(&pool->gate, memory_order_acquire);
        }
    }
}

static void take_turn(theo_pool *pool) {
    uint32_t mine = atomic_fetch_add_explicit(&pool->turn_taken, 1, memory_order_relaxed);
    uint32_t served;
    /* No spinning: the threads of the region that is running need the CPUs. */
    while ((served = atomic_load_explicit(&pool->turn_served, memory_order_acquire)) != mine)
        futex_wait(&pool->turn_served, served);
}

static void pass_turn(theo_pool *pool) {
    uint32_t served = atomic_fetch_add_explicit(&pool->turn_served, 1, memory_order_seq_cst) + 1;
    if (atomic_load_explicit(&pool->turn_taken, memory_order_seq_cst) != served)
        futex_wake(&pool->turn_served, INT_MAX);
}

static void raise_epoch(theo_pool *pool, int wake) {
    atomic_fetch_add_explicit(&pool->epoch, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&pool->sleepers, memory_order_seq_cst) > 0)
        futex_wake(&pool->epoch, wake);
}

void theo_pool_run(theo_pool *pool, int tasks, theo_task_fn fn, void *context) {
    if (!pool || pool->threads == 1 || tasks <= 1 || inside_task) {
        bool nested = inside_task;
        inside_task = true;
        for (int task = 0; task < tasks; task++)
            fn(context, task, 0);
        inside_task = nested;
        return;
    }
    take_turn(pool);
    pool->fn = fn;
    pool->context = context;
    pool->tasks = tasks;
    atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->gate, GATE_OPEN, memory_order_release);
    raise_epoch(pool, tasks - 1); /* the caller takes one task itself */
    draw_tasks(pool, 0);
    finish_region(pool);
    pass_turn(pool);
}

/* ---- threads */

static void *worker_main(void *argument) {
    worker *self = argument;
    theo_pool *pool = self->pool;
    uint32_t seen = 0;
    for (;;) {
        uint32_t epoch = spin_while(&pool->epoch, seen, pool->spin_ms);
        while (epoch == seen) {
            atomic_fetch_add_explicit(&pool->sleepers, 1, memory_order_seq_cst);
            futex_wait(&pool->epoch, seen); /* the kernel looks at the epoch again: a raise before this line is not missed */
            atomic_fetch_sub_explicit(&pool->sleepers, 1, memory_order_relaxed);
            epoch = atomic_load_explicit(&pool->epoch, memory_order_acquire);
        }
        seen = epoch;
        if (atomic_load_explicit(&pool->ending, memory_order_acquire))
            return NULL;
        if (enter(pool)) {
            draw_tasks(pool, self->index);
            leave(pool);
        }
    }
}

/* Workers take no signals: those are the application's, for its own threads. */
static int start_worker(worker *w) {
    pthread_attr_t attributes;
    sigset_t all;
    sigfillset(&all);
    int failed = pthread_attr_init(&attributes);
    if (failed)
        return failed;
    failed = pthread_attr_setsigmask_np(&attributes, &all);
    if (!failed)
        failed = pthread_create(&w->thread, &attributes, worker_main, w);
    pthread_attr_destroy(&attributes);
    if (!failed)
        pthread_setname_np(w->thread, "theo-worker");
    return failed;
}

static void end_threads(theo_pool *pool, int started) {
    atomic_store_explicit(&pool->ending, true, memory_order_release);
    raise_epoch(pool, INT_MAX);
    for (int i = 0; i < started; i++)
        pthread_join(pool->workers[i].thread, NULL);
}

theo_status theo_pool_open(theo_pool **out, int threads, theo_error *err) {
    *out = NULL;
    if (threads < 0 || threads > THEO_POOL_MAX_THREADS)
        return theo_fail(err, THEO_ARGUMENT, NULL, "threads", "%d is out of range: 1 to %d, or 0 for one per CPU", threads,
                         THEO_POOL_MAX_THREADS);
    int cpus = theo_default_threads();
    if (threads == 0)
        threads = cpus;

    theo_pool *pool = theo_alloc_aligned(sizeof *pool + sizeof(worker) * (size_t)(threads - 1));
    if (!pool)
        return theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory for a pool of %d threads", threads);
    pool->threads = threads;
    pool->spin_ms = threads <= cpus ? 0.05 : 0; /* longer than the pause between two operations of a plan */
    atomic_init(&pool->next, 0);
    atomic_init(&pool->gate, 0);
    atomic_init(&pool->epoch, 0);
    atomic_init(&pool->sleepers, 0);
    atomic_init(&pool->ending, false);
    atomic_init(&pool->turn_taken, 0);
    atomic_init(&pool->turn_served, 0);
    atomic_init(&pool->holders, 1);

    for (int i = 0; i < threads - 1; i++) {
        pool->workers[i] = (worker){.pool = pool, .index = i + 1};
        int failed = start_worker(&pool->workers[i]);
        if (failed) {
            end_threads(pool, i);
            theo_free_aligned(pool);
            errno = failed;
            return theo_fail_errno(err, NULL, "cannot start a thread");
        }
    }
    *out = pool;
    return THEO_OK;
}

theo_pool *theo_pool_retain(theo_pool *pool) {
    if (pool)
        atomic_fetch_add_explicit(&pool->holders, 1, memory_order_relaxed);
    return pool;
}

void theo_pool_close(theo_pool *pool) {
    if (!pool || atomic_fetch_sub_explicit(&pool->holders, 1, memory_order_acq_rel) > 1)
        return;
    end_threads(pool, pool->threads - 1);
    theo_free_aligned(pool);
}

int theo_pool_threads(const theo_pool *pool) {
    return pool ? pool->threads : 1;
}
