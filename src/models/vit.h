/* vit.h - the vision transformer of DINOv2 (arXiv:2304.07193; Dosovitskiy et al., arXiv:2010.11929): pre-norm blocks with
 * LayerScale, absolute positions. */
#ifndef THEO_MODELS_VIT_H
#define THEO_MODELS_VIT_H

#include "models/transformer.h"

enum { THEO_VIT_HEAD = 64 }; /* channels of a head */

/* Weights, immutable once loaded. */
typedef struct theo_vit {
    int width, depth, heads, hidden; /* C, blocks, C / 64, H */
    int patch, table;                /* side of a patch in pixels; of the table of positions in patches: 14, 37 */
    theo_packed *embed;              /* [C, 3 * patch * patch], input (channel, y, x). Its bias goes with the positions */
    float *embed_bias;               /* [C] */
    float *cls;                      /* [C] */
    float *positions;                /* [1 + table * table, C] */
    theo_transformer_block *blocks;  /* [depth] */
    theo_norm norm;
} theo_vit;

/* Finds the tensors under `prefix` ("encoder.backbone."), takes the sizes from them, and adds what is to be packed. What is wrong
 * is noted in `problems`; then nothing may be packed. */
theo_status theo_vit_gather(theo_vit *vit, theo_packing *packing, theo_problems *problems, const theo_weights *weights,
                            const char *prefix, theo_error *err);
void theo_vit_free(theo_vit *vit);
size_t theo_vit_bytes(const theo_vit *vit);

/* ---- positions */

/* What is added to the embedded patches of a rows x columns grid: out [1 + rows * columns, C] with rows at `pitch`. Row 0 is the
 * class token with its position; the others are the table resampled (bicubic, a = -0.75, without antialias, scale
 * table / (n + 0.1) as DINOv2 was trained with) plus the embedding's bias. */
void theo_vit_positions(const theo_vit *vit, int rows, int columns, float *out, size_t pitch);

/* One channel group of that resampling: table [side, side, channels] to out [rows, columns, channels]. */
void theo_vit_resample_table(const float *table, int side, int channels, int rows, int columns, float *out, size_t pitch);

/* ---- on a plan. Tokens are maps of 1 x T x C, the class token first. */

/* patches [1, T, 3 * patch * patch], row 0 all zero; positions [1, T, C] from theo_vit_positions. */
theo_tensor theo_vit_embed(theo_plan *plan, const theo_vit *vit, theo_tensor patches, theo_tensor positions);
/* after_attention: NULL, or gets the tensor between the two halves. */
theo_tensor theo_vit_record_block(theo_plan *plan, const theo_vit *vit, int index, theo_tensor x, theo_tensor *after_attention);
theo_tensor theo_vit_record_norm(theo_plan *plan, const theo_vit *vit, const char *name, theo_tensor x);

#endif
