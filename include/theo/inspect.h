/* inspect.h - look inside: plans, times per operation, synthetic checkpoints, the machine's peak. See theo.h for the rules. */
#ifndef THEO_INSPECT_H
#define THEO_INSPECT_H

#include <theo/theo.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One operation of a plan. Strings live as long as the report. */
typedef struct theo_op_report {
    const char *name;                  /* layer, such as "conv1a+conv1b+pool" */
    const char *kind;                  /* operation, such as "conv3x3 winograd" */
    int64_t in_shape[4], out_shape[4]; /* N, H, W, C */
    int runs;                          /* for one result: 2 where each of two photos goes through it */
    double flops;                      /* of the direct form, of one run */
    size_t weight_bytes, in_bytes, out_bytes;
    size_t arena_offset;    /* of the output */
    double last_ms, min_ms; /* of the runs so far, each; 0 before the first */
} theo_op_report;

typedef struct theo_plan_report {
    int count;
    const theo_op_report *ops;
    size_t arena_bytes, scratch_bytes;
    double flops; /* of one result */
} theo_plan_report;

/* The plan for an input of that size (made if need be); width, height and tokens as theo_session_prepare takes them. */
THEO_API theo_status theo_session_plan(theo_session *session, int width, int height, int tokens, theo_plan_report **report,
                                       theo_error *err);
THEO_API void theo_plan_report_free(theo_plan_report *report);

/* Fused multiply-add peak of this machine in GFLOP/s (float32) on `threads` threads at the CPU level in use, measured for about
 * 50 ms. */
THEO_API double theo_measure_peak_gflops(int threads);

/* Name of the CPU level whose kernels are in use, honouring THEO_CPU: "c", "avx2", "avx512" or "neon" (a machine that can do more
 * than there are kernels for uses the best there are). Static storage. */
THEO_API const char *theo_cpu_level(void);

/* Allocations made by the library so far in this process (all threads): a steady session adds none. */
THEO_API uint64_t theo_allocation_count(void);

/* Writes a checkpoint of formula weights (golden README, "Generator") in the published layout of `name`; the ending of `path`
 * (.safetensors, .pt, .pth) chooses the container. config_json: the `config` object of a golden case, or NULL for the published
 * one. */
THEO_API theo_status theo_synthesize(const char *name, const char *config_json, const char *path, theo_error *err);

#ifdef __cplusplus
}
#endif
#endif
