/* dpt.h - the dense prediction head of DUSt3R: four feature maps of a transformer fused from coarse to fine (DPT, Ranftl et al.,
 * arXiv:2103.13413). */
#ifndef THEO_MODELS_DPT_H
#define THEO_MODELS_DPT_H

#include "engine/plan.h"
#include "models/gather.h"

enum { THEO_DPT_TAPS = 4 };

/* x + second(relu(first(relu(x)))) */
typedef struct theo_dpt_unit {
    theo_packed *first, *second; /* [F, F, 3, 3] */
} theo_dpt_unit;

/* enlarge(out(unit2(below + unit1(skip)))): the 1x1 convolution first, which gives the same with a quarter of the work. */
typedef struct theo_dpt_fusion {
    theo_dpt_unit unit1; /* NULL where nothing is skipped to: the coarsest */
    theo_dpt_unit unit2;
    theo_packed *out; /* [F, F, 1, 1] */
} theo_dpt_fusion;

/* Weights. D: layer_dims; F: feature_dim; L: last_dims. */
typedef struct theo_dpt {
    int tap_dims[THEO_DPT_TAPS], layer_dims[THEO_DPT_TAPS], feature_dim, last_dims[2];
    theo_packed *project[THEO_DPT_TAPS]; /* [D, C, 1, 1] */
    theo_packed *resize[THEO_DPT_TAPS];  /* [D, D, 4, 4] and [D, D, 2, 2] transposed, NULL, [D, D, 3, 3] with stride 2 */
    theo_packed *layer[THEO_DPT_TAPS];   /* [F, D, 3, 3], no bias */
    theo_dpt_fusion fusion[THEO_DPT_TAPS];
    theo_packed *head[3]; /* [L0, F, 3, 3] [L1, L0, 3, 3] [4, L1, 1, 1] */
} theo_dpt;

/* Finds the tensors under g's prefix ("downstream_head1.dpt."), taking the widths from them. tap_dims: channels of the taps. */
void theo_dpt_gather(theo_dpt *dpt, const theo_gather *g, const int tap_dims[THEO_DPT_TAPS]);
/* Calls visit for every packed layer, NULL ones too. */
void theo_dpt_visit(const theo_dpt *dpt, theo_packed_visitor visit, void *context);

/* Stages by name, for tests. */
typedef void (*theo_dpt_trace_fn)(void *context, const char *stage, theo_tensor x);

/* taps: [rows, columns, C] each. Returns [16 rows, 16 columns, 4]. trace may be NULL; with one, stages are kept to the end of the
 * run. */
theo_tensor theo_dpt_record(theo_plan *plan, const theo_dpt *dpt, const char *name, const theo_tensor taps[THEO_DPT_TAPS],
                            theo_dpt_trace_fn trace, void *context);

#endif
