/* superpoint.h - SuperPoint (DeTone, Malisiewicz, Rabinovich: arXiv:1712.07629) and its relatives with batch norm.
 *
 * The network, the names of its tensors and the rules before and after it: docs/models/superpoint.md. */
#ifndef THEO_MODELS_SUPERPOINT_H
#define THEO_MODELS_SUPERPOINT_H

#include "engine/plan.h"
#include "formats/weights.h"

enum {
    THEO_SUPERPOINT_CELL = 8,    /* side of a cell in pixels */
    THEO_SUPERPOINT_LOGITS = 65, /* its 64 pixels and the dustbin */
    /* Of the network's input. Above them a plan's sizes could overflow, and no machine of today has the memory. */
    THEO_SUPERPOINT_MIN_SIDE = 8,
    THEO_SUPERPOINT_MAX_SIDE = 1 << 20,
    THEO_SUPERPOINT_MAX_AREA = 1 << 30,
};

typedef enum theo_superpoint_kind {
    THEO_SUPERPOINT_PLAIN,      /* Magic Leap's layers: no batch norm */
    THEO_SUPERPOINT_BN,         /* rpautrat: batch norm after ReLU, eps 1e-3 */
    THEO_SUPERPOINT_MAGICPOINT, /* shaofengzeng: the same, eps 1e-5, detector only */
} theo_superpoint_kind;

/* One convolution with bias, packed, and the batch norm behind its ReLU as y * scale + shift (NULL without). */
typedef struct theo_superpoint_conv {
    theo_packed *packed;
    float *scale, *shift; /* [out] */
    int out, in;
} theo_superpoint_conv;

/* Weights, immutable once loaded. Shapes OIHW; channels are read from the tensors (published: C1 = C2 = 64, C3 = C4 = 128,
 * P = D = C = 256). */
typedef struct theo_superpoint {
    theo_superpoint_kind kind;
    double bn_eps;               /* 0 without batch norm */
    theo_superpoint_conv conv1a; /* [C1, 1, 3, 3] */
    theo_superpoint_conv conv1b; /* [C1', C1, 3, 3], then pool */
    theo_superpoint_conv conv2a; /* [C2, C1', 3, 3] */
    theo_superpoint_conv conv2b; /* [C2', C2, 3, 3], then pool */
    theo_superpoint_conv conv3a; /* [C3, C2', 3, 3] */
    theo_superpoint_conv conv3b; /* [C3', C3, 3, 3], then pool */
    theo_superpoint_conv conv4a; /* [C4, C3', 3, 3] */
    theo_superpoint_conv conv4b; /* [C4', C4, 3, 3] -> F */
    theo_superpoint_conv convPa; /* [P, C4', 3, 3] */
    theo_superpoint_conv convPb; /* [65, P, 1, 1] -> logits */
    theo_superpoint_conv heads;  /* [P + D, C4', 3, 3]: convPa over convDa, which read the same F; absent without descriptors */
    theo_superpoint_conv convDb; /* [C, D, 1, 1] -> raw descriptors */
    int descriptor_dim;          /* C, 0: the file has no descriptor head */
    int64_t parameters;          /* numbers in the file that belong to the network */
    size_t weight_bytes;         /* packed */
    uint64_t fingerprint;        /* FNV-1a64 of conv4a's bias as float32: tells published files apart whatever their layout */
    char config_json[512];       /* channel plan and options */
} theo_superpoint;

/* How many tensors of the file carry a name that one of the known layouts of SuperPoint uses. */
int theo_superpoint_recognise(const theo_weights *weights);

/* Checks names, shapes, types and values, all problems reported together, and packs for `level`. bn_eps 0: by the kind of file.
 * The pages of the map are released on the way. */
theo_status theo_superpoint_load(theo_superpoint **network, const theo_weights *weights, theo_cpu level, double bn_eps,
                                 theo_error *err);
void theo_superpoint_free(theo_superpoint *network);

/* "superpoint", "superpoint-bn", "magicpoint" */
const char *theo_superpoint_kind_name(theo_superpoint_kind kind);

/* ---- the network on a plan */

typedef struct theo_superpoint_net {
    theo_tensor plane;       /* [h, w, 1] in [0, 1] */
    theo_tensor logits;      /* [h/8, w/8, 65] */
    theo_tensor scores;      /* [8(h/8), 8(w/8), 1] */
    theo_tensor raw;         /* [h/8, w/8, C] */
    theo_tensor descriptors; /* the same, L2-normalised */
} theo_superpoint_net;       /* id < 0: not recorded */

/* Records the network for an input of h x w pixels, with one of its heads or both. All of theo_superpoint_net can be read after a
 * run: they fit into memory that conv2 needs anyway. */
theo_superpoint_net theo_superpoint_record(theo_plan *plan, const theo_superpoint *network, int h, int w, bool detector,
                                           bool descriptor);

#endif
