/* moge2_synth.c - tensors and configuration of MoGe-2's decoder, for moge_synth.c. */
#include "models/gather.h"
#include "models/moge2.h"
#include "models/moge_synth.h"
#include <string.h>

static const char *const head_names[THEO_MOGE_HEADS] = {"points_head", "normal_head", "mask_head"};

/* ---------------------------------------------------------------- tensors */

static void make_stack(theo_maker *m, const char *name, const theo_moge2_stack_config *s) {
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++)
        theo_make_conv(m, theo_name("%s.input_blocks.%d", name, l).text, s->width[l], s->in[l], 1);
    for (int l = 0; l < THEO_MOGE2_LEVELS - 1; l++) {
        int next = s->width[l + 1], in = s->width[l];
        if (s->is_transposed[l]) {
            theo_moge_make_transposed(m, theo_name("%s.resamplers.%d.0", name, l).text, in, next);
            in = next;
        }
        theo_make_conv(m, theo_name("%s.resamplers.%d.1", name, l).text, next, in, 3);
    }
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++)
        for (int j = 0; j < s->blocks[l]; j++) {
            theo_tensor_name block = theo_name("%s.res_blocks.%d.%d", name, l, j);
            int width = s->width[l], hidden = s->hidden * width;
            if (theo_moge2_norm_has_affine(s->in_norm))
                theo_make_norm(m, theo_name("%s.layers.0", block.text).text, width);
            theo_make_conv(m, theo_name("%s.layers.2", block.text).text, hidden, width, 3);
            if (theo_moge2_norm_has_affine(s->hidden_norm))
                theo_make_norm(m, theo_name("%s.layers.3", block.text).text, hidden);
            theo_make_conv(m, theo_name("%s.layers.5", block.text).text, width, hidden, 3);
        }
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++)
        if (s->out[l])
            theo_make_conv(m, theo_name("%s.output_blocks.%d", name, l).text, s->out[l], s->width[l], 1);
}

void theo_moge2_make(theo_maker *m, int width, const theo_moge_config *common, const theo_moge2_config *c) {
    for (int i = 0; i < common->tap_count; i++)
        theo_make_conv(m, theo_name("encoder.output_projections.%d", i).text, common->features, width, 1);
    make_stack(m, "neck", &c->neck);
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++)
        if (theo_moge2_head_config(c, h))
            make_stack(m, head_names[h], theo_moge2_head_config(c, h));
    for (int i = 0; c->has_scale && i < 3; i++)
        theo_make_linear(m, theo_name("scale_head.%d", 2 * i).text, i < 2 ? width : 1, width);
}

/* ---------------------------------------------------------------- configurations */

static void stack_of(theo_moge2_stack_config *s, int width, int inner, const int *in, int out) {
    const int widths[THEO_MOGE2_LEVELS] = {width, 256, 128, 64, 32};
    *s = (theo_moge2_stack_config){.hidden = 1, .f = THEO_NONLINEAR_RELU, .is_transposed = {true, true, true, false}};
    s->out[THEO_MOGE2_LEVELS - 1] = out;
    for (int l = 0; l < THEO_MOGE2_LEVELS; l++) {
        s->width[l] = widths[l];
        s->in[l] = in ? in[l] : widths[l];
        s->blocks[l] = l == 0 || l == THEO_MOGE2_LEVELS - 1 ? 0 : inner;
    }
}

bool theo_moge2_published(theo_moge_backbone *b, theo_moge_config *common, theo_moge2_config *c, const char *name) {
    static const struct {
        const char *name;
        int width, depth, taps, neck_blocks;
        bool has_normal;
    } known[] = {
        {"moge-2-vitl-normal", 1024, 24, 4, 2, true},
        {"moge-2-vitl", 1024, 24, 4, 2, false},
        {"moge-2-vitb-normal", 768, 12, 2, 1, true},
        {"moge-2-vits-normal", 384, 12, 2, 1, true},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name))
            continue;
        int width = known[i].width;
        const int neck_in[THEO_MOGE2_LEVELS] = {width + 2, 2, 2, 2, 2};
        *b = (theo_moge_backbone){width, known[i].depth, 4 * width, 37};
        *common = (theo_moge_config){
            .tap_count = known[i].taps, .features = width, .remap = THEO_MOGE_REMAP_EXP, .min_tokens = 1200, .max_tokens = 3600};
        for (int k = 0; k < common->tap_count; k++)
            common->taps[k] = b->depth / common->tap_count * (k + 1) - 1;
        *c = (theo_moge2_config){.has_mask = true, .has_scale = true, .has_normal = known[i].has_normal};
        stack_of(&c->neck, width, known[i].neck_blocks, neck_in, 0);
        stack_of(&c->points, width, 1, NULL, 3);
        stack_of(&c->normal, width, 1, NULL, 3);
        stack_of(&c->mask, width, 1, NULL, 1);
        return true;
    }
    return false;
}

static void add_stack(theo_text *t, const char *name, const theo_moge2_stack_config *s) {
    theo_text_printf(t, ", \"%s\": {", name);
    theo_moge_add_list(t, "dim_in", s->in, THEO_MOGE2_LEVELS, true);
    theo_text_printf(t, ", ");
    theo_moge_add_list(t, "dim_res_blocks", s->width, THEO_MOGE2_LEVELS, false);
    theo_text_printf(t, ", ");
    theo_moge_add_list(t, "dim_out", s->out, THEO_MOGE2_LEVELS, true);
    theo_text_printf(t, ", ");
    theo_moge_add_list(t, "num_res_blocks", s->blocks, THEO_MOGE2_LEVELS, false);
    theo_text_printf(t, ", \"dim_times_res_block_hidden\": %d, \"resamplers\": [", s->hidden);
    for (int l = 0; l < THEO_MOGE2_LEVELS - 1; l++)
        theo_text_printf(t, "%s\"%s\"", l ? ", " : "", s->is_transposed[l] ? "conv_transpose" : "bilinear");
    theo_text_printf(t, "], \"res_block_in_norm\": \"%s\", \"res_block_hidden_norm\": \"%s\", \"activation\": \"%s\"}",
                     theo_moge2_norm_name(s->in_norm), theo_moge2_norm_name(s->hidden_norm), theo_moge2_activation_name(s->f));
}

void theo_moge2_add_config(theo_text *t, int width, const theo_moge_config *common, const theo_moge2_config *c) {
    const char *size = width == 384 ? "s" : width == 768 ? "b" : width == 1024 ? "l" : "_test";
    theo_text_printf(t, "{\"encoder\": {\"backbone\": \"dinov2_vit%s14\", ", size);
    theo_moge_add_list(t, "intermediate_layers", common->taps, common->tap_count, false);
    theo_text_printf(t, ", \"dim_out\": %d}", common->features);
    add_stack(t, "neck", &c->neck);
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++)
        if (theo_moge2_head_config(c, h))
            add_stack(t, head_names[h], theo_moge2_head_config(c, h));
    if (c->has_scale)
        theo_text_printf(t, ", \"scale_head\": {\"dims\": [%d, %d, %d, 1]}", width, width, width);
    theo_text_printf(t, ", \"remap_output\": \"%s\", \"num_tokens_range\": [%d, %d]}", theo_moge_remap_name(common->remap),
                     common->min_tokens, common->max_tokens);
}
