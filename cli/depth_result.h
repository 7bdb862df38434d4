/* depth_result.h - what theo depth says of one geometry in JSON. */
#ifndef THEO_CLI_DEPTH_RESULT_H
#define THEO_CLI_DEPTH_RESULT_H

#include "json_out.h"
#include <theo/depth.h>
#include <theo/export.h>

/* Over the pixels that count: valid ones, or with `dense` every finite positive depth. */
typedef struct depth_facts {
    theo_depth_map map; /* the geometry's depth with those pixels */
    int64_t count;
    float min, median, max; /* not set when count is 0 */
    double png_scale;       /* metres of one step of the depth picture; 0 when count is 0 */
} depth_facts;

theo_status depth_measure(depth_facts *facts, const theo_geometry *geometry, bool dense, theo_pool *pool, theo_error *err);

/* Members "unit" to "tokens" of an open object. */
void depth_json_members(json_out *json, const theo_geometry *geometry, const depth_facts *facts, const char *fit);

#endif
