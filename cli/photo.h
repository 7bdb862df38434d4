/* photo.h - what is remembered of a decoded image for the reports, and what is said about every result of the detector. */
#ifndef THEO_CLI_PHOTO_H
#define THEO_CLI_PHOTO_H

#include "json_out.h"
#include <stdbool.h>
#include <theo/theo.h>

typedef struct photo {
    int width, height;    /* as decoded, after orientation */
    int exif_orientation; /* 0: none given */
    bool orientation_applied, truncated;
    double decode_ms;
} photo;

void photo_remember(photo *facts, const theo_image *image, double decode_ms);

/* "width": W, "height": H, "orientation": {"exif": N, "applied": B} */
void json_members_photo(json_out *json, const photo *facts);

/* Adds the warnings about this image to an open JSON list (json may be NULL) and says them on stderr if `aloud`. */
void photo_warnings(json_out *json, const photo *facts, const char *path, bool aloud);

/* Stage times of one result in milliseconds. */
typedef struct stage_times {
    double decode, match, encode; /* match: 0 where nothing is matched */
    theo_timing network;
} stage_times;

/* "timing_ms": {...}; total is the sum of the stages, which overlap with those of other images. */
void json_member_timing(json_out *json, const stage_times *times);
/* Adds the times of a second image of the same result. */
void stage_times_add(stage_times *times, double decode_ms, const theo_timing *network);
/* " (decode 3.1, preprocess ..., total 110.2 ms)" */
char *timing_summary(const stage_times *times);

#endif
