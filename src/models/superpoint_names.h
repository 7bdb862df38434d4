/* superpoint_names.h - what the tensors of SuperPoint are called in the files of its publishers. */
#ifndef THEO_MODELS_SUPERPOINT_NAMES_H
#define THEO_MODELS_SUPERPOINT_NAMES_H

#include "formats/weights.h"
#include "models/superpoint.h"

/* clang-format off */
typedef enum theo_superpoint_layer {
    THEO_SP_1A, THEO_SP_1B, THEO_SP_2A, THEO_SP_2B, THEO_SP_3A, THEO_SP_3B, THEO_SP_4A, THEO_SP_4B,
    THEO_SP_PA, THEO_SP_PB, THEO_SP_DA, THEO_SP_DB, THEO_SP_LAYERS
} theo_superpoint_layer;
/* clang-format on */

typedef struct theo_superpoint_stems {
    const char *conv; /* in front of .weight, .bias; NULL: this layout has no such layer */
    const char *norm; /* in front of .weight, .bias, .running_mean, .running_var; NULL: no batch norm */
} theo_superpoint_stems;

typedef struct theo_superpoint_names {
    const char *layout; /* "original", "hf", "hf-prefixed", "rpautrat", "magicpoint" */
    theo_superpoint_kind kind;
    double bn_eps;      /* of the publisher's program */
    const char *prefix; /* in front of every name */
    theo_superpoint_stems layers[THEO_SP_LAYERS];
} theo_superpoint_names;

enum { THEO_SP_LAYOUTS = 5, THEO_SP_CONV_PARTS = 2, THEO_SP_NORM_PARTS = 4, THEO_SP_NAME_BYTES = 160 };
extern const theo_superpoint_names theo_superpoint_layouts[THEO_SP_LAYOUTS];
extern const char *const theo_superpoint_conv_parts[THEO_SP_CONV_PARTS]; /* "weight", "bias" */
extern const char *const theo_superpoint_norm_parts[THEO_SP_NORM_PARTS]; /* "weight", "bias", "running_mean", "running_var" */

/* PREFIX STEM . PART into name[THEO_SP_NAME_BYTES], which it returns. */
const char *theo_superpoint_tensor_name(char *name, const theo_superpoint_names *names, const char *stem, const char *part);

#endif
