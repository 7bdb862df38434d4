/* check_kernels - proves every kernel of every CPU level against the C level, and times it at the networks' shapes. */
#include "check.h"
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: check_kernels [--bench] [--isa LEVEL] [--filter TEXT] [--threads N] [SEED]\n"
    "Proves the kernels of every CPU level that this machine can run against the C level.\n"
    "  --bench        time them too (C level: as the yardstick)\n"
    "  --isa LEVEL    that level alone: c, avx2, avx512, neon ...; exit code 77 if this machine lacks it\n"
    "  --filter TEXT  kernels whose name contains TEXT\n"
    "  --threads N    benches that can use more than one thread also run on N\n"
    "  SEED           of the random values; printed, so that a failure can be repeated\n";

static const check_test *const groups[] = {check_math_tests,    check_gemm_tests, check_attention_tests, check_winograd_tests,
                                           check_conv3x3_tests, check_row_tests,  check_map_tests,       check_channel_tests};

/* A kernel that touches a guard page ends its test, not the run. */
static sigjmp_buf on_fault;

static void fault(int signal_number) {
    siglongjmp(on_fault, signal_number);
}

typedef struct options {
    bool bench;
    const char *isa, *filter;
    int threads;
    uint64_t seed;
} options;

static bool parse(options *o, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--bench") == 0) {
            o->bench = true;
        } else if (strcmp(argv[i], "--isa") == 0 && more) {
            o->isa = argv[++i];
        } else if (strcmp(argv[i], "--filter") == 0 && more) {
            o->filter = argv[++i];
        } else if (strcmp(argv[i], "--threads") == 0 && more) {
            o->threads = atoi(argv[++i]);
            if (o->threads < 1)
                return false;
        } else {
            char *end;
            o->seed = strtoull(argv[i], &end, 10);
            if (!*argv[i] || *end)
                return false;
        }
    }
    return true;
}

/* FNV-1a: values of a test do not depend on which others run. */
static uint64_t hash(const char *text, uint64_t seed) {
    uint64_t h = 0xcbf29ce484222325u ^ seed;
    for (; *text; text++)
        h = (h ^ (uint8_t)*text) * 0x100000001b3u;
    return h;
}

/* One test at one level. Returns false if it failed. */
static bool run(check *c, const check_test *test, const options *o) {
    c->test = test->name;
    c->cases = c->failures = 0;
    c->random = hash(test->name, o->seed);
    if (sigsetjmp(on_fault, 1) == 0) {
        test->prove(c);
    } else {
        check_that(c, false, "memory outside of a buffer was touched");
        check_end(c, "the one after %d good ones", c->cases);
    }
    const char *verdict = c->failures ? "FAILED" : c->cases ? "OK" : "none"; /* none: nothing of the kind at this level */
    printf("%-8s %-16s %-6s  %d cases\n", theo_cpu_name(c->k->level), test->name, verdict, c->cases);
    fflush(stdout);
    if (o->bench && test->bench && !c->failures)
        test->bench(c);
    return c->failures == 0;
}

static bool run_level(check *c, const options *o) {
    bool ok = true;
    if (o->bench)
        printf("%-8s FMA peak of one thread: %.1f GFLOP/s\n", theo_cpu_name(c->k->level), check_peak(c, 1));
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++)
        for (const check_test *test = groups[g]; test->name; test++)
            if (!o->filter || strstr(test->name, o->filter))
                ok = run(c, test, o) && ok;
    return ok;
}

int main(int argc, char **argv) {
    options o = {.threads = 1, .seed = (uint64_t)time(NULL)};
    if (!parse(&o, argc, argv)) {
        fputs(usage, stderr);
        return 2;
    }
    theo_pool *pool = NULL;
    theo_error error;
    if (o.threads > 1 && theo_pool_open(&pool, o.threads, &error) != THEO_OK) {
        fprintf(stderr, "check_kernels: %s\n", error.message);
        return 2;
    }
    struct sigaction action = {.sa_handler = fault};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);

    printf("check_kernels: seed %llu\n", (unsigned long long)o.seed);
    bool ok = true, known = false, ran = false;
    for (theo_cpu level = THEO_CPU_C; level < THEO_CPU_COUNT; level++) {
        const theo_kernels *kernels = theo_kernels_for(level);
        if (o.isa && strcmp(o.isa, theo_cpu_name(level)) != 0)
            continue;
        known = true;
        if (kernels->level != level) {
            printf("%-8s skipped: no kernels of its own in this build\n", theo_cpu_name(level));
        } else if (!theo_cpu_supported(level)) {
            printf("%-8s skipped: this machine cannot run it\n", theo_cpu_name(level));
        } else {
            check c = {.c = theo_kernels_for(THEO_CPU_C), .k = kernels, .threads = o.threads, .pool = pool};
            ok = run_level(&c, &o) && ok;
            ran = true;
        }
    }
    theo_pool_close(pool);
    if (!known) {
        fprintf(stderr, "check_kernels: --isa %s: no such level\n", o.isa);
        return 2;
    }
    return !ran ? 77 : ok ? 0 : 1;
}
