/* cpus.h - how many processors this process may keep busy. */
#ifndef THEO_BASE_CPUS_H
#define THEO_BASE_CPUS_H

/* CPUs that the control groups' quota amounts to, rounded up; 0 = no quota. Version 2 (cpu.max) and version 1 (cpu.cfs_quota_us),
 * the smallest of the process's group and the groups above it. proc_cgroup: "/proc/self/cgroup"; mount: "/sys/fs/cgroup". */
int theo_cpus_quota(const char *proc_cgroup, const char *mount);

/* CPUs in the calling thread's affinity mask, at least 1. */
int theo_cpus_affinity(void);

#endif
