/* moge2_config.h - what a MoGe-2 checkpoint says of its network: model_config, or what the shapes of its tensors tell. */
#ifndef THEO_MODELS_MOGE2_CONFIG_H
#define THEO_MODELS_MOGE2_CONFIG_H

#include "formats/json.h"
#include "formats/weights.h"

enum {
    THEO_MOGE2_LEVELS = 5,      /* maps of 1, 2, 4, 8 and 16 times the token grid */
    THEO_MOGE2_MAX_TAPS = 8,    /* blocks whose output is used */
    THEO_MOGE2_MAX_BLOCKS = 16, /* residual blocks of one level */
};

typedef enum theo_moge2_head { THEO_MOGE2_POINTS, THEO_MOGE2_NORMAL, THEO_MOGE2_MASK, THEO_MOGE2_HEADS } theo_moge2_head;

typedef enum theo_moge2_remap {
    THEO_MOGE2_REMAP_LINEAR,
    THEO_MOGE2_REMAP_EXP,     /* z = exp(p2), x = p0 * z, y = p1 * z */
    THEO_MOGE2_REMAP_SINH,    /* sinh of all */
    THEO_MOGE2_REMAP_SINH_EXP /* sinh of x and y, exp of z */
} theo_moge2_remap;

/* One convolutional decoder: the neck, or a head. */
typedef struct theo_moge2_stack_config {
    int in[THEO_MOGE2_LEVELS];                 /* channels of the level's input; 0: no 1x1 convolution, the input as it is */
    int width[THEO_MOGE2_LEVELS];              /* channels of the level */
    int out[THEO_MOGE2_LEVELS];                /* channels of its output; 0: the level as it is */
    int blocks[THEO_MOGE2_LEVELS];             /* residual blocks */
    bool is_transposed[THEO_MOGE2_LEVELS - 1]; /* the way up: transposed convolution, else bilinear; a 3x3 follows */
    int hidden;                                /* widening within a residual block */
} theo_moge2_stack_config;

typedef struct theo_moge2_config {
    int taps[THEO_MOGE2_MAX_TAPS], tap_count; /* blocks, from 0 */
    int features;                             /* channels of the encoder's output */
    theo_moge2_stack_config neck, points, mask, normal;
    bool has_mask, has_normal, has_scale;
    theo_moge2_remap remap;
    int min_tokens, max_tokens; /* that resolution levels 0 and 9 stand for */
} theo_moge2_config;

/* From the text of `model_config`, or of an object that holds one. depth: blocks of the backbone; file: for messages. */
theo_status theo_moge2_config_parse(theo_moge2_config *config, const char *text, int depth, const char *file, theo_error *err);
/* From the shapes of the tensors. */
theo_status theo_moge2_config_guess(theo_moge2_config *config, const theo_weights *weights, int depth, theo_error *err);
/* Of a head; NULL: the network has none. */
const theo_moge2_stack_config *theo_moge2_head_config(const theo_moge2_config *config, theo_moge2_head head);

#endif
