/* superpoint_run.h - SuperPoint on whole photos: plans for the sizes in use, tiles for big ones, selection and sampling. */
#ifndef THEO_MODELS_SUPERPOINT_RUN_H
#define THEO_MODELS_SUPERPOINT_RUN_H

#include "geometry/select.h"
#include "models/superpoint.h"

/* What a run computes, ored together: a plan is recorded for each combination in use. */
enum { THEO_SUPERPOINT_DETECTOR = 1, THEO_SUPERPOINT_DESCRIPTOR = 2 };

typedef struct theo_superpoint_runner theo_superpoint_runner;

typedef struct theo_superpoint_runner_options {
    theo_cpu level;
    theo_pool *pool;
    int64_t tile_pixels;       /* 0 = never tile */
    theo_progress_fn progress; /* may be NULL */
    void *progress_user;
} theo_superpoint_runner_options;

theo_status theo_superpoint_runner_new(theo_superpoint_runner **runner, const theo_superpoint *network,
                                       const theo_superpoint_runner_options *options, theo_error *err);
void theo_superpoint_runner_free(theo_superpoint_runner *runner);

/* The plan of an input of that size (of its first window where it is tiled) and the memory for it, made now instead of in the
 * first run. The last four sizes are kept. plan may be NULL; it lives until the runner's next call. */
theo_status theo_superpoint_prepare(theo_superpoint_runner *runner, int width, int height, const theo_plan **plan,
                                    theo_error *err);
/* Bytes that a run of that size needs: activations, scratch, and what tiling keeps of the score map. Allocates none of it. */
theo_status theo_superpoint_memory(theo_superpoint_runner *runner, int width, int height, size_t *bytes, theo_error *err);

/* ---- one photo: set, then detect or describe or both. Results live in the runner until its next call. */

/* Makes `image` the runner's picture, which must stay until the run's end. The network's input size goes to *width, *height. */
theo_status theo_superpoint_set_image(theo_superpoint_runner *runner, const theo_image *image, const theo_detect_options *options,
                                      int *width, int *height, theo_error *err);

/* Selected points, in pixels of the network's input. options->descriptors tells that theo_superpoint_describe will follow. */
theo_status theo_superpoint_detect(theo_superpoint_runner *runner, const theo_detect_options *options,
                                   const theo_selected **points, int *count, theo_error *err);

/* At xy[count, 2] (pixels of the network's input): descriptors[count, C], and the scores[count] of the nearest pixels, 0 outside
 * of the map. Either may be NULL. A picture of one window is not run again after theo_superpoint_detect. */
theo_status theo_superpoint_describe(theo_superpoint_runner *runner, theo_sampling rule, const float *xy, int count,
                                     float *descriptors, float *scores, theo_error *err);

/* Stage times since theo_superpoint_set_image or theo_superpoint_forward began; total is up to now. */
theo_timing theo_superpoint_timing(const theo_superpoint_runner *runner);

/* ---- a plane, exactly as given, never tiled */

typedef struct theo_superpoint_outputs {
    int cells_x, cells_y;
    const float *scores;                            /* [8 cells_y, 8 cells_x] */
    const float *logits, *raw, *descriptors;        /* [cells_y, cells_x, channels] */
    int logits_pitch, raw_pitch, descriptors_pitch; /* floats from a cell to the next */
} theo_superpoint_outputs;                          /* pointers of parts that were not run are NULL */

theo_status theo_superpoint_forward(theo_superpoint_runner *runner, const float *plane, int width, int height, unsigned parts,
                                    theo_superpoint_outputs *outputs, theo_error *err);

#endif
