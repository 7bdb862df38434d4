#include "guard.h"
#include "message.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct guarded {
    dev_t device;
    ino_t number;
    char *path;
} guarded;

static guarded *files; /* until the program ends */
static size_t file_count;

/* An output that an option names: maybe of a folder that is not there yet. */
typedef struct reservation {
    const char *option, *path;
} reservation;

static reservation *reserved; /* until the program ends */
static size_t reserved_count;

void guard_file(const char *path) {
    struct stat facts;
    if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode))
        return;
    files = memory_grow(files, file_count + 1, sizeof *files);
    files[file_count++] = (guarded){facts.st_dev, facts.st_ino, text_copy(path)};
}

static const char *guarded_file(const char *path) {
    struct stat facts;
    if (stat(path, &facts) != 0)
        return NULL;
    for (size_t i = 0; i < file_count; i++)
        if (files[i].device == facts.st_dev && files[i].number == facts.st_ino)
            return files[i].path;
    return NULL;
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool folder_facts(const char *path, struct stat *facts) {
    char *folder = text_format("%.*s.", (int)(base_of(path) - path), path);
    bool is_there = stat(folder, facts) == 0;
    free(folder);
    return is_there;
}

/* One name in one folder, however the folder is written. */
static bool is_one_place(const char *a, const char *b) {
    struct stat of_a, of_b;
    if (strcmp(base_of(a), base_of(b)) != 0)
        return false;
    return folder_facts(a, &of_a) && folder_facts(b, &of_b) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

char *guard_refusal(const char *path) {
    const char *read = guarded_file(path);
    if (read)
        return text_format("would overwrite %s, which is read", read);
    for (size_t i = 0; i < reserved_count; i++)
        if (is_one_place(reserved[i].path, path))
            return text_format("would overwrite %s, which --%s writes", reserved[i].path, reserved[i].option);
    return NULL;
}

int guard_option(const char *option, const char *path) {
    if (!path)
        return EXIT_DONE;
    char *refusal = guard_refusal(path);
    if (!refusal) {
        reserved = memory_grow(reserved, reserved_count + 1, sizeof *reserved);
        reserved[reserved_count++] = (reservation){option, path};
        return EXIT_DONE;
    }
    int code = usage_error("--%s %s %s", option, path, refusal);
    free(refusal);
    return code;
}
