/* moge2.h - the decoder of MoGe-2: a neck and a head for each map, the same convolutional machine over five levels, and the scale
 * head. */
#ifndef THEO_MODELS_MOGE2_H
#define THEO_MODELS_MOGE2_H

#include "models/moge2_config.h"
#include "models/moge_decoder.h"

/* x + second(f(norm(first(f(norm(x)))))), f the stack's nonlinearity; norms may be none. */
typedef struct theo_moge2_block {
    theo_norm in_norm;     /* [D]; NULL: none, or without gain and offset */
    theo_packed *first;    /* [hidden * D, D, 3, 3] */
    theo_norm hidden_norm; /* [hidden * D]; likewise */
    theo_packed *second;   /* [D, hidden * D, 3, 3] */
} theo_moge2_block;

/* x = (what came from below) + input(in); x = blocks(x); out = output(x); then conv(up(x)) goes to the level above. D: channels
 * of this level, D': of the next. */
typedef struct theo_moge2_level {
    theo_packed *input; /* [D, in, 1, 1]; NULL: identity. Neck, level 0: of the features alone */
    theo_moge2_block blocks[THEO_MOGE_MAX_BLOCKS];
    theo_packed *output; /* [out, D, 1, 1]; NULL: identity */
    theo_packed *up;     /* [D, D', 2, 2]; NULL: bilinear */
    theo_packed *conv;   /* [D', D' after a transposed convolution, D after bilinear, 3, 3] */
} theo_moge2_level;

typedef struct theo_moge2_stack {
    theo_moge2_level levels[THEO_MOGE2_LEVELS];
} theo_moge2_stack;

/* What follows the maps of level 3, as one 3x3 convolution on each of them: see moge2_fold.c. */
typedef struct theo_moge2_fold {
    bool is_possible;
    theo_packed *uv;                     /* [4 * all, 8, 1, 1], with every bias; channels as of quads */
    theo_packed *neck;                   /* [all, D3, 3, 3] behind bilinear x2 */
    theo_packed *heads[THEO_MOGE_HEADS]; /* [o, D3, 3, 3] behind bilinear x2 */
    int at[THEO_MOGE_HEADS];             /* first of the head's channels in `uv` and `neck` */
} theo_moge2_fold;

struct theo_moge2 {
    theo_moge2_config config;
    theo_packed *neck_uv; /* [D0, 2, 1, 1]: the other part of the neck's first input, without bias */
    theo_moge2_stack neck, heads[THEO_MOGE_HEADS];
    theo_packed *scale[3]; /* [C, C] [C, C] [1, C] */
    theo_moge2_fold fold;
};

/* Part of loading: network->two is made, its configuration read (text NULL: guessed) into it and into network->config, and what
 * is to be packed noted. The backbone must be known. */
theo_status theo_moge2_gather(theo_moge *network, const theo_gather *gather, const char *config_text, theo_error *err);
/* Part of loading: the fold, where the configuration allows it. */
theo_status theo_moge2_make_fold(theo_moge2 *decoder, const theo_weights *weights, theo_cpu level, theo_error *err);
/* Every packed layer; many are NULL. */
void theo_moge2_visit(theo_moge2 *decoder, theo_packed_visitor visit, void *context);
void theo_moge2_free(theo_moge2 *decoder);

int theo_moge2_head_channels(const theo_moge2 *decoder, theo_moge_head head); /* 0: there is no such head */
/* Of a head; NULL: there is none. */
const theo_moge2_stack_config *theo_moge2_head_config(const theo_moge2_config *config, theo_moge_head head);

/* From features [rows, columns, features] and the class token [1, 1, C] to the maps of those heads, and the scale. */
void theo_moge2_record(const theo_moge_recording *r, theo_tensor features, theo_tensor cls, unsigned heads);

#endif
