/* describe.c - plans as a report: one block of memory that holds the report, its ops and their names. */
#include "base/error.h"
#include "engine/plan_state.h"
#include <string.h>

static void fill_shape(int64_t shape[4], theo_view view) {
    shape[0] = 1;
    shape[1] = view.h;
    shape[2] = view.w;
    shape[3] = view.c;
}

static size_t packed_bytes(const theo_packed *weight) {
    return weight ? theo_packed_bytes(weight) : 0;
}

static size_t view_bytes(theo_view view) {
    return sizeof(float) * (size_t)view.h * (size_t)view.w * (size_t)view.c;
}

static theo_op_report report_op(const theo_plan *plan, const theo_op *op, const char *name) {
    theo_call call = theo_plan_call(plan, op);
    theo_op_report r = {
        .name = name,
        .kind = op->method,
        .flops = op->flops,
        .weight_bytes = packed_bytes(op->layer.weight) + packed_bytes(op->first.weight),
        .in_bytes = view_bytes(call.in) + view_bytes(call.residual),
        .out_bytes = view_bytes(call.out),
        .arena_offset = plan->tensors[op->out].offset,
        .last_ms = op->last_ms,
        .min_ms = op->min_ms,
    };
    fill_shape(r.in_shape, call.in);
    fill_shape(r.out_shape, call.out);
    return r;
}

static size_t at_least(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Appends the ops of a part; the place after their names. */
static char *add_part(theo_plan_report *report, theo_op_report *ops, char *name, const theo_plan_part *part) {
    const theo_plan *plan = part->plan;
    for (int i = 0; i < plan->op_count; i++) {
        size_t bytes = strlen(plan->ops[i].name) + 1;
        theo_op_report *op = &ops[report->count++];
        *op = report_op(plan, &plan->ops[i], memcpy(name, plan->ops[i].name, bytes));
        op->runs = part->runs;
        report->flops += op->flops * part->runs;
        name += bytes;
    }
    report->arena_bytes = at_least(report->arena_bytes, plan->arena_bytes);
    report->scratch_bytes = at_least(report->scratch_bytes, plan->scratch_bytes);
    return name;
}

theo_status theo_plan_describe(const theo_plan_part *parts, int count, theo_plan_report **out, theo_error *err) {
    *out = NULL;
    size_t ops_bytes = 0, names_bytes = 0;
    for (int p = 0; p < count; p++) {
        ops_bytes += sizeof(theo_op_report) * (size_t)parts[p].plan->op_count;
        for (int i = 0; i < parts[p].plan->op_count; i++)
            names_bytes += strlen(parts[p].plan->ops[i].name) + 1;
    }
    theo_plan_report *report = theo_alloc(sizeof *report + ops_bytes + names_bytes, 1);
    if (!report)
        return theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory for the report of a plan");

    theo_op_report *ops = (theo_op_report *)(report + 1);
    char *name = (char *)ops + ops_bytes;
    *report = (theo_plan_report){.ops = ops};
    for (int p = 0; p < count; p++)
        name = add_part(report, ops, name, &parts[p]);
    *out = report;
    return THEO_OK;
}

void theo_plan_report_free(theo_plan_report *report) {
    theo_free(report);
}
