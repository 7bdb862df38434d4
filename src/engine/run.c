/* run.c - the ops in order. */
#include "base/clock.h"
#include "base/error.h"
#include "engine/plan_state.h"

/* Under AddressSanitizer the parts of the arena that hold no living tensor are poisoned, so that an op that reads what nobody
 * wrote, or writes beside its output, is caught. */
#if defined(__SANITIZE_ADDRESS__)
#define POISONING 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONING 1
#endif
#endif

#ifdef POISONING

#include <sanitizer/asan_interface.h>

static void poison_tensor(const theo_plan *plan, int id) {
    __asan_poison_memory_region(plan->memory + plan->tensors[id].offset, plan->tensors[id].bytes);
}

static void unpoison_tensor(const theo_plan *plan, int id) {
    __asan_unpoison_memory_region(plan->memory + plan->tensors[id].offset, plan->tensors[id].bytes);
}

static void poison_begin(const theo_plan *plan) {
    __asan_poison_memory_region(plan->memory, plan->arena_bytes);
    for (int i = 0; i < plan->tensor_count; i++)
        if (plan->tensors[i].is_input)
            unpoison_tensor(plan, i);
}

static void poison_dead(const theo_plan *plan, int op) {
    for (int i = 0; i < plan->tensor_count; i++)
        if (plan->tensors[i].root == i && plan->tensors[i].last == op)
            poison_tensor(plan, i);
}

static void poison_end(const theo_plan *plan) { /* the memory may serve another plan */
    __asan_unpoison_memory_region(plan->memory, plan->arena_bytes);
}

#else

static void unpoison_tensor(const theo_plan *plan, int id) {
    (void)plan, (void)id;
}
static void poison_begin(const theo_plan *plan) {
    (void)plan;
}
static void poison_dead(const theo_plan *plan, int op) {
    (void)plan, (void)op;
}
static void poison_end(const theo_plan *plan) {
    (void)plan;
}

#endif

static void run_op(const theo_plan *plan, theo_op *op) {
    theo_call call = theo_plan_call(plan, op);
    double start = theo_clock_ms();
    op->run(op, &call);
    op->last_ms = theo_clock_ms() - start;
    if (op->runs++ == 0 || op->last_ms < op->min_ms)
        op->min_ms = op->last_ms;
}

/* What an op takes of the progress: its arithmetic, and a little for each byte so that nothing counts for nothing. */
static double share_of(const theo_plan *plan, const theo_op *op) {
    return op->flops + (double)plan->tensors[op->out].bytes;
}

theo_status theo_plan_run(theo_plan *plan, theo_progress_fn progress, void *user, theo_error *err) {
    if (!plan->is_finished || !plan->memory)
        return theo_fail(err, THEO_INTERNAL, NULL, NULL, "the plan is not %s",
                         plan->is_finished ? "bound to memory" : "finished");
    double all = 0, done = 0;
    for (int i = 0; i < plan->op_count; i++)
        all += share_of(plan, &plan->ops[i]);

    theo_status status = THEO_OK;
    poison_begin(plan);
    for (int i = 0; i < plan->op_count && status == THEO_OK; i++) {
        theo_op *op = &plan->ops[i];
        unpoison_tensor(plan, op->out);
        run_op(plan, op);
        poison_dead(plan, i);
        done += share_of(plan, op);
        if (progress && progress(user, done / all))
            status =
                theo_fail(err, THEO_CANCELLED, NULL, NULL, "cancelled after %s, step %d of %d", op->name, i + 1, plan->op_count);
    }
    poison_end(plan);
    return status;
}
