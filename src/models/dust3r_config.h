/* dust3r_config.h - what a DUSt3R checkpoint says of its network: config.json, the constructor of a training checkpoint, or what
 * the shapes of its tensors tell. */
#ifndef THEO_MODELS_DUST3R_CONFIG_H
#define THEO_MODELS_DUST3R_CONFIG_H

#include "formats/json.h"
#include "formats/weights.h"

typedef enum theo_dust3r_head { THEO_DUST3R_DPT, THEO_DUST3R_LINEAR } theo_dust3r_head;

typedef enum theo_depth_mode { THEO_DEPTH_EXP, THEO_DEPTH_LINEAR, THEO_DEPTH_SQUARE } theo_depth_mode;
typedef enum theo_conf_mode { THEO_CONF_EXP, THEO_CONF_SIGMOID } theo_conf_mode;

/* From the raw output of a pixel to its point and its confidence. */
typedef struct theo_dust3r_output {
    theo_depth_mode depth;
    theo_conf_mode conf;
    double conf_min, conf_max; /* conf_max may be infinite */
} theo_dust3r_output;

typedef struct theo_dust3r_config {
    int enc_width, enc_depth, enc_heads; /* 0: not told, to be taken from the tensors */
    int dec_width, dec_depth, dec_heads;
    int image_size; /* longer side that the network was trained with: 512, 224 */
    double rope_base;
    theo_dust3r_head head;
    bool is_head_told;
    theo_dust3r_output output;
} theo_dust3r_config;

/* What published files leave out. */
void theo_dust3r_config_init(theo_dust3r_config *config);
/* From the text of config.json. */
theo_status theo_dust3r_config_parse(theo_dust3r_config *config, const char *text, const char *file, theo_error *err);
/* From `AsymmetricCroCo3DStereo(name=value, ...)`, whose values are read as literals; nothing is evaluated. */
theo_status theo_dust3r_config_from_call(theo_dust3r_config *config, const char *call, const char *file, theo_error *err);
/* Widths and depths that were not told, from the tensors. */
void theo_dust3r_config_complete(theo_dust3r_config *config, const theo_weights *weights);

#endif
