/* superpoint_synth.h - checkpoints of formula weights in every layout of SuperPoint. */
#ifndef THEO_MODELS_SUPERPOINT_SYNTH_H
#define THEO_MODELS_SUPERPOINT_SYNTH_H

#include "formats/bump.h"
#include "formats/json.h"
#include <theo/files.h>

/* Tensors of a network of that configuration, all in `memory`. layout: names that are used unless the configuration says "names".
 * config: NULL, or an object with any of "names", "encoder" (four blocks), "decoder", "keypoint_dim" (65), "descriptor_dim" (0:
 * none). */
theo_status theo_superpoint_synthesize(theo_array **arrays, int *count, theo_bump *memory, const char *layout,
                                       const theo_json *config, theo_error *err);

#endif
