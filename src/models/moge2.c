/* moge2.c - the network, layer by layer. */
#include "models/moge2.h"
#include "geometry/view_plane.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LEVELS = THEO_MOGE2_LEVELS, LAST = LEVELS - 1 };

static const theo_tensor none = {.id = -1};

static theo_epilogue add(theo_tensor residual) {
    theo_epilogue e = theo_epilogue_none();
    e.residual = residual;
    return e;
}

/* What is being recorded. */
typedef struct recording {
    theo_plan *plan;
    const theo_moge2 *network;
    theo_moge2_net *net;
    theo_moge2_trace *trace;
} recording;

static void trace(const recording *r, theo_tensor x, const char *format, int number) {
    theo_moge2_trace *t = r->trace;
    if (!t || t->count == (int)(sizeof t->stages / sizeof *t->stages))
        return;
    theo_plan_output(r->plan, x);
    t->stages[t->count].tensor = x;
    snprintf(t->stages[t->count++].name, sizeof t->stages->name, format, number);
}

/* A layer's name in reports: "neck.2.block1.conv1". */
typedef struct layer_name {
    char text[64];
} layer_name;

static layer_name __attribute__((format(printf, 1, 2))) named(const char *format, ...) {
    layer_name n;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(n.text, sizeof n.text, format, arguments);
    va_end(arguments);
    return n;
}

/* ---------------------------------------------------------------- encoder */

/* [rows, columns, features]; *cls: [1, 1, C]. Every tap goes through the backbone's last norm; their projections are summed. */
static theo_tensor record_encoder(const recording *r, int rows, int columns, theo_tensor *cls) {
    theo_plan *p = r->plan;
    const theo_moge2 *n = r->network;
    const theo_moge2_config *c = &n->config;
    theo_tensor x = theo_vit_embed(p, &n->vit, r->net->patches, r->net->positions), features = none;
    trace(r, x, "tokens_in", 0);
    for (int i = 0, tap = 0; tap < c->tap_count; i++) {
        theo_tensor after_attention;
        x = theo_vit_record_block(p, &n->vit, i, x, &after_attention);
        trace(r, after_attention, "block%d_attn", i);
        trace(r, x, "block%d", i);
        if (c->taps[tap] != i)
            continue;
        theo_tensor y = theo_vit_record_norm(p, &n->vit, named("tap%d.norm", tap).text, x);
        trace(r, y, "tap%d", tap);
        theo_tensor grid = theo_plan_rows(p, y, 1, rows, columns);
        features = theo_plan_linear(p, named("tap%d.projection", tap).text, grid, n->taps[tap], add(features));
        if (++tap == c->tap_count)
            *cls = theo_plan_rows(p, y, 0, 1, 1);
    }
    trace(r, features, "feat", 0);
    trace(r, *cls, "cls", 0);
    return features;
}

static theo_tensor record_scale(const recording *r, theo_tensor cls) {
    theo_epilogue relu = theo_epilogue_none();
    relu.act = THEO_ACT_RELU;
    theo_tensor x = theo_plan_linear(r->plan, "scale.0", cls, r->network->scale[0], relu);
    x = theo_plan_linear(r->plan, "scale.1", x, r->network->scale[1], relu);
    x = theo_plan_linear(r->plan, "scale.2", x, r->network->scale[2], theo_epilogue_none());
    trace(r, x, "scale_raw", 0);
    return x;
}

/* ---------------------------------------------------------------- neck and heads: the same machine */

static theo_tensor record_blocks(theo_plan *p, const char *stack, const theo_moge2_level *level, int l, int count,
                                 theo_tensor x) {
    theo_epilogue first = theo_epilogue_none();
    first.relu_input = true;
    first.act = THEO_ACT_RELU;
    for (int j = 0; j < count; j++) {
        theo_tensor y = theo_plan_conv(p, named("%s.%d.block%d.conv1", stack, l, j).text, x, level->blocks[j].first, 1,
                                       THEO_PAD_REPLICATE, first);
        x = theo_plan_conv(p, named("%s.%d.block%d.conv2", stack, l, j).text, y, level->blocks[j].second, 1, THEO_PAD_REPLICATE,
                           add(x));
    }
    return x;
}

