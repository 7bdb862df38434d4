/* moge1.h - the decoder of MoGe-1: stages that double the map, and an output of two convolutions for points and mask at the size
 * that the photo was brought to. */
#ifndef THEO_MODELS_MOGE1_H
#define THEO_MODELS_MOGE1_H

#include "models/moge1_config.h"
#include "models/moge_decoder.h"

/* x + second(relu(hidden_norm(first(relu(norm(x)))))) */
typedef struct theo_moge1_block {
    theo_norm norm;        /* [D], over all channels together */
    theo_packed *first;    /* [hidden * D, D, 3, 3] */
    theo_norm hidden_norm; /* [hidden * D] */
    theo_packed *second;   /* [D, hidden * D, 3, 3] */
} theo_moge1_block;

/* blocks(conv(up(x, coordinates))). D: channels after it */
typedef struct theo_moge1_stage {
    theo_packed *up;             /* [in, D, 2, 2] */
    theo_packed *up_coordinates; /* [2, D, 2, 2]: the other part of the same, with the bias */
    theo_packed *conv;           /* [D, D, 3, 3] */
    theo_moge1_block blocks[THEO_MOGE_MAX_BLOCKS];
} theo_moge1_stage;

enum { THEO_MOGE1_OUTPUTS = 2, THEO_MOGE1_CHANNELS = 3 + 1 }; /* points, mask */

/* What is read for theo_moge1_join. */
typedef struct theo_moge1_output {
    float *conv, *conv_bias, *last, *last_bias;
} theo_moge1_output;

struct theo_moge1 {
    theo_moge1_config config;
    theo_moge1_stage stages[THEO_MOGE1_MAX_STAGES];
    theo_moge1_output outputs[THEO_MOGE1_OUTPUTS]; /* while loading */
    theo_packed *conv;                             /* [2 * last_channels, D + 2, 3, 3]: both outputs beside each other */
    theo_packed *last;                             /* [4, 2 * last_channels] */
};

/* Part of loading: network->one is made, its configuration read (text NULL: guessed) into it and into network->config, and what
 * is to be packed noted. The backbone must be known. */
theo_status theo_moge1_gather(theo_moge *network, const theo_gather *gather, const char *config_text, theo_error *err);
/* Part of loading, after the packing: the layers of both outputs joined. */
theo_status theo_moge1_join(theo_moge1 *decoder, theo_cpu level, theo_error *err);
/* Every packed layer; many are NULL. */
void theo_moge1_visit(theo_moge1 *decoder, theo_packed_visitor visit, void *context);
void theo_moge1_free(theo_moge1 *decoder);

/* From features [rows, columns, features] to the maps. */
void theo_moge1_record(const theo_moge_recording *r, theo_tensor features);

#endif
