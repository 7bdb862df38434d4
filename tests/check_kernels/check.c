#include "check.h"
#include "base/clock.h"
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- values */

/* splitmix64 */
uint32_t check_bits(check *c) {
    uint64_t z = c->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

int check_between(check *c, int low, int high) {
    return low + (int)(check_bits(c) % (uint32_t)(high - low + 1));
}

static double unit(check *c) {
    return ((double)check_bits(c) + 0.5) / 4294967296.0;
}

bool check_chance(check *c, double probability) {
    return unit(c) < probability;
}

float check_normal(check *c) {
    double u = unit(c), v = unit(c);
    return (float)(sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v));
}

static float nasty(check *c) {
    static const float special[] = {0.0f,         -0.0f, 1e-40f, -1e-40f, FLT_MIN, -FLT_MIN,
                                    FLT_TRUE_MIN, 1e15f, -1e15f, 1e-30f,  1.0f,    -1.0f};
    if (check_chance(c, 0.4))
        return special[check_bits(c) % (sizeof special / sizeof special[0])];
    return check_normal(c);
}

void check_fill(check *c, check_kind kind, float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        x[i] = kind == CHECK_NASTY ? nasty(c) : check_normal(c);
}

/* ---- memory */

struct check_block {
    check_block *next;
    uint8_t *map;
    size_t map_bytes;
    uint8_t *from, *begin, *end, *to; /* canaries: from .. begin and end .. to */
};

static void fail_memory(void) {
    fprintf(stderr, "check_kernels: out of memory\n");
    exit(2);
}

static void paint(uint8_t *from, const uint8_t *to) {
    static const uint32_t untouched = CHECK_UNTOUCHED;
    for (; from < to; from++)
        memcpy(from, (const uint8_t *)&untouched + ((uintptr_t)from & 3), 1);
}

/* Canaries of a block further away than this are not looked at: what goes astray lands nearby. */
enum { CANARY = 512 };

void *check_buffer(check *c, size_t n, size_t element) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = n * element, body = (bytes + CANARY + page - 1) / page * page;
    check_block *block = calloc(1, sizeof *block);
    uint8_t *map = mmap(NULL, body + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!block || map == MAP_FAILED || mprotect(map, page, PROT_NONE) || mprotect(map + page + body, page, PROT_NONE))
        fail_memory();
    *block = (check_block){.next = c->blocks, .map = map, .map_bytes = body + 2 * page};
    c->blocks = block;
    uint8_t *low = map + page, *high = low + body;
    block->begin = check_chance(c, 0.75) ? high - bytes : low;
    block->end = block->begin + bytes;
    block->from = block->begin - low > CANARY ? block->begin - CANARY : low;
    block->to = high - block->end > CANARY ? block->end + CANARY : high;
    paint(block->from, block->to);
    return block->begin;
}

float *check_floats(check *c, size_t n) {
    return check_buffer(c, n, sizeof(float));
}

float *check_values(check *c, check_kind kind, size_t n) {
    float *x = check_floats(c, n);
    check_fill(c, kind, x, n);
    return x;
}

float *check_copy(check *c, const float *x, size_t n) {
    return memcpy(check_floats(c, n), x, n * sizeof(float));
}

static bool intact(const uint8_t *from, const uint8_t *to) {
    static const uint32_t untouched = CHECK_UNTOUCHED;
    for (; from < to; from++)
        if (*from != ((const uint8_t *)&untouched)[(uintptr_t)from & 3])
            return false;
    return true;
}

void check_end(check *c, const char *what, ...) {
    int before = c->failures;
    for (check_block *block = c->blocks, *next; block; block = next) {
        next = block->next;
        check_that(c, intact(block->from, block->begin), "memory in front of a buffer was written to");
        check_that(c, intact(block->end, block->to), "memory behind a buffer was written to");
        munmap(block->map, block->map_bytes);
        free(block);
    }
    c->blocks = NULL;
    c->cases++;
    if (c->failures > before || c->case_failed) {
        va_list arguments;
        va_start(arguments, what);
        fputs("        case: ", stdout);
        vprintf(what, arguments);
        putchar('\n');
        va_end(arguments);
    }
    c->case_failed = false;
}

/* ---- comparison */

enum { SHOWN = 8 }; /* failures of a test that are printed */

