/* moge_synth.h - checkpoints of formula weights in the published layouts of MoGe. */
#ifndef THEO_MODELS_MOGE_SYNTH_H
#define THEO_MODELS_MOGE_SYNTH_H

#include "formats/json.h"
#include "formats/text.h"
#include "models/maker.h"
#include "models/moge1_config.h"
#include "models/moge2_config.h"
#include <theo/files.h>

/* Tensors of the published network of that name ("moge-2-vits-normal"), or of the configuration: an object with "model_config"
 * and, of the backbone, "dim", "depth", "mlp" and "table". *config_text is the model_config of what was made. All in `memory`. */
theo_status theo_moge_synthesize(theo_array **arrays, int *count, const char **config_text, theo_bump *memory, const char *name,
                                 const theo_json *config, const char *json, theo_error *err);

/* ---- what the decoders of both generations need for it */

typedef struct theo_moge_backbone {
    int width, depth, hidden, table;
} theo_moge_backbone;

/* Of a transposed convolution: STEM.weight [in, out, 2, 2] and STEM.bias [out]. */
void theo_moge_make_transposed(theo_maker *m, const char *stem, int in, int out);

/* "KEY": [values]; 0 may stand for null. */
void theo_moge_add_list(theo_text *text, const char *key, const int *values, int count, bool null_for_zero);

/* The published configuration of that name; false: there is none. */
bool theo_moge1_published(theo_moge_backbone *backbone, theo_moge_config *common, theo_moge1_config *config, const char *name);
bool theo_moge2_published(theo_moge_backbone *backbone, theo_moge_config *common, theo_moge2_config *config, const char *name);
/* Everything that is not the backbone's: its tensors, and its members of model_config. */
void theo_moge1_make(theo_maker *m, int width, const theo_moge_config *common, const theo_moge1_config *config);
void theo_moge1_add_config(theo_text *text, int width, const theo_moge_config *common, const theo_moge1_config *config);
void theo_moge2_make(theo_maker *m, int width, const theo_moge_config *common, const theo_moge2_config *config);
void theo_moge2_add_config(theo_text *text, int width, const theo_moge_config *common, const theo_moge2_config *config);

#endif
