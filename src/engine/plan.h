/* plan.h - record a network once for one input shape, then run it many times.
 *
 *   record  model code calls the theo_plan_* operations below in order: nothing is computed, each call appends an op.
 *   place   theo_plan_finish: lifetimes of the intermediates -> offsets in one arena, whose size is known before the first run.
 *   run     theo_plan_run: ops in order on the pool. No allocation; the result does not depend on the number of threads.
 *
 * Weights are packed once per model (theo_packed_*), shared by all plans and sessions.
 * Layout: activations are float32 NHWC with N = 1; tokens are H*W rows of C. */
#ifndef THEO_ENGINE_PLAN_H
#define THEO_ENGINE_PLAN_H

#include "base/cpu.h"
#include "base/pool.h"
#include "kernels/channels.h" /* theo_nonlinearity */
#include "kernels/epilogue.h" /* theo_activation, theo_padding */
#include <theo/inspect.h>
#include <theo/theo.h>

typedef struct theo_plan theo_plan;

/* Handle of an activation [h, w, c] inside one plan. id < 0 is "none". */
typedef struct theo_tensor {
    int id;
    int h, w, c;
} theo_tensor;

/* What happens to an output element y of channel c before it is stored, in this order:
 * y += bias[c]; y = act(y); y = y * scale[c] + shift[c]; y += residual; then max-pool 2x2 when asked. */
typedef struct theo_epilogue {
    bool relu_input; /* ReLU on the input first (3x3 only); the residual is not concerned */
    theo_activation act;
    const float *scale, *shift; /* [C] each or both NULL: a batch norm after the activation, or LayerScale. Held by the model */
    theo_tensor residual;       /* id < 0: none; same shape as the unpooled output */
    bool pool2;                 /* 2x2 max-pool, stride 2, floor */
} theo_epilogue;

theo_epilogue theo_epilogue_none(void);
/* Nothing but that sum; id < 0: none at all. */
theo_epilogue theo_epilogue_add(theo_tensor residual);

/* ---- packed weights: owned by the model, made once, immutable */

typedef struct theo_packed theo_packed;

/* Linear or 1x1 convolution: weight [out, in] row-major, bias [out] or NULL. Packs for `level`. */
theo_status theo_packed_linear(theo_packed **packed, theo_cpu level, int out, int in, const float *weight, const float *bias,
                               theo_error *err);
/* k x k convolution, weight OIHW [out, in, k, k]. k = 3: packed for Winograd, or with few input channels for the direct form;
 * k = 1 becomes linear. */
theo_status theo_packed_conv(theo_packed **packed, theo_cpu level, int out, int in, int kernel, const float *weight,
                             const float *bias, theo_error *err);
/* 3x3 convolution for any stride, as one matrix multiplication of gathered pixels: for strides above 1, and for maps that are too
 * small for Winograd's larger weights to pay. */
theo_status theo_packed_conv_gathered(theo_packed **packed, theo_cpu level, int out, int in, const float *weight,
                                      const float *bias, theo_error *err);
/* Transposed convolution, size x size with that stride (2 to 16): weight [in, out, size, size] as PyTorch keeps it, bias [out] or
 * NULL. */
theo_status theo_packed_conv_transpose(theo_packed **packed, theo_cpu level, int in, int out, int size, const float *weight,
                                       const float *bias, theo_error *err);
/* Bilinear x2, then a 3x3 convolution with replicate padding, as one 3x3 convolution with replicate padding of the small map that
 * gives the four phases of the large one: weight OIHW [out, in, 3, 3] -> 4 out channels, o * 4 + i * 2 + j for (2y + i, 2x + j).
 * For theo_plan_upsample2_conv; or for theo_plan_conv, where maps are to be added before theo_plan_pixel_shuffle2. */
theo_status theo_packed_upsample2_conv(theo_packed **packed, theo_cpu level, int out, int in, const float *weight,
                                       const float *bias, theo_error *err);
void theo_packed_free(theo_packed *packed);
size_t theo_packed_bytes(const theo_packed *packed);

/* ---- record */

theo_status theo_plan_new(theo_plan **plan, theo_cpu level, theo_pool *pool, theo_error *err);
void theo_plan_free(theo_plan *plan);

