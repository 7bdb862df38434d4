#include "base/file.h"

#include "base/error.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Creates PATH.PID-NUMBER.part, a name that nobody has. */
static int create_beside(theo_file *file, mode_t mode) {
    static _Atomic unsigned number;
    const size_t capacity = strlen(file->path) + 64;
    file->beside = theo_alloc(capacity, 1);
    if (!file->beside) {
        errno = ENOMEM;
        return -1;
    }
    do {
        snprintf(file->beside, capacity, "%s.%ld-%u.part", file->path, (long)getpid(), atomic_fetch_add(&number, 1u));
        file->fd = open(file->beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    } while (file->fd < 0 && errno == EEXIST);
    return file->fd;
}

static void forget(theo_file *file) {
    theo_free(file->path);
    theo_free(file->beside);
    *file = (theo_file){.fd = -1};
}

theo_status theo_file_open(theo_file *file, const char *path, theo_error *err) {
    *file = (theo_file){.fd = -1};
    if (!path)
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "the path must not be NULL");
    struct stat old;
    const bool exists = stat(path, &old) == 0;
    if (exists && S_ISDIR(old.st_mode))
        return theo_fail(err, THEO_IO, path, NULL, "is a directory; a file is to be written");
    /* A symbolic link stays, and what it points to is replaced. */
    char target[PATH_MAX];
    file->path = theo_strdup(exists && S_ISREG(old.st_mode) && realpath(path, target) ? target : path);
    if (!file->path)
        return theo_fail(err, THEO_MEMORY, path, NULL, "no memory for its name");

    const bool in_place = exists && !S_ISREG(old.st_mode);
    if (in_place)
        file->fd = open(path, O_WRONLY | O_CLOEXEC);
    else if (create_beside(file, exists ? old.st_mode & 0777 : 0666) >= 0 && exists)
        (void)fchmod(file->fd, old.st_mode & 0777); /* what umask took away; somebody else's mode need not succeed */
    if (file->fd < 0) {
        const theo_status status = theo_fail_errno(err, path, "cannot be created");
        forget(file);
        return status;
    }
    return THEO_OK;
}

theo_status theo_file_append(theo_file *file, const void *data, size_t bytes, theo_error *err) {
    const char *from = data;
    while (bytes) {
        const ssize_t done = write(file->fd, from, bytes < (size_t)1 << 30 ? bytes : (size_t)1 << 30);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return theo_fail_errno(err, file->path, "cannot be written");
        from += done;
        bytes -= (size_t)done;
    }
    return THEO_OK;
}

theo_status theo_file_commit(theo_file *file, theo_error *err) {
    theo_status status = THEO_OK;
    if (close(file->fd) != 0)
        status = theo_fail_errno(err, file->path, "cannot be written");
    else if (file->beside && rename(file->beside, file->path) != 0)
        status = theo_fail_errno(err, file->path, "cannot be replaced");
    if (status != THEO_OK && file->beside)
        (void)unlink(file->beside);
    forget(file);
    return status;
}

void theo_file_abandon(theo_file *file) {
    if (file->fd < 0)
        return;
    (void)close(file->fd);
    if (file->beside)
        (void)unlink(file->beside);
    forget(file);
}
