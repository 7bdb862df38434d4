/* dust3r.h - DUSt3R (Wang et al., arXiv:2312.14132): two photos to their points in the frame of the first camera.
 *
 * One encoder for both photos, two decoders that read each other, a head for each. Tensors, layers and folds:
 * docs/models/dust3r.md. */
#ifndef THEO_MODELS_DUST3R_H
#define THEO_MODELS_DUST3R_H

#include "models/dpt.h"
#include "models/dust3r_config.h"
#include "models/transformer.h"

enum { THEO_DUST3R_PATCH = 16, THEO_DUST3R_VIEWS = 2, THEO_DUST3R_CHANNELS = 4 }; /* x, y, z, confidence */

/* x + proj(attention(queries of norm(x), keys and values of norm_y(y))): y is what the other branch made of its view. */
typedef struct theo_dust3r_cross_attention {
    theo_norm norm, norm_y;
    theo_packed *q, *k, *v, *proj; /* [C', C'] each; q and k in the order of turned weights */
} theo_dust3r_cross_attention;

typedef struct theo_dust3r_decoder_block {
    theo_self_attention self;
    theo_dust3r_cross_attention cross;
    theo_mlp mlp;
} theo_dust3r_decoder_block;

/* Weights, immutable once loaded. */
typedef struct theo_dust3r {
    theo_dust3r_config config;
    int enc_hidden, dec_hidden;
    theo_packed *embed;                 /* [C, 3 * 16 * 16], input (channel, y, x) */
    theo_transformer_block *enc_blocks; /* [enc_depth] */
    theo_norm enc_norm;
    theo_packed *decoder_embed;                               /* [C', C] */
    theo_dust3r_decoder_block *dec_blocks[THEO_DUST3R_VIEWS]; /* [dec_depth] each; the second may be the first itself */
    theo_norm dec_norm;
    theo_dpt dpt[THEO_DUST3R_VIEWS];
    theo_packed *linear[THEO_DUST3R_VIEWS]; /* [4 * 16 * 16, C'], output (channel, y, x) */
    int64_t parameters;                     /* numbers in the file that belong to the network */
    size_t weight_bytes;                    /* packed */
    int unused;                             /* tensors of the file that it does not know */
    char config_json[512];
} theo_dust3r;

/* How many tensors of the file carry a name that only DUSt3R and its relatives use. */
int theo_dust3r_recognise(const theo_weights *weights);

/* Checks names, shapes, types and values, all problems reported together, and packs for `level` on the pool. The pages of the map
 * are released on the way. */
theo_status theo_dust3r_load(theo_dust3r **network, const theo_weights *weights, theo_cpu level, theo_pool *pool,
                             theo_error *err);
void theo_dust3r_free(theo_dust3r *network);

/* ---- on a plan */

/* Tests: stages by name, kept to the end of the run. */
typedef struct theo_dust3r_trace {
    int count;
    struct {
        theo_tensor_name name;
        theo_tensor tensor;
    } stages[160];
} theo_dust3r_trace;

typedef struct theo_dust3r_encoding {
    theo_tensor image; /* input [16 rows, 16 columns, 3], in [-1, 1] */
    theo_tensor turn;  /* input: theo_dust3r_fill_turn */
    theo_tensor out;   /* [rows, columns, C]: what the decoder reads */
} theo_dust3r_encoding;

/* The encoder for a grid of rows x columns patches. trace may be NULL. */
theo_dust3r_encoding theo_dust3r_record_encoder(theo_plan *plan, const theo_dust3r *network, int rows, int columns,
                                                theo_dust3r_trace *trace);

/* Sizes of a view in patches. */
typedef struct theo_dust3r_grid {
    int rows, columns;
} theo_dust3r_grid;

typedef struct theo_dust3r_decoding {
    theo_tensor features[THEO_DUST3R_VIEWS]; /* inputs: what the encoder made of each view */
    theo_tensor turn[THEO_DUST3R_VIEWS];     /* inputs */
    theo_tensor raw[THEO_DUST3R_VIEWS];      /* dpt: [16 rows, 16 columns, 4]; linear: [rows, columns, 4 * 16 * 16]; id < 0: not
                                                wanted */
} theo_dust3r_decoding;

/* Decoders and heads. wanted: bits 1 << view; what only an unwanted map needs is left out. */
theo_dust3r_decoding theo_dust3r_record_decoder(theo_plan *plan, const theo_dust3r *network,
                                                const theo_dust3r_grid grids[THEO_DUST3R_VIEWS], unsigned wanted,
                                                theo_dust3r_trace *trace);

/* Cosines and sines of the positions of a grid into a `turn` input of the encoder or of the decoder, bound to memory. */
void theo_dust3r_fill_turn(theo_plan *plan, const theo_dust3r *network, theo_tensor turn);

/* ---- from raw to points */

/* One pixel: raw [4] -> point [3], confidence. What overflows is not finite. */
void theo_dust3r_activate(const theo_dust3r_output *rule, const float raw[THEO_DUST3R_CHANNELS], float point[3], float *conf);

#endif