/* The recording calls never fail at the spot: the first error is kept and returned by theo_plan_finish. `name` is the layer's
 * name in reports and is copied. */
theo_tensor theo_plan_input(theo_plan *plan, const char *name, int h, int w, int c);
theo_tensor theo_plan_conv(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *weight, int stride,
                           theo_padding padding, theo_epilogue epilogue);
/* Two 3x3 convolutions, stride 1, zero padding. Where the first has few input channels (packed for the direct form) and the
 * second is a Winograd one, what lies between is never stored; else these are two ops. */
theo_tensor theo_plan_conv_conv(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *first,
                                theo_epilogue first_epilogue, const theo_packed *second, theo_epilogue second_epilogue);
theo_tensor theo_plan_linear(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *weight, theo_epilogue epilogue);
theo_tensor theo_plan_max_pool2(theo_plan *plan, const char *name, theo_tensor x);
/* Channels [from, from + count) of x as a tensor of its own: a view, no copy. */
theo_tensor theo_plan_channels(theo_plan *plan, theo_tensor x, int from, int count);
/* SuperPoint's detector: logits [h, w, 65] -> scores [8h, 8w, 1]: softmax over the channels, last one dropped, unfolded. */
theo_tensor theo_plan_cell_softmax(theo_plan *plan, const char *name, theo_tensor logits);
/* x / max(||x||, 1e-12) over the channels. */
theo_tensor theo_plan_l2_norm(theo_plan *plan, const char *name, theo_tensor x);
/* Rows (pixels in raster order) [from, from + h * w) of x as a map of h x w: a view, no copy. */
theo_tensor theo_plan_rows(theo_plan *plan, theo_tensor x, int from, int h, int w);
/* (x - mean) / sqrt(variance + eps) * gamma + beta over the channels of each pixel. gamma, beta: [C], held by the model, or both
 * NULL. */
theo_tensor theo_plan_layer_norm(theo_plan *plan, const char *name, theo_tensor x, const float *gamma, const float *beta,
                                 float eps);
/* The patches of a transformer: [h, w, c] -> [h / size, w / size, c * size * size], each patch in the order (c, y, x). h and w
 * are multiples of size. */
theo_tensor theo_plan_patches(theo_plan *plan, const char *name, theo_tensor x, int size);
/* Tokens of patches: a linear layer, a class token in front, a table of positions on top. [h, w, in] -> [1, 1 + h * w, out];
 * table [1 + h * w, out] is held by the model: row 0 becomes token 0 as it is, the other rows are added. */
theo_tensor theo_plan_embed(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *weight, const float *table);
/* Self-attention without positions: qkv [.., 3C] = q | k | v, each heads x (C / heads) -> [.., C]: softmax(q k^T / sqrt(C /
 * heads)) v per head, over all pixels of the map. */
theo_tensor theo_plan_attention(theo_plan *plan, const char *name, theo_tensor qkv, int heads);
/* The same of q [.., C] over the pixels of k and v [.., C], which may be of another map. */
theo_tensor theo_plan_cross_attention(theo_plan *plan, const char *name, theo_tensor q, theo_tensor k, theo_tensor v, int heads);
/* Attention (as cross-attention) whose queries and keys are turned by their positions first. turn_q: [1, pixels of q, C / heads],
 * turn_k likewise: cosines | sines of each pixel, half a head each. Inside a head the channels of q and k are u | w, half a head
 * each, and become u cos - w sin | w cos + u sin. */
theo_tensor theo_plan_rope_attention(theo_plan *plan, const char *name, theo_tensor q, theo_tensor k, theo_tensor v, int heads,
                                     theo_tensor turn_q, theo_tensor turn_k);
/* [h, w, in] -> [size h, size w, out]. */
theo_tensor theo_plan_conv_transpose(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *weight,
                                     theo_epilogue epilogue);
/* The first h rows and w columns of x enlarged twofold, bilinear with align_corners (the corners' centres stay in place), plus
 * residual (id < 0: none; [h, w, c]). h <= 2 x.h, w <= 2 x.w. */
