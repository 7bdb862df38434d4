/* plan_op_check.h - one operation through the plan, against values computed by plain loops; bit-equal on 1, 2 and 3 threads. */
#ifndef THEO_TESTS_PLAN_OP_CHECK_H
#define THEO_TESTS_PLAN_OP_CHECK_H

#include "base/error.h"
#include "engine/plan.h"
#include "kernels/kernels.h"
#include "t.h"

static uint32_t state = 11;
static float random_float(void) { /* in (-1, 1) */
    state = state * 1664525u + 1013904223u;
    return (float)(int32_t)state * 0x1p-31f;
}

static float *random_floats(size_t n, float scale) {
    float *x = theo_alloc(n, sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = scale * random_float();
    return x;
}

/* ---- one op, run */

typedef theo_tensor (*record_fn)(theo_plan *plan, theo_tensor x, const void *context);

/* Runs the op on in [h, w, c] (tightly packed) and copies its output into out, tightly packed. */
static void run(theo_cpu level, int threads, record_fn record, const void *context, const float *in, int h, int w, int c,
                float *out) {
    theo_pool *pool;
    theo_plan *plan;
    CHECK(theo_pool_open(&pool, threads, NULL) == THEO_OK);
    CHECK(theo_plan_new(&plan, level, pool, NULL) == THEO_OK);
    theo_tensor x = theo_plan_input(plan, "x", h, w, c), y = record(plan, x, context);
    theo_plan_output(plan, y);
    theo_error err;
    theo_status status = theo_plan_finish(plan, &err);
    CHECK_MSG(status == THEO_OK, "%s", err.message);
    if (!status) {
        void *memory = theo_alloc_aligned(theo_plan_memory_bytes(plan));
        theo_plan_bind(plan, memory);
        int pitch;
        float *data = theo_plan_data(plan, x, &pitch);
        for (int i = 0; i < h * w; i++)
            memcpy(data + (size_t)i * (size_t)pitch, in + (size_t)(i * c), (size_t)c * sizeof(float));
        CHECK(theo_plan_run(plan, NULL, NULL, NULL) == THEO_OK);
        const float *made = theo_plan_data(plan, y, &pitch);
        for (int i = 0; i < y.h * y.w; i++)
            memcpy(out + (size_t)(i * y.c), made + (size_t)i * (size_t)pitch, (size_t)y.c * sizeof(float));
        theo_free_aligned(memory);
    }
    theo_plan_free(plan);
    theo_pool_close(pool);
}

/* The op on 1, 2 and 3 threads against `want`. */
static void check(const char *name, theo_cpu level, record_fn record, const void *context, const float *in, int h, int w, int c,
                  const double *want, size_t count, double tolerance) {
    float *one = theo_alloc(count, sizeof *one), *many = theo_alloc(count, sizeof *many);
    run(level, 1, record, context, in, h, w, c, one);
    double worst = 0;
    for (size_t i = 0; i < count; i++)
        worst = fmax(worst, fabs((double)one[i] - want[i]));
    CHECK_MSG(worst <= tolerance, "%s at %s: off by %g", name, theo_cpu_name(level), worst);
    for (int threads = 2; threads <= 3; threads++) {
        run(level, threads, record, context, in, h, w, c, many);
        CHECK_MSG(memcmp(one, many, count * sizeof *one) == 0, "%s at %s, %d threads", name, theo_cpu_name(level), threads);
    }
    theo_free(one);
    theo_free(many);
}

#endif
