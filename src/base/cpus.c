#include "base/cpus.h"

#include "base/pool.h"
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_CAPACITY = 4096 };

/* Reads the first line of directory/name; false when there is none. */
static bool read_line(const char *directory, const char *name, char *line, int capacity) {
    char path[PATH_CAPACITY + 64];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool found = fgets(line, capacity, file) != NULL;
    fclose(file);
    return found;
}

static int cpus_of(long long quota, long long period) {
    if (quota <= 0 || period <= 0)
        return 0;
    long long cpus = (quota - 1) / period + 1;
    return cpus > THEO_POOL_MAX_THREADS ? THEO_POOL_MAX_THREADS : (int)cpus;
}

/* The quota set on one group itself; 0 = none. */
static int quota_of_group(const char *directory, bool version2) {
    char line[128];
    long long quota, period;
    if (version2) /* "50000 100000" or "max 100000" */
        return read_line(directory, "cpu.max", line, sizeof line) && sscanf(line, "%lld %lld", &quota, &period) == 2
                   ? cpus_of(quota, period)
                   : 0;
    if (!read_line(directory, "cpu.cfs_quota_us", line, sizeof line) || sscanf(line, "%lld", &quota) != 1) /* -1: none */
        return 0;
    if (!read_line(directory, "cpu.cfs_period_us", line, sizeof line) || sscanf(line, "%lld", &period) != 1)
        return 0;
    return cpus_of(quota, period);
}

static int smaller_quota(int a, int b) {
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The group `path` below `mount` and every group above it. Inside of a container the path may be the host's: groups that do not
 * exist here are passed over, and the mount itself, which then is the container's group, comes last. */
static int quota_of_path(const char *mount, const char *path, bool version2) {
    char directory[PATH_CAPACITY];
    int length = snprintf(directory, sizeof directory, "%s%s", mount, path);
    if (length < 0 || (size_t)length >= sizeof directory)
        return 0;
    size_t root = strlen(mount);
    int quota = 0;
    for (;;) {
        quota = smaller_quota(quota, quota_of_group(directory, version2));
        char *slash = strrchr(directory + root, '/');
        if (!slash)
            return quota;
        *slash = '\0';
    }
}

/* Is "cpu" one of the comma-separated controllers? */
static bool names_cpu(const char *controllers) {
    for (const char *at = controllers; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || at[3] == '\0'))
            return true;
    }
    return false;
}

int theo_cpus_quota(const char *proc_cgroup, const char *mount) {
    FILE *file = fopen(proc_cgroup, "re");
    if (!file)
        return 0;
    int quota = 0;
    char line[PATH_CAPACITY];
    while (fgets(line, sizeof line, file)) { /* "ID:CONTROLLERS:PATH"; version 2 has "0::PATH" */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(++controllers, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        if (*controllers == '\0') {
            quota = smaller_quota(quota, quota_of_path(mount, path, true));
        } else if (names_cpu(controllers)) {
            char hierarchy[256]; /* the hierarchy is mounted, or linked, under its first controller's name: /sys/fs/cgroup/cpu */
            snprintf(hierarchy, sizeof hierarchy, "%s/cpu", mount);
            quota = smaller_quota(quota, quota_of_path(hierarchy, path, false));
        }
    }
    fclose(file);
    return quota;
}

int theo_cpus_affinity(void) {
    enum { MAX_CPUS = 8192 }; /* the kernel refuses a mask smaller than its own: cpu_set_t itself ends at 1024 */
    unsigned long mask[MAX_CPUS / (8 * sizeof(unsigned long))] = {0};
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)mask) != 0)
        return 1;
    int count = 0;
    for (size_t i = 0; i < sizeof mask / sizeof *mask; i++)
        count += __builtin_popcountl(mask[i]);
    return count > 0 ? count : 1;
}

int theo_default_threads(void) {
    int threads = theo_cpus_affinity();
    int quota = theo_cpus_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    if (quota > 0 && quota < threads)
        threads = quota;
    return threads < THEO_POOL_MAX_THREADS ? threads : THEO_POOL_MAX_THREADS;
}
