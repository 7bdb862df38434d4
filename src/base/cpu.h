/* cpu.h - which instruction sets may be used. CPUID and XCR0 decide; the environment variable THEO_CPU caps the level. */
#ifndef THEO_BASE_CPU_H
#define THEO_BASE_CPU_H

#include <stdbool.h>

/* Cumulative on x86: each includes the ones before it. NEON stands alone on aarch64. */
typedef enum theo_cpu {
    THEO_CPU_C = 0,
    THEO_CPU_AVX2,   /* AVX2 + FMA + F16C */
    THEO_CPU_AVX512, /* F, BW, CD, DQ, VL */
    THEO_CPU_VNNI,   /* reserved: int8 kernels */
    THEO_CPU_BF16,   /* reserved: AVX512_BF16 kernels */
    THEO_CPU_NEON,
    THEO_CPU_DOTPROD, /* reserved */
    THEO_CPU_COUNT
} theo_cpu;

/* Best level of this machine, whatever THEO_CPU says. */
theo_cpu theo_cpu_detect(void);
/* Level to use: theo_cpu_detect() capped by THEO_CPU=c|avx2|avx512|vnni|bf16|neon|dotprod (other words cap nothing). Computed
 * once. */
theo_cpu theo_cpu_level_in_use(void);
/* `best` capped by a word as THEO_CPU holds it (NULL: no cap). A level above `best` or of another architecture caps nothing. */
theo_cpu theo_cpu_cap(theo_cpu best, const char *word);
/* Is the word a level's name, of whatever architecture? */
bool theo_cpu_is_level(const char *word);
/* Can this machine run that level? THEO_CPU_C always. */
bool theo_cpu_supported(theo_cpu level);
/* "avx2" */
const char *theo_cpu_name(theo_cpu level);

#endif
