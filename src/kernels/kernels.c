#include "kernels/kernels.h"
#include "kernels/tables.h"
#include <pthread.h>
#include <theo/inspect.h>

static theo_kernels tables[THEO_CPU_COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A level starts as a copy of the one below it. */
static void derive(theo_cpu level, theo_cpu below, void (*add)(theo_kernels *)) {
    if (level != below)
        tables[level] = tables[below];
    if (add) {
        tables[level].level = level;
        add(&tables[level]);
    }
}

/* Levels that were not compiled in stay copies, and carry the level that they are copies of. */
static void fill(void) {
    derive(THEO_CPU_C, THEO_CPU_C, theo_kernels_add_c);
#ifdef __x86_64__
    derive(THEO_CPU_AVX2, THEO_CPU_C, theo_kernels_add_avx2);
    derive(THEO_CPU_AVX512, THEO_CPU_AVX2, theo_kernels_add_avx512);
#else
    derive(THEO_CPU_AVX2, THEO_CPU_C, NULL);
    derive(THEO_CPU_AVX512, THEO_CPU_C, NULL);
#endif
    derive(THEO_CPU_VNNI, THEO_CPU_AVX512, NULL);
    derive(THEO_CPU_BF16, THEO_CPU_AVX512, NULL);
#ifdef __aarch64__
    derive(THEO_CPU_NEON, THEO_CPU_C, theo_kernels_add_neon);
#else
    derive(THEO_CPU_NEON, THEO_CPU_C, NULL);
#endif
    derive(THEO_CPU_DOTPROD, THEO_CPU_NEON, NULL);
}

const theo_kernels *theo_kernels_for(theo_cpu level) {
    pthread_once(&once, fill);
    return &tables[(unsigned)level < THEO_CPU_COUNT ? level : THEO_CPU_C];
}

const char *theo_cpu_level(void) {
    return theo_cpu_name(theo_kernels_for(theo_cpu_level_in_use())->level);
}
