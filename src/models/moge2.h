/* moge2.h - MoGe-2 (Wang et al., arXiv:2507.02546): affine points, normals and mask of one photo, and its metric scale.
 *
 * The network, the names of its tensors and the rules before and after it: docs/models/moge2.md. */
#ifndef THEO_MODELS_MOGE2_H
#define THEO_MODELS_MOGE2_H

#include "models/moge2_config.h"
#include "models/vit.h"

/* x + second(relu(first(relu(x)))) */
typedef struct theo_moge2_block {
    theo_packed *first;  /* [hidden * D, D, 3, 3] */
    theo_packed *second; /* [D, hidden * D, 3, 3] */
} theo_moge2_block;

/* x = (what came from below) + input(in); x = blocks(x); out = output(x); then conv(up(x)) goes to the level above. D: channels
 * of this level, D': of the next. */
typedef struct theo_moge2_level {
    theo_packed *input; /* [D, in, 1, 1]; NULL: identity. Neck, level 0: of the features alone */
    theo_moge2_block blocks[THEO_MOGE2_MAX_BLOCKS];
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
    theo_packed *uv;                      /* [4 * all, 8, 1, 1], with every bias; channels as of quads */
    theo_packed *neck;                    /* [all, D3, 3, 3] behind bilinear x2 */
    theo_packed *heads[THEO_MOGE2_HEADS]; /* [o, D3, 3, 3] behind bilinear x2 */
    int at[THEO_MOGE2_HEADS];             /* first of the head's channels in `uv` and `neck` */
} theo_moge2_fold;

/* Weights, immutable once loaded. */
typedef struct theo_moge2 {
    theo_moge2_config config;
    theo_vit vit;
    float *mean, *deviation;                /* [3] of the input's channels */
    theo_packed *taps[THEO_MOGE2_MAX_TAPS]; /* [features, C, 1, 1] each */
    theo_packed *neck_uv;                   /* [D0, 2, 1, 1]: the other part of the neck's first input, without bias */
    theo_moge2_stack neck, heads[THEO_MOGE2_HEADS];
    theo_packed *scale[3]; /* [C, C] [C, C] [1, C] */
    theo_moge2_fold fold;
    int64_t parameters;  /* numbers in the file that belong to the network */
    size_t weight_bytes; /* packed */
    int unused;          /* tensors of the file that it does not know */
    char config_json[512];
} theo_moge2;

/* How many tensors of the file carry a name that only MoGe (1, 2 or 3) uses. */
int theo_moge2_recognise(const theo_weights *weights);

/* Checks names, shapes, types and values, all problems reported together, and packs for `level` on the pool. The pages of the map
 * are released on the way. */
theo_status theo_moge2_load(theo_moge2 **network, const theo_weights *weights, theo_cpu level, theo_pool *pool, theo_error *err);
void theo_moge2_free(theo_moge2 *network);

/* Channels of a head's map: 3, 3, 1; 0: the network has no such head. */
int theo_moge2_head_channels(const theo_moge2 *network, theo_moge2_head head);
/* Those that the network has: bits 1 << theo_moge2_head. */
unsigned theo_moge2_heads(const theo_moge2 *network);

/* Part of loading: the fold, where the configuration allows it. */
theo_status theo_moge2_make_fold(theo_moge2 *network, const theo_weights *weights, theo_cpu level, theo_error *err);

/* ---- the network on a plan */

typedef struct theo_moge2_map {
    theo_tensor tensor; /* id < 0: not recorded */
    bool is_quads; /* [8 rows, 8 columns, 4 * c]: channel o * 4 + i * 2 + j of (y, x) is channel o of pixel (2y + i, 2x + j); else
                      [16 rows, 16 columns, c] */
    int channels;  /* c */
} theo_moge2_map;

typedef struct theo_moge2_net {
    theo_tensor patches;               /* [1, T, 588]: row 0 zero */
    theo_tensor positions;             /* [1, T, C] */
    theo_tensor uv[THEO_MOGE2_LEVELS]; /* [rows << l, columns << l, 2]; id < 0: not wanted */
    theo_tensor uv_quads;              /* [8 rows, 8 columns, 8]; id < 0: not wanted */
    theo_moge2_map maps[THEO_MOGE2_HEADS];
    theo_tensor scale; /* [1, 1, 1], before exp; id < 0: the network has none */
} theo_moge2_net;

/* Tests: stages by name, kept to the end of the run. With a trace nothing is folded. */
typedef struct theo_moge2_trace {
    int count;
    struct {
        char name[24];
        theo_tensor tensor;
    } stages[192];
} theo_moge2_trace;

/* Records the network for a grid of rows x columns patches. heads: bits 1 << theo_moge2_head. trace may be NULL. */
theo_moge2_net theo_moge2_record(theo_plan *plan, const theo_moge2 *network, int rows, int columns, unsigned heads,
                                 theo_moge2_trace *trace);

/* Fills positions and uv of a recorded network that is bound to memory; they stay for runs with the same grid and aspect.
 * aspect: width / height of the picture. */
void theo_moge2_fill_constants(theo_plan *plan, const theo_moge2 *network, const theo_moge2_net *net, double aspect);

#endif
