/* dust3r_weights.c - from the tensors of a checkpoint to packed layers: names, shapes, checks. */
#include "base/error.h"
#include "models/dust3r.h"
#include <stdio.h>
#include <string.h>

static bool starts(const char *text, const char *start) {
    return !strncmp(text, start, strlen(start));
}

int theo_dust3r_recognise(const theo_weights *weights) {
    int count = 0;
    for (int i = 0; i < theo_weights_count(weights); i++) {
        const char *name = theo_weights_at(weights, i)->name;
        count += starts(name, "enc_blocks.") || starts(name, "dec_blocks.") || starts(name, "dec_blocks2.") ||
                 starts(name, "downstream_head1.") || starts(name, "downstream_head2.") || starts(name, "decoder_embed.");
    }
    return count;
}

static theo_status refuse_relatives(const theo_weights *weights, theo_error *err) {
    for (int i = 0; i < theo_weights_count(weights); i++) {
        const char *name = theo_weights_at(weights, i)->name;
        if (strstr(name, "head_local_features."))
            return theo_fail(err, THEO_UNSUPPORTED, theo_weights_path(weights), name,
                             "is of MASt3R, which this version does not support: DUSt3R checkpoints are supported");
    }
    return THEO_OK;
}

/* ---------------------------------------------------------------- configuration */

/* The constructor's call that a training checkpoint has in args.model; NULL: none. */
static const char *find_call(theo_bump *memory, const theo_weights *weights) {
    const char *text = theo_weights_config_json(weights);
    const theo_json *root;
    if (!text || theo_json_parse(&root, memory, text, strlen(text), &(theo_json_options){.allow_nonfinite = true}, NULL))
        return NULL;
    const theo_json *model = theo_json_get(theo_json_get(root, "args"), "model");
    return model && model->type == THEO_JSON_STRING ? model->string : NULL;
}

static theo_status find_config(theo_dust3r_config *c, const theo_weights *weights, theo_error *err) {
    theo_dust3r_config_init(c);
    theo_bump memory = {0};
    const char *call = find_call(&memory, weights);
    theo_status status = THEO_OK;
    if (call)
        status = theo_dust3r_config_from_call(c, call, theo_weights_path(weights), err);
    theo_bump_free(&memory);
    if (call)
        return status;
    theo_text_beside beside;
    THEO_TRY(theo_weights_read_beside(&beside, weights, "config.json", err));
    if (beside.text)
        status = theo_dust3r_config_parse(c, beside.text, beside.path, err);
    theo_free(beside.text);
    return status;
}

static theo_status check_config(const theo_dust3r_config *c, const char *path, theo_error *err) {
    const struct {
        const char *what;
        int width, heads;
    } parts[] = {{"encoder", c->enc_width, c->enc_heads}, {"decoder", c->dec_width, c->dec_heads}};
    for (int i = 0; i < 2; i++)
        if (parts[i].width < 1 || parts[i].heads < 1 || parts[i].width % parts[i].heads || parts[i].width / parts[i].heads % 16)
            return theo_fail(err, THEO_STRUCTURE, path, parts[i].what,
                             "has %d channels in %d heads: a head must have a multiple of 16", parts[i].width, parts[i].heads);
    if (c->enc_depth < 1 || c->enc_depth > 64 || c->dec_depth < 4 || c->dec_depth > 64)
        return theo_fail(err, THEO_STRUCTURE, path, NULL,
                         "%d blocks of the encoder and %d of the decoder: allowed are 1 to 64 and 4 to 64", c->enc_depth,
                         c->dec_depth);
    return THEO_OK;
}

/* ---------------------------------------------------------------- gathering */

static void gather_cross(const theo_gather *g, theo_dust3r_cross_attention *a, const char *block, const theo_block_form *f) {
    int c = f->width;
    theo_gather_norm(g, &a->norm, theo_name("%s.norm2", block).text, c);
    theo_gather_norm(g, &a->norm_y, theo_name("%s.norm_y", block).text, c);
    theo_gather_turned(g, &a->q, theo_name("%s.cross_attn.projq", block).text, c, c, c, f->turned_head);
    theo_gather_turned(g, &a->k, theo_name("%s.cross_attn.projk", block).text, c, c, c, f->turned_head);
    theo_gather_linear(g, &a->v, theo_name("%s.cross_attn.projv", block).text, c, c);
    theo_gather_linear(g, &a->proj, theo_name("%s.cross_attn.proj", block).text, c, c);
}

static void gather_decoder(const theo_gather *g, theo_dust3r_decoder_block *blocks, const char *stem, int depth,
                           const theo_block_form *f) {
    for (int i = 0; i < depth; i++) {
        theo_tensor_name block = theo_name("%s.%d", stem, i);
        theo_self_attention_gather(g, &blocks[i].self, block.text, f);
        gather_cross(g, &blocks[i].cross, block.text, f);
        theo_mlp_gather(g, &blocks[i].mlp, block.text, "norm3", f);
    }
}

