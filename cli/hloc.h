/* hloc.h - keypoints in the coordinates of Hierarchical-Localization: pixel centres, whatever the other outputs use. */
#ifndef THEO_CLI_HLOC_H
#define THEO_CLI_HLOC_H

#include <theo/files.h>

/* Adds the group `name` with coordinates (x + 0.5)*W0/W - 0.5; `centered` says that those of `points` are such already. */
theo_status hloc_add_keypoints(theo_h5 *file, const char *name, const theo_keypoints *points, bool centered, bool half,
                               theo_error *err);

#endif
