/* deflate.h - deflate streams (RFC 1951) made in pieces that know nothing of each other, so that any number of threads can work
 * on one stream, at several hundred MB/s each.
 *
 * For maps of numbers and filtered pictures: the only repetitions looked for are those of the bytes one element before (runs of
 * equal pixels), the rest is left to Huffman codes of each piece. Text is compressed badly. */
#ifndef THEO_BASE_DEFLATE_H
#define THEO_BASE_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    THEO_DEFLATE_PIECE = 1 << 17, /* a good number of bytes for a piece: long enough for its codes, short enough for a cache */
    THEO_DEFLATE_MOST = 1 << 20,  /* bytes of a piece at most */
    THEO_DEFLATE_REACH = 1 << 15  /* of a distance, at most */
};

/* Room that a piece of that many bytes can need. */
size_t theo_deflate_bound(size_t bytes);

/* Writes data[bytes] as the next piece of a stream, which ends on a byte; its size. `before` bytes of the stream lie in front of
 * data in memory (0: unknown). distance: size of an element, 1 to THEO_DEFLATE_REACH. last: ends the stream. */
size_t theo_deflate_piece(uint8_t *out, const uint8_t *data, size_t before, size_t bytes, size_t distance, bool last);

#endif