/* x + input_l(in); the sum is made where the later of both is. */
static theo_tensor record_input(theo_plan *p, const char *stack, const theo_moge2_level *level, int l, theo_tensor in,
                                theo_tensor residual) {
    return theo_plan_linear(p, named("%s.%d.input", stack, l).text, in, level->input, add(residual));
}

static theo_tensor record_way_up(theo_plan *p, const char *stack, const theo_moge2_level *level, int l, theo_tensor x) {
    if (!level->up)
        return theo_plan_upsample2_conv(p, named("%s.%d.up+conv", stack, l).text, x, level->conv, theo_epilogue_none());
    x = theo_plan_conv_transpose(p, named("%s.%d.up", stack, l).text, x, level->up, theo_epilogue_none());
    return theo_plan_conv(p, named("%s.%d.conv", stack, l).text, x, level->conv, 1, THEO_PAD_REPLICATE, theo_epilogue_none());
}

/* Levels 0 to `last`: inside[l] are the maps within, out[l] the outputs. */
static void record_neck(const recording *r, theo_tensor features, int last, theo_tensor inside[LEVELS], theo_tensor out[LEVELS]) {
    theo_plan *p = r->plan;
    const theo_moge2 *n = r->network;
    const theo_moge2_stack_config *c = &n->config.neck;
    theo_tensor x = theo_plan_linear(p, "neck.0.uv", r->net->uv[0], n->neck_uv, theo_epilogue_none());
    x = record_input(p, "neck", &n->neck.levels[0], 0, features, x);
    for (int l = 0;; l++) {
        const theo_moge2_level *level = &n->neck.levels[l];
        x = record_blocks(p, "neck", level, l, c->blocks[l], x);
        inside[l] = x;
        out[l] = level->output ? theo_plan_linear(p, named("neck.%d.output", l).text, x, level->output, theo_epilogue_none()) : x;
        trace(r, out[l], "neck%d", l);
        if (l == last)
            return;
        x = record_way_up(p, "neck", level, l, x);
        x = record_input(p, "neck", &n->neck.levels[l + 1], l + 1, r->net->uv[l + 1], x);
    }
}

/* The map within level `last` of a head. */
static theo_tensor record_head(const recording *r, theo_moge2_head head, const char *name, const theo_tensor neck[LEVELS],
                               int last) {
    theo_plan *p = r->plan;
    const theo_moge2_stack_config *c = theo_moge2_head_config(&r->network->config, head);
    theo_tensor x = none;
    for (int l = 0;; l++) {
        const theo_moge2_level *level = &r->network->heads[head].levels[l];
        x = record_input(p, name, level, l, neck[l], x);
        x = record_blocks(p, name, level, l, c->blocks[l], x);
        if (l == last)
            return x;
        x = record_way_up(p, name, level, l, x);
    }
}

static const char *const head_names[THEO_MOGE2_HEADS] = {"points", "normal", "mask"};

/* Every level at its full size. */
static void record_plain_heads(const recording *r, theo_tensor features, unsigned heads) {
    theo_tensor inside[LEVELS], neck[LEVELS];
    record_neck(r, features, LAST, inside, neck);
    for (theo_moge2_head h = 0; h < THEO_MOGE2_HEADS; h++) {
        if (!(heads & 1u << h))
            continue;
        const char *name = head_names[h];
        theo_tensor x = record_head(r, h, name, neck, LAST);
        x = theo_plan_linear(r->plan, named("%s.output", name).text, x, r->network->heads[h].levels[LAST].output,
                             theo_epilogue_none());
        trace(r, x, named("%s_raw", name).text, 0);
        r->net->maps[h] = (theo_moge2_map){x, false, x.c};
    }
}

