#include "plan_table.h"
#include <stdio.h>

/* "480x640x64" (the leading 1 of N is left out) into text[64]. */
static const char *shape_text(char *text, const int64_t shape[4]) {
    snprintf(text, 64, "%lldx%lldx%lld", (long long)shape[1], (long long)shape[2], (long long)shape[3]);
    return text;
}

void plan_print(const theo_plan_report *plan, bool times) {
    char in[64], out[64];
    printf("%-30s %-26s %14s %14s %5s %9s", "operation", "kind", "in HxWxC", "out HxWxC", "times", "MFLOP");
    if (times)
        printf(" %9s %9s\n", "least ms", "GFLOP/s");
    else
        printf(" %10s %10s %10s\n", "weights", "out bytes", "at");
    double sum = 0;
    for (int i = 0; i < plan->count; i++) {
        const theo_op_report *op = &plan->ops[i];
        printf("%-30s %-26s %14s %14s %5d %9.1f", op->name, op->kind, shape_text(in, op->in_shape),
               shape_text(out, op->out_shape), op->runs, op->flops / 1e6);
        if (times)
            printf(" %9.3f %9.1f\n", op->min_ms, op->min_ms > 0 ? op->flops / op->min_ms / 1e6 : 0.0);
        else
            printf(" %10zu %10zu %10zu\n", op->weight_bytes, op->out_bytes, op->arena_offset);
        sum += op->runs * op->min_ms;
    }
    if (times)
        printf("all: %.2f GFLOP, %.3f ms, %.1f GFLOP/s\n", plan->flops / 1e9, sum, sum > 0 ? plan->flops / sum / 1e6 : 0.0);
    else
        printf("all: %.2f GFLOP, arena %.1f MiB, scratch %.1f MiB\n", plan->flops / 1e9, (double)plan->arena_bytes / 1048576,
               (double)plan->scratch_bytes / 1048576);
}

static void member_shape(json_out *json, const char *key, const int64_t shape[4]) {
    json_key(json, key);
    json_open(json, '[');
    for (int i = 0; i < 4; i++)
        json_int(json, shape[i]);
    json_close(json, ']');
}

void json_member_plan(json_out *json, const theo_plan_report *plan) {
    json_key(json, "plan");
    json_open(json, '{');
    json_key(json, "ops");
    json_open(json, '[');
    for (int i = 0; i < plan->count; i++) {
        const theo_op_report *op = &plan->ops[i];
        json_open(json, '{');
        json_member_string(json, "name", op->name);
        json_member_string(json, "kind", op->kind);
        member_shape(json, "in", op->in_shape);
        member_shape(json, "out", op->out_shape);
        json_member_int(json, "runs", op->runs);
        json_member_double(json, "flops", op->flops);
        json_member_int(json, "weight_bytes", (int64_t)op->weight_bytes);
        json_member_int(json, "in_bytes", (int64_t)op->in_bytes);
        json_member_int(json, "out_bytes", (int64_t)op->out_bytes);
        json_member_int(json, "arena_offset", (int64_t)op->arena_offset);
        json_member_double(json, "min_ms", op->min_ms);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_member_int(json, "arena_bytes", (int64_t)plan->arena_bytes);
    json_member_int(json, "scratch_bytes", (int64_t)plan->scratch_bytes);
    json_member_double(json, "flops", plan->flops);
    json_close(json, '}');
}
