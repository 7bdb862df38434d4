/* moge2.c - the decoder of MoGe-2 on a plan, layer by layer. */
#include "models/moge2.h"

enum { LEVELS = THEO_MOGE2_LEVELS, LAST = LEVELS - 1 };

static const theo_tensor none = {.id = -1};

static theo_tensor record_scale(const theo_moge_recording *r, theo_tensor cls) {
    theo_epilogue relu = theo_epilogue_none();
    relu.act = THEO_ACT_RELU;
    theo_tensor x = theo_plan_linear(r->plan, "scale.0", cls, r->network->two->scale[0], relu);
    x = theo_plan_linear(r->plan, "scale.1", x, r->network->two->scale[1], relu);
    x = theo_plan_linear(r->plan, "scale.2", x, r->network->two->scale[2], theo_epilogue_none());
    theo_moge_trace_stage(r, x, "scale_raw");
    return x;
}

/* ---------------------------------------------------------------- neck and heads: the same machine */

/* A stack at one of its levels. */
typedef struct place {
    theo_plan *plan;
    const char *name;
    const theo_moge2_stack_config *config;
    int number;
    const theo_moge2_level *level;
} place;

static theo_tensor record_conv(const place *at, int block, int number, theo_tensor x, const theo_packed *weight,
                               theo_epilogue epilogue) {
    return theo_plan_conv(at->plan, theo_name("%s.%d.block%d.conv%d", at->name, at->number, block, number).text, x, weight, 1,
                          THEO_PAD_REPLICATE, epilogue);
}

/* f(norm(x)) */
static theo_tensor record_norm(const place *at, int block, int number, theo_tensor x, theo_moge2_norm kind,
                               const theo_norm *norm) {
    theo_tensor_name name = theo_name("%s.%d.block%d.norm%d", at->name, at->number, block, number);
    if (kind == THEO_MOGE2_NORM_NONE)
        return theo_plan_nonlinear(at->plan, name.text, x, at->config->f);
    return theo_plan_group_norm(at->plan, name.text, x, theo_moge2_norm_groups(kind, x.c), norm->gamma, norm->beta,
                                THEO_MOGE_NORM_EPS, at->config->f);
}

/* With ReLU alone between them the convolutions do all of it. */
static theo_tensor record_plain_block(const place *at, int j, theo_tensor x) {
    const theo_moge2_block *block = &at->level->blocks[j];
    theo_epilogue first = theo_epilogue_none();
    first.relu_input = true;
    first.act = THEO_ACT_RELU;
    theo_tensor y = record_conv(at, j, 1, x, block->first, first);
    return record_conv(at, j, 2, y, block->second, theo_epilogue_add(x));
}

static theo_tensor record_normed_block(const place *at, int j, theo_tensor x) {
    const theo_moge2_block *block = &at->level->blocks[j];
    theo_tensor y = record_norm(at, j, 1, x, at->config->in_norm, &block->in_norm);
    y = record_conv(at, j, 1, y, block->first, theo_epilogue_none());
    y = record_norm(at, j, 2, y, at->config->hidden_norm, &block->hidden_norm);
    return record_conv(at, j, 2, y, block->second, theo_epilogue_add(x));
}

static theo_tensor record_blocks(const place *at, theo_tensor x) {
    const theo_moge2_stack_config *c = at->config;
    bool is_plain = c->in_norm == THEO_MOGE2_NORM_NONE && c->hidden_norm == THEO_MOGE2_NORM_NONE && c->f == THEO_NONLINEAR_RELU;
    for (int j = 0; j < c->blocks[at->number]; j++)
        x = is_plain ? record_plain_block(at, j, x) : record_normed_block(at, j, x);
    return x;
}

/* x + input(in); the sum is made where the later of both is. */
static theo_tensor record_input(const place *at, theo_tensor in, theo_tensor residual) {
    return theo_plan_linear(at->plan, theo_name("%s.%d.input", at->name, at->number).text, in, at->level->input,
                            theo_epilogue_add(residual));
}

static theo_tensor record_way_up(const place *at, theo_tensor x) {
    const theo_moge2_level *level = at->level;
    if (!level->up)
        return theo_plan_upsample2_conv(at->plan, theo_name("%s.%d.up+conv", at->name, at->number).text, x, level->conv,
                                        theo_epilogue_none());
    x = theo_plan_conv_transpose(at->plan, theo_name("%s.%d.up", at->name, at->number).text, x, level->up, theo_epilogue_none());
    return theo_plan_conv(at->plan, theo_name("%s.%d.conv", at->name, at->number).text, x, level->conv, 1, THEO_PAD_REPLICATE,
                          theo_epilogue_none());
}

/* The coordinates that the neck reads. */
typedef struct neck_inputs {
    theo_tensor features, uv[LEVELS];
} neck_inputs;

