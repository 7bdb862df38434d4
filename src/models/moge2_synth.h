/* moge2_synth.h - checkpoints of formula weights in the published layout of MoGe-2. */
#ifndef THEO_MODELS_MOGE2_SYNTH_H
#define THEO_MODELS_MOGE2_SYNTH_H

#include "formats/bump.h"
#include "formats/json.h"
#include <theo/files.h>

/* Tensors of the published network of that name ("moge-2-vits-normal"), or of the configuration: an object with "model_config"
 * and, of the backbone, "dim", "depth", "mlp" and "table". *config_text is the model_config of what was made. All in `memory`. */
theo_status theo_moge2_synthesize(theo_array **arrays, int *count, const char **config_text, theo_bump *memory, const char *name,
                                  const theo_json *config, const char *json, theo_error *err);

#endif
