#include "guard.h"
#include "message.h"
#include <stddef.h>
#include <sys/stat.h>

typedef struct guarded {
    dev_t device;
    ino_t number;
    char *path;
} guarded;

static guarded *files; /* until the program ends */
static size_t file_count;

void guard_file(const char *path) {
    struct stat facts;
    if (stat(path, &facts) != 0 || !S_ISREG(facts.st_mode))
        return;
    files = memory_grow(files, file_count + 1, sizeof *files);
    files[file_count++] = (guarded){facts.st_dev, facts.st_ino, text_copy(path)};
}

const char *guarded_file(const char *path) {
    struct stat facts;
    if (stat(path, &facts) != 0)
        return NULL;
    for (size_t i = 0; i < file_count; i++)
        if (files[i].device == facts.st_dev && files[i].number == facts.st_ino)
            return files[i].path;
    return NULL;
}

int guard_option(const char *option, const char *path) {
    const char *read = path ? guarded_file(path) : NULL;
    return read ? usage_error("--%s %s would overwrite %s, which is read", option, path, read) : EXIT_DONE;
}
