/* pair_pose.h - the relative pose of two views from the point maps that DUSt3R gives for both orders.
 *
 * Views i (the first) and j; pts_ji holds the points of view j in the frame of view i. Order (i, j) gives the maps with frame i,
 * order (j, i) those with frame j, in a scale of its own. */
#ifndef THEO_GEOMETRY_PAIR_POSE_H
#define THEO_GEOMETRY_PAIR_POSE_H

#include <theo/geometry.h>

typedef struct theo_pair_maps {
    int width[2], height[2];                            /* of views i and j */
    const float *pts_ii, *pts_ji, *pts_jj, *pts_ij;     /* [height, width, 3] */
    const float *conf_ii, *conf_ji, *conf_jj, *conf_ij; /* [height, width] */
} theo_pair_maps;

typedef struct theo_pair_pose_options {
    double confident_percent;          /* 50: the share of view j's pixels, the most confident ones, that are used */
    const theo_intrinsics *cameras[2]; /* of the maps' pixels, or NULL: estimated */
} theo_pair_pose_options;

typedef struct theo_pair_solution {
    bool found;
    const char *reason; /* static string when not found, else NULL */
    double R[9], t[3];  /* X_j = R X_i + t */
    double focal[2];    /* pixels of the maps; may be NaN where not found */
    int inlier_count;
    double inlier_rms; /* pixels */
    bool is_swapped;   /* the scale is that of order (j, i) */
    int used;          /* points that went into the fit */
    double threshold;  /* port: the confidence from which on points are used */
} theo_pair_solution;

/* The public port's recipe: focal lengths by median votes, the most confident points of view j in frame i, a robust pose. Reads
 * pts_ii, pts_ji, conf_ji, pts_jj. A camera of view i only replaces its reported focal length. */
theo_status theo_pair_pose_port(const theo_pair_maps *maps, const theo_pair_pose_options *options, theo_pair_solution *pose,
                                theo_error *err);

/* What PairViewer knows besides the pose. */
typedef struct theo_pair_view_facts {
    double scores[2];            /* of orders (i, j) and (j, i): mean confidences of both views, multiplied */
    int used[2];                 /* pixels of each view that are confident enough */
    int reference;               /* the view whose frame the better order has */
    theo_camera_pose cameras[2]; /* view k in the frame of the other one */
} theo_pair_view_facts;

/* The recipe of the published PairViewer: focal lengths by Weiszfeld, a pose of each view in the other's frame, the order with
 * the higher score wins. Reads all maps. facts may be NULL. */
theo_status theo_pair_pose_pairviewer(const theo_pair_maps *maps, const theo_pair_pose_options *options, theo_pair_solution *pose,
                                      theo_pair_view_facts *facts, theo_error *err);

#endif
