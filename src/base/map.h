/* map.h - files mapped for reading. */
#ifndef THEO_BASE_MAP_H
#define THEO_BASE_MAP_H

#include <theo/theo.h>

typedef struct theo_map {
    const uint8_t *data; /* NULL for an empty file */
    size_t bytes;
} theo_map;

/* Maps a regular file (a directory, device or pipe is THEO_IO with the reason). The file must not shrink while it is mapped:
 * reading past its new end would raise SIGBUS. */
theo_status theo_map_open(theo_map *map, const char *path, theo_error *err);
void theo_map_close(theo_map *map);
/* Tells the kernel that the pages wholly inside [offset, offset + bytes) are not needed any more. */
void theo_map_release(const theo_map *map, size_t offset, size_t bytes);

#endif
