/* depth_result.h - what theo depth writes of one geometry: pictures, arrays, JSON. */
#ifndef THEO_CLI_DEPTH_RESULT_H
#define THEO_CLI_DEPTH_RESULT_H

#include "outputs.h"
#include "photo.h"
#include <theo/depth.h>

/* Over the pixels that count: valid ones, or with `dense` every finite positive depth. */
typedef struct depth_facts {
    bool dense;
    size_t count;
    float min, median, max; /* not set when count is 0 */
    double png_scale;       /* metres of one step of the depth picture; 0 when count is 0 */
} depth_facts;

depth_facts depth_measure(const theo_geometry *geometry, bool dense);

/* stem.depth.png, stem.normal.png (where there are normals), stem.mask.png, stem.npz. */
theo_status depth_write_files(output_files *files, const theo_geometry *geometry, const depth_facts *facts, bool deflate,
                              theo_error *err);

/* Members "unit" to "tokens" of an open object. */
void depth_json_members(json_out *json, const theo_geometry *geometry, const depth_facts *facts, const char *fit);

#endif
