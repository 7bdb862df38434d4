/* moge1.c - the decoder of MoGe-1 on a plan. */
#include "models/moge1.h"

/* f(norm(x)) with ReLU */
static theo_tensor record_norm(theo_plan *p, const char *name, theo_tensor x, int groups, const theo_norm *norm) {
    return theo_plan_group_norm(p, name, x, groups, norm->gamma, norm->beta, THEO_MOGE_NORM_EPS, THEO_NONLINEAR_RELU);
}

static theo_tensor record_block(theo_plan *p, const theo_moge1_config *c, const theo_moge1_block *block, const char *name,
                                theo_tensor x) {
    int hidden = c->hidden * x.c;
    theo_tensor y = record_norm(p, theo_name("%s.norm1", name).text, x, 1, &block->norm);
    y = theo_plan_conv(p, theo_name("%s.conv1", name).text, y, block->first, 1, THEO_PAD_REPLICATE, theo_epilogue_none());
    y = record_norm(p, theo_name("%s.norm2", name).text, y, c->is_hidden_grouped ? hidden / 32 : 1, &block->hidden_norm);
    return theo_plan_conv(p, theo_name("%s.conv2", name).text, y, block->second, 1, THEO_PAD_REPLICATE, theo_epilogue_add(x));
}

/* The transposed convolution of map and coordinates beside each other is the sum of one of each. */
static theo_tensor record_stage(const theo_moge_recording *r, int number, theo_tensor x) {
    theo_plan *p = r->plan;
    const theo_moge1 *n = r->network->one;
    const theo_moge1_stage *s = &n->stages[number];
    theo_tensor uv = theo_moge_add_coordinates(r, x.h, x.w, false);
    uv = theo_plan_conv_transpose(p, theo_name("up%d.coordinates", number).text, uv, s->up_coordinates, theo_epilogue_none());
    x = theo_plan_conv_transpose(p, theo_name("up%d", number).text, x, s->up, theo_epilogue_add(uv));
    x = theo_plan_conv(p, theo_name("up%d.conv", number).text, x, s->conv, 1, THEO_PAD_REPLICATE, theo_epilogue_none());
    theo_moge_trace_stage(r, x, theo_name("up%d_conv", number).text);
    for (int j = 0; j < n->config.blocks; j++)
        x = record_block(p, &n->config, &s->blocks[j], theo_name("up%d.block%d", number, j).text, x);
    theo_moge_trace_stage(r, x, theo_name("up%d", number).text);
    return x;
}

void theo_moge1_record(const theo_moge_recording *r, theo_tensor features) {
    const theo_moge1 *n = r->network->one;
    const theo_moge_grid *grid = &r->net->grid;
    theo_epilogue relu = theo_epilogue_none();
    relu.act = THEO_ACT_RELU;
    theo_tensor x = features;
    for (int i = 0; i < n->config.stages; i++)
        x = record_stage(r, i, x);
    theo_tensor uv = theo_moge_add_coordinates(r, grid->map_h, grid->map_w, false);
    theo_tensor both = theo_plan_resize_conv_linear(r->plan, "outputs", x, uv, n->conv, relu, n->last, theo_epilogue_none());
    theo_tensor points = theo_plan_channels(r->plan, both, 0, 3), mask = theo_plan_channels(r->plan, both, 3, 1);
    theo_moge_trace_stage(r, points, "points_raw");
    theo_moge_trace_stage(r, mask, "mask_raw");
    r->net->maps[THEO_MOGE_POINTS] = (theo_moge_map){points, false, 3};
    r->net->maps[THEO_MOGE_MASK] = (theo_moge_map){mask, false, 1};
}
