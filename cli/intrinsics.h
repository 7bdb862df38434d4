/* intrinsics.h - camera parameters from the command line. */
#ifndef THEO_CLI_INTRINSICS_H
#define THEO_CLI_INTRINSICS_H

#include <theo/geometry.h>

/* "fx,fy,cx,cy" or a file: four numbers "fx fy cx cy", or JSON with "intrinsics_pixels" (a 3x3 matrix; "pixel_center": 0.5 there
 * is taken into account). Pixels of the original image, integer coordinates are pixel centres. `option` is named in the
 * complaint. EXIT_DONE or EXIT_NOTHING. */
int intrinsics_read(theo_intrinsics *camera, const char *option, const char *text);

#endif
