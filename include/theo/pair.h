/* pair.h - points, confidence and relative pose from two photos: DUSt3R. See theo.h for the rules that hold everywhere,
 * docs/models/dust3r.md for what is computed.
 *
 * Frames are OpenCV's: x to the right, y downwards, z forward. The unit is the network's own: the same for everything of one
 * pair, not metres, and another one for every pair. */
#ifndef THEO_PAIR_H
#define THEO_PAIR_H

#include <theo/geometry.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- options */

/* How a photo gets onto the network's grid. pad: in the middle of a gray square. crop: the square in its middle. native: at its
 * own aspect, cut to whole patches of 16 pixels, as the published program loads images. */
typedef enum theo_pair_preprocess { THEO_PAIR_PAD = 0, THEO_PAIR_CROP, THEO_PAIR_NATIVE } theo_pair_preprocess;

/* Both run the network in the order (2, 1) as well, from the features that are there already. port: median focal lengths, PnP on
 * the most confident points of view 2. pairviewer: Weiszfeld focal lengths, PnP in the order of views that the network is surer
 * of. */
typedef enum theo_pose_method { THEO_POSE_NONE = 0, THEO_POSE_PORT, THEO_POSE_PAIRVIEWER } theo_pose_method;

enum { THEO_VIEW_1 = 1, THEO_VIEW_2 = 2 }; /* bits */

typedef struct theo_pair_options {
    size_t size;
    theo_pair_preprocess preprocess; /* pad */
    bool square_ok;                  /* false; native only, true: a square photo stays one, else it is cut to 4:3 */
    int long_side;                   /* 0 = what the network was trained with (512, 224); else a multiple of 16, 16..4096 */
    theo_pose_method pose;           /* none */
    double conf_pct;               /* 50, 0..100: PnP of port takes the most confident so many per cent of the pixels of view 2 */
    theo_intrinsics intrinsics[2]; /* of the photos, where known; fx 0: not known. Only with a pose: port needs that of view 2
                                      (that of view 1 is only reported), pairviewer takes the focal lengths of both */
    unsigned swapped; /* 0; THEO_VIEW_* ored: what the network says of these views in the order (2, 1) is wanted as well */
    bool bgr;         /* the caller's three channels are B,G,R */
} theo_pair_options;

THEO_API void theo_pair_options_init(theo_pair_options *options);

/* ---------------------------------------------------------------- results */

/* How a photo lies on the network's grid: its point (x, y) is ((x + offset_x) * scale_x, (y + offset_y) * scale_y) there. */
typedef struct theo_pair_record {
    theo_pair_preprocess preprocess;
    int image_width, image_height; /* of the photo */
    int width, height;             /* of the grid */
    double offset_x, offset_y, scale_x, scale_y;
    int square; /* pad, crop: side of the square, in pixels of the photo, that became the grid; native: 0 */
} theo_pair_record;

/* What the network says of one view. */
typedef struct theo_view_maps {
    const float *points;     /* [height, width, 3] */
    const float *confidence; /* [height, width], of the published networks at least 1 */
} theo_view_maps;

/* Points may be infinite or NaN where the network's output overflows. */
typedef struct theo_pair_view {
    int width, height;       /* of every map: multiples of 16 */
    const float *points;     /* [height, width, 3] in camera 1's frame */
    const float *confidence; /* [height, width] */
    const float *depth;      /* [height, width] z of the points */
    const uint8_t *rgb;      /* [height, width, 3] what the network saw */
    const uint8_t *mask;     /* [height, width] 1 where that was the photo, 0 where it was border */
    theo_pair_record record;
    /* The camera, principal point in the middle of the grid unless given: of view 1 always estimated, of view 2 only with a pose.
     * The unknown one is NaN. */
    theo_intrinsics intrinsics;       /* on the grid */
    theo_intrinsics intrinsics_photo; /* of the photo */
} theo_pair_view;

typedef struct theo_pose {
    theo_pose_method method; /* that was asked for */
    bool found;
    const char *reason; /* static string when not found, else NULL */
    double R[9], t[3];  /* X_cam2 = R X_cam1 + t, in the unit of the points */
    double focals[2];   /* in pixels of the grids; NaN where the points determine none */
    int inlier_count;
    int edge[2]; /* pairviewer: {1, 2} or {2, 1}, the order of views whose points it is of; else {0, 0} */
} theo_pose;

/* Wall time in milliseconds. */
typedef struct theo_pair_timing {
    double preprocess;
    double forward;         /* encoders, decoders and heads in the order (1, 2) */
    double forward_swapped; /* decoders and heads in the order (2, 1) */
    double activation;      /* from raw maps to points and confidences */
    double pose;            /* focal lengths and pose */
    double total;
} theo_pair_timing;

/* The frame is camera 1's, whatever the pose was solved from: points of the edge {2, 1}, which the network gives in camera 2's,
 * are brought there by the pose. */
typedef struct theo_pair {
    theo_pair_view views[2];
    theo_pose pose;            /* none asked for: not found, with that reason */
    theo_view_maps swapped[2]; /* in camera 2's frame, of the views in options.swapped; else NULL */
    const char *model;         /* name of the model */
    theo_pair_timing timing;
} theo_pair;

/* Two photos to points. second may be NULL: the monocular mode of the published program, which pairs the photo with itself (no
 * pose then). Sizes and aspects may differ. Photos of which less than a patch of 16 pixels would be left are THEO_ARGUMENT. NULL
 * options: the defaults. */
THEO_API theo_status theo_reconstruct(theo_session *session, const theo_image *first, const theo_image *second,
                                      const theo_pair_options *options, theo_pair **pair, theo_error *err);
