#include "base/deflate.h"
#include "base/error.h"

#define ZLIB_CONST /* next_in points to const */
#include <zlib.h>

static void *take(void *user, uInt count, uInt size) {
    (void)user;
    return theo_alloc(count, size);
}

static void give_back(void *user, void *block) {
    (void)user;
    theo_free(block);
}

/* zlib's own for any strategy, and the empty block that brings a piece that is not the last one to a byte's end. */
size_t theo_deflate_bound(size_t bytes) {
    enum { EMPTY_BLOCK = 8 };
    return bytes + ((bytes + 7) >> 3) + ((bytes + 63) >> 6) + 5 + EMPTY_BLOCK;
}

size_t theo_deflate_piece(uint8_t *out, const uint8_t *data, size_t bytes, bool last) {
    enum { FASTEST = 1, RAW = -MAX_WBITS, MEMORY = 8 };
    z_stream z = {.zalloc = take, .zfree = give_back, .next_in = data, .avail_in = (uInt)bytes, .next_out = out};
    z.avail_out = (uInt)theo_deflate_bound(bytes);
    if (deflateInit2(&z, FASTEST, Z_DEFLATED, RAW, MEMORY, Z_RLE) != Z_OK)
        return 0;
    deflate(&z, last ? Z_FINISH : Z_SYNC_FLUSH);
    deflateEnd(&z);
    return z.total_out;
}
