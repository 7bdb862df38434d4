/* match_result.h - matches of one pair with the model that was fitted to them, and the forms in which they are written. */
#ifndef THEO_CLI_MATCH_RESULT_H
#define THEO_CLI_MATCH_RESULT_H

#include "outputs.h"
#include <theo/geometry.h>

typedef enum fit_kind { FIT_NONE = 0, FIT_HOMOGRAPHY, FIT_ESSENTIAL } fit_kind; /* the order of the words of --model-fit */

typedef struct fit_options {
    fit_kind kind;
    theo_ransac_options ransac;
    theo_intrinsics cameras[2]; /* FIT_ESSENTIAL */
} fit_options;

typedef struct match_result {
    theo_keypoints a, b; /* views, valid as long as their owner says */
    theo_matches *matches;
    fit_kind kind;
    bool found;         /* is there a model? */
    const char *reason; /* if not; static storage */
    double model[9];    /* H or E, row-major */
    double R[9], t[3];  /* FIT_ESSENTIAL: X_b = R X_a + t */
    uint8_t *inliers;   /* [matches->count], all 0 without a model; NULL for FIT_NONE */
    int inlier_count;
} match_result;

/* Matches result->a with result->b and fits. */
theo_status match_result_make(match_result *result, const theo_match_options *match, const fit_options *fit, theo_error *err);
void match_result_free(match_result *result);

/* A_B.matches.npz; A_B.matches.png of the two photos. */
theo_status match_result_npz(const match_result *result, output_files *files, bool deflate, theo_error *err);
theo_status match_result_draw(const match_result *result, const theo_image *a, const theo_image *b, output_files *files,
                              theo_error *err);

/* "num_keypoints", "matches" ... "reason" of an open JSON object. */
void json_members_match(json_out *json, const match_result *result);
/* "812 and 790 keypoints, 402 matches, homography with 310 inliers" */
char *match_result_words(const match_result *result);

#endif
