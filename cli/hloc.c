#include "hloc.h"
#include "message.h"
#include <math.h>
#include <stdlib.h>

theo_status hloc_add_keypoints(theo_h5 *file, const char *name, const theo_keypoints *points, bool centered, bool half,
                               theo_error *err) {
    if (centered)
        return theo_h5_add_keypoints(file, name, points, half, err);
    float *xy = memory_new(2 * (size_t)points->count, sizeof *xy);
    for (int i = 0; i < points->count; i++) {
        /* Back to the network's pixel, which is a whole number, so that both ways to get here give the same bits. */
        xy[2 * i] = (rintf(points->xy[2 * i] / points->scale_x) + 0.5f) * points->scale_x - 0.5f;
        xy[2 * i + 1] = (rintf(points->xy[2 * i + 1] / points->scale_y) + 0.5f) * points->scale_y - 0.5f;
    }
    theo_keypoints centred = *points;
    centred.xy = xy;
    theo_status status = theo_h5_add_keypoints(file, name, &centred, half, err);
    free(xy);
    return status;
}
