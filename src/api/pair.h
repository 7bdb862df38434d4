/* pair.h - DUSt3R within a session: photos made ready, decoded in pairs, and what becomes of the maps. */
#ifndef THEO_API_PAIR_H
#define THEO_API_PAIR_H

#include "api/model.h"
#include "models/dust3r_input.h"
#include <theo/pair.h>

enum { THEO_PAIR_VIEWS = THEO_DUST3R_VIEWS, THEO_PAIR_MAX_SIDE = 4096 /* of a grid, in pixels */ };

/* A photo as the network reads it, and what the encoder made of it. */
typedef struct theo_pair_photo {
    theo_scratch memory; /* of both arrays */
    theo_dust3r_frame frame;
    theo_dust3r_features features;
    uint8_t *rgb; /* [net_height, net_width, 3] */
    double preprocess_ms, encode_ms;
} theo_pair_photo; /* starts zeroed */

/* Where the plan that runs stands within the whole call. */
typedef struct theo_pair_progress {
    theo_progress_fn tell; /* may be NULL */
    void *user;
    double begin, share, total; /* of the running plan, and of all, in arbitrary units */
} theo_pair_progress;

enum { THEO_PAIR_ENCODE = 9, THEO_PAIR_DECODE = 14 }; /* about what encoding a view and decoding a pair cost of each other */

void theo_pair_progress_begin(theo_pair_progress *progress, int total);
/* The next plan is of that cost. */
void theo_pair_progress_step(theo_pair_progress *progress, int share);
/* theo_progress_fn of the runner; user: the progress. */
int theo_pair_progress_tell(void *user, double done);

/* Of a session. */
struct theo_pair_state {
    theo_dust3r_runner *runner;
    theo_pair_progress progress;
    theo_dust3r_input input;
    theo_pair_photo photos[THEO_PAIR_VIEWS]; /* of the last single call */
    theo_scratch swapped;                    /* maps of the order (2, 1) that only the pose needs */
    theo_scratch votes;                      /* for the focal length of view 1 */
};

/* The caller's options, checked. */
theo_status theo_pair_options_take(theo_pair_options *out, const theo_pair_options *given, theo_error *err);
/* The same for a call of the network: long_side is then set. */
theo_status theo_pair_options_of(theo_pair_options *out, const theo_pair_options *given, const theo_model *model,
                                 theo_error *err);
/* Where a photo lies on the grid. `name` stands in errors. */
theo_status theo_pair_frame_of(theo_dust3r_frame *frame, const theo_image *image, const char *name,
                               const theo_pair_options *options, theo_error *err);
theo_pair_record theo_pair_record_of(const theo_dust3r_frame *frame);

/* Prepares and encodes. `name` stands in errors. */
theo_status theo_pair_photo_make(theo_pair_photo *photo, theo_session *session, const theo_image *image, const char *name,
                                 const theo_pair_options *options, theo_error *err);
void theo_pair_photo_free(theo_pair_photo *photo);

/* Work of a call that encodes so many photos, for its progress. */
int theo_pair_work(int encodes, const theo_pair_options *options);

/* Decodes two photos, which may be the same one, and fills a result. Its total is that of the call alone: without the photos'. */
theo_status theo_pair_make(theo_session *session, const theo_pair_photo *const photos[THEO_PAIR_VIEWS],
                           const theo_pair_options *options, theo_pair **pair, theo_error *err);

/* Maps of a result that is in the making. */
typedef struct theo_pair_writable {
    float *points, *confidence;
} theo_pair_writable;

/* Cameras of the views, and the pose where it is wanted. swapped: maps of the order (2, 1), as far as the method needs them;
 * those of the edge (2, 1) replace the pair's. votes: room for 2 width height numbers of view 1. */
theo_status theo_pair_solve(theo_pair *pair, const theo_view_maps swapped[THEO_PAIR_VIEWS],
                            const theo_pair_writable writable[THEO_PAIR_VIEWS], double *votes, const theo_pair_options *options,
                            theo_error *err);

#endif
