#include "models/superpoint_names.h"
#include <stdio.h>

#define HF_LAYERS                                                                            \
    {                                                                                        \
        {"encoder.conv_blocks.0.conv_a", NULL}, {"encoder.conv_blocks.0.conv_b", NULL},      \
        {"encoder.conv_blocks.1.conv_a", NULL}, {"encoder.conv_blocks.1.conv_b", NULL},      \
        {"encoder.conv_blocks.2.conv_a", NULL}, {"encoder.conv_blocks.2.conv_b", NULL},      \
        {"encoder.conv_blocks.3.conv_a", NULL}, {"encoder.conv_blocks.3.conv_b", NULL},      \
        {"keypoint_decoder.conv_score_a", NULL}, {"keypoint_decoder.conv_score_b", NULL},    \
        {"descriptor_decoder.conv_descriptor_a", NULL}, {"descriptor_decoder.conv_descriptor_b", NULL} \
    }

const theo_superpoint_names theo_superpoint_layouts[THEO_SP_LAYOUTS] = {
    {"original", THEO_SUPERPOINT_PLAIN,
     0,
     "",
     {{"conv1a", NULL}, {"conv1b", NULL}, {"conv2a", NULL}, {"conv2b", NULL}, {"conv3a", NULL}, {"conv3b", NULL},
      {"conv4a", NULL}, {"conv4b", NULL}, {"convPa", NULL}, {"convPb", NULL}, {"convDa", NULL}, {"convDb", NULL}}},
    {"hf", THEO_SUPERPOINT_PLAIN, 0, "", HF_LAYERS},
    /* Hugging Face's SuperGlue and LightGlue checkpoints carry a whole SuperPoint. */
    {"hf-prefixed", THEO_SUPERPOINT_PLAIN, 0, "keypoint_detector.", HF_LAYERS},
    {"rpautrat", THEO_SUPERPOINT_BN,
     1e-3,
     "",
     {{"backbone.0.0.conv", "backbone.0.0.bn"}, {"backbone.0.1.conv", "backbone.0.1.bn"},
      {"backbone.1.0.conv", "backbone.1.0.bn"}, {"backbone.1.1.conv", "backbone.1.1.bn"},
      {"backbone.2.0.conv", "backbone.2.0.bn"}, {"backbone.2.1.conv", "backbone.2.1.bn"},
      {"backbone.3.0.conv", "backbone.3.0.bn"}, {"backbone.3.1.conv", "backbone.3.1.bn"},
      {"detector.0.conv", "detector.0.bn"}, {"detector.1.conv", "detector.1.bn"},
      {"descriptor.0.conv", "descriptor.0.bn"}, {"descriptor.1.conv", "descriptor.1.bn"}}},
    {"magicpoint", THEO_SUPERPOINT_MAGICPOINT,
     1e-5,
     "",
     {{"backbone.block1_1.0", "backbone.block1_1.2"}, {"backbone.block1_2.0", "backbone.block1_2.2"},
      {"backbone.block2_1.0", "backbone.block2_1.2"}, {"backbone.block2_2.0", "backbone.block2_2.2"},
      {"backbone.block3_1.0", "backbone.block3_1.2"}, {"backbone.block3_2.0", "backbone.block3_2.2"},
      {"backbone.block4_1.0", "backbone.block4_1.2"}, {"backbone.block4_2.0", "backbone.block4_2.2"},
      {"detector_head.convPa", "detector_head.bnPa"}, {"detector_head.convPb", "detector_head.bnPb"},
      {NULL, NULL}, {NULL, NULL}}},
};

const char *const theo_superpoint_conv_parts[THEO_SP_CONV_PARTS] = {"weight", "bias"};
const char *const theo_superpoint_norm_parts[THEO_SP_NORM_PARTS] = {"weight", "bias", "running_mean", "running_var"};

const char *theo_superpoint_tensor_name(char *name, const theo_superpoint_names *names, const char *stem, const char *part) {
    snprintf(name, THEO_SP_NAME_BYTES, "%s%s.%s", names->prefix, stem, part);
    return name;
}
