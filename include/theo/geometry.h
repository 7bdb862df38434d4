/* geometry.h - match keypoints, fit homographies, essential matrices and camera poses, estimate focal lengths. See theo.h for the
 * rules that hold everywhere. */
#ifndef THEO_GEOMETRY_H
#define THEO_GEOMETRY_H

#include <theo/theo.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct theo_match_options {
    size_t size;
    float ratio;          /* 0 = off, else 0..1: keeps d1/d2 < ratio (distance d = sqrt(max(0, 2 - 2s))), tested from A to B */
    float min_similarity; /* keeps s > min_similarity; below -1 = off (default -2) */
    theo_pool *pool;      /* NULL = on the calling thread alone */
} theo_match_options;

THEO_API void theo_match_options_init(theo_match_options *options);

typedef struct theo_matches {
    int count;               /* M */
    const int32_t *pairs;    /* [M, 2] index into A, index into B; ascending in A */
    const float *similarity; /* [M] dot product of the two descriptors */
} theo_matches;

/* Mutual nearest neighbours of two sets of L2-normalised descriptors; equal values take the lowest index. The sets must have
 * the same descriptor_dim and come from the same model (else THEO_ARGUMENT). 0 or 1 keypoints are allowed. */
THEO_API theo_status theo_match(const theo_keypoints *a, const theo_keypoints *b, const theo_match_options *options,
                                theo_matches **matches, theo_error *err);
THEO_API void theo_matches_free(theo_matches *matches);

typedef struct theo_ransac_options {
    size_t size;
    double threshold;   /* 3 pixels */
    int max_iterations; /* 10,000 */
    double confidence;  /* 0.9999 */
    uint64_t seed;      /* fixed: the same input gives the same result */
} theo_ransac_options;

THEO_API void theo_ransac_options_init(theo_ransac_options *options);

/* Homography: xb ~ H xa, H[2][2] = 1. 4-point DLT samples with Hartley normalisation, error = distance in image B, then a
 * refinement that weighs the inliers. xy_a, xy_b: [count, 2]. inliers: [count] 0 | 1, may be NULL. *found = false with a reason
 * (static string, may be NULL) when there are fewer than 4 pairs or no model has 4 inliers. */
THEO_API theo_status theo_fit_homography(const float *xy_a, const float *xy_b, int count, const theo_ransac_options *options,
                                         double H[9], uint8_t *inliers, int *inlier_count, bool *found, const char **reason,
                                         theo_error *err);

/* Pinhole camera in pixels, OpenCV's convention: integer coordinates are pixel centres. */
typedef struct theo_intrinsics {
    double fx, fy, cx, cy;
} theo_intrinsics;

typedef struct theo_relative_pose {
    double E[9]; /* row-major, ||E|| = sqrt 2: xb^T E xa = 0 for normalised points */
    double R[9]; /* X_b = R X_a + t */
    double t[3]; /* length 1 */
    int inlier_count;
    bool found;
    const char *reason; /* static string when not found, else NULL */
} theo_relative_pose;

/* Essential matrix: 5-point samples (Nister 2004), Sampson error against threshold / mean focal length, refined on the inliers,
 * the decomposition with most points in front of both cameras. */
THEO_API theo_status theo_fit_essential(const float *xy_a, const float *xy_b, int count, const theo_intrinsics cameras[2],
                                        const theo_ransac_options *options, theo_relative_pose *pose, uint8_t *inliers,
                                        theo_error *err);

/* ---------------------------------------------------------------- cameras of point maps */

typedef struct theo_camera_pose {
    double R[9], t[3]; /* X_camera = R X + t */
    int inlier_count;
    double inlier_rms; /* pixels: root mean square of the inliers' reprojection errors */
    bool found;
    const char *reason; /* static string when not found, else NULL */
} theo_camera_pose;

/* Pose of a camera from points xyz [count, 3] and where it sees them, xy [count, 2]: samples of three points (P3P), reprojection
 * error against the threshold (NULL options: 5 pixels, 500 iterations, confidence 0.9999), then Levenberg-Marquardt on the
 * reprojection error of the inliers, begun from the pose of the best sample. Points that are not finite are passed over. Not
 * found when fewer than 4 points are left, no pose has 6 inliers, or the points or the inliers lie on a line or in one place.
 * inliers: [count] 0 | 1, may be NULL. */
THEO_API theo_status theo_fit_pose(const float *xyz, const float *xy, int count, const theo_intrinsics *camera,
                                   const theo_ransac_options *options, theo_camera_pose *pose, uint8_t *inliers, theo_error *err);

/* A map of 3-D points in the frame of the camera that sees them: points [height, width, 3], pixel (x, y) at integer coordinates.
 * The principal point is (width / 2, height / 2). */
typedef struct theo_point_map {
    int width, height;
    const float *points;
} theo_point_map;

/* Focal length in pixels by which the map is a pinhole view: the median of |(x - cx) Z / X| and |(y - cy) Z / Y| over all pixels,
 * kept within 0.2 to 8 times that of a field of view of 60 degrees. */
THEO_API theo_status theo_focal_median(const theo_point_map *map, double *focal, theo_error *err);
/* The focal length that minimises the sum of distances between the pixels and the projected points (Weiszfeld's iteration, ten
 * steps); 0 or NaN where the points do not determine it. */
THEO_API theo_status theo_focal_weiszfeld(const theo_point_map *map, double *focal, theo_error *err);

#ifdef __cplusplus
}
#endif
#endif
