/* dust3r_weights.c - from the tensors of a checkpoint to packed layers: names, shapes, checks. */
#include "base/error.h"
#include "base/map.h"
#include "models/dust3r.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST = 8192 };

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

/* The text of config.json beside a safetensors file, to be freed; NULL: there is none. */
static theo_status read_beside(char **text, char path[4096], const theo_weights *weights, theo_error *err) {
    *text = NULL;
    const char *file = theo_weights_path(weights), *slash = strrchr(file, '/');
    if (snprintf(path, 4096, "%.*sconfig.json", slash ? (int)(slash + 1 - file) : 0, file) >= 4096 || access(path, F_OK))
        return THEO_OK;
    theo_map map;
    THEO_TRY(theo_map_open(&map, path, err));
    char *copy = theo_alloc(map.bytes + 1, 1);
    if (copy && map.bytes)
        memcpy(copy, map.data, map.bytes);
    theo_map_close(&map);
    *text = copy;
    return copy ? THEO_OK : theo_fail(err, THEO_MEMORY, path, NULL, "out of memory");
}

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
    char path[4096], *text;
    theo_dust3r_config_init(c);
    theo_bump memory = {0};
    const char *call = find_call(&memory, weights);
    theo_status status = THEO_OK;
    if (call)
        status = theo_dust3r_config_from_call(c, call, theo_weights_path(weights), err);
    theo_bump_free(&memory);
    if (call || status)
        return status;
    THEO_TRY(read_beside(&text, path, weights, err));
    if (text)
        status = theo_dust3r_config_parse(c, text, path, err);
    theo_free(text);
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

/* Rows of STEM.mlp.fc1.weight; 0 where it is missing, which is noted later. */
static int hidden_width(const theo_gather *g, const char *stem) {
    const theo_weight *w = theo_weights_find(g->weights, theo_name("%s.mlp.fc1.weight", stem).text);
    return w && w->rank == 2 && w->shape[0] > 0 && w->shape[0] <= LARGEST ? (int)w->shape[0] : 0;
}

/* The first `turned` outputs are in heads that rotary positions turn. */
static void gather_turned(const theo_gather *g, theo_packed **packed, const char *stem, int out, int in, int turned, int head) {
    theo_packing_job job = {.kind = THEO_PACKING_LINEAR, .turned = turned, .head = head};
    theo_gather_layer(g, packed, job, stem, 2, (int64_t[]){out, in}, out);
}

static void gather_encoder_block(const theo_gather *g, theo_dust3r_encoder_block *b, int i, int c, int head, int hidden) {
    theo_gather_norm(g, &b->norm1, theo_name("enc_blocks.%d.norm1", i).text, c);
    gather_turned(g, &b->qkv, theo_name("enc_blocks.%d.attn.qkv", i).text, 3 * c, c, 2 * c, head);
    theo_gather_linear(g, &b->proj, theo_name("enc_blocks.%d.attn.proj", i).text, c, c);
    theo_gather_norm(g, &b->norm2, theo_name("enc_blocks.%d.norm2", i).text, c);
    theo_gather_linear(g, &b->fc1, theo_name("enc_blocks.%d.mlp.fc1", i).text, hidden, c);
    theo_gather_linear(g, &b->fc2, theo_name("enc_blocks.%d.mlp.fc2", i).text, c, hidden);
}

static void gather_decoder_block(const theo_gather *g, theo_dust3r_decoder_block *b, const char *stem, int c, int head,
                                 int hidden) {
    theo_gather_norm(g, &b->norm1, theo_name("%s.norm1", stem).text, c);
    gather_turned(g, &b->qkv, theo_name("%s.attn.qkv", stem).text, 3 * c, c, 2 * c, head);
    theo_gather_linear(g, &b->proj, theo_name("%s.attn.proj", stem).text, c, c);
    theo_gather_norm(g, &b->norm2, theo_name("%s.norm2", stem).text, c);
    theo_gather_norm(g, &b->norm_y, theo_name("%s.norm_y", stem).text, c);
    gather_turned(g, &b->projq, theo_name("%s.cross_attn.projq", stem).text, c, c, c, head);
    gather_turned(g, &b->projk, theo_name("%s.cross_attn.projk", stem).text, c, c, c, head);
    theo_gather_linear(g, &b->projv, theo_name("%s.cross_attn.projv", stem).text, c, c);
    theo_gather_linear(g, &b->cross_proj, theo_name("%s.cross_attn.proj", stem).text, c, c);
    theo_gather_norm(g, &b->norm3, theo_name("%s.norm3", stem).text, c);
    theo_gather_linear(g, &b->fc1, theo_name("%s.mlp.fc1", stem).text, hidden, c);
    theo_gather_linear(g, &b->fc2, theo_name("%s.mlp.fc2", stem).text, c, hidden);
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
    for (int i = 0; i < c->enc_depth; i++)
        gather_encoder_block(g, &n->enc_blocks[i], i, c->enc_width, c->enc_width / c->enc_heads, n->enc_hidden);
    for (int v = 0; v < branches; v++)
        for (int i = 0; i < c->dec_depth; i++)
            gather_decoder_block(g, &n->dec_blocks[v][i], theo_name("dec_blocks%s.%d", v ? "2" : "", i).text, c->dec_width,
                                 c->dec_width / c->dec_heads, n->dec_hidden);
    return THEO_OK;
}

