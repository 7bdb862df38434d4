/* moge1_synth.c - tensors and configuration of MoGe-1's decoder, for moge_synth.c. */
#include "models/gather.h"
#include "models/moge_synth.h"
#include <string.h>

bool theo_moge1_published(theo_moge_backbone *b, theo_moge_config *common, theo_moge1_config *c, const char *name) {
    if (strcmp(name, "moge-vitl"))
        return false;
    *b = (theo_moge_backbone){1024, 24, 4096, 37};
    *common = (theo_moge_config){.taps = {20, 21, 22, 23},
                                 .tap_count = 4,
                                 .features = 512,
                                 .remap = THEO_MOGE_REMAP_EXP,
                                 .min_tokens = 1275,
                                 .max_tokens = 2551};
    *c = (theo_moge1_config){
        .stages = 3, .width = {256, 128, 64}, .blocks = 2, .hidden = 2, .is_hidden_grouped = true, .last_channels = 32};
    return true;
}

void theo_moge1_make(theo_maker *m, int width, const theo_moge_config *common, const theo_moge1_config *c) {
    int in = common->features;
    for (int i = 0; i < common->tap_count; i++)
        theo_make_conv(m, theo_name("head.projects.%d", i).text, in, width, 1);
    for (int i = 0; i < c->stages; in = c->width[i++]) {
        int d = c->width[i], hidden = c->hidden * d;
        theo_tensor_name stem = theo_name("head.upsample_blocks.%d", i);
        theo_moge_make_transposed(m, theo_name("%s.0.0", stem.text).text, in + 2, d);
        theo_make_conv(m, theo_name("%s.0.1", stem.text).text, d, d, 3);
        for (int j = 1; j <= c->blocks; j++) {
            theo_make_norm(m, theo_name("%s.%d.layers.0", stem.text, j).text, d);
            theo_make_conv(m, theo_name("%s.%d.layers.2", stem.text, j).text, hidden, d, 3);
            theo_make_norm(m, theo_name("%s.%d.layers.3", stem.text, j).text, hidden);
            theo_make_conv(m, theo_name("%s.%d.layers.5", stem.text, j).text, d, hidden, 3);
        }
    }
    for (int i = 0; i < 2; i++) {
        theo_make_conv(m, theo_name("head.output_block.%d.0", i).text, c->last_channels, in + 2, 3);
        theo_make_conv(m, theo_name("head.output_block.%d.2", i).text, i ? 1 : 3, c->last_channels, 1);
    }
}

void theo_moge1_add_config(theo_text *t, int width, const theo_moge_config *common, const theo_moge1_config *c) {
    theo_text_printf(t, "{\"encoder\": \"dinov2_vit%s14\", ", width == 1024 ? "l" : "_test");
    theo_moge_add_list(t, "intermediate_layers", common->taps, common->tap_count, false);
    theo_text_printf(t, ", \"dim_proj\": %d, ", common->features);
    theo_moge_add_list(t, "dim_upsample", c->width, c->stages, false);
    theo_text_printf(t, ", \"dim_times_res_block_hidden\": %d, \"num_res_blocks\": %d, \"res_block_norm\": \"%s\"", c->hidden,
                     c->blocks, c->is_hidden_grouped ? "group_norm" : "layer_norm");
    theo_text_printf(t, ", \"last_res_blocks\": 0, \"last_conv_channels\": %d, \"last_conv_size\": 1", c->last_channels);
    theo_text_printf(t, ", \"remap_output\": \"%s\", \"num_tokens_range\": [%d, %d]}", theo_moge_remap_name(common->remap),
                     common->min_tokens, common->max_tokens);
}