static bool has_second_decoder(const theo_weights *weights) {
    for (int i = 0; i < theo_weights_count(weights); i++)
        if (starts(theo_weights_at(weights, i)->name, "dec_blocks2."))
            return true;
    return false;
}

static theo_status gather_blocks(const theo_gather *g, theo_dust3r *n, theo_error *err) {
    const theo_dust3r_config *c = &n->config;
    int branches = has_second_decoder(g->weights) ? 2 : 1;
    n->enc_blocks = theo_alloc((size_t)c->enc_depth, sizeof *n->enc_blocks);
    for (int v = 0; v < branches; v++)
        n->dec_blocks[v] = theo_alloc((size_t)c->dec_depth, sizeof *n->dec_blocks[v]);
    if (branches == 1) /* files that were made before the decoders were trained apart */
        n->dec_blocks[1] = n->dec_blocks[0];
    if (!n->enc_blocks || !n->dec_blocks[0] || !n->dec_blocks[1])
        return theo_fail(err, THEO_MEMORY, theo_weights_path(g->weights), NULL, "out of memory");
    const theo_block_form enc = {.width = c->enc_width, .hidden = n->enc_hidden, .turned_head = c->enc_width / c->enc_heads};
    const theo_block_form dec = {.width = c->dec_width, .hidden = n->dec_hidden, .turned_head = c->dec_width / c->dec_heads};
    for (int i = 0; i < c->enc_depth; i++)
        theo_transformer_block_gather(g, &n->enc_blocks[i], theo_name("enc_blocks.%d", i).text, &enc);
    for (int v = 0; v < branches; v++)
        gather_decoder(g, n->dec_blocks[v], v ? "dec_blocks2" : "dec_blocks", c->dec_depth, &dec);
    return THEO_OK;
}

static theo_status gather_all(const theo_gather *g, theo_dust3r *n, theo_error *err) {
    const char *path = theo_weights_path(g->weights);
    theo_dust3r_config *c = &n->config;
    THEO_TRY(find_config(c, g->weights, err));
    theo_dust3r_config_complete(c, g->weights);
    THEO_TRY(check_config(c, path, err));
    n->enc_hidden = theo_transformer_hidden(g, "enc_blocks.0");
    n->dec_hidden = theo_transformer_hidden(g, "dec_blocks.0");

    theo_gather_layer(g, &n->embed, (theo_packing_job){.kind = THEO_PACKING_LINEAR}, "patch_embed.proj", 4,
                      (int64_t[]){c->enc_width, 3, THEO_DUST3R_PATCH, THEO_DUST3R_PATCH}, c->enc_width);
    THEO_TRY(gather_blocks(g, n, err));
    theo_gather_norm(g, &n->enc_norm, "enc_norm", c->enc_width);
    theo_gather_linear(g, &n->decoder_embed, "decoder_embed", c->dec_width, c->enc_width);
    theo_gather_norm(g, &n->dec_norm, "dec_norm", c->dec_width);
    const int taps[THEO_DPT_TAPS] = {c->enc_width, c->dec_width, c->dec_width, c->dec_width};
    for (int v = 0; v < THEO_DUST3R_VIEWS; v++) {
        theo_tensor_name head = theo_name("downstream_head%d.", v + 1), prefix = theo_name("%sdpt.", head.text);
        if (c->head == THEO_DUST3R_DPT) {
            theo_gather inside = *g;
            inside.prefix = prefix.text;
            theo_dpt_gather(&n->dpt[v], &inside, taps);
        } else {
            theo_gather_linear(g, &n->linear[v], theo_name("%sproj", head.text).text,
                               THEO_DUST3R_CHANNELS * THEO_DUST3R_PATCH * THEO_DUST3R_PATCH, c->dec_width);
        }
    }
    return theo_problems_status(g->problems, path, "DUSt3R", err);
}

/* ---------------------------------------------------------------- the whole */

static void visit_decoder_block(const theo_dust3r_decoder_block *b, theo_packed_visitor visit, void *context) {
    theo_packed *const cross[] = {b->cross.q, b->cross.k, b->cross.v, b->cross.proj};
    theo_self_attention_visit(&b->self, visit, context);
    for (size_t k = 0; k < sizeof cross / sizeof *cross; k++)
        visit(cross[k], context);
    theo_mlp_visit(&b->mlp, visit, context);
}

static int branches_of(const theo_dust3r *n) {
    return n->dec_blocks[1] == n->dec_blocks[0] ? 1 : THEO_DUST3R_VIEWS;
}

