/* machine.h - facts of the machine and of this process for `theo bench`. */
#ifndef THEO_CLI_MACHINE_H
#define THEO_CLI_MACHINE_H

#include <stddef.h>

/* "Intel(R) Xeon(R) ..." as the kernel tells it, else the architecture. */
void machine_cpu_name(char *text, size_t capacity);

/* Largest resident size of this process so far, in MiB. */
double machine_peak_rss_mib(void);

#endif