/* Levels 0 to `last`: inside[l] are the maps within, out[l] the outputs. */
static void record_neck(const theo_moge_recording *r, const neck_inputs *in, int last, theo_tensor inside[LEVELS],
                        theo_tensor out[LEVELS]) {
    const theo_moge2 *n = r->network->two;
    place at = {.plan = r->plan, .name = "neck", .config = &n->config.neck, .level = n->neck.levels};
    theo_tensor x = theo_plan_linear(r->plan, "neck.0.uv", in->uv[0], n->neck_uv, theo_epilogue_none());
    for (;; at.number++, at.level++) {
        int l = at.number;
        x = record_input(&at, l ? in->uv[l] : in->features, x);
        x = record_blocks(&at, x);
        inside[l] = x;
        out[l] = at.level->output
                     ? theo_plan_linear(r->plan, theo_name("neck.%d.output", l).text, x, at.level->output, theo_epilogue_none())
                     : x;
        theo_moge_trace_stage(r, out[l], theo_name("neck%d", l).text);
        if (l == last)
            return;
        x = record_way_up(&at, x);
    }
}

static const char *const head_names[THEO_MOGE_HEADS] = {"points", "normal", "mask"};

/* The map within level `last` of a head. */
static theo_tensor record_head(const theo_moge_recording *r, theo_moge_head head, const theo_tensor neck[LEVELS], int last) {
    const theo_moge2 *n = r->network->two;
    place at = {.plan = r->plan,
                .name = head_names[head],
                .config = theo_moge2_head_config(&n->config, head),
                .level = n->heads[head].levels};
    theo_tensor x = none;
    for (;; at.number++, at.level++) {
        x = record_input(&at, neck[at.number], x);
        x = record_blocks(&at, x);
        if (at.number == last)
            return x;
        x = record_way_up(&at, x);
    }
}

/* Every level at its full size. */
static void record_plain_heads(const theo_moge_recording *r, const neck_inputs *in, unsigned heads) {
    theo_tensor inside[LEVELS], neck[LEVELS];
    record_neck(r, in, LAST, inside, neck);
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++) {
        if (!(heads & 1u << h))
            continue;
        const char *name = head_names[h];
        theo_tensor x = record_head(r, h, neck, LAST);
        x = theo_plan_linear(r->plan, theo_name("%s.output", name).text, x, r->network->two->heads[h].levels[LAST].output,
                             theo_epilogue_none());
        theo_moge_trace_stage(r, x, theo_name("%s_raw", name).text);
        r->net->maps[h] = (theo_moge_map){x, false, x.c};
    }
}

/* Level 4 as convolutions of the maps of level 3: moge2_fold.c. */
static void record_folded_heads(const theo_moge_recording *r, const neck_inputs *in, unsigned heads) {
    theo_plan *p = r->plan;
    const theo_moge2_fold *fold = &r->network->two->fold;
    theo_tensor inside[LEVELS], neck[LEVELS], quads = in->uv[LAST];
    record_neck(r, in, LAST - 1, inside, neck);
    theo_tensor shared = theo_plan_linear(p, "last.uv", quads, fold->uv, theo_epilogue_none());
    shared = theo_plan_conv(p, "last.neck", inside[LAST - 1], fold->neck, 1, THEO_PAD_REPLICATE, theo_epilogue_add(shared));
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++) {
        if (!(heads & 1u << h))
            continue;
        int channels = theo_moge_head_channels(r->network, h);
        theo_tensor x = record_head(r, h, neck, LAST - 1);
        x = theo_plan_conv(p, theo_name("last.%s", head_names[h]).text, x, fold->heads[h], 1, THEO_PAD_REPLICATE,
                           theo_epilogue_add(theo_plan_channels(p, shared, fold->at[h], 4 * channels)));
        r->net->maps[h] = (theo_moge_map){x, true, channels};
    }
}

void theo_moge2_record(const theo_moge_recording *r, theo_tensor features, theo_tensor cls, unsigned heads) {
    const theo_moge_grid *grid = &r->net->grid;
    bool is_folded = r->network->two->fold.is_possible && !r->trace;
    theo_moge_trace_stage(r, cls, "cls");
    if (r->network->two->config.has_scale)
        r->net->scale = record_scale(r, cls);
    neck_inputs in = {.features = features};
    for (int l = 0; l < LAST; l++)
        in.uv[l] = theo_moge_add_coordinates(r, grid->rows << l, grid->columns << l, false);
    if (is_folded) {
        in.uv[LAST] = theo_moge_add_coordinates(r, grid->rows << (LAST - 1), grid->columns << (LAST - 1), true);
        record_folded_heads(r, &in, heads);
    } else {
        in.uv[LAST] = theo_moge_add_coordinates(r, grid->rows << LAST, grid->columns << LAST, false);
        record_plain_heads(r, &in, heads);
    }
}
