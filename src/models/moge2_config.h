/* moge2_config.h - what a MoGe-2 checkpoint says of its network: model_config, or what the shapes of its tensors tell. */
#ifndef THEO_MODELS_MOGE2_CONFIG_H
#define THEO_MODELS_MOGE2_CONFIG_H

#include "formats/weights.h"
#include "kernels/channels.h" /* theo_nonlinearity */
#include "models/moge_config.h"

enum { THEO_MOGE2_LEVELS = 5 }; /* maps of 1, 2, 4, 8 and 16 times the token grid */

/* In front of a block's convolutions. */
typedef enum theo_moge2_norm {
    THEO_MOGE2_NORM_NONE,
    THEO_MOGE2_NORM_LAYER,   /* all channels together */
    THEO_MOGE2_NORM_GROUP,   /* groups of 32 channels */
    THEO_MOGE2_NORM_INSTANCE /* each channel by itself, without gain and offset */
} theo_moge2_norm;

/* One convolutional decoder: the neck, or a head. */
typedef struct theo_moge2_stack_config {
    int in[THEO_MOGE2_LEVELS];                 /* channels of the level's input */
    int width[THEO_MOGE2_LEVELS];              /* channels of the level */
    int out[THEO_MOGE2_LEVELS];                /* channels of its output; 0: the level as it is */
    int blocks[THEO_MOGE2_LEVELS];             /* residual blocks */
    bool is_transposed[THEO_MOGE2_LEVELS - 1]; /* the way up: transposed convolution, else bilinear; a 3x3 follows */
    int hidden;                                /* widening within a residual block */
    theo_moge2_norm in_norm, hidden_norm;
    theo_nonlinearity f; /* within a residual block */
} theo_moge2_stack_config;

typedef struct theo_moge2_config {
    theo_moge2_stack_config neck, points, mask, normal;
    bool has_mask, has_normal, has_scale;
} theo_moge2_config;

/* From the text of `model_config`, or of an object that holds one. depth: blocks of the backbone; file: for messages. */
theo_status theo_moge2_config_parse(theo_moge2_config *config, theo_moge_config *common, const char *text, int depth,
                                    const char *file, theo_error *err);
/* From the shapes of the tensors. */
theo_status theo_moge2_config_guess(theo_moge2_config *config, theo_moge_config *common, const theo_weights *weights, int depth,
                                    theo_error *err);

/* As the configuration has them. */
const char *theo_moge2_norm_name(theo_moge2_norm norm);
const char *theo_moge2_activation_name(theo_nonlinearity f);

/* Groups of a norm over so many channels; 0: they cannot be cut so. */
int theo_moge2_norm_groups(theo_moge2_norm norm, int channels);
bool theo_moge2_norm_has_affine(theo_moge2_norm norm);

#endif
