/* moge_config.h - what the configurations of both generations of MoGe have in common, and how their members are read. */
#ifndef THEO_MODELS_MOGE_CONFIG_H
#define THEO_MODELS_MOGE_CONFIG_H

#include "formats/json.h"
#include <theo/theo.h>

enum {
    THEO_MOGE_MAX_TAPS = 8,        /* blocks of the backbone whose output is used */
    THEO_MOGE_MAX_BLOCKS = 16,     /* residual blocks in a row */
    THEO_MOGE_MAX_CHANNELS = 8192, /* of a layer */
    THEO_MOGE_MIN_CHANNELS = 8     /* of a map that 3x3 convolutions read */
};

typedef enum theo_moge_remap {
    THEO_MOGE_REMAP_LINEAR,
    THEO_MOGE_REMAP_EXP,     /* z = exp(p2), x = p0 * z, y = p1 * z */
    THEO_MOGE_REMAP_SINH,    /* sinh of all */
    THEO_MOGE_REMAP_SINH_EXP /* sinh of x and y, exp of z */
} theo_moge_remap;

typedef struct theo_moge_config {
    int taps[THEO_MOGE_MAX_TAPS], tap_count; /* blocks, from 0 */
    int features;                            /* channels of the encoder's output */
    theo_moge_remap remap;
    int min_tokens, max_tokens; /* that resolution levels 0 and 9 stand for */
} theo_moge_config;

const char *theo_moge_remap_name(theo_moge_remap remap);

/* model_config of that text, which is an object that holds it, or it itself. */
theo_status theo_moge_config_root(const theo_json **root, theo_bump *memory, const char *text, const char *file, theo_error *err);

/* ---- reading. Where one is in the configuration, for messages: model_config.PART.KEY, or model_config.KEY with part "". */

typedef struct theo_moge_place {
    const char *file, *part;
    theo_error *err;
} theo_moge_place;

bool theo_moge_is_null(const theo_json *value); /* absent, or null */
/* Both fail: a value that cannot be, and one that this program does not do. */
theo_status theo_moge_wrong(const theo_moge_place *at, const char *key, const char *allowed);
theo_status theo_moge_unsupported(const theo_moge_place *at, const char *key, const char *value, const char *allowed);

/* A whole number in [low, high]; `absent` where there is none. */
theo_status theo_moge_read_int(int *out, const theo_json *value, int absent, int low, int high, const theo_moge_place *at,
                               const char *key);
/* [low, high], both in [lowest, highest]; false and untouched where the member is not there. */
theo_status theo_moge_read_range(bool *is_there, int range[2], const theo_json *object, const char *key, int lowest, int highest,
                                 const theo_moge_place *at);
/* Which of `names` (up to a NULL) the member is; `absent` stands for what is not there. Others are unsupported. */
theo_status theo_moge_read_name(int *which, const theo_json *object, const char *key, const char *absent,
                                const char *const *names, const theo_moge_place *at);
/* A list of blocks, or how many of the last of `depth` blocks. */
theo_status theo_moge_read_taps(theo_moge_config *config, const theo_json *value, int depth, const theo_moge_place *at);
theo_status theo_moge_read_remap(theo_moge_config *config, const theo_json *root, const theo_moge_place *at);

#endif
