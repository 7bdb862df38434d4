/* bench_run.h - one measured run of a model on decoded photos, for theo bench. */
#ifndef THEO_CLI_BENCH_RUN_H
#define THEO_CLI_BENCH_RUN_H

#include <stdbool.h>
#include <theo/depth.h>
#include <theo/pair.h>

/* POSTPROCESS is what follows the network: of pairs ACTIVATION and POSE together. ENCODE makes the result's text, of pairs the
 * npz archive of points and confidences in memory, of depth all files that theo depth can write. TOTAL runs from the file to
 * that, without LOAD. */
typedef enum bench_stage {
    STAGE_LOAD,
    STAGE_DECODE,
    STAGE_PREPROCESS,
    STAGE_FORWARD,
    STAGE_FORWARD_SYM, /* the order (2, 1) of a pair */
    STAGE_ACTIVATION,
    STAGE_POSE,
    STAGE_POSTPROCESS,
    STAGE_ENCODE,
    STAGE_TOTAL,
    STAGE_COUNT
} bench_stage;

typedef struct bench_times {
    double ms[STAGE_COUNT]; /* NaN: the model has no such stage */
    int width, height;      /* of the network's input; of the photo for depth, whose grid follows from it */
} bench_times;

typedef struct bench_work {
    theo_session *session;
    theo_pool *pool;
    theo_task task;
    theo_detect_options detect;     /* keypoints */
    theo_geometry_options geometry; /* depth */
    const char *folder;             /* depth: where its files go, replaced in every run */
    theo_pair_options pair;         /* pairs */
} bench_work;

/* From preprocess to encode. count: 1, for pairs also 2 (those two), or more: all pairs of so many photos, each encoded once; the
 * times are then those of one pair on average. */
theo_status bench_run(bench_times *times, const bench_work *work, theo_image *const *images, int count, theo_error *err);
/* Pairs that a run on so many photos makes. */
int bench_pairs(int count);

#endif
