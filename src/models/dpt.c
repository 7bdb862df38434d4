#include "models/dpt.h"
#include <stdio.h>

/* ---------------------------------------------------------------- loading */

/* Size of a dimension of a tensor that may be missing or of another rank: then it is 0, which fits any. */
static int size_in(const theo_gather *g, const char *name, int dimension) {
    const theo_weight *w = theo_weights_find(g->weights, theo_name("%s%s", g->prefix, name).text);
    return w && dimension < w->rank && w->shape[dimension] <= g->largest ? (int)w->shape[dimension] : 0;
}

static void gather_unit(const theo_gather *g, theo_dpt_unit *unit, int fusion, int number, int width) {
    const char *stem = "scratch.refinenet%d.resConfUnit%d.conv%d";
    theo_gather_3x3(g, &unit->first, theo_name(stem, fusion, number, 1).text, width, width);
    theo_gather_3x3(g, &unit->second, theo_name(stem, fusion, number, 2).text, width, width);
}

/* [out, in, 3, 3] of the layer i, under one of its two names. */
static void gather_rn(const theo_gather *g, theo_packed **packed, int i, int out, int in) {
    theo_tensor_name name = theo_name("scratch.layer%d_rn", i + 1), alias = theo_name("scratch.layer_rn.%d", i);
    bool is_alias = !theo_weights_find(g->weights, theo_name("%s%s.weight", g->prefix, name.text).text) &&
                    theo_weights_find(g->weights, theo_name("%s%s.weight", g->prefix, alias.text).text);
    theo_gather_layer(g, packed, (theo_packing_job){.kind = THEO_PACKING_CONV}, is_alias ? alias.text : name.text, 4,
                      (int64_t[]){out, in, 3, 3}, 0);
}

void theo_dpt_gather(theo_dpt *d, const theo_gather *g, const int tap_dims[THEO_DPT_TAPS]) {
    d->feature_dim = size_in(g, "scratch.refinenet1.out_conv.weight", 0);
    d->last_dims[0] = size_in(g, "head.0.weight", 0);
    d->last_dims[1] = size_in(g, "head.2.weight", 0);
    for (int i = 0; i < THEO_DPT_TAPS; i++) {
        d->tap_dims[i] = tap_dims[i];
        theo_tensor_name project = theo_name("act_postprocess.%d.0", i), resize = theo_name("act_postprocess.%d.1", i);
        int width = d->layer_dims[i] = size_in(g, theo_name("%s.weight", project.text).text, 0);
        theo_gather_1x1(g, &d->project[i], project.text, width, tap_dims[i]);
        if (i < 2) {
            int size = i ? 2 : 4;
            theo_gather_layer(g, &d->resize[i], (theo_packing_job){.kind = THEO_PACKING_TRANSPOSED}, resize.text, 4,
                              (int64_t[]){width, width, size, size}, width);
        } else if (i == 3) {
            theo_gather_layer(g, &d->resize[i], (theo_packing_job){.kind = THEO_PACKING_GATHERED}, resize.text, 4,
                              (int64_t[]){width, width, 3, 3}, width);
        }
        gather_rn(g, &d->layer[i], i, d->feature_dim, width);
    }
    for (int i = 0; i < THEO_DPT_TAPS; i++) { /* refinenet4 has a unit 1 as well, which is never used */
        if (i < THEO_DPT_TAPS - 1)
            gather_unit(g, &d->fusion[i].unit1, i + 1, 1, d->feature_dim);
        gather_unit(g, &d->fusion[i].unit2, i + 1, 2, d->feature_dim);
        theo_gather_1x1(g, &d->fusion[i].out, theo_name("scratch.refinenet%d.out_conv", i + 1).text, d->feature_dim,
                        d->feature_dim);
    }
    theo_gather_3x3(g, &d->head[0], "head.0", d->last_dims[0], d->feature_dim);
    theo_gather_3x3(g, &d->head[1], "head.2", d->last_dims[1], d->last_dims[0]);
    theo_gather_1x1(g, &d->head[2], "head.4", 4, d->last_dims[1]);
}

void theo_dpt_visit(const theo_dpt *d, theo_packed_visitor visit, void *context) {
    for (int i = 0; i < THEO_DPT_TAPS; i++) {
        visit(d->project[i], context);
        visit(d->resize[i], context);
        visit(d->layer[i], context);
        visit(d->fusion[i].unit1.first, context);
        visit(d->fusion[i].unit1.second, context);
        visit(d->fusion[i].unit2.first, context);
        visit(d->fusion[i].unit2.second, context);
        visit(d->fusion[i].out, context);
    }
    for (int i = 0; i < 3; i++)
        visit(d->head[i], context);
}

