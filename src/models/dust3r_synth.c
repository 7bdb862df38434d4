/* The formula: models/formula.h; gains of norms are 1 + v/4, other vectors v/4, the rest 1.5 v / sqrt(inputs). */
#include "models/dust3r_synth.h"
#include "base/error.h"
#include "models/dust3r.h"
#include "models/formula.h"
#include "models/maker.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TENSORS = 4096 };

typedef struct layout {
    theo_dust3r_config config;
    int mlp_ratio, layer_dims[THEO_DPT_TAPS], feature_dim, last_dims[2];
} layout;

/* ---------------------------------------------------------------- tensors */

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), n = strlen(end);
    return length >= n && !strcmp(text + length - n, end);
}

static void fill(float *data, size_t elements, const char *name, int rank, const int64_t *shape) {
    double fan = 1, base = rank == 1 && ends_in(name, "weight") ? 1 : 0;
    for (int i = 1; i < rank; i++)
        fan *= (double)shape[i];
    double scale = rank == 1 ? 0.25 : 1.5 / sqrt(fan);
    uint64_t seed = theo_formula_seed(name);
    for (size_t i = 0; i < elements; i++)
        data[i] = (float)(base + theo_formula_value(seed, i) * scale);
}

static void make_self(theo_maker *m, const char *block, int c, int hidden) {
    theo_make_linear(m, theo_name("%s.attn.qkv", block).text, 3 * c, c);
    theo_make_linear(m, theo_name("%s.attn.proj", block).text, c, c);
    theo_make_linear(m, theo_name("%s.mlp.fc1", block).text, hidden, c);
    theo_make_linear(m, theo_name("%s.mlp.fc2", block).text, c, hidden);
}

static void make_trunk(theo_maker *m, const layout *l) {
    const theo_dust3r_config *c = &l->config;
    theo_make(m, "mask_token", 3, (int64_t[]){1, 1, c->dec_width});
    theo_make_conv(m, "patch_embed.proj", c->enc_width, 3, THEO_DUST3R_PATCH);
    for (int i = 0; i < c->enc_depth; i++) {
        theo_tensor_name block = theo_name("enc_blocks.%d", i);
        make_self(m, block.text, c->enc_width, l->mlp_ratio * c->enc_width);
        for (int k = 1; k <= 2; k++)
            theo_make_norm(m, theo_name("%s.norm%d", block.text, k).text, c->enc_width);
    }
    theo_make_norm(m, "enc_norm", c->enc_width);
    theo_make_linear(m, "decoder_embed", c->dec_width, c->enc_width);
    for (int i = 0; i < 2 * c->dec_depth; i++) {
        static const char *const projections[] = {"projq", "projk", "projv", "proj"}, *const norms[] = {"1", "2", "3", "_y"};
        theo_tensor_name block = theo_name("dec_blocks%s.%d", i < c->dec_depth ? "" : "2", i % c->dec_depth);
        make_self(m, block.text, c->dec_width, l->mlp_ratio * c->dec_width);
        for (int k = 0; k < 4; k++) {
            theo_make_linear(m, theo_name("%s.cross_attn.%s", block.text, projections[k]).text, c->dec_width, c->dec_width);
            theo_make_norm(m, theo_name("%s.norm%s", block.text, norms[k]).text, c->dec_width);
        }
    }
    theo_make_norm(m, "dec_norm", c->dec_width);
}

static void make_dpt(theo_maker *m, const layout *l, const char *head) {
    int f = l->feature_dim;
    for (int i = 0; i < THEO_DPT_TAPS; i++) {
        int d = l->layer_dims[i], tap = i ? l->config.dec_width : l->config.enc_width;
        const int sides[THEO_DPT_TAPS] = {4, 2, 0, 3};
        theo_make_conv(m, theo_name("%s.act_postprocess.%d.0", head, i).text, d, tap, 1);
        if (sides[i])
            theo_make_conv(m, theo_name("%s.act_postprocess.%d.1", head, i).text, d, d, sides[i]);
        theo_make_kernel(m, theo_name("%s.scratch.layer%d_rn", head, i + 1).text, f, d, 3);
        theo_tensor_name fusion = theo_name("%s.scratch.refinenet%d", head, i + 1);
        theo_make_conv(m, theo_name("%s.out_conv", fusion.text).text, f, f, 1);
        for (int k = 0; k < 4; k++)
            theo_make_conv(m, theo_name("%s.resConfUnit%d.conv%d", fusion.text, 1 + k / 2, 1 + k % 2).text, f, f, 3);
    }
    theo_make_conv(m, theo_name("%s.head.0", head).text, l->last_dims[0], f, 3);
    theo_make_conv(m, theo_name("%s.head.2", head).text, l->last_dims[1], l->last_dims[0], 3);
    theo_make_conv(m, theo_name("%s.head.4", head).text, THEO_DUST3R_CHANNELS, l->last_dims[1], 1);
}

