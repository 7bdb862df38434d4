#include "models/superpoint_names.h"
#include <stdio.h>

/* clang-format off */
#define HF_LAYERS { \
            [THEO_SP_1A] = {"encoder.conv_blocks.0.conv_a", NULL}, \
            [THEO_SP_1B] = {"encoder.conv_blocks.0.conv_b", NULL}, \
            [THEO_SP_2A] = {"encoder.conv_blocks.1.conv_a", NULL}, \
            [THEO_SP_2B] = {"encoder.conv_blocks.1.conv_b", NULL}, \
            [THEO_SP_3A] = {"encoder.conv_blocks.2.conv_a", NULL}, \
            [THEO_SP_3B] = {"encoder.conv_blocks.2.conv_b", NULL}, \
            [THEO_SP_4A] = {"encoder.conv_blocks.3.conv_a", NULL}, \
            [THEO_SP_4B] = {"encoder.conv_blocks.3.conv_b", NULL}, \
            [THEO_SP_PA] = {"keypoint_decoder.conv_score_a", NULL}, \
            [THEO_SP_PB] = {"keypoint_decoder.conv_score_b", NULL}, \
            [THEO_SP_DA] = {"descriptor_decoder.conv_descriptor_a", NULL}, \
            [THEO_SP_DB] = {"descriptor_decoder.conv_descriptor_b", NULL}, \
        }

const theo_superpoint_names theo_superpoint_layouts[THEO_SP_LAYOUTS] = {
    {
        .layout = "original",
        .kind = THEO_SUPERPOINT_PLAIN,
        .prefix = "",
        .layers = {
            [THEO_SP_1A] = {"conv1a", NULL},
            [THEO_SP_1B] = {"conv1b", NULL},
            [THEO_SP_2A] = {"conv2a", NULL},
            [THEO_SP_2B] = {"conv2b", NULL},
            [THEO_SP_3A] = {"conv3a", NULL},
            [THEO_SP_3B] = {"conv3b", NULL},
            [THEO_SP_4A] = {"conv4a", NULL},
            [THEO_SP_4B] = {"conv4b", NULL},
            [THEO_SP_PA] = {"convPa", NULL},
            [THEO_SP_PB] = {"convPb", NULL},
            [THEO_SP_DA] = {"convDa", NULL},
            [THEO_SP_DB] = {"convDb", NULL},
        },
    },
    {
        .layout = "hf",
        .kind = THEO_SUPERPOINT_PLAIN,
        .prefix = "",
        .layers = HF_LAYERS,
    },
    /* Hugging Face's SuperGlue and LightGlue checkpoints carry a whole SuperPoint. */
    {
        .layout = "hf-prefixed",
        .kind = THEO_SUPERPOINT_PLAIN,
        .prefix = "keypoint_detector.",
        .layers = HF_LAYERS,
    },
    {
        .layout = "rpautrat",
        .kind = THEO_SUPERPOINT_BN,
        .bn_eps = 1e-3,
        .prefix = "",
        .layers = {
            [THEO_SP_1A] = {"backbone.0.0.conv", "backbone.0.0.bn"},
            [THEO_SP_1B] = {"backbone.0.1.conv", "backbone.0.1.bn"},
            [THEO_SP_2A] = {"backbone.1.0.conv", "backbone.1.0.bn"},
            [THEO_SP_2B] = {"backbone.1.1.conv", "backbone.1.1.bn"},
            [THEO_SP_3A] = {"backbone.2.0.conv", "backbone.2.0.bn"},
            [THEO_SP_3B] = {"backbone.2.1.conv", "backbone.2.1.bn"},
            [THEO_SP_4A] = {"backbone.3.0.conv", "backbone.3.0.bn"},
            [THEO_SP_4B] = {"backbone.3.1.conv", "backbone.3.1.bn"},
            [THEO_SP_PA] = {"detector.0.conv", "detector.0.bn"},
            [THEO_SP_PB] = {"detector.1.conv", "detector.1.bn"},
            [THEO_SP_DA] = {"descriptor.0.conv", "descriptor.0.bn"},
            [THEO_SP_DB] = {"descriptor.1.conv", "descriptor.1.bn"},
        },
    },
    {
        .layout = "magicpoint",
        .kind = THEO_SUPERPOINT_MAGICPOINT,
        .bn_eps = 1e-5,
        .prefix = "",
        .layers = {
            [THEO_SP_1A] = {"backbone.block1_1.0", "backbone.block1_1.2"},
            [THEO_SP_1B] = {"backbone.block1_2.0", "backbone.block1_2.2"},
            [THEO_SP_2A] = {"backbone.block2_1.0", "backbone.block2_1.2"},
            [THEO_SP_2B] = {"backbone.block2_2.0", "backbone.block2_2.2"},
            [THEO_SP_3A] = {"backbone.block3_1.0", "backbone.block3_1.2"},
            [THEO_SP_3B] = {"backbone.block3_2.0", "backbone.block3_2.2"},
            [THEO_SP_4A] = {"backbone.block4_1.0", "backbone.block4_1.2"},
            [THEO_SP_4B] = {"backbone.block4_2.0", "backbone.block4_2.2"},
            [THEO_SP_PA] = {"detector_head.convPa", "detector_head.bnPa"},
            [THEO_SP_PB] = {"detector_head.convPb", "detector_head.bnPb"},
        },
    },
};
/* clang-format on */

const char *const theo_superpoint_conv_parts[THEO_SP_CONV_PARTS] = {"weight", "bias"};
const char *const theo_superpoint_norm_parts[THEO_SP_NORM_PARTS] = {"weight", "bias", "running_mean", "running_var"};

const char *theo_superpoint_tensor_name(char *name, const theo_superpoint_names *names, const char *stem, const char *part) {
    snprintf(name, THEO_SP_NAME_BYTES, "%s%s.%s", names->prefix, stem, part);
    return name;
}
