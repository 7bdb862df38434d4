/* dust3r_run.h - DUSt3R at work: plans for the grids it meets, images to features, features of two views to points. */
#ifndef THEO_MODELS_DUST3R_RUN_H
#define THEO_MODELS_DUST3R_RUN_H

#include "models/dust3r.h"

typedef struct theo_dust3r_runner theo_dust3r_runner;

typedef struct theo_dust3r_runner_options {
    theo_cpu level;
    theo_pool *pool;
    theo_progress_fn progress; /* may be NULL */
    void *progress_user;
} theo_dust3r_runner_options;

theo_status theo_dust3r_runner_new(theo_dust3r_runner **runner, const theo_dust3r *network,
                                   const theo_dust3r_runner_options *options, theo_error *err);
void theo_dust3r_runner_free(theo_dust3r_runner *runner);

/* Makes the plans of a pair of views, if they are not among the last four of their kind, and their memory. `decoder` may be NULL,
 * or gets the decoder's plan; `encoder` likewise that of the first view. */
theo_status theo_dust3r_prepare(theo_dust3r_runner *runner, const theo_dust3r_grid grids[THEO_DUST3R_VIEWS],
                                const theo_plan **encoder, const theo_plan **decoder, theo_error *err);
/* Memory that these plans need when they run: the larger of them. Allocates no activations. */
theo_status theo_dust3r_memory(theo_dust3r_runner *runner, const theo_dust3r_grid grids[THEO_DUST3R_VIEWS], size_t *bytes,
                               theo_error *err);

/* An image as the network reads it: 16 rows x 16 columns pixels, R, G, B. One of the two forms. */
typedef struct theo_dust3r_image {
    theo_dust3r_grid grid;
    const uint8_t *bytes; /* [16 rows, 16 columns, 3]; (u / 255 - 0.5) / 0.5 is taken */
    const float *planes;  /* [3, 16 rows, 16 columns] in [-1, 1] */
} theo_dust3r_image;

/* What the encoder made of an image. The data is the caller's: room for theo_dust3r_feature_floats numbers. */
typedef struct theo_dust3r_features {
    theo_dust3r_grid grid;
    float *data; /* [rows, columns, C] */
} theo_dust3r_features;
size_t theo_dust3r_feature_floats(const theo_dust3r *network, theo_dust3r_grid grid);

/* features->data is filled, features->grid set. */
theo_status theo_dust3r_encode(theo_dust3r_runner *runner, const theo_dust3r_image *image, theo_dust3r_features *features,
                               theo_error *err);
/* Decoders and heads. wanted: bits 1 << view. The raw maps stay until the next call of encode, decode or prepare. */
theo_status theo_dust3r_decode(theo_dust3r_runner *runner, const theo_dust3r_features views[THEO_DUST3R_VIEWS], unsigned wanted,
                               theo_error *err);

/* Points [16 rows, 16 columns, 3] and confidences [16 rows, 16 columns] of a view that was wanted. */
void theo_dust3r_points(const theo_dust3r_runner *runner, int view, float *points, float *conf);
/* Its raw map as planes [4, 16 rows, 16 columns]. */
void theo_dust3r_raw_map(const theo_dust3r_runner *runner, int view, float *out);

/* Wall time of the last call. */
double theo_dust3r_last_ms(const theo_dust3r_runner *runner);

#endif
