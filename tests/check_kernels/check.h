/* check.h - what the tests of kernels share: guarded memory, values, comparison, timing.
 *
 * A group of kernels is a file check_GROUP.c with an array of check_test, named in main.c. A test's prove() compares c->k (the
 * level under test) with c->c (the reference) over many cases; each case ends with check_end(). */
#ifndef THEO_TESTS_CHECK_H
#define THEO_TESTS_CHECK_H

#include "base/pool.h"
#include "kernels/kernels.h"

typedef struct check_block check_block;

typedef struct check {
    const theo_kernels *c, *k;       /* reference, level under test */
    int threads;                     /* --threads, for benches that use more than one */
    theo_pool *pool;                 /* of that many, NULL with one */
    uint64_t random;                 /* state */
    double best_peak, best_peak_all; /* GFLOP/s of one and of all threads: see check_peak */

    const char *test;
    int cases, failures;
    bool case_failed;
    check_block *blocks; /* of the case at hand */
} check;

typedef struct check_test {
    const char *name;
    void (*prove)(check *c);
    void (*bench)(check *c); /* NULL: not worth timing */
} check_test;

/* The groups, each ended by a test without name. */
extern const check_test check_attention_tests[], check_math_tests[], check_gemm_tests[], check_winograd_tests[],
    check_conv3x3_tests[], check_row_tests[], check_map_tests[], check_channel_tests[];

/* ---- values: the same for the same seed, test and level */

uint32_t check_bits(check *c);
int check_between(check *c, int low, int high); /* low .. high, both included */
float check_normal(check *c);                   /* mean 0, deviation 1 */
bool check_chance(check *c, double probability);

typedef enum check_kind {
    CHECK_NORMAL, /* normal deviates */
    CHECK_NASTY   /* the same with zeros, -0.0, denormals, and magnitudes up to 1e15 and down to 1e-30 */
} check_kind;

void check_fill(check *c, check_kind kind, float *x, size_t n);

/* ---- memory: of the case at hand, released by check_end */

/* n elements that end at, or begin after, a page that may not be touched; the other side has canaries. All bytes begin as
 * CHECK_UNTOUCHED, a NaN that no kernel produces. */
#define CHECK_UNTOUCHED 0x7fadfadeu
void *check_buffer(check *c, size_t n, size_t element);
float *check_floats(check *c, size_t n);
float *check_values(check *c, check_kind kind, size_t n); /* floats, filled */
float *check_copy(check *c, const float *x, size_t n);

/* Counts the case, checks its canaries and releases its memory. `what` describes it in failures. */
void check_end(check *c, const char *what, ...) __attribute__((format(printf, 2, 3)));

/* ---- comparison */

/* |got - want| <= bound, element by element; two NaNs agree; an element that only one side wrote does not. bound NULL: equal. */
void check_compare(check *c, const char *name, const float *got, const float *want, const float *bound, size_t n);
void check_that(check *c, bool condition, const char *what, ...) __attribute__((format(printf, 3, 4)));

/* ---- timing */

/* Least seconds of one call, of as many as fit into about 0.15 s (one if it takes longer). */
double check_seconds(void (*fn)(void *), void *context);
/* GFLOP/s of fused multiply-adds at c->k on `threads` threads: measured now, the best of this run is returned. */
double check_peak(check *c, int threads);
/* One timed call: FLOP done or, where that says little, bytes read and written. */
typedef struct check_result {
    double flops, bytes, seconds;
    double c_work, c_seconds; /* the C kernel on as little as shows its rate: FLOP (or bytes), time; 0 seconds: not timed */
    int threads;              /* 0 is 1 */
} check_result;
/* Prints one line: time, rate, percentage of the FMA peak measured in this run, speed-up over C. */
void check_report(check *c, const char *what, check_result result);

#endif
