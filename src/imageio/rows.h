/* rows.h - rows of pixels of any kind turned into the samples that a consumer wants: one plane, or colour without alpha. */
#ifndef THEO_IMAGEIO_ROWS_H
#define THEO_IMAGEIO_ROWS_H

#include <theo/theo.h>

typedef enum theo_pick {
    THEO_PICK_ALL = 0, /* every channel */
    THEO_PICK_COLOR,   /* alpha dropped: 1 or 3 channels */
    THEO_PICK_RED,     /* a gray picture is its own plane */
    THEO_PICK_LUMA     /* Pillow's L: (19595 R + 38470 G + 7471 B + 32768) >> 16 */
} theo_pick;

typedef struct theo_row_rule {
    int channels;    /* of the source: 1..4 (gray | gray,alpha | R,G,B | R,G,B,A) */
    theo_pixel type; /* of the source */
    theo_pick pick;
    bool bgr; /* the source's colours lie as B,G,R; the result is always R,G,B */
} theo_row_rule;

/* Number of channels that the rule leaves. */
int theo_row_channels(const theo_row_rule *rule);

/* True if an 8-bit row comes out as it went in. */
bool theo_row_is_copy(const theo_row_rule *rule);

/* `count` pixels to 8 bits. 16-bit samples give their top 8 bits. Floats are clamped to [0, 1] and become round-half-even(255 v);
 * false, with dst undefined, when one of them is NaN or infinite. */
bool theo_row_u8(uint8_t *dst, const void *src, int count, const theo_row_rule *rule);

/* 16-bit rows that stay 16-bit. */
void theo_row_u16(uint16_t *dst, const uint16_t *src, int count, const theo_row_rule *rule);

#endif