theo_tensor theo_plan_upsample2_corners(theo_plan *plan, const char *name, theo_tensor x, int h, int w, theo_tensor residual);
/* x enlarged twofold in the same way, a 3x3 convolution with zero padding, a linear layer: in strips of rows, so that neither the
 * enlarged map nor the convolution's output is ever whole. conv: packed for Winograd. */
theo_tensor theo_plan_upsample2_corners_conv_linear(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *conv,
                                                    theo_epilogue conv_epilogue, const theo_packed *linear,
                                                    theo_epilogue linear_epilogue);
/* x resized to the size of `beside` (bilinear, half-pixel centres, edges clamped), with the channels of `beside` behind its own;
 * a 3x3 convolution with replicate padding, a linear layer: in strips likewise. conv: packed for Winograd. */
theo_tensor theo_plan_resize_conv_linear(theo_plan *plan, const char *name, theo_tensor x, theo_tensor beside,
                                         const theo_packed *conv, theo_epilogue conv_epilogue, const theo_packed *linear,
                                         theo_epilogue linear_epilogue);
/* f((x - mean) / sqrt(variance + eps) * gamma + beta), mean and variance over all pixels of a group of channels: `groups` of
 * equal size (1: a layer norm of the whole map; as many as channels: an instance norm). gamma, beta: [C], held by the model, or
 * both NULL. */
theo_tensor theo_plan_group_norm(theo_plan *plan, const char *name, theo_tensor x, int groups, const float *gamma,
                                 const float *beta, float eps, theo_nonlinearity f);
theo_tensor theo_plan_nonlinear(theo_plan *plan, const char *name, theo_tensor x, theo_nonlinearity f);
/* [h, w, 4c] -> [2h, 2w, c]: channel o * 4 + i * 2 + j of (y, x) becomes channel o of (2y + i, 2x + j). */
theo_tensor theo_plan_pixel_shuffle2(theo_plan *plan, const char *name, theo_tensor x);
/* Bilinear x2 (half-pixel centres, edges clamped), then a 3x3 convolution with replicate padding; the enlarged map is never made.
 * weight: of theo_packed_upsample2_conv. scale and shift, as of any convolution in phases, are [4 out]. No residual, no pooling:
 * where those are wanted, theo_plan_conv and theo_plan_pixel_shuffle2. */
theo_tensor theo_plan_upsample2_conv(theo_plan *plan, const char *name, theo_tensor x, const theo_packed *weight,
                                     theo_epilogue epilogue);
/* Keeps the tensor alive to the end of the run, so that theo_plan_data may read it. */
void theo_plan_output(theo_plan *plan, theo_tensor x);

/* Lifetimes, offsets, scratch. Nothing may be recorded afterwards; theo_plan_bind makes the plan ready to run. How an op computes
 * depends on its weights, never on h and w: a tile gives the very bits of the whole picture. */
theo_status theo_plan_finish(theo_plan *plan, theo_error *err);

/* Memory that a run needs: activations and the scratch of all threads. */
size_t theo_plan_memory_bytes(const theo_plan *plan);
/* Lends the plan such a block, 64-byte aligned; it stays the caller's. Plans that never run at the same time may share one. May
 * be called again with another block: outputs are then lost. Cheap. */
void theo_plan_bind(theo_plan *plan, void *memory);

/* ---- run */

size_t theo_plan_arena_bytes(const theo_plan *plan);   /* activations */
size_t theo_plan_scratch_bytes(const theo_plan *plan); /* per-thread scratch, all threads together */

/* Between two ops `progress` (may be NULL) is asked; non-zero stops with THEO_CANCELLED. The plan must be bound to memory. */
theo_status theo_plan_run(theo_plan *plan, theo_progress_fn progress, void *user, theo_error *err);
/* Where an input is to be written before, or an output may be read after a run; distance of pixels in floats in *pitch (>= c). */
float *theo_plan_data(theo_plan *plan, theo_tensor x, int *pitch);

/* A plan, and how often it runs for one result. */
typedef struct theo_plan_part {
    const theo_plan *plan;
    int runs;
} theo_plan_part;

/* What `count` plans do together for one result; they run one after the other, in the same memory. */
theo_status theo_plan_describe(const theo_plan_part *parts, int count, theo_plan_report **report, theo_error *err);

#endif
