/* CPU levels and their cap; how many CPUs there are, from files as control groups write them. */
#include "base/cpu.h"
#include "base/cpus.h"
#include "kernels/kernels.h"
#include "t.h"
#include <sys/stat.h>
#include <theo/inspect.h>
#include <unistd.h>

static void caps(void) {
    static const struct {
        theo_cpu best;
        const char *word;
        theo_cpu want;
    } cases[] = {
        {THEO_CPU_VNNI, NULL, THEO_CPU_VNNI},
        {THEO_CPU_VNNI, "", THEO_CPU_VNNI},
        {THEO_CPU_VNNI, "c", THEO_CPU_C},
        {THEO_CPU_VNNI, "avx2", THEO_CPU_AVX2},
        {THEO_CPU_VNNI, "avx512", THEO_CPU_AVX512},
        {THEO_CPU_AVX2, "avx512", THEO_CPU_AVX2},
        {THEO_CPU_AVX2, "avx2", THEO_CPU_AVX2},
        {THEO_CPU_C, "avx2", THEO_CPU_C},
        {THEO_CPU_BF16, "bf16", THEO_CPU_BF16},
        {THEO_CPU_BF16, "neon", THEO_CPU_BF16},
        {THEO_CPU_DOTPROD, "neon", THEO_CPU_NEON},
        {THEO_CPU_NEON, "dotprod", THEO_CPU_NEON},
        {THEO_CPU_DOTPROD, "avx2", THEO_CPU_DOTPROD},
        {THEO_CPU_DOTPROD, "c", THEO_CPU_C},
        {THEO_CPU_AVX512, "AVX2", THEO_CPU_AVX512},
        {THEO_CPU_AVX512, "avx5", THEO_CPU_AVX512},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        theo_cpu got = theo_cpu_cap(cases[i].best, cases[i].word);
        CHECK_MSG(got == cases[i].want, "%s capped by \"%s\" is %s", theo_cpu_name(cases[i].best),
                  cases[i].word ? cases[i].word : "(none)", theo_cpu_name(got));
    }
    CHECK(theo_cpu_supported(THEO_CPU_C) && theo_cpu_supported(theo_cpu_detect()));
    CHECK(!(theo_cpu_supported(THEO_CPU_AVX2) && theo_cpu_supported(THEO_CPU_NEON)));
    CHECK(theo_cpu_is_level("c") && theo_cpu_is_level("dotprod") && !theo_cpu_is_level("AVX2") && !theo_cpu_is_level(""));
    CHECK(theo_cpu_level_in_use() == theo_cpu_cap(theo_cpu_detect(), getenv("THEO_CPU")));
    /* What is told is what runs: there are no kernels for the levels between. */
    CHECK_STR(theo_cpu_level(), theo_cpu_name(theo_kernels_for(theo_cpu_level_in_use())->level));
    CHECK(theo_kernels_for(THEO_CPU_BF16)->level != THEO_CPU_BF16 && theo_kernels_for(THEO_CPU_C)->level == THEO_CPU_C);
    CHECK_STR(theo_cpu_name(THEO_CPU_COUNT), "unknown");
#if defined(__x86_64__)
    /* The compiler's own view of CPUID and XCR0. */
    CHECK(theo_cpu_supported(THEO_CPU_AVX2) == (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")));
    CHECK(theo_cpu_supported(THEO_CPU_AVX512) == (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")));
#elif defined(__aarch64__)
    CHECK(theo_cpu_supported(THEO_CPU_NEON));
#endif
}

static char folder[] = "/tmp/theo-cpus-XXXXXX";

static void write_file(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s/%s", folder, path);
    for (char *slash = full + strlen(folder) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(full, 0700);
    }
    FILE *file = fopen(full, "w");
    CHECK(file != NULL);
    if (file) {
        fputs(text, file);
        fclose(file);
    }
}

static int quota_with(const char *proc_cgroup) {
    char proc[64], mount[64];
    write_file("proc", proc_cgroup);
    snprintf(proc, sizeof proc, "%s/proc", folder);
    snprintf(mount, sizeof mount, "%s/cg", folder);
    return theo_cpus_quota(proc, mount);
}

static void quotas(void) {
    if (!mkdtemp(folder)) {
        CHECK_MSG(false, "no temporary folder can be made");
        return;
    }
    CHECK(theo_cpus_quota("/nonexistent/cgroup", "/nonexistent") == 0);
    CHECK(quota_with("0::/a/b\n") == 0);
    write_file("cg/cpu.max", "max 100000\n");
    CHECK(quota_with("0::/\n") == 0);
    write_file("cg/a/cpu.max", "350000 100000\n");
    CHECK(quota_with("0::/a\n") == 4); /* rounded up */
    CHECK(quota_with("0::/a/b/c\n") == 4);
    write_file("cg/a/b/cpu.max", "200000 100000\n");
    CHECK(quota_with("0::/a/b/c\n") == 2);
    write_file("cg/a/b/c/cpu.max", "800000 100000\n");
    CHECK(quota_with("0::/a/b/c\n") == 2); /* the group above is stricter */
    write_file("cg/a/b/cpu.max", "1000 100000\n");
    CHECK(quota_with("0::/a/b/c\n") == 1);
    CHECK(quota_with("0::/elsewhere/on/the/host\n") == 0);
    write_file("cg/cpu.max", "300000 100000\n");
    CHECK(quota_with("0::/elsewhere/on/the/host\n") == 3); /* a container: its own group is the mount */
    write_file("cg/cpu.max", "nonsense\n");
    CHECK(quota_with("0::/\n") == 0);
    write_file("cg/cpu.max", "");
    CHECK(quota_with("0::/\nno colons\n\n:\n::\n") == 0);

    write_file("cg/cpu/x/cpu.cfs_quota_us", "-1\n");
    write_file("cg/cpu/x/cpu.cfs_period_us", "100000\n");
    CHECK(quota_with("3:cpuset:/x\n2:cpu,cpuacct:/x\n") == 0);
    write_file("cg/cpu/x/cpu.cfs_quota_us", "150000\n");
    CHECK(quota_with("3:cpuset:/x\n2:cpu,cpuacct:/x\n") == 2);
    CHECK(quota_with("2:cpuacct,cpu:/x/y\n") == 2);
    CHECK(quota_with("2:cpuacct:/x\n") == 0);
    write_file("cg/cpu/x/cpu.cfs_period_us", "0\n");
    CHECK(quota_with("2:cpu:/x\n") == 0);

    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK(system(command) == 0);
}

int main(void) {
    caps();
    quotas();
    CHECK(theo_cpus_affinity() >= 1);
    CHECK(theo_default_threads() >= 1 && theo_default_threads() <= theo_cpus_affinity());
    return t_done("test_cpu");
}
