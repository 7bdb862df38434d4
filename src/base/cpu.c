/* Compiled without instruction-set flags: this file runs before anything is known about the machine. */
#include "base/cpu.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>

/* The state components that the operating system saves: bits 1, 2 = XMM, YMM; 5, 6, 7 = masks and ZMM halves. */
static uint64_t xcr0(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has(uint32_t word, uint32_t bits) {
    return (word & bits) == bits;
}

/* The AVX2 and AVX-512 kernel files are compiled for x86-64-v3 and -v4, so every feature of those levels is asked for.
 * Intel SDM volume 2, CPUID; volume 1, 13.3 and 14.3. */
static theo_cpu detect(void) {
    const uint32_t movbe = 1u << 22, fma = 1u << 12, osxsave = 1u << 27, avx = 1u << 28, f16c = 1u << 29; /* leaf 1 ECX */
    const uint32_t bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8;                                        /* leaf 7 EBX */
    const uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31;                         /* F DQ CD BW VL */
    const uint32_t lzcnt = 1u << 5;                                                                       /* leaf 80000001 ECX */
    const uint32_t vnni = 1u << 11;                                                                       /* leaf 7 ECX */
    const uint32_t bf16 = 1u << 5;                                                                        /* leaf 7.1 EAX */
    const uint64_t ymm_state = 0x06, zmm_state = 0xe6;
    uint32_t a, b, c, d, leaf7_b, leaf7_c;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, movbe | fma | osxsave | avx | f16c))
        return THEO_CPU_C;
    uint64_t saved = xcr0();
    if ((saved & ymm_state) != ymm_state)
        return THEO_CPU_C;
    if (!__get_cpuid_count(7, 0, &a, &leaf7_b, &leaf7_c, &d) || !has(leaf7_b, bmi1 | avx2 | bmi2))
        return THEO_CPU_C;
    uint32_t subleaves = a;
    if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !has(c, lzcnt))
        return THEO_CPU_C;
    if ((saved & zmm_state) != zmm_state || !has(leaf7_b, avx512))
        return THEO_CPU_AVX2;
    if (!has(leaf7_c, vnni))
        return THEO_CPU_AVX512;
    if (subleaves < 1 || !__get_cpuid_count(7, 1, &a, &b, &c, &d) || !has(a, bf16))
        return THEO_CPU_VNNI;
    return THEO_CPU_BF16;
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

static theo_cpu detect(void) {
    const unsigned long asimddp = 1ul << 20; /* HWCAP_ASIMDDP */
    return getauxval(AT_HWCAP) & asimddp ? THEO_CPU_DOTPROD : THEO_CPU_NEON;
}

#else

static theo_cpu detect(void) {
    return THEO_CPU_C;
}

#endif

static const char *const names[THEO_CPU_COUNT] = {
    [THEO_CPU_C] = "c",       [THEO_CPU_AVX2] = "avx2", [THEO_CPU_AVX512] = "avx512",   [THEO_CPU_VNNI] = "vnni",
    [THEO_CPU_BF16] = "bf16", [THEO_CPU_NEON] = "neon", [THEO_CPU_DOTPROD] = "dotprod",
};

static bool is_arm(theo_cpu level) {
    return level == THEO_CPU_NEON || level == THEO_CPU_DOTPROD;
}

/* Does a machine of level `best` run code of `level`? Levels are cumulative within one architecture. */
static bool includes(theo_cpu best, theo_cpu level) {
    return level == THEO_CPU_C || (level <= best && is_arm(level) == is_arm(best));
}

theo_cpu theo_cpu_detect(void) {
    static _Atomic int known = -1; /* two threads may both detect: they find the same */
    int level = atomic_load_explicit(&known, memory_order_relaxed);
    if (level < 0) {
        level = (int)detect();
        atomic_store_explicit(&known, level, memory_order_relaxed);
    }
    return (theo_cpu)level;
}

/* THEO_CPU_COUNT: none is called so. */
static int level_named(const char *word) {
    int level = 0;
    while (level < THEO_CPU_COUNT && strcmp(word, names[level]) != 0)
        level++;
    return level;
}

bool theo_cpu_is_level(const char *word) {
    return level_named(word) < THEO_CPU_COUNT;
}

theo_cpu theo_cpu_cap(theo_cpu best, const char *word) {
    int level = word ? level_named(word) : THEO_CPU_COUNT;
    return level < THEO_CPU_COUNT && includes(best, (theo_cpu)level) ? (theo_cpu)level : best;
}

theo_cpu theo_cpu_level_in_use(void) {
    static _Atomic int known = -1;
    int level = atomic_load_explicit(&known, memory_order_relaxed);
    if (level < 0) {
        level = (int)theo_cpu_cap(theo_cpu_detect(), getenv("THEO_CPU"));
        atomic_store_explicit(&known, level, memory_order_relaxed);
    }
    return (theo_cpu)level;
}

bool theo_cpu_supported(theo_cpu level) {
    return includes(theo_cpu_detect(), level);
}

const char *theo_cpu_name(theo_cpu level) {
    return (unsigned)level < THEO_CPU_COUNT ? names[level] : "unknown";
}
