/* dust3r.c - the network, layer by layer. */
#include "models/dust3r.h"
#include <math.h>
#include <string.h>

static const theo_tensor none = {.id = -1};

static void keep(theo_plan *plan, theo_dust3r_trace *t, const char *name, theo_tensor x) {
    if (!t || t->count == (int)(sizeof t->stages / sizeof *t->stages))
        return;
    theo_plan_output(plan, x);
    t->stages[t->count].tensor = x;
    t->stages[t->count++].name = theo_name("%s", name);
}

/* ---------------------------------------------------------------- encoder */

theo_dust3r_encoding theo_dust3r_record_encoder(theo_plan *p, const theo_dust3r *n, int rows, int columns,
                                                theo_dust3r_trace *trace) {
    const theo_dust3r_config *c = &n->config;
    theo_dust3r_encoding e;
    e.image = theo_plan_input(p, "image", THEO_DUST3R_PATCH * rows, THEO_DUST3R_PATCH * columns, 3);
    e.turn = theo_plan_input(p, "turn", rows, columns, c->enc_width / c->enc_heads);
    theo_tensor x = theo_plan_patches(p, "patches", e.image, THEO_DUST3R_PATCH);
    x = theo_plan_linear(p, "patch_embed", x, n->embed, theo_epilogue_none());
    keep(p, trace, "patch_embed", x);
    for (int i = 0; i < c->enc_depth; i++) {
        const theo_transformer_block *b = &n->enc_blocks[i];
        theo_tensor_name block = theo_name("enc%d", i);
        x = theo_self_attention_record(p, block.text, &b->attention, c->enc_heads, e.turn, x);
        x = theo_mlp_record(p, block.text, "norm2", &b->mlp, x);
        keep(p, trace, theo_name("enc.%d", i).text, x);
    }
    e.out = theo_norm_record(p, "enc_norm", &n->enc_norm, x);
    keep(p, trace, "enc_norm", e.out);
    theo_plan_output(p, e.out);
    return e;
}

/* ---------------------------------------------------------------- decoder */

static theo_tensor record_cross(theo_plan *p, const char *block, const theo_dust3r_cross_attention *a, int heads, theo_tensor x,
                                theo_tensor y, theo_tensor turn_x, theo_tensor turn_y) {
    theo_epilogue plain = theo_epilogue_none();
    theo_tensor memory = theo_norm_record(p, theo_name("%s.norm_y", block).text, &a->norm_y, y);
    theo_tensor k = theo_plan_linear(p, theo_name("%s.k", block).text, memory, a->k, plain);
    theo_tensor v = theo_plan_linear(p, theo_name("%s.v", block).text, memory, a->v, plain);
    theo_tensor q = theo_norm_record(p, theo_name("%s.norm2", block).text, &a->norm, x);
    q = theo_plan_linear(p, theo_name("%s.q", block).text, q, a->q, plain);
    q = theo_plan_rope_attention(p, theo_name("%s.cross_attention", block).text, q, k, v, heads, turn_x, turn_y);
    return theo_plan_linear(p, theo_name("%s.cross_proj", block).text, q, a->proj, theo_epilogue_add(x));
}

/* One branch's block: x of this branch, y of the other. */
static theo_tensor record_block(theo_plan *p, const char *block, const theo_dust3r_decoder_block *b, int heads, theo_tensor x,
                                theo_tensor y, theo_tensor turn_x, theo_tensor turn_y) {
    x = theo_self_attention_record(p, block, &b->self, heads, turn_x, x);
    x = record_cross(p, block, &b->cross, heads, x, y, turn_x, turn_y);
    return theo_mlp_record(p, block, "norm3", &b->mlp, x);
}

typedef struct head_trace {
    theo_plan *plan;
    theo_dust3r_trace *trace;
    int head;
} head_trace;

static void keep_head(void *context, const char *stage, theo_tensor x) {
    const head_trace *h = context;
    keep(h->plan, h->trace, theo_name("h%d.%s", h->head, stage).text, x);
}

/* Of the decoder's list of features - the encoder's, those behind each block, the last one normalised - the four that DPT reads.
 */
static int tap_block(const theo_dust3r *n, int tap) {
    const int hooks[THEO_DPT_TAPS] = {0, n->config.dec_depth * 2 / 4, n->config.dec_depth * 3 / 4, n->config.dec_depth};
    return hooks[tap] - 1; /* -1: the encoder's */
}