static theo_status gather_all(const theo_gather *g, theo_dust3r *n, theo_error *err) {
    const char *path = theo_weights_path(g->weights);
    theo_dust3r_config *c = &n->config;
    THEO_TRY(find_config(c, g->weights, err));
    theo_dust3r_config_complete(c, g->weights);
    THEO_TRY(check_config(c, path, err));
    n->enc_hidden = hidden_width(g, "enc_blocks.0");
    n->dec_hidden = hidden_width(g, "dec_blocks.0");

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

typedef void (*visit_fn)(theo_packed *packed, void *context);

static void visit_all(theo_dust3r *n, visit_fn visit, void *context) {
    visit(n->embed, context);
    visit(n->decoder_embed, context);
    for (int i = 0; n->enc_blocks && i < n->config.enc_depth; i++) {
        theo_dust3r_encoder_block *b = &n->enc_blocks[i];
        theo_packed *const all[] = {b->qkv, b->proj, b->fc1, b->fc2};
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            visit(all[k], context);
    }
    int branches = n->dec_blocks[1] == n->dec_blocks[0] ? 1 : THEO_DUST3R_VIEWS;
    for (int v = 0; v < branches; v++)
        for (int i = 0; n->dec_blocks[v] && i < n->config.dec_depth; i++) {
            theo_dust3r_decoder_block *b = &n->dec_blocks[v][i];
            theo_packed *const all[] = {b->qkv, b->proj, b->projq, b->projk, b->projv, b->cross_proj, b->fc1, b->fc2};
            for (size_t k = 0; k < sizeof all / sizeof *all; k++)
                visit(all[k], context);
        }
    for (int v = 0; v < THEO_DUST3R_VIEWS; v++) {
        theo_dpt_visit(&n->dpt[v], visit, context);
        visit(n->linear[v], context);
    }
}

static void free_packed(theo_packed *packed, void *context) {
    (void)context;
    theo_packed_free(packed);
}

static void add_bytes(theo_packed *packed, void *context) {
    size_t *bytes = context;
    *bytes += packed ? theo_packed_bytes(packed) : 0;
}

void theo_dust3r_free(theo_dust3r *n) {
    if (!n)
        return;
    visit_all(n, free_packed, NULL);
    for (int i = 0; n->enc_blocks && i < n->config.enc_depth; i++) {
        theo_norm_free(&n->enc_blocks[i].norm1);
        theo_norm_free(&n->enc_blocks[i].norm2);
    }
    bool is_shared = n->dec_blocks[1] == n->dec_blocks[0];
    for (int v = 0; v < (is_shared ? 1 : THEO_DUST3R_VIEWS); v++) {
        for (int i = 0; n->dec_blocks[v] && i < n->config.dec_depth; i++) {
            theo_dust3r_decoder_block *b = &n->dec_blocks[v][i];
            theo_norm *const norms[] = {&b->norm1, &b->norm2, &b->norm_y, &b->norm3};
            for (size_t k = 0; k < sizeof norms / sizeof *norms; k++)
                theo_norm_free(norms[k]);
        }
        theo_free(n->dec_blocks[v]);
    }
    theo_free(n->enc_blocks);
    theo_norm_free(&n->enc_norm);
    theo_norm_free(&n->dec_norm);
    theo_free(n);
}

static void describe(theo_dust3r *n) {
    const theo_dust3r_config *c = &n->config;
    visit_all(n, add_bytes, &n->weight_bytes);
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
    theo_gather g = {weights, packing, &problems, "", LARGEST};
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
