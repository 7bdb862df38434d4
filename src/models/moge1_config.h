/* moge1_config.h - what a MoGe-1 checkpoint says of its network: model_config, or what the shapes of its tensors tell. */
#ifndef THEO_MODELS_MOGE1_CONFIG_H
#define THEO_MODELS_MOGE1_CONFIG_H

#include "formats/weights.h"
#include "models/moge_config.h"

enum { THEO_MOGE1_MAX_STAGES = 6 }; /* each doubles the map's sides */

typedef struct theo_moge1_config {
    int stages, width[THEO_MOGE1_MAX_STAGES]; /* channels after each */
    int blocks;                               /* residual blocks of a stage */
    int hidden;                               /* widening within one */
    bool is_hidden_grouped; /* its second norm is over hidden channels / 32 groups, else over all of them together */
    int last_channels;      /* between the two convolutions of an output */
} theo_moge1_config;

/* From the text of `model_config`, or of an object that holds one. depth: blocks of the backbone; file: for messages. */
theo_status theo_moge1_config_parse(theo_moge1_config *config, theo_moge_config *common, const char *text, int depth,
                                    const char *file, theo_error *err);
/* From the shapes of the tensors. */
theo_status theo_moge1_config_guess(theo_moge1_config *config, theo_moge_config *common, const theo_weights *weights, int depth,
                                    theo_error *err);

#endif