void check_that(check *c, bool condition, const char *what, ...) {
    if (condition)
        return;
    c->case_failed = true;
    if (c->failures++ >= SHOWN)
        return;
    va_list arguments;
    va_start(arguments, what);
    printf("    %s: ", c->test);
    vprintf(what, arguments);
    putchar('\n');
    va_end(arguments);
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static bool agree(float got, float want, float bound) {
    uint32_t g = bits_of(got), w = bits_of(want);
    if (g == w)
        return true;
    if (g == CHECK_UNTOUCHED || w == CHECK_UNTOUCHED)
        return false;
    return got == want || (isnan(got) && isnan(want)) || fabs((double)got - (double)want) <= (double)bound;
}

void check_compare(check *c, const char *name, const float *got, const float *want, const float *bound, size_t n) {
    for (size_t i = 0; i < n; i++) {
        float allowed = bound ? bound[i] : 0.0f;
        if (agree(got[i], want[i], allowed))
            continue;
        bool unwritten = bits_of(got[i]) == CHECK_UNTOUCHED, astray = bits_of(want[i]) == CHECK_UNTOUCHED;
        check_that(c, false, "%s[%zu] is %.9g%s, expected %.9g%s, allowed error %.3g", name, i, (double)got[i],
                   unwritten ? " (never written)" : "", (double)want[i], astray ? " (not to be written)" : "", (double)allowed);
        return; /* the first of an array tells enough */
    }
}

/* ---- timing */

double check_seconds(void (*fn)(void *), void *context) {
    double least = 1e30, start = theo_clock_ms(), now = start;
    do {
        double before = now;
        fn(context);
        now = theo_clock_ms();
        least = now - before < least ? now - before : least;
    } while (now - start < 150.0);
    return least / 1000.0;
}

typedef struct peak_job {
    const theo_kernels *k;
    int64_t rounds;
    volatile float sink;
} peak_job;

static void run_peak(void *context, int task, int worker) {
    peak_job *job = context;
    (void)task;
    (void)worker;
    float sum = job->k->fma_rounds(job->rounds);
    if (sum < 0.0f) /* never: but the compiler cannot know */
        job->sink = sum;
}

double check_peak(check *c, int threads) {
    peak_job job = {.k = c->k, .rounds = 256};
    double least = 0.0;
    while (least < 1.0) { /* ms: long enough for the clock */
        job.rounds *= 2;
        least = 1e30;
        for (int i = 0; i < 12; i++) {
            double start = theo_clock_ms();
            if (threads > 1)
                theo_pool_run(c->pool, threads, run_peak, &job);
            else
                run_peak(&job, 0, 0);
            double ms = theo_clock_ms() - start;
            least = ms < least ? ms : least;
        }
    }
    double rate = (double)threads * (double)job.rounds * c->k->fma_flops / least / 1e6;
    double *best = threads > 1 ? &c->best_peak_all : &c->best_peak;
    *best = rate > *best ? rate : *best;
    return *best;
}

/* The peak over stretches of `seconds`, best of 150 ms: what a shared machine gives for that long, where a millisecond may find a
 * moment without interruptions. check_peak must have run. */
static double long_peak(check *c, int threads, double seconds) {
    double rate = threads > 1 ? c->best_peak_all : c->best_peak, least = 1e30, start = theo_clock_ms(), now;
    peak_job job = {.k = c->k, .rounds = (int64_t)(seconds * rate * 1e9 / (double)threads / c->k->fma_flops) + 1};
    do {
        double before = theo_clock_ms();
        if (threads > 1)
            theo_pool_run(c->pool, threads, run_peak, &job);
        else
            run_peak(&job, 0, 0);
        now = theo_clock_ms();
        least = now - before < least ? now - before : least;
    } while (now - start < 150.0);
    return (double)threads * (double)job.rounds * c->k->fma_flops / least / 1e6;
}

void check_report(check *c, const char *what, check_result r) {
    int threads = r.threads > 1 ? r.threads : 1;
    double rate = (r.flops > 0.0 ? r.flops : r.bytes) / r.seconds / 1e9;
    printf("    %-44s %9.3f ms  %8.2f %s", what, r.seconds * 1e3, rate, r.flops > 0.0 ? "GFLOP/s" : "GB/s   ");
    if (r.flops > 0.0) {
        double peak = check_peak(c, threads);
        printf("  %6.1f %% of peak %.1f", 100.0 * rate / peak, peak);
        double lasting = long_peak(c, threads, r.seconds);
        printf(" (%.1f %% of %.1f, held as long)", 100.0 * rate / lasting, lasting);
    }
    if (threads > 1)
        printf("  %d threads", threads);
    if (r.c_seconds > 0.0)
        printf("  %6.1f x c", rate / (r.c_work / r.c_seconds / 1e9));
    putchar('\n');
    fflush(stdout);
}
