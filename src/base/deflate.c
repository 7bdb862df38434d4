#include "base/deflate.h"
#include "base/error.h"

#include <isa-l/igzip_lib.h>

/* What ISA-L works in: too large for a stack. */
typedef struct workspace {
    struct isal_zstream stream;
    uint8_t level[ISAL_DEF_LVL1_DEFAULT];
} workspace;

/* What does not shrink becomes stored blocks of up to 64 KiB; an empty one brings a piece that is not the last to a byte's end.
 */
size_t theo_deflate_bound(size_t bytes) {
    enum { BLOCK = 1 << 15, HEAD = 5, ENDS = 16 };
    return bytes + (bytes / BLOCK + 1) * HEAD + ENDS;
}

size_t theo_deflate_piece(uint8_t *out, const uint8_t *data, size_t bytes, bool last) {
    workspace *w = theo_alloc(1, sizeof *w);
    if (!w)
        return 0;
    struct isal_zstream *z = &w->stream;
    isal_deflate_stateless_init(z);
    z->level = 1;
    z->level_buf = w->level;
    z->level_buf_size = sizeof w->level;
    z->end_of_stream = last;
    z->flush = last ? NO_FLUSH : FULL_FLUSH;
    z->next_in = (uint8_t *)(uintptr_t)data; /* which is only read */
    z->avail_in = (uint32_t)bytes;
    z->next_out = out;
    z->avail_out = (uint32_t)theo_deflate_bound(bytes);
    size_t made = isal_deflate_stateless(z) == COMP_OK ? z->total_out : 0;
    theo_free(w);
    return made;
}