static void visit_all(theo_dust3r *n, theo_packed_visitor visit, void *context) {
    visit(n->embed, context);
    visit(n->decoder_embed, context);
    for (int i = 0; n->enc_blocks && i < n->config.enc_depth; i++) {
        theo_self_attention_visit(&n->enc_blocks[i].attention, visit, context);
        theo_mlp_visit(&n->enc_blocks[i].mlp, visit, context);
    }
    for (int v = 0; v < branches_of(n); v++)
        for (int i = 0; n->dec_blocks[v] && i < n->config.dec_depth; i++)
            visit_decoder_block(&n->dec_blocks[v][i], visit, context);
    for (int v = 0; v < THEO_DUST3R_VIEWS; v++) {
        theo_dpt_visit(&n->dpt[v], visit, context);
        visit(n->linear[v], context);
    }
}

static void free_norms(theo_dust3r *n) {
    for (int i = 0; n->enc_blocks && i < n->config.enc_depth; i++) {
        theo_norm_free(&n->enc_blocks[i].attention.norm);
        theo_norm_free(&n->enc_blocks[i].mlp.norm);
    }
    for (int v = 0; v < branches_of(n); v++)
        for (int i = 0; n->dec_blocks[v] && i < n->config.dec_depth; i++) {
            theo_dust3r_decoder_block *b = &n->dec_blocks[v][i];
            theo_norm *const norms[] = {&b->self.norm, &b->cross.norm, &b->cross.norm_y, &b->mlp.norm};
            for (size_t k = 0; k < sizeof norms / sizeof *norms; k++)
                theo_norm_free(norms[k]);
        }
    theo_norm_free(&n->enc_norm);
    theo_norm_free(&n->dec_norm);
}

void theo_dust3r_free(theo_dust3r *n) {
    if (!n)
        return;
    visit_all(n, theo_packed_visit_free, NULL);
    free_norms(n);
    for (int v = 0; v < branches_of(n); v++)
        theo_free(n->dec_blocks[v]);
    theo_free(n->enc_blocks);
    theo_free(n);
}

static void describe(theo_dust3r *n) {
    const theo_dust3r_config *c = &n->config;
    visit_all(n, theo_packed_visit_bytes, &n->weight_bytes);
    snprintf(n->config_json, sizeof n->config_json,
             "{\"kind\": \"dust3r\", \"enc_embed_dim\": %d, \"enc_depth\": %d, \"enc_num_heads\": %d, \"dec_embed_dim\": %d, "
             "\"dec_depth\": %d, \"dec_num_heads\": %d, \"head_type\": \"%s\", \"output_mode\": \"pts3d\", \"pos_embed\": "
             "\"RoPE%g\", \"img_size\": [%d, %d]}",
             c->enc_width, c->enc_depth, c->enc_heads, c->dec_width, c->dec_depth, c->dec_heads,
             c->head == THEO_DUST3R_DPT ? "dpt" : "linear", c->rope_base, c->image_size, c->image_size);
}

/* Tensors that belong to the published network and are never used, and second names of the same numbers. */
static bool is_known_unused(const char *name) {
    return !strcmp(name, "mask_token") || strstr(name, "scratch.refinenet4.resConfUnit1.") || strstr(name, "scratch.layer_rn.");
}

static void count_tensors(theo_dust3r *n, const theo_packing *packing, const theo_weights *weights) {
    int used = 0;
    for (int i = 0; i < packing->count; i++) {
        const theo_weight *const tensors[] = {packing->jobs[i].weight, packing->jobs[i].bias};
        for (int k = 0; k < 2; k++) {
            n->parameters += tensors[k] ? tensors[k]->elements : 0;
            used += tensors[k] && !is_known_unused(tensors[k]->name);
        }
    }
    int known = 0;
    for (int i = 0; i < theo_weights_count(weights); i++)
        known += is_known_unused(theo_weights_at(weights, i)->name);
    n->unused = theo_weights_count(weights) - used - known;
}

static theo_status load(theo_dust3r *n, theo_packing *packing, const theo_weights *weights, theo_cpu level, theo_pool *pool,
                        theo_error *err) {
    theo_problems problems = {.count = 0};
    theo_gather g = {weights, packing, &problems, "", THEO_TRANSFORMER_MAX_WIDTH};
    THEO_TRY(gather_all(&g, n, err));
    THEO_TRY(theo_packing_run(packing, weights, level, pool, err));
    count_tensors(n, packing, weights);
    describe(n);
    return THEO_OK;
}

theo_status theo_dust3r_load(theo_dust3r **network, const theo_weights *weights, theo_cpu level, theo_pool *pool,
                             theo_error *err) {
    *network = NULL;
    THEO_TRY(refuse_relatives(weights, err));
    theo_dust3r *n = theo_alloc(1, sizeof *n);
    if (!n)
        return theo_fail(err, THEO_MEMORY, theo_weights_path(weights), NULL, "out of memory");
    theo_packing packing = {.count = 0};
    theo_status status = load(n, &packing, weights, level, pool, err);
    theo_packing_free(&packing);
    if (status)
        theo_dust3r_free(n);
    else
        *network = n;
    return status;
}