static void make_all(theo_maker *m, const layout *l) {
    make_trunk(m, l);
    for (int v = 1; v <= THEO_DUST3R_VIEWS; v++)
        if (l->config.head == THEO_DUST3R_DPT)
            make_dpt(m, l, theo_name("downstream_head%d.dpt", v).text);
        else
            theo_make_linear(m, theo_name("downstream_head%d.proj", v).text,
                             THEO_DUST3R_CHANNELS * THEO_DUST3R_PATCH * THEO_DUST3R_PATCH, l->config.dec_width);
}

/* The second names of DPT's four layers, of the same numbers. Returns how many. */
static int make_aliases(theo_maker *m, const layout *l) {
    int first = m->count;
    for (int v = 1; v <= THEO_DUST3R_VIEWS && l->config.head == THEO_DUST3R_DPT; v++)
        for (int i = 0; i < THEO_DPT_TAPS; i++) {
            theo_tensor_name scratch = theo_name("downstream_head%d.dpt.scratch", v);
            theo_make_alias(m, theo_name("%s.layer_rn.%d.weight", scratch.text, i).text,
                            theo_name("%s.layer%d_rn.weight", scratch.text, i + 1).text);
        }
    return m->count - first;
}

/* ---------------------------------------------------------------- configurations */

static bool published(layout *l, const char *name) {
    static const struct {
        const char *name;
        theo_dust3r_head head;
        int image_size;
    } known[] = {
        {"dust3r", THEO_DUST3R_DPT, 512},
        {"dust3r-512-linear", THEO_DUST3R_LINEAR, 512},
        {"dust3r-224-linear", THEO_DUST3R_LINEAR, 224},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name))
            continue;
        *l = (layout){.mlp_ratio = 4, .layer_dims = {96, 192, 384, 768}, .feature_dim = 256, .last_dims = {128, 128}};
        theo_dust3r_config *c = &l->config;
        theo_dust3r_config_init(c);
        c->enc_width = 1024;
        c->enc_depth = 24;
        c->enc_heads = 16;
        c->dec_width = 768;
        c->dec_depth = 12;
        c->dec_heads = 12;
        c->head = known[i].head;
        c->is_head_told = true;
        c->image_size = known[i].image_size;
        return true;
    }
    return false;
}

/* One number, or as many as there are. */
static theo_status read_sizes(int *out, int count, const theo_json *config, const char *key, theo_error *err) {
    const theo_json *value = theo_json_get(config, key);
    if (!value)
        return THEO_OK;
    bool is_list = value->type == THEO_JSON_ARRAY, fits = is_list ? value->count == count : count == 1;
    for (int i = 0; fits && i < count; i++) {
        const theo_json *size = is_list ? theo_json_at(value, i) : value;
        fits = size->type == THEO_JSON_NUMBER && size->is_integer && size->integer >= 1 && size->integer <= 4096;
        out[i] = fits ? (int)size->integer : 0;
    }
    return fits ? THEO_OK : theo_fail(err, THEO_ARGUMENT, NULL, key, "must be %d whole number(s) from 1 to 4096", count);
}

static theo_status read_layout(layout *l, const theo_json *config, const char *text, theo_error *err) {
    THEO_TRY(theo_dust3r_config_parse(&l->config, text, "config", err));
    THEO_TRY(read_sizes(&l->mlp_ratio, 1, config, "mlp_ratio", err));
    THEO_TRY(read_sizes(l->layer_dims, THEO_DPT_TAPS, config, "dpt_layer_dims", err));
    THEO_TRY(read_sizes(&l->feature_dim, 1, config, "dpt_feature_dim", err));
    return read_sizes(l->last_dims, 2, config, "dpt_last_dims", err);
}

/* Settings in the two notations: `"key": value` in lines, and key=value in a row. */
typedef struct notation {
    const char *before, *after, *between, *infinity, *minus_infinity, *no, *open, *close;
} notation;

static void add_setting(theo_text *t, const notation *n, bool *is_first, const char *key) {
    theo_text_printf(t, "%s%s%s%s", *is_first ? "" : n->between, n->before, key, n->after);
    *is_first = false;
}

