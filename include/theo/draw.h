/* draw.h - pictures of results that a person likes to look at. See theo.h for the rules that hold everywhere. */
#ifndef THEO_DRAW_H
#define THEO_DRAW_H

#include <theo/theo.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Photo (any U8 kind, gray or colour) with its keypoints: antialiased rings whose colour and size rise with the rank of the
 * score, over a slightly dimmed photo. Gives a new RGB U8 image of the photo's size. */
THEO_API theo_status theo_draw_keypoints(theo_image **out, const theo_image *image, const theo_keypoints *keypoints,
                                         theo_error *err);

/* Two photos side by side (the shorter one padded) with lines between matched points: coloured by position so that neighbouring
 * lines can be told apart; outliers (inliers[i] == 0) thin and faint below the inliers. pairs [count, 2]; inliers [count] or NULL
 * = all inliers. */
THEO_API theo_status theo_draw_matches(theo_image **out, const theo_image *a, const theo_image *b, const float *xy_a,
                                       const float *xy_b, const int32_t *pairs, const uint8_t *inliers, int count,
                                       theo_error *err);

#ifdef __cplusplus
}
#endif
#endif
