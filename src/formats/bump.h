/* bump.h - memory given out piece by piece and released all at once: what a parser builds. */
#ifndef THEO_FORMATS_BUMP_H
#define THEO_FORMATS_BUMP_H

#include <stddef.h>

typedef struct theo_bump {
    struct theo_bump_block *newest;
    size_t bytes; /* given out so far */
} theo_bump;      /* starts zeroed */

/* count * size zeroed bytes, 16-byte aligned; NULL on overflow or exhaustion. */
void *theo_bump_alloc(theo_bump *bump, size_t count, size_t size);
/* A terminated copy of text[length]; NULL on exhaustion. */
char *theo_bump_text(theo_bump *bump, const char *text, size_t length);
/* Releases every piece. */
void theo_bump_free(theo_bump *bump);

#endif
