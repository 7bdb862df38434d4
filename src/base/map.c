#include "base/map.h"

#include "base/error.h"
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *kind_of_file(mode_t mode) {
    return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static theo_status map_descriptor(theo_map *map, int fd, const char *path, theo_error *err) {
    struct stat info;
    if (fstat(fd, &info) != 0)
        return theo_fail_errno(err, path, "cannot be examined");
    if (!S_ISREG(info.st_mode))
        return theo_fail(err, THEO_IO, path, NULL, "is %s; a regular file is needed", kind_of_file(info.st_mode));
    if ((uintmax_t)info.st_size > SIZE_MAX)
        return theo_fail(err, THEO_IO, path, NULL, "is too large for this machine's address space");
    if (info.st_size == 0)
        return THEO_OK; /* mmap refuses a length of zero */

    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return theo_fail_errno(err, path, "cannot be mapped");
    map->data = data;
    map->bytes = (size_t)info.st_size;
    return THEO_OK;
}

theo_status theo_map_open(theo_map *map, const char *path, theo_error *err) {
    *map = (theo_map){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* O_NONBLOCK: a pipe without a writer must not hang us */
    if (fd < 0)
        return theo_fail_errno(err, path, "cannot be opened");
    theo_status status = map_descriptor(map, fd, path, err);
    close(fd); /* the mapping stays */
    return status;
}

void theo_map_close(theo_map *map) {
    if (map->data)
        munmap((void *)(uintptr_t)map->data, map->bytes);
    *map = (theo_map){0};
}

void theo_map_release(const theo_map *map, size_t offset, size_t bytes) {
    if (offset >= map->bytes)
        return;
    if (bytes > map->bytes - offset)
        bytes = map->bytes - offset;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t first = (offset + page - 1) / page * page;
    size_t end = offset + bytes;
    size_t last = end == map->bytes ? end : end / page * page; /* the last page ends with the file */
    if (first < last) /* clean pages: should they be read once more, they come back from the file */
        (void)madvise((void *)(uintptr_t)(map->data + first), last - first, MADV_DONTNEED);
}