/* ---------------------------------------------------------------- on a plan */

static const theo_tensor none = {.id = -1};

typedef struct recording {
    theo_plan *plan;
    const char *name;
    theo_dpt_trace_fn trace;
    void *context;
} recording;

static void trace(const recording *r, const char *stage, theo_tensor x) {
    if (!r->trace)
        return;
    theo_plan_output(r->plan, x);
    r->trace(r->context, stage, x);
}

static theo_tensor record_unit(const recording *r, const theo_dpt_unit *unit, const char *part, theo_tensor x) {
    theo_epilogue first = theo_epilogue_none();
    first.relu_input = true;
    first.act = THEO_ACT_RELU;
    theo_tensor y =
        theo_plan_conv(r->plan, theo_name("%s.%s.conv1", r->name, part).text, x, unit->first, 1, THEO_PAD_ZERO, first);
    return theo_plan_conv(r->plan, theo_name("%s.%s.conv2", r->name, part).text, y, unit->second, 1, THEO_PAD_ZERO,
                          theo_epilogue_add(x));
}

/* Tap i as a map of 4, 2, 1 and 1/2 times the token grid, F channels. */
static theo_tensor record_tap(const recording *r, const theo_dpt *d, int i, theo_tensor x) {
    theo_epilogue plain = theo_epilogue_none();
    x = theo_plan_linear(r->plan, theo_name("%s.act%d.project", r->name, i).text, x, d->project[i], plain);
    theo_tensor_name resize = theo_name("%s.act%d.resize", r->name, i);
    if (i < 2)
        x = theo_plan_conv_transpose(r->plan, resize.text, x, d->resize[i], plain);
    else if (i == 3)
        x = theo_plan_conv(r->plan, resize.text, x, d->resize[i], 2, THEO_PAD_ZERO, plain);
    trace(r, theo_name("act%d", i).text, x);
    x = theo_plan_conv(r->plan, theo_name("%s.rn%d", r->name, i).text, x, d->layer[i], 1, THEO_PAD_ZERO, plain);
    trace(r, theo_name("rn%d", i).text, x);
    return x;
}

theo_tensor theo_dpt_record(theo_plan *p, const theo_dpt *d, const char *name, const theo_tensor taps[THEO_DPT_TAPS],
                            theo_dpt_trace_fn trace_fn, void *context) {
    recording r = {p, name, trace_fn, context};
    int rows = taps[0].h, columns = taps[0].w;
    theo_tensor layers[THEO_DPT_TAPS];
    for (int i = 0; i < THEO_DPT_TAPS; i++)
        layers[i] = record_tap(&r, d, i, taps[i]);

    theo_tensor x = layers[THEO_DPT_TAPS - 1];
    for (int i = THEO_DPT_TAPS - 1; i >= 0; i--) {
        const theo_dpt_fusion *f = &d->fusion[i];
        theo_tensor y = record_unit(&r, &f->unit2, theo_name("fusion%d.unit2", i + 1).text, x), skip = none;
        y = theo_plan_linear(p, theo_name("%s.fusion%d.out", name, i + 1).text, y, f->out, theo_epilogue_none());
        if (trace_fn) /* the enlarged map without what is added to it, which no later operation reads */
            trace(&r, i == 3 ? "p4_uncropped" : theo_name("p%d", i + 1).text,
                  theo_plan_upsample2_corners(p, "trace", y, 2 * y.h, 2 * y.w, none));
        if (i)
            skip = record_unit(&r, &d->fusion[i - 1].unit1, theo_name("fusion%d.unit1", i).text, layers[i - 1]);
        /* Twice the half of an odd number is one too many: the coarsest map is cropped. */
        int h = i == 3 ? rows : 2 * y.h, w = i == 3 ? columns : 2 * y.w;
        x = theo_plan_upsample2_corners(p, theo_name("%s.fusion%d.up", name, i + 1).text, y, h, w, skip);
    }
    x = theo_plan_conv(p, theo_name("%s.head0", name).text, x, d->head[0], 1, THEO_PAD_ZERO, theo_epilogue_none());
    trace(&r, "head0", x);
    theo_epilogue relu = theo_epilogue_none();
    relu.act = THEO_ACT_RELU;
    return theo_plan_upsample2_corners_conv_linear(p, theo_name("%s.head2+4", name).text, x, d->head[1], relu, d->head[2],
                                                   theo_epilogue_none());
}
