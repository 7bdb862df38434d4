/* moge2_run.h - MoGe-2 at work: plans for the grids it meets, one photo through the network, its maps at the photo's size. */
#ifndef THEO_MODELS_MOGE2_RUN_H
#define THEO_MODELS_MOGE2_RUN_H

#include "models/moge2.h"
#include "models/moge2_input.h"

typedef struct theo_moge2_runner theo_moge2_runner;

typedef struct theo_moge2_runner_options {
    theo_cpu level;
    theo_pool *pool;
    theo_progress_fn progress; /* may be NULL */
    void *progress_user;
} theo_moge2_runner_options;

theo_status theo_moge2_runner_new(theo_moge2_runner **runner, const theo_moge2 *network, const theo_moge2_runner_options *options,
                                  theo_error *err);
void theo_moge2_runner_free(theo_moge2_runner *runner);

/* Makes the plan for that grid, if it is not among the last four, and its memory. heads: bits 1 << theo_moge2_head. */
theo_status theo_moge2_prepare(theo_moge2_runner *runner, int rows, int columns, unsigned heads, const theo_plan **plan,
                               theo_error *err);

/* The network on a photo. Heads that the network lacks are left out. The raw maps stay until the next run. */
theo_status theo_moge2_run(theo_moge2_runner *runner, const theo_image *image, bool bgr, const theo_moge_frame *frame,
                           unsigned heads, theo_error *err);
/* The same on a normalised picture [3, 14 rows, 14 columns]. */
theo_status theo_moge2_run_planes(theo_moge2_runner *runner, const float *planes, int rows, int columns, double aspect,
                                  unsigned heads, theo_error *err);

/* exp of the scale head; 1 without one. */
float theo_moge2_metric_scale(const theo_moge2_runner *runner);

/* A head's raw map as planes [c, 16 rows, 16 columns]. */
void theo_moge2_raw_map(const theo_moge2_runner *runner, theo_moge2_head head, float *out);

/* Maps at the photo's size; NULL: not wanted (of a head that was run). */
typedef struct theo_moge2_maps {
    float *points; /* [height, width, 3], affine: unit scale, unknown shift along z */
    float *normal; /* [height, width, 3], of length 1 */
    float *mask;   /* [height, width], 0 to 1 */
} theo_moge2_maps;

/* Each raw map sampled once at every pixel of the photo (plain bilinear), then its non-linearity. */
theo_status theo_moge2_sample(theo_moge2_runner *runner, const theo_moge_frame *frame, const theo_moge2_maps *maps,
                              theo_error *err);
/* The samples before the non-linearity, [height, width, c]: for tests. */
theo_status theo_moge2_sample_raw(theo_moge2_runner *runner, const theo_moge_frame *frame, theo_moge2_head head, float *out,
                                  theo_error *err);

/* Milliseconds of the last run. */
double theo_moge2_preprocess_ms(const theo_moge2_runner *runner);
double theo_moge2_forward_ms(const theo_moge2_runner *runner);

#endif