theo_dust3r_decoding theo_dust3r_record_decoder(theo_plan *p, const theo_dust3r *n,
                                                const theo_dust3r_grid grids[THEO_DUST3R_VIEWS], unsigned wanted,
                                                theo_dust3r_trace *trace) {
    const theo_dust3r_config *c = &n->config;
    theo_dust3r_decoding d;
    theo_tensor x[THEO_DUST3R_VIEWS], taps[THEO_DUST3R_VIEWS][THEO_DPT_TAPS];
    for (int v = 0; v < THEO_DUST3R_VIEWS; v++) {
        d.features[v] = theo_plan_input(p, theo_name("features%d", v + 1).text, grids[v].rows, grids[v].columns, c->enc_width);
        d.turn[v] =
            theo_plan_input(p, theo_name("turn%d", v + 1).text, grids[v].rows, grids[v].columns, c->dec_width / c->dec_heads);
        taps[v][0] = d.features[v];
        x[v] =
            theo_plan_linear(p, theo_name("decoder_embed%d", v + 1).text, d.features[v], n->decoder_embed, theo_epilogue_none());
        keep(p, trace, theo_name("v%d.decoder_embed", v + 1).text, x[v]);
    }
    for (int i = 0; i < c->dec_depth; i++) {
        theo_tensor next[THEO_DUST3R_VIEWS];
        for (int v = 0; v < THEO_DUST3R_VIEWS; v++) {
            next[v] = x[v];
            if (i == c->dec_depth - 1 && !(wanted & 1u << v)) /* the last block serves its own head alone */
                continue;
            next[v] = record_block(p, theo_name("dec%d.%d", v + 1, i).text, &n->dec_blocks[v][i], c->dec_heads, x[v], x[!v],
                                   d.turn[v], d.turn[!v]);
            keep(p, trace, theo_name("b%d.dec.%d", v + 1, i).text, next[v]);
        }
        for (int v = 0; v < THEO_DUST3R_VIEWS; v++) {
            x[v] = next[v];
            for (int tap = 1; tap < THEO_DPT_TAPS - 1; tap++)
                if (tap_block(n, tap) == i)
                    taps[v][tap] = x[v];
        }
    }
    for (int v = 0; v < THEO_DUST3R_VIEWS; v++) {
        d.raw[v] = none;
        if (!(wanted & 1u << v))
            continue;
        theo_tensor last = theo_norm_record(p, theo_name("dec_norm%d", v + 1).text, &n->dec_norm, x[v]);
        keep(p, trace, theo_name("b%d.dec_norm", v + 1).text, last);
        taps[v][THEO_DPT_TAPS - 1] = last;
        theo_tensor_name head = theo_name("head%d", v + 1);
        if (c->head == THEO_DUST3R_DPT) {
            head_trace h = {p, trace, v + 1};
            d.raw[v] = theo_dpt_record(p, &n->dpt[v], head.text, taps[v], trace ? keep_head : NULL, &h);
        } else {
            d.raw[v] = theo_plan_linear(p, head.text, last, n->linear[v], theo_epilogue_none());
        }
        keep(p, trace, theo_name("h%d.raw", v + 1).text, d.raw[v]);
        theo_plan_output(p, d.raw[v]);
    }
    return d;
}

/* ---------------------------------------------------------------- positions */

/* One axis of a patch: Q frequencies base^(-d / Q), cosines, and half a head behind them the sines. */
static void fill_axis(float *out, int quarter, int position, double base) {
    for (int d = 0; d < quarter; d++) {
        double angle = position * pow(base, -(double)d / quarter);
        out[d] = (float)cos(angle);
        out[2 * quarter + d] = (float)sin(angle);
    }
}

static void copy_axis(float *out, const float *from, int quarter) {
    memcpy(out, from, (size_t)quarter * sizeof *out);
    memcpy(out + 2 * quarter, from + 2 * quarter, (size_t)quarter * sizeof *out);
}

/* Half of a head turns with y, half with x: the y of a patch is its left neighbour's, the x that of the one above. */
void theo_dust3r_fill_turn(theo_plan *p, const theo_dust3r *n, theo_tensor turn) {
    int pitch, quarter = turn.c / 4;
    float *out = theo_plan_data(p, turn, &pitch);
    for (int y = 0; y < turn.h; y++)
        for (int x = 0; x < turn.w; x++, out += pitch) {
            if (x)
                copy_axis(out, out - pitch, quarter);
            else
                fill_axis(out, quarter, y, n->config.rope_base);
            if (y)
                copy_axis(out + quarter, out + quarter - (ptrdiff_t)turn.w * pitch, quarter);
            else
                fill_axis(out + quarter, quarter, x, n->config.rope_base);
        }
}
