/* plan.c - a plan's life but for recording (record.c) and running (run.c): new, placed, bound to memory, free. */
#include "base/error.h"
#include "engine/place.h"
#include "engine/plan_state.h"

theo_status theo_plan_new(theo_plan **out, theo_cpu level, theo_pool *pool, theo_error *err) {
    *out = theo_alloc(1, sizeof **out);
    if (!*out)
        return theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory for a plan");
    (*out)->level = level;
    (*out)->backend = &theo_backend_cpu;
    (*out)->pool = theo_pool_retain(pool);
    return THEO_OK;
}

void theo_plan_free(theo_plan *plan) {
    if (!plan)
        return;
    for (int i = 0; i < plan->op_count; i++)
        theo_free(plan->ops[i].name);
    theo_free(plan->ops);
    theo_free(plan->tensors);
    theo_pool_close(plan->pool);
    theo_free(plan);
}

theo_view theo_plan_view(const theo_plan *plan, int id) {
    if (id < 0)
        return (theo_view){0};
    const theo_tensor_state *t = &plan->tensors[id];
    float *data = plan->memory ? (float *)(void *)(plan->memory + plan->tensors[t->root].offset) + t->from : NULL;
    return (theo_view){.data = data, .h = t->h, .w = t->w, .c = t->c, .pitch = t->pitch};
}

theo_call theo_plan_call(const theo_plan *plan, const theo_op *op) {
    return (theo_call){
        .pool = plan->pool,
        .in = theo_plan_view(plan, op->in),
        .out = theo_plan_view(plan, op->out),
        .residual = theo_plan_view(plan, op->residual),
        .keys = theo_plan_view(plan, op->keys),
        .values = theo_plan_view(plan, op->values),
        .query_turn = theo_plan_view(plan, op->query_turn),
        .key_turn = theo_plan_view(plan, op->key_turn),
        .beside = theo_plan_view(plan, op->beside),
        .scratch = plan->memory ? plan->memory + plan->arena_bytes : NULL,
    };
}

/* ---- finish */

static void find_lifetimes(theo_plan *plan) {
    for (int i = 0; i < plan->tensor_count; i++) {
        theo_tensor_state *t = &plan->tensors[i];
        t->first = -1;
        t->last = t->is_input ? plan->op_count : -1; /* an input stays: the next run may use it again */
    }
    for (int i = 0; i < plan->op_count; i++) {
        const theo_op *op = &plan->ops[i];
        theo_tensor_state *out = &plan->tensors[op->out];
        out->first = i;
        const int touched[] = {op->in, op->residual, op->keys, op->values, op->query_turn, op->key_turn, op->beside, op->out};
        for (size_t k = 0; k < sizeof touched / sizeof *touched; k++) {
            if (touched[k] < 0)
                continue;
            theo_tensor_state *root = &plan->tensors[plan->tensors[touched[k]].root];
            root->last = i > root->last ? i : root->last;
        }
    }
    for (int i = 0; i < plan->tensor_count; i++)
        if (plan->tensors[i].is_output)
            plan->tensors[plan->tensors[i].root].last = plan->op_count;
}

static theo_status place(theo_plan *plan, theo_error *err) {
    size_t count = (size_t)plan->tensor_count;
    theo_block *blocks = theo_alloc(count, sizeof *blocks);
    int *order = theo_alloc(count, sizeof *order);
    if (blocks && order) {
        for (int i = 0; i < plan->tensor_count; i++) { /* a view has no bytes of its own */
            const theo_tensor_state *t = &plan->tensors[i];
            blocks[i] = (theo_block){.bytes = t->root == i ? t->bytes : 0, .first = t->first, .last = t->last};
        }
        plan->arena_bytes = theo_place(blocks, plan->tensor_count, order);
        for (int i = 0; i < plan->tensor_count; i++)
            plan->tensors[i].offset = blocks[i].offset;
    }
    theo_status status = blocks && order ? THEO_OK : theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory for placing a plan");
    theo_free(blocks);
    theo_free(order);
    return status;
}

theo_status theo_plan_finish(theo_plan *plan, theo_error *err) {
    if (plan->error.status != THEO_OK) {
        if (err)
            *err = plan->error;
        return plan->error.status;
    }
    find_lifetimes(plan);
    THEO_TRY(place(plan, err));
    for (int i = 0; i < plan->op_count; i++) {
        theo_op *op = &plan->ops[i];
        theo_call shapes = theo_plan_call(plan, op);
        THEO_TRY(plan->backend->prepare(op, &shapes, plan->level, err));
        if (op->scratch_bytes > plan->scratch_bytes)
            plan->scratch_bytes = op->scratch_bytes;
    }
    plan->is_finished = true;
    return THEO_OK;
}

/* ---- memory */

size_t theo_plan_arena_bytes(const theo_plan *plan) {
    return plan->arena_bytes;
}

size_t theo_plan_scratch_bytes(const theo_plan *plan) {
    return plan->scratch_bytes;
}

size_t theo_plan_memory_bytes(const theo_plan *plan) {
    return plan->arena_bytes + plan->scratch_bytes;
}

void theo_plan_bind(theo_plan *plan, void *memory) {
    plan->memory = memory;
}

float *theo_plan_data(theo_plan *plan, theo_tensor x, int *pitch) {
    theo_view view = theo_plan_view(plan, x.id);
    *pitch = (int)view.pitch;
    return view.data;
}
