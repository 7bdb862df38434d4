/* Mapped files: contents, the empty file, release, and what is refused. */
#include "base/map.h"
#include "t.h"
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/theo-map-XXXXXX";
static char path[64];

static void write_bytes(size_t bytes) {
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    for (size_t i = 0; file && i < bytes; i++)
        fputc((int)(i * 7 % 251), file);
    if (file)
        fclose(file);
}

static int is_intact(const theo_map *map) {
    for (size_t i = 0; i < map->bytes; i++)
        if (map->data[i] != i * 7 % 251)
            return 0;
    return 1;
}

static void regular_files(void) {
    size_t sizes[] = {1, 4096, 100001};
    for (size_t i = 0; i < 3; i++) {
        theo_map map;
        theo_error e;
        write_bytes(sizes[i]);
        CHECK_MSG(theo_map_open(&map, path, &e) == THEO_OK, "%s", e.message);
        CHECK(map.bytes == sizes[i] && is_intact(&map));
        theo_map_release(&map, 0, map.bytes);
        theo_map_release(&map, 1, 5000);
        theo_map_release(&map, map.bytes - 1, SIZE_MAX);
        theo_map_release(&map, SIZE_MAX, SIZE_MAX);
        CHECK(is_intact(&map));
        theo_map_close(&map);
        CHECK(map.data == NULL && map.bytes == 0);
        theo_map_close(&map);
    }
    theo_map empty;
    write_bytes(0);
    CHECK(theo_map_open(&empty, path, NULL) == THEO_OK);
    CHECK(empty.data == NULL && empty.bytes == 0);
    theo_map_release(&empty, 0, 1);
    theo_map_close(&empty);
}

static void refused(const char *name, theo_status status, const char *reason) {
    theo_map map;
    theo_error e;
    CHECK(theo_map_open(&map, name, &e) == status);
    CHECK(map.data == NULL && map.bytes == 0);
    CHECK_STR(e.file, name);
    CHECK_MSG(strstr(e.message, reason), "\"%s\" does not say \"%s\"", e.message, reason);
}

int main(void) {
    if (!mkdtemp(folder))
        return t_skip("test_map", "no temporary folder can be made");
    snprintf(path, sizeof path, "%s/file", folder);
    regular_files();
    refused(folder, THEO_IO, "is a directory");
    refused("/dev/null", THEO_IO, "is a device");
    refused("/dev/null/x", THEO_IO, "Not a directory");
    unlink(path);
    refused(path, THEO_MISSING, "No such file");
    if (mkfifo(path, 0600) == 0)
        refused(path, THEO_IO, "is a pipe"); /* without hanging */
    unlink(path);
    rmdir(folder);
    return t_done("test_map");
}
