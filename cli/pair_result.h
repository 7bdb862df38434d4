/* pair_result.h - what theo pair says of a pair, and the files that it writes of it. */
#ifndef THEO_CLI_PAIR_RESULT_H
#define THEO_CLI_PAIR_RESULT_H

#include "outputs.h"
#include <theo/pair.h>

typedef struct pair_facts {
    const theo_pair *pair;
    theo_pair_summary summary[2];
    double min_conf;
    theo_point_cloud *cloud; /* points of at least that confidence */
    bool no_surface;         /* a GLB file was written without a triangle */
    bool camera_left_out;    /* ... and without a camera that is known */
} pair_facts;

theo_status pair_measure(pair_facts *facts, const theo_pair *pair, double min_conf, theo_error *err);
void pair_facts_free(pair_facts *facts);

/* Members "unit" to "pose" of an open object. */
void pair_json_members(json_out *json, const pair_facts *facts);
/* "grids 512x512 and 512x384, confidence 5.1 and 4.2 (medians), 81234 points, rotation 43.4 deg" */
char *pair_words(const pair_facts *facts);

/* Array of pair.npz: room for 11 of them. Their number. */
int pair_arrays(theo_array arrays[11], const theo_pair *pair);

/* points.ply, pair.npz, depth1.png, depth2.png, conf1.png, conf2.png, and with `glb` pair.glb. Leaves the stem at "pair". */
theo_status pair_write_files(output_files *files, pair_facts *facts, bool deflate, bool glb, theo_error *err);

#endif
