/* moge.c - the network on a plan: the encoder, and what is shared by the decoders of both generations. */
#include "models/moge.h"
#include "geometry/view_plane.h"
#include "models/moge1.h"
#include "models/moge2.h"
#include "models/moge_decoder.h"
#include <stdio.h>

static const theo_tensor none = {.id = -1};

/* ---------------------------------------------------------------- helpers of decoders */

void theo_moge_trace_stage(const theo_moge_recording *r, theo_tensor x, const char *name) {
    theo_moge_trace *t = r->trace;
    if (!t || t->count == (int)(sizeof t->stages / sizeof *t->stages))
        return;
    theo_plan_output(r->plan, x);
    t->stages[t->count].tensor = x;
    snprintf(t->stages[t->count++].name, sizeof t->stages->name, "%s", name);
}

theo_tensor theo_moge_add_coordinates(const theo_moge_recording *r, int h, int w, bool is_quads) {
    int i = r->net->coordinate_count++;
    theo_tensor x = theo_plan_input(r->plan, theo_name("coordinates%d", i).text, h, w, is_quads ? 8 : 2);
    r->net->coordinates[i] = (theo_moge_coordinates){x, is_quads};
    return x;
}

/* ---------------------------------------------------------------- encoder */

/* [rows, columns, features]; *cls: [1, 1, C]. Every tap goes through the backbone's last norm; their projections are summed. */
static theo_tensor record_encoder(const theo_moge_recording *r, theo_tensor *cls) {
    theo_plan *p = r->plan;
    const theo_moge *n = r->network;
    const theo_moge_config *c = &n->config;
    const theo_moge_grid *grid = &r->net->grid;
    theo_tensor x = theo_vit_embed(p, &n->vit, r->net->patches, r->net->positions), features = none;
    theo_moge_trace_stage(r, x, "tokens_in");
    for (int i = 0, tap = 0; tap < c->tap_count; i++) {
        theo_tensor after_attention;
        x = theo_vit_record_block(p, &n->vit, i, x, &after_attention);
        theo_moge_trace_stage(r, after_attention, theo_name("block%d_attn", i).text);
        theo_moge_trace_stage(r, x, theo_name("block%d", i).text);
        if (c->taps[tap] != i)
            continue;
        theo_tensor y = theo_vit_record_norm(p, &n->vit, theo_name("tap%d.norm", tap).text, x);
        theo_moge_trace_stage(r, y, theo_name("tap%d", tap).text);
        theo_tensor patches = theo_plan_rows(p, y, 1, grid->rows, grid->columns);
        features = theo_plan_linear(p, theo_name("tap%d.projection", tap).text, patches, n->projections[tap],
                                    theo_epilogue_add(features));
        if (++tap == c->tap_count)
            *cls = theo_plan_rows(p, y, 0, 1, 1);
    }
    theo_moge_trace_stage(r, features, "feat");
    return features;
}

/* ---------------------------------------------------------------- all of it */

theo_moge_net theo_moge_record(theo_plan *p, const theo_moge *n, const theo_moge_grid *grid, unsigned heads,
                               theo_moge_trace *trace) {
    theo_moge_net net = {.grid = *grid, .scale = none};
    theo_moge_recording r = {p, n, &net, trace};
    int tokens = 1 + grid->rows * grid->columns;
    heads &= theo_moge_heads(n);
    net.patches = theo_plan_input(p, "patches", 1, tokens, 3 * n->vit.patch * n->vit.patch);
    net.positions = theo_plan_input(p, "positions", 1, tokens, n->vit.width);
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++)
        net.maps[h].tensor = none;

    theo_tensor cls = none, features = record_encoder(&r, &cls);
    if (n->generation == THEO_MOGE_1)
        theo_moge1_record(&r, features);
    else
        theo_moge2_record(&r, features, cls, heads);
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++)
        if (net.maps[h].tensor.id >= 0)
            theo_plan_output(p, net.maps[h].tensor);
    if (net.scale.id >= 0)
        theo_plan_output(p, net.scale);
    return net;
}

/* ---------------------------------------------------------------- constant inputs */

/* The coordinates of the four pixels of each quad: u, v of phase 0, of phase 1 ... */
static void fill_quads(const theo_view_plane *plane, int h, int w, float *out, size_t pitch) {
    const float *top = out;
    for (int y = 0; y < h; y++) {
        const float v[2] = {theo_view_plane_at(plane->y, 2 * h, 2 * y), theo_view_plane_at(plane->y, 2 * h, 2 * y + 1)};
        for (int x = 0; x < w; x++, out += pitch)
            for (int phase = 0; phase < 4; phase++) {
                out[2 * phase] =
                    y ? top[(size_t)x * pitch + (size_t)(2 * phase)] : theo_view_plane_at(plane->x, 2 * w, 2 * x + phase % 2);
                out[2 * phase + 1] = v[phase / 2];
            }
    }
}

void theo_moge_fill_constants(theo_plan *plan, const theo_moge *n, const theo_moge_net *net, double aspect) {
    int pitch;
    float *positions = theo_plan_data(plan, net->positions, &pitch);
    theo_vit_positions(&n->vit, net->grid.rows, net->grid.columns, positions, (size_t)pitch);
    theo_view_plane plane = theo_view_plane_of(aspect);
    for (int i = 0; i < net->coordinate_count; i++) {
        theo_tensor t = net->coordinates[i].tensor;
        float *out = theo_plan_data(plan, t, &pitch);
        (net->coordinates[i].is_quads ? fill_quads : theo_view_plane_fill)(&plane, t.h, t.w, out, (size_t)pitch);
    }
}