/* Level 4 as convolutions of the maps of level 3: moge2_fold.c. */
static void record_folded_heads(const recording *r, theo_tensor features, unsigned heads) {
    theo_plan *p = r->plan;
    const theo_moge2_fold *fold = &r->network->fold;
    theo_tensor inside[LEVELS], neck[LEVELS];
    record_neck(r, features, LAST - 1, inside, neck);
    theo_tensor shared = theo_plan_linear(p, "last.uv", r->net->uv_quads, fold->uv, theo_epilogue_none());
    shared = theo_plan_conv(p, "last.neck", inside[LAST - 1], fold->neck, 1, THEO_PAD_REPLICATE, add(shared));
    for (theo_moge2_head h = 0; h < THEO_MOGE2_HEADS; h++) {
        if (!(heads & 1u << h))
            continue;
        int channels = theo_moge2_head_channels(r->network, h);
        theo_tensor x = record_head(r, h, head_names[h], neck, LAST - 1);
        x = theo_plan_conv(p, named("last.%s", head_names[h]).text, x, fold->heads[h], 1, THEO_PAD_REPLICATE,
                           add(theo_plan_channels(p, shared, fold->at[h], 4 * channels)));
        r->net->maps[h] = (theo_moge2_map){x, true, channels};
    }
}

theo_moge2_net theo_moge2_record(theo_plan *p, const theo_moge2 *n, int rows, int columns, unsigned heads,
                                 theo_moge2_trace *stages) {
    theo_moge2_net net = {.uv_quads = none, .scale = none};
    recording r = {p, n, &net, stages};
    bool is_folded = n->fold.is_possible && !stages;
    heads &= theo_moge2_heads(n);
    int tokens = 1 + rows * columns;
    net.patches = theo_plan_input(p, "patches", 1, tokens, 3 * n->vit.patch * n->vit.patch);
    net.positions = theo_plan_input(p, "positions", 1, tokens, n->vit.width);
    for (int l = 0; l < LEVELS; l++)
        net.uv[l] = l == LAST && is_folded ? none : theo_plan_input(p, named("uv%d", l).text, rows << l, columns << l, 2);
    if (is_folded)
        net.uv_quads = theo_plan_input(p, "uv4", rows << (LAST - 1), columns << (LAST - 1), 8);

    theo_tensor cls = none;
    theo_tensor features = record_encoder(&r, rows, columns, &cls);
    if (n->config.has_scale)
        net.scale = record_scale(&r, cls);
    for (theo_moge2_head h = 0; h < THEO_MOGE2_HEADS; h++)
        net.maps[h].tensor = none;
    if (is_folded)
        record_folded_heads(&r, features, heads);
    else
        record_plain_heads(&r, features, heads);
    for (theo_moge2_head h = 0; h < THEO_MOGE2_HEADS; h++)
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

void theo_moge2_fill_constants(theo_plan *plan, const theo_moge2 *n, const theo_moge2_net *net, double aspect) {
    int pitch, rows = net->uv[0].h, columns = net->uv[0].w;
    float *positions = theo_plan_data(plan, net->positions, &pitch);
    theo_vit_positions(&n->vit, rows, columns, positions, (size_t)pitch);
    theo_view_plane plane = theo_view_plane_of(aspect);
    for (int l = 0; l < LEVELS; l++) {
        theo_tensor t = net->uv[l];
        float *uv = theo_plan_data(plan, t, &pitch);
        if (t.id >= 0)
            theo_view_plane_fill(&plane, t.h, t.w, uv, (size_t)pitch);
    }
    float *quads = theo_plan_data(plan, net->uv_quads, &pitch);
    if (net->uv_quads.id >= 0)
        fill_quads(&plane, net->uv_quads.h, net->uv_quads.w, quads, (size_t)pitch);
}
