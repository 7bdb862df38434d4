/* op.h - one operation of a plan: what is computed (recorded by the model, the same for every backend), and how (chosen by the
 * backend).
 *
 * The seam for other backends is theo_backend: `prepare` looks at each recorded op once and chooses how to compute it; what it
 * left in `run` is called with the addresses of the maps, once a run. */
#ifndef THEO_ENGINE_OP_H
#define THEO_ENGINE_OP_H

#include "engine/plan.h"
#include "kernels/kernels.h"

/* A map in memory: pixel (y, x) has its c values at data + (y * w + x) * pitch; pitch >= c. */
typedef struct theo_view {
    float *data;
    int h, w, c;
    size_t pitch;
} theo_view;

typedef enum theo_op_kind {
    THEO_OP_CONV,      /* 3x3 */
    THEO_OP_CONV_CONV, /* two 3x3 with nothing stored between them */
    THEO_OP_LINEAR,    /* 1x1 convolution, rows of tokens, or a transposed convolution */
    THEO_OP_MAX_POOL2,
    THEO_OP_CELL_SOFTMAX,
    THEO_OP_L2_NORM,
    THEO_OP_LAYER_NORM, /* epilogue's scale and shift: gamma and beta */
    THEO_OP_ATTENTION,
    THEO_OP_PATCHES,
    THEO_OP_EMBED, /* a linear layer that leaves row 0 of its output to the table */
    THEO_OP_PIXEL_SHUFFLE2,
    THEO_OP_UPSAMPLE2_CORNERS,
    THEO_OP_RESIZE_CONV_LINEAR, /* in strips */
    THEO_OP_GROUP_NORM,         /* epilogue's scale and shift: gamma and beta */
    THEO_OP_NONLINEAR
} theo_op_kind;

/* One convolution or linear layer as it was recorded. */
typedef struct theo_layer {
    const theo_packed *weight;
    theo_channel_epilogue epilogue; /* bias: the packed weight's */
    bool pool2;
} theo_layer;

/* Addresses for one call. Nothing overlaps. */
typedef struct theo_call {
    theo_pool *pool;
    theo_view in, out, residual;    /* residual.data == NULL: none; else of the shape before pooling */
    theo_view keys, values;         /* ATTENTION: of `in`, the queries */
    theo_view query_turn, key_turn; /* ATTENTION: data == NULL: no positions */
    theo_view beside;               /* RESIZE_CONV_LINEAR: channels behind those of `in`. data == NULL: none */
    void *scratch;                  /* as many bytes as the op asked for, 64-byte aligned, contents undefined */
} theo_call;

typedef struct theo_op theo_op;

struct theo_op {
    /* recorded */
    theo_op_kind kind;
    char *name;
    int in, out, residual;    /* tensors of the plan; < 0: none */
    int keys, values;         /* ATTENTION */
    int query_turn, key_turn; /* ATTENTION: < 0: no positions */
    int beside;               /* RESIZE_CONV_LINEAR: < 0: nothing */
    theo_layer layer;         /* CONV, LINEAR, the last of CONV_CONV and RESIZE_CONV_LINEAR */
    theo_layer first;         /* the convolution before it */
    int stride;               /* CONV: 1 or 2 */
    theo_padding padding;     /* CONV, RESIZE_CONV_LINEAR */
    bool relu_input;          /* CONV */
    bool align_corners;       /* RESIZE_CONV_LINEAR */
    theo_nonlinearity f;      /* GROUP_NORM, NONLINEAR */
    int size;                 /* ATTENTION: heads; PATCHES: pixels a side; GROUP_NORM: groups */
    float eps;                /* LAYER_NORM, GROUP_NORM */
    const float *table;       /* EMBED: [1 + rows, out_c] */
    double flops;             /* of the direct form */

    /* chosen by the backend */
    const char *method; /* for reports, such as "conv3x3 winograd". Static storage */
    const theo_kernels *kernels;
    size_t scratch_bytes; /* of all threads together */
    void (*run)(const theo_op *op, const theo_call *call);

    /* measured */
    double last_ms, min_ms;
    int64_t runs;
};

typedef struct theo_backend {
    const char *name;
    /* Fills the chosen part of the op. `call` has the shapes and pitches; all addresses are NULL. */
    theo_status (*prepare)(theo_op *op, const theo_call *call, theo_cpu level, theo_error *err);
} theo_backend;

extern const theo_backend theo_backend_cpu;

#endif