THEO_API void theo_pair_free(theo_pair *pair);

/* The pose alone, from results for (1, 2) and (2, 1) that were made without one; options: pose (none: port), conf_pct,
 * intrinsics. pairviewer's may be in the unit of `backward`: its edge tells. */
THEO_API theo_status theo_pair_pose(const theo_pair *forward, const theo_pair *backward, const theo_pair_options *options,
                                    theo_pose *pose, theo_error *err);

/* ---------------------------------------------------------------- many pairs */

typedef struct theo_pair_list {
    int image_count;
    const int32_t *pairs; /* [pair_count, 2] image numbers from 0; a pair may be of one image with itself */
    int pair_count;
    size_t
        cache_bytes; /* 0 = 1 GiB: what is kept of images, 4.75 MiB for one of 512 x 512. Beyond, an image is asked for again */
} theo_pair_list;

/* Gets pair `index`, in order, on the calling thread (owned by the sink from then on), or the error of that pair. A non-zero
 * return stops (THEO_CANCELLED). */
typedef int (*theo_pair_sink)(void *user, int index, theo_pair *pair, const theo_error *err);

/* Each image is asked of `source` when the first pair needs it, and prepared and encoded once: results equal those of
 * theo_reconstruct bit by bit. An image that fails fails its pairs, not the others: the call itself then still returns THEO_OK.
 *
 * What DUSt3R's inference() returns is here: entry k of view1, pred1 is pairs[k]->views[0], of view2, pred2 views[1]; with img =
 * rgb / 127.5 - 1 as planes, true_shape = [height, width], pts3d and pts3d_in_other_view = points, conf = confidence. Symmetrised
 * pairs (i, j), (j, i) are entries of the list. */
THEO_API theo_status theo_reconstruct_pairs(theo_session *session, const theo_pair_list *list, theo_image_source source,
                                            theo_pair_sink sink, void *user, const theo_pair_options *options, theo_error *err);

/* ---------------------------------------------------------------- what results become */

/* Points of the photo (integer = centre of a pixel) to the grid, and back. xy, out: [count, 2], may be the same. */
THEO_API void theo_pair_to_grid(const theo_pair_record *record, const double *xy, int count, double *out);
THEO_API void theo_pair_to_photo(const theo_pair_record *record, const double *xy, int count, double *out);
THEO_API theo_intrinsics theo_pair_intrinsics_to_grid(const theo_pair_record *record, theo_intrinsics photo);
THEO_API theo_intrinsics theo_pair_intrinsics_to_photo(const theo_pair_record *record, theo_intrinsics grid);

/* Points of both views that are finite, on the photo and of a confidence of at least min_conf, view 1's first, each view's row by
 * row. */
typedef struct theo_point_cloud {
    int64_t count;
    int64_t first_count;   /* of them, from view 1 */
    const float *points;   /* [count, 3] in camera 1's frame */
    const uint8_t *colors; /* [count, 3] R,G,B */
} theo_point_cloud;

THEO_API theo_status theo_pair_point_cloud(const theo_pair *pair, double min_conf, theo_point_cloud **cloud, theo_error *err);
THEO_API void theo_point_cloud_free(theo_point_cloud *cloud);

/* 1 where the same points are, else 0, into valid [height, width]. */
THEO_API void theo_pair_valid(const theo_pair_view *view, double min_conf, uint8_t *valid);

/* Over the finite values on the photo. All NaN where there are none. */
typedef struct theo_pair_summary {
    double conf_min, conf_median, conf_mean, conf_max;
    double depth_min, depth_median, depth_max;
    double photo_fraction; /* share of the grid that is photo */
} theo_pair_summary;

THEO_API theo_status theo_pair_summarise(const theo_pair_view *view, theo_pair_summary *summary, theo_error *err);

/* 16 bits: 1 + round(65534 (z - range[0]) / (range[1] - range[0])) for finite depths on the photo, between the least and the
 * largest of them; 0 elsewhere. range (may be NULL): NaN where there is none. */
THEO_API theo_status theo_pair_picture_depth(theo_image **out, const theo_pair_view *view, double range[2], theo_error *err);
/* 8 bits: round(255 (1 - 1/confidence)); 0 for what is no number. */
THEO_API theo_status theo_pair_picture_confidence(theo_image **out, const theo_pair_view *view, theo_error *err);

/* ---------------------------------------------------------------- the network's own maps */

/* [3, height, width] in [-1, 1], finite; sides are multiples of 16. */
typedef struct theo_pair_planes {
    int width, height;
    const float *planes;
} theo_pair_planes;

typedef struct theo_pair_raw {
    struct {
        int width, height;
        const float *raw;        /* [4, height, width]: x, y, z and confidence before the activation */
        const float *points;     /* [height, width, 3] after it, in the frame of view 1 */
        const float *confidence; /* [height, width] */
    } views[2];
    theo_pair_timing timing;
} theo_pair_raw;

THEO_API theo_status theo_reconstruct_raw(theo_session *session, const theo_pair_planes views[2], theo_pair_raw **raw,
                                          theo_error *err);
THEO_API void theo_pair_raw_free(theo_pair_raw *raw);

/* The planes that theo_reconstruct hands to the network for this photo and these options: the input of theo_reconstruct_raw.
 * *planes is [3, *height, *width]; release it with theo_buffer_free (image.h). */
THEO_API theo_status theo_pair_plane(const theo_model *model, const theo_image *image, const theo_pair_options *options,
                                     float **planes, int *width, int *height, theo_error *err);

#ifdef __cplusplus
}
#endif
#endif
