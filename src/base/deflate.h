/* deflate.h - deflate streams (RFC 1951) by ISA-L, in pieces that know nothing of each other, so that any number of threads can
 * work on one stream. Which matches are found depends on the processor's instructions: streams of two machines may differ in
 * their bytes, though not in what they hold. */
#ifndef THEO_BASE_DEFLATE_H
#define THEO_BASE_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    THEO_DEFLATE_PIECE = 1 << 17 /* a good number of bytes for a piece: long enough for its codes, short enough for a cache */
};

/* Room that a piece of that many bytes can need. */
size_t theo_deflate_bound(size_t bytes);

/* Writes data[bytes], under 2 GiB, as the next piece of a stream, which ends on a byte; its size, or 0: out of memory. last: ends
 * the stream. */
size_t theo_deflate_piece(uint8_t *out, const uint8_t *data, size_t bytes, bool last);

#endif
