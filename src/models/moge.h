/* moge.h - MoGe: affine points, normals and mask of one photo, and its metric scale. Two generations, MoGe-1 (Wang et al.,
 * arXiv:2410.19115) and MoGe-2 (arXiv:2507.02546): one encoder, DINOv2, and a decoder each.
 *
 * The networks, the names of their tensors and the rules before and after them: docs/models/moge2.md and moge1.md. */
#ifndef THEO_MODELS_MOGE_H
#define THEO_MODELS_MOGE_H

#include "models/moge_config.h"
#include "models/moge_frame.h"
#include "models/vit.h"

typedef enum theo_moge_head { THEO_MOGE_POINTS, THEO_MOGE_NORMAL, THEO_MOGE_MASK, THEO_MOGE_HEADS } theo_moge_head;

typedef struct theo_moge1 theo_moge1; /* models/moge1.h */
typedef struct theo_moge2 theo_moge2; /* models/moge2.h */

/* Weights, immutable once loaded. */
typedef struct theo_moge {
    theo_moge_generation generation;
    theo_moge_config config;
    theo_vit vit;
    float *mean, *deviation;                      /* [3] of the input's channels */
    theo_packed *projections[THEO_MOGE_MAX_TAPS]; /* [features, C, 1, 1]: of each tap */
    union {                                       /* the decoder, of `generation` */
        theo_moge1 *one;
        theo_moge2 *two;
    };
    int64_t parameters;  /* numbers in the file that belong to the network */
    size_t weight_bytes; /* packed */
    int unused;          /* tensors of the file that it does not know */
    char config_json[512];
} theo_moge;

/* How many tensors of the file carry a name that only MoGe (1, 2 or 3) uses. */
int theo_moge_recognise(const theo_weights *weights);

/* Checks names, shapes, types and values, all problems reported together, and packs for `level` on the pool. The pages of the map
 * are released on the way. */
theo_status theo_moge_load(theo_moge **network, const theo_weights *weights, theo_cpu level, theo_pool *pool, theo_error *err);
void theo_moge_free(theo_moge *network);

/* Channels of a head's map: 3, 3, 1; 0: the network has no such head. */
int theo_moge_head_channels(const theo_moge *network, theo_moge_head head);
/* Those that the network has: bits 1 << theo_moge_head. */
unsigned theo_moge_heads(const theo_moge *network);
bool theo_moge_has_scale(const theo_moge *network);

/* ---- the network on a plan */

typedef struct theo_moge_map {
    theo_tensor tensor; /* id < 0: not recorded */
    bool is_quads; /* [map_h / 2, map_w / 2, 4 * c]: channel o * 4 + i * 2 + j of (y, x) is channel o of pixel (2y + i, 2x + j);
                      else [map_h, map_w, c] */
    int channels;  /* c */
} theo_moge_map;

/* A map of pixels' coordinates, which decoders read as two more channels. */
typedef struct theo_moge_coordinates {
    theo_tensor tensor; /* [h, w, 2], or [h / 2, w / 2, 8] */
    bool is_quads;
} theo_moge_coordinates;

enum { THEO_MOGE_MAX_COORDINATES = 8 };

typedef struct theo_moge_net {
    theo_moge_grid grid;
    theo_tensor patches;   /* [1, T, 588]: row 0 zero */
    theo_tensor positions; /* [1, T, C] */
    theo_moge_coordinates coordinates[THEO_MOGE_MAX_COORDINATES];
    int coordinate_count;
    theo_moge_map maps[THEO_MOGE_HEADS];
    theo_tensor scale; /* [1, 1, 1], before exp; id < 0: the network has none */
} theo_moge_net;

/* Tests: stages by name, kept to the end of the run. With a trace nothing is folded. */
typedef struct theo_moge_trace {
    int count;
    struct {
        char name[24];
        theo_tensor tensor;
    } stages[192];
} theo_moge_trace;

/* heads: bits 1 << theo_moge_head; those that the network lacks are left out. trace may be NULL. */
theo_moge_net theo_moge_record(theo_plan *plan, const theo_moge *network, const theo_moge_grid *grid, unsigned heads,
                               theo_moge_trace *trace);

/* Fills positions and coordinates of a recorded network that is bound to memory; they stay for runs with the same grid and
 * aspect. aspect: width / height of what the network sees. */
void theo_moge_fill_constants(theo_plan *plan, const theo_moge *network, const theo_moge_net *net, double aspect);

#endif
