#include "machine.h"
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>

void machine_cpu_name(char *text, size_t capacity) {
    struct utsname system;
    snprintf(text, capacity, "%s", uname(&system) == 0 ? system.machine : "unknown");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file)
        return;
    char line[512];
    while (fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon) {
            line[strcspn(line, "\n")] = 0;
            snprintf(text, capacity, "%s", colon + 1 + strspn(colon + 1, " "));
            break;
        }
    }
    fclose(file);
}

double machine_peak_rss_mib(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss / 1024 : 0;
}