static void add_settings(theo_text *t, const theo_dust3r_config *c, const notation *n) {
    static const char *const depths[] = {"exp", "linear", "square"}, *const confs[] = {"exp", "sigmoid"};
    bool first = true;
    add_setting(t, n, &first, "conf_mode");
    theo_text_printf(t, "%s\"%s\", ", n->open, confs[c->output.conf]);
    theo_text_add_json_number(t, c->output.conf_min);
    theo_text_printf(t, ", ");
    if (isinf(c->output.conf_max))
        theo_text_printf(t, "%s", n->infinity);
    else
        theo_text_add_json_number(t, c->output.conf_max);
    theo_text_printf(t, "%s", n->close);
    const struct {
        const char *key;
        int value;
    } sizes[] = {{"dec_depth", c->dec_depth}, {"dec_embed_dim", c->dec_width}, {"dec_num_heads", c->dec_heads},
                 {"enc_depth", c->enc_depth}, {"enc_embed_dim", c->enc_width}, {"enc_num_heads", c->enc_heads}};
    for (int i = 0; i < 3; i++) {
        add_setting(t, n, &first, sizes[i].key);
        theo_text_printf(t, "%d", sizes[i].value);
    }
    add_setting(t, n, &first, "depth_mode");
    theo_text_printf(t, "%s\"%s\", %s, %s%s", n->open, depths[c->output.depth], n->minus_infinity, n->infinity, n->close);
    for (int i = 3; i < 6; i++) {
        add_setting(t, n, &first, sizes[i].key);
        theo_text_printf(t, "%d", sizes[i].value);
    }
    add_setting(t, n, &first, "freeze");
    theo_text_printf(t, "\"none\"");
    add_setting(t, n, &first, "head_type");
    theo_text_printf(t, "\"%s\"", c->head == THEO_DUST3R_DPT ? "dpt" : "linear");
    add_setting(t, n, &first, "img_size");
    theo_text_printf(t, "%s%d, %d%s", n->open, c->image_size, c->image_size, n->close);
    add_setting(t, n, &first, "landscape_only");
    theo_text_printf(t, "%s", n->no);
    add_setting(t, n, &first, "output_mode");
    theo_text_printf(t, "\"pts3d\"");
    add_setting(t, n, &first, "patch_embed_cls");
    theo_text_printf(t, "\"PatchEmbedDust3R\"");
    add_setting(t, n, &first, "pos_embed");
    theo_text_printf(t, "\"RoPE");
    theo_text_add_json_number(t, c->rope_base);
    theo_text_printf(t, "\"");
}

void theo_dust3r_add_config(theo_text *out, const theo_dust3r_config *config) {
    static const notation json = {"  \"", "\": ", ",\n", "Infinity", "-Infinity", "false", "[", "]"};
    theo_text_printf(out, "{\n");
    add_settings(out, config, &json);
    theo_text_printf(out, "\n}\n");
}

void theo_dust3r_add_call(theo_text *out, const theo_dust3r_config *config) {
    static const notation python = {"", "=", ", ", "inf", "-inf", "False", "(", ")"};
    theo_text_printf(out, "AsymmetricCroCo3DStereo(");
    add_settings(out, config, &python);
    theo_text_printf(out, ")");
}

static const char *text_of(const theo_dust3r_config *config, theo_bump *memory,
                           void (*add)(theo_text *out, const theo_dust3r_config *config)) {
    theo_text t = {0};
    add(&t, config);
    const char *copy = t.failed ? NULL : theo_bump_text(memory, t.data, t.length);
    theo_text_free(&t);
    return copy;
}

theo_status theo_dust3r_synthesize(theo_dust3r_synthetic *made, theo_bump *memory, const char *name, const theo_json *config,
                                   const char *text, theo_error *err) {
    layout l;
    if (!published(&l, name))
        return theo_fail(err, THEO_UNSUPPORTED, NULL, name,
                         "this version of the library does not know how to make its checkpoint");
    if (config)
        THEO_TRY(read_layout(&l, config, text, err));
    theo_maker m = theo_maker_new(memory, MOST_TENSORS, fill);
    const char *config_json = text_of(&l.config, memory, theo_dust3r_add_config);
    const char *call = text_of(&l.config, memory, theo_dust3r_add_call);
    make_all(&m, &l);
    int count = m.count, aliases = make_aliases(&m, &l);
    if (!config_json || !call || m.failed)
        return theo_fail(err, THEO_MEMORY, NULL, name, "out of memory for its tensors");
    *made = (theo_dust3r_synthetic){m.arrays, count, aliases, config_json, call};
    return THEO_OK;
}
