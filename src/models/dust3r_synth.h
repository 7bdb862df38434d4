/* dust3r_synth.h - checkpoints of formula weights in the published layout of DUSt3R. */
#ifndef THEO_MODELS_DUST3R_SYNTH_H
#define THEO_MODELS_DUST3R_SYNTH_H

#include "formats/bump.h"
#include "formats/text.h"
#include "models/dust3r_config.h"
#include <theo/files.h>

/* What was made: the tensors, config.json as the Hub has it, and the constructor's call as training checkpoints have it. */
typedef struct theo_dust3r_synthetic {
    theo_array *arrays;
    int count;
    int aliases; /* second names of tensors, behind the others: training checkpoints have both, the Hub's files one */
    const char *config_json, *call;
} theo_dust3r_synthetic;

/* Tensors of the published network of that name ("dust3r"), or of the configuration: the keys of config.json and mlp_ratio,
 * dpt_layer_dims, dpt_feature_dim, dpt_last_dims; `text` is what it was parsed from. All in `memory`. */
theo_status theo_dust3r_synthesize(theo_dust3r_synthetic *made, theo_bump *memory, const char *name, const theo_json *config,
                                   const char *text, theo_error *err);

/* The settings of a configuration as config.json, or as the constructor's call. */
void theo_dust3r_add_config(theo_text *out, const theo_dust3r_config *config);
void theo_dust3r_add_call(theo_text *out, const theo_dust3r_config *config);

#endif
