/* pair_pictures.c - maps of a pair as pictures. */
#include "base/error.h"
#include "imageio/image.h"
#include <math.h>
#include <theo/pair.h>

static size_t pixels_of(const theo_pair_view *view) {
    return (size_t)view->width * (size_t)view->height;
}

static theo_status check(theo_image **out, const theo_pair_view *view, theo_error *err) {
    if (out)
        *out = NULL;
    return out && view ? THEO_OK : theo_fail(err, THEO_ARGUMENT, NULL, out ? "view" : "picture", "is NULL");
}

theo_status theo_pair_picture_depth(theo_image **out, const theo_pair_view *view, double range[2], theo_error *err) {
    THEO_TRY(check(out, view, err));
    THEO_TRY(theo_image_make(out, view->width, view->height, 1, THEO_U16, NULL, err));
    uint16_t *values = theo_image_pixels(*out);
    double least = NAN, most = NAN;
    for (size_t i = 0; i < pixels_of(view); i++)
        if (view->mask[i] && isfinite(view->depth[i])) {
            least = fmin(least, (double)view->depth[i]); /* the number, where the other is NaN */
            most = fmax(most, (double)view->depth[i]);
        }
    const double span = most > least ? most - least : 1;
    for (size_t i = 0; i < pixels_of(view); i++) {
        const bool counts = view->mask[i] && isfinite(view->depth[i]);
        values[i] = counts ? (uint16_t)(1 + rint(65534 * ((double)view->depth[i] - least) / span)) : 0;
    }
    if (range) {
        range[0] = least;
        range[1] = most;
    }
    return THEO_OK;
}

theo_status theo_pair_picture_confidence(theo_image **out, const theo_pair_view *view, theo_error *err) {
    THEO_TRY(check(out, view, err));
    THEO_TRY(theo_image_make(out, view->width, view->height, 1, THEO_U8, NULL, err));
    uint8_t *values = theo_image_pixels(*out);
    for (size_t i = 0; i < pixels_of(view); i++) {
        const double share = 1 - 1 / (double)view->confidence[i];
        values[i] = share > 0 ? (uint8_t)rint(255 * fmin(share, 1)) : 0; /* sigmoid confidences may be below 1 */
    }
    return THEO_OK;
}
