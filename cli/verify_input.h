/* verify_input.h - what theo verify gives to the network: photos by the options of the reference, or the reference's own input.
 */
#ifndef THEO_CLI_VERIFY_INPUT_H
#define THEO_CLI_VERIFY_INPUT_H

#include "common.h"
#include <theo/depth.h>
#include <theo/files.h>
#include <theo/pair.h>

/* The reference, and the photos after it on the command line. */
typedef struct verify_source {
    const arguments *args;
    const theo_arrays *reference;
    const engine *opened;
} verify_source;

/* Value of a key in the reference's metadata, or NULL. */
const char *verify_metadata(const theo_arrays *reference, const char *key);

/* Keypoints: the plane [height, width]. */
typedef struct verify_plane {
    const float *data;
    int width, height;
    float *made; /* released by verify_plane_free; NULL: the plane is the reference's */
} verify_plane;

/* EXIT_DONE, or the exit code after saying what is wrong. */
int verify_plane_get(verify_plane *plane, const verify_source *source);
void verify_plane_free(verify_plane *plane);

/* Depth: the picture. */
typedef struct verify_picture {
    theo_geometry_input input;
    bool is_made; /* from a photo */
} verify_picture;

int verify_picture_get(verify_picture *picture, const verify_source *source);
void verify_picture_free(verify_picture *picture);

/* Pairs: the planes of both views. */
typedef struct verify_views {
    theo_pair_planes views[2];
    bool is_made; /* from photos */
} verify_views;

int verify_views_get(verify_views *views, const verify_source *source);
void verify_views_free(verify_views *views);

#endif
