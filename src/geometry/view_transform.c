/* view_transform.c - the axes of a scene seen from one of its cameras. */
#include "base/error.h"
#include "geometry/linalg.h"

#include <theo/export.h>

/* diag(1,-1,-1) rotY(180 degrees) = diag(-1,-1,1), which is its own inverse: the inverse of the camera, then two signs. */
theo_status theo_glb_transform_from_view(double transform[16], const double camera_to_world[16], theo_error *err) {
    static const double sign[3] = {-1, -1, 1};
    double forward[9], inverse[9];
    for (int i = 0; i < 9; i++)
        forward[i] = camera_to_world[4 * (i / 3) + i % 3];
    if (!theo_mat3_invert(inverse, forward))
        return theo_fail(err, THEO_ARGUMENT, NULL, "camera_to_world", "has no inverse");
    for (int row = 0; row < 3; row++) {
        double shift = 0;
        for (int k = 0; k < 3; k++) {
            transform[4 * row + k] = sign[row] * inverse[3 * row + k];
            shift -= inverse[3 * row + k] * camera_to_world[4 * k + 3];
        }
        transform[4 * row + 3] = sign[row] * shift;
        transform[12 + row] = 0;
    }
    transform[15] = 1;
    return THEO_OK;
}
