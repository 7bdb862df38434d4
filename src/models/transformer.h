/* transformer.h - what the vision transformers here are made of (Dosovitskiy et al., arXiv:2010.11929): self-attention and an
 * MLP, each behind a layer norm and added to what it reads. DINOv2 scales what is added (LayerScale), CroCo turns queries and
 * keys by their positions. */
#ifndef THEO_MODELS_TRANSFORMER_H
#define THEO_MODELS_TRANSFORMER_H

#include "models/gather.h"

enum {
    THEO_TRANSFORMER_MAX_DEPTH = 64,   /* blocks */
    THEO_TRANSFORMER_MAX_WIDTH = 8192, /* C, and the hidden width H */
};

/* x + proj(attention(norm(x))) */
typedef struct theo_self_attention {
    theo_norm norm;
    theo_packed *qkv;  /* [3C, C]: rows of q, k, v, each head by head; those of q and k in the order of turned weights, if any */
    theo_packed *proj; /* [C, C], times LayerScale */
} theo_self_attention;

/* x + fc2(gelu(fc1(norm(x)))) */
typedef struct theo_mlp {
    theo_norm norm;
    theo_packed *fc1; /* [H, C] */
    theo_packed *fc2; /* [C, H], times LayerScale */
} theo_mlp;

/* Weights, immutable once loaded. */
typedef struct theo_transformer_block {
    theo_self_attention attention;
    theo_mlp mlp;
} theo_transformer_block;

/* ---- loading */

/* What the blocks of a network have in common. */
typedef struct theo_block_form {
    int width, hidden; /* C, and H (0: whatever the tensors have) */
    int turned_head;   /* channels of a head that rotary positions turn; 0: none are turned */
    bool is_scaled;    /* LayerScale: BLOCK.ls1.gamma, BLOCK.ls2.gamma */
} theo_block_form;

/* 1 + the largest number behind STEM in the names of tensors; THEO_TRANSFORMER_MAX_DEPTH + 1: more than that. */
int theo_transformer_depth(const theo_weights *weights, const char *stem);
/* H by BLOCK.mlp.fc1.weight behind g's prefix; 0 where that is missing or of another shape, which gathering notes. */
int theo_transformer_hidden(const theo_gather *g, const char *block);

/* BLOCK.norm1, BLOCK.attn.qkv, BLOCK.attn.proj. */
void theo_self_attention_gather(const theo_gather *g, theo_self_attention *attention, const char *block,
                                const theo_block_form *form);
/* BLOCK.NORM, BLOCK.mlp.fc1, BLOCK.mlp.fc2. */
void theo_mlp_gather(const theo_gather *g, theo_mlp *mlp, const char *block, const char *norm, const theo_block_form *form);
/* Both, with BLOCK.norm2. */
void theo_transformer_block_gather(const theo_gather *g, theo_transformer_block *b, const char *block,
                                   const theo_block_form *form);

void theo_self_attention_visit(const theo_self_attention *attention, theo_packed_visitor visit, void *context);
void theo_mlp_visit(const theo_mlp *mlp, theo_packed_visitor visit, void *context);

/* ---- on a plan. `block` begins the names of the ops. */

/* Layer norm over the channels, eps 1e-6. */
theo_tensor theo_norm_record(theo_plan *plan, const char *name, const theo_norm *norm, theo_tensor x);
/* turn: cosines and sines of the positions (theo_plan_rope_attention), or id < 0 without. */
theo_tensor theo_self_attention_record(theo_plan *plan, const char *block, const theo_self_attention *attention, int heads,
                                       theo_tensor turn, theo_tensor x);
theo_tensor theo_mlp_record(theo_plan *plan, const char *block, const char *norm, const theo_mlp *mlp, theo_tensor x);

#endif
