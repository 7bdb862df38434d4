#include "models/transformer.h"
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- loading */

int theo_transformer_depth(const theo_weights *weights, const char *stem) {
    size_t length = strlen(stem);
    int depth = 0;
    for (int i = 0; i < theo_weights_count(weights); i++) {
        const char *name = theo_weights_at(weights, i)->name;
        long index = strncmp(name, stem, length) ? -1 : strtol(name + length, NULL, 10);
        if (index >= THEO_TRANSFORMER_MAX_DEPTH)
            return THEO_TRANSFORMER_MAX_DEPTH + 1;
        depth = index >= depth ? (int)index + 1 : depth;
    }
    return depth;
}

int theo_transformer_hidden(const theo_gather *g, const char *block) {
    const theo_weight *w = theo_weights_find(g->weights, theo_name("%s%s.mlp.fc1.weight", g->prefix, block).text);
    return w && w->rank == 2 && w->shape[0] > 0 && w->shape[0] <= THEO_TRANSFORMER_MAX_WIDTH ? (int)w->shape[0] : 0;
}

/* A linear layer, with the LayerScale behind it if there is one. */
static void gather_scaled(const theo_gather *g, theo_packed **packed, const char *stem, int out, int in, bool is_scaled,
                          const char *gamma) {
    theo_packing_job job = {.kind = THEO_PACKING_LINEAR};
    if (is_scaled)
        job.scale = theo_gather_expect(g, gamma, 1, (int64_t[]){out});
    theo_gather_layer(g, packed, job, stem, 2, (int64_t[]){out, in}, out);
}

void theo_self_attention_gather(const theo_gather *g, theo_self_attention *a, const char *block, const theo_block_form *f) {
    int c = f->width;
    theo_gather_norm(g, &a->norm, theo_name("%s.norm1", block).text, c);
    theo_gather_turned(g, &a->qkv, theo_name("%s.attn.qkv", block).text, 3 * c, c, 2 * c, f->turned_head);
    gather_scaled(g, &a->proj, theo_name("%s.attn.proj", block).text, c, c, f->is_scaled, theo_name("%s.ls1.gamma", block).text);
}

void theo_mlp_gather(const theo_gather *g, theo_mlp *m, const char *block, const char *norm, const theo_block_form *f) {
    theo_gather_norm(g, &m->norm, theo_name("%s.%s", block, norm).text, f->width);
    theo_gather_linear(g, &m->fc1, theo_name("%s.mlp.fc1", block).text, f->hidden, f->width);
    gather_scaled(g, &m->fc2, theo_name("%s.mlp.fc2", block).text, f->width, f->hidden, f->is_scaled,
                  theo_name("%s.ls2.gamma", block).text);
}

void theo_transformer_block_gather(const theo_gather *g, theo_transformer_block *b, const char *block, const theo_block_form *f) {
    theo_self_attention_gather(g, &b->attention, block, f);
    theo_mlp_gather(g, &b->mlp, block, "norm2", f);
}

void theo_self_attention_visit(const theo_self_attention *a, theo_packed_visitor visit, void *context) {
    visit(a->qkv, context);
    visit(a->proj, context);
}

void theo_mlp_visit(const theo_mlp *m, theo_packed_visitor visit, void *context) {
    visit(m->fc1, context);
    visit(m->fc2, context);
}

/* ---------------------------------------------------------------- on a plan */

theo_tensor theo_norm_record(theo_plan *p, const char *name, const theo_norm *norm, theo_tensor x) {
    return theo_plan_layer_norm(p, name, x, norm->gamma, norm->beta, 1e-6f);
}

theo_tensor theo_self_attention_record(theo_plan *p, const char *block, const theo_self_attention *a, int heads, theo_tensor turn,
                                       theo_tensor x) {
    theo_tensor_name name = theo_name("%s.attention", block);
    theo_tensor y = theo_norm_record(p, theo_name("%s.norm1", block).text, &a->norm, x);
    y = theo_plan_linear(p, theo_name("%s.qkv", block).text, y, a->qkv, theo_epilogue_none());
    if (turn.id < 0) {
        y = theo_plan_attention(p, name.text, y, heads);
    } else {
        theo_tensor q = theo_plan_channels(p, y, 0, x.c), k = theo_plan_channels(p, y, x.c, x.c);
        y = theo_plan_rope_attention(p, name.text, q, k, theo_plan_channels(p, y, 2 * x.c, x.c), heads, turn, turn);
    }
    return theo_plan_linear(p, theo_name("%s.proj", block).text, y, a->proj, theo_epilogue_add(x));
}

theo_tensor theo_mlp_record(theo_plan *p, const char *block, const char *norm, const theo_mlp *m, theo_tensor x) {
    theo_epilogue gelu = theo_epilogue_none();
    gelu.act = THEO_ACT_GELU;
    theo_tensor y = theo_norm_record(p, theo_name("%s.%s", block, norm).text, &m->norm, x);
    y = theo_plan_linear(p, theo_name("%s.fc1+gelu", block).text, y, m->fc1, gelu);
    return theo_plan_linear(p, theo_name("%s.fc2", block).text, y, m->fc2, theo_epilogue_add(x));
}
