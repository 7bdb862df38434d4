/* moge_run.h - MoGe at work: plans for the grids it meets, one photo through the network, its maps at the photo's size. */
#ifndef THEO_MODELS_MOGE_RUN_H
#define THEO_MODELS_MOGE_RUN_H

#include "models/moge.h"
#include "models/moge_input.h"

typedef struct theo_moge_runner theo_moge_runner;

typedef struct theo_moge_runner_options {
    theo_cpu level;
    theo_pool *pool;
    theo_progress_fn progress; /* may be NULL */
    void *progress_user;
} theo_moge_runner_options;

theo_status theo_moge_runner_new(theo_moge_runner **runner, const theo_moge *network, const theo_moge_runner_options *options,
                                 theo_error *err);
void theo_moge_runner_free(theo_moge_runner *runner);

/* Makes the plan for that grid, if it is not among the last four, and its memory. heads: bits 1 << theo_moge_head. */
theo_status theo_moge_prepare(theo_moge_runner *runner, const theo_moge_grid *grid, unsigned heads, const theo_plan **plan,
                              theo_error *err);

/* Bytes of activations and scratch that it takes, without taking them. */
theo_status theo_moge_memory(theo_moge_runner *runner, const theo_moge_grid *grid, unsigned heads, size_t *bytes,
                             theo_error *err);

/* The network on a photo. Heads that the network lacks are left out. The raw maps stay until the next run. */
theo_status theo_moge_run(theo_moge_runner *runner, const theo_image *image, bool bgr, const theo_moge_frame *frame,
                          unsigned heads, theo_error *err);
/* The same on a normalised picture [3, 14 rows, 14 columns]; of the grid see theo_moge_grid_of_patches. */
theo_status theo_moge_run_planes(theo_moge_runner *runner, const float *planes, const theo_moge_grid *grid, double aspect,
                                 unsigned heads, theo_error *err);

/* exp of the scale head; 1 without one. */
float theo_moge_metric_scale(const theo_moge_runner *runner);

/* A head's raw map as planes [c, map_h, map_w]. */
void theo_moge_raw_map(const theo_moge_runner *runner, theo_moge_head head, float *out);

/* Maps at the photo's size; NULL: not wanted (of a head that was run). */
typedef struct theo_moge_maps {
    float *points; /* [height, width, 3], affine: unit scale, unknown shift along z */
    float *normal; /* [height, width, 3], of length 1 */
    float *mask;   /* [height, width]. MoGe-2: 0 to 1. MoGe-1: the network's own number */
} theo_moge_maps;

/* Each raw map sampled once at every pixel of the photo (plain bilinear), then its non-linearity. */
theo_status theo_moge_sample(theo_moge_runner *runner, const theo_moge_frame *frame, const theo_moge_maps *maps, theo_error *err);
/* The samples before the non-linearity, [height, width, c]: for tests. */
theo_status theo_moge_sample_raw(theo_moge_runner *runner, const theo_moge_frame *frame, theo_moge_head head, float *out,
                                 theo_error *err);

/* Milliseconds of the last run. */
double theo_moge_preprocess_ms(const theo_moge_runner *runner);
double theo_moge_forward_ms(const theo_moge_runner *runner);

#endif
