#include "formats/bump.h"

#include "base/error.h"

#include <stdalign.h>
#include <string.h>

enum { ALIGNMENT = 16, FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

struct theo_bump_block {
    struct theo_bump_block *older;
    size_t used, capacity;
    alignas(ALIGNMENT) unsigned char data[];
};

/* Blocks double up to 1 MiB; a larger request gets a block of its own. */
static struct theo_bump_block *add_block(theo_bump *bump, size_t bytes) {
    size_t capacity = bump->newest ? 2 * bump->newest->capacity : FIRST_BLOCK;
    if (capacity > LARGEST_BLOCK)
        capacity = LARGEST_BLOCK;
    if (capacity < bytes)
        capacity = bytes;
    if (capacity > SIZE_MAX - sizeof(struct theo_bump_block))
        return NULL;
    struct theo_bump_block *block = theo_alloc(1, sizeof *block + capacity);
    if (!block)
        return NULL;
    block->capacity = capacity;
    block->older = bump->newest;
    bump->newest = block;
    return block;
}

void *theo_bump_alloc(theo_bump *bump, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - ALIGNMENT)
        return NULL;
    bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    struct theo_bump_block *block = bump->newest;
    if (!block || block->capacity - block->used < bytes) {
        block = add_block(bump, bytes);
        if (!block)
            return NULL;
    }
    void *piece = block->data + block->used; /* zeroed: theo_alloc clears, and no byte is given out twice */
    block->used += bytes;
    bump->bytes += bytes;
    return piece;
}

char *theo_bump_text(theo_bump *bump, const char *text, size_t length) {
    if (length == SIZE_MAX)
        return NULL;
    char *copy = theo_bump_alloc(bump, length + 1, 1);
    if (copy && length)
        memcpy(copy, text, length);
    return copy;
}

void theo_bump_free(theo_bump *bump) {
    for (struct theo_bump_block *block = bump->newest, *older; block; block = older) {
        older = block->older;
        theo_free(block);
    }
    *bump = (theo_bump){0};
}
