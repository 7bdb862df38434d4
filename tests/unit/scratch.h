/* scratch.h - a folder for the files a test writes, removed with them at the end. */
#ifndef THEO_TESTS_SCRATCH_H
#define THEO_TESTS_SCRATCH_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char scratch_folder[512];

/* Path of `name` in the folder; the last four answers stay valid. */
static inline const char *scratch(const char *name) {
    static char paths[4][1024];
    static int next;
    if (!scratch_folder[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(scratch_folder, sizeof scratch_folder, "%s/theo-test-XXXXXX", base && *base ? base : "/tmp");
        if (!mkdtemp(scratch_folder)) {
            perror(scratch_folder);
            exit(1);
        }
    }
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", scratch_folder, name);
    return path;
}

/* Number of files in the folder. */
static inline int scratch_count(void) {
    int count = 0;
    DIR *folder = opendir(scratch_folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count;
}

static inline void scratch_remove(void) {
    char path[1024];
    DIR *folder = opendir(scratch_folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(path, sizeof path, "%s/%s", scratch_folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (folder)
        closedir(folder);
    rmdir(scratch_folder);
}

#endif
