/* plan_state.h - the inside of a plan, shared by record, finish, run and describe. */
#ifndef THEO_ENGINE_PLAN_STATE_H
#define THEO_ENGINE_PLAN_STATE_H

#include "engine/op.h"

typedef struct theo_tensor_state {
    int h, w, c;
    size_t pitch;         /* floats between pixels */
    int root;             /* the tensor whose memory this is: itself, or the one that a view looks into */
    size_t from;          /* floats from the root's first pixel to this one's */
    size_t bytes, offset; /* of a root, in the arena */
    int first, last;      /* of a root: the ops that write it and that read it last; an input is there from -1 on */
    bool is_input, is_output;
} theo_tensor_state;

struct theo_plan {
    theo_cpu level;
    const theo_backend *backend;
    theo_pool *pool; /* held */
    theo_tensor_state *tensors;
    int tensor_count, tensor_capacity;
    theo_op *ops;
    int op_count, op_capacity;
    theo_error error; /* the first of recording */
    bool is_finished;
    size_t arena_bytes, scratch_bytes;
    unsigned char *memory; /* lent: the arena, then the scratch */
};

/* Where a tensor lies; data is NULL while the plan is not bound, and for id < 0. */
theo_view theo_plan_view(const theo_plan *plan, int id);
/* Views and pool of an op; scratch and addresses are NULL while the plan is not bound. */
theo_call theo_plan_call(const theo_plan *plan, const theo_op *op);

#endif
