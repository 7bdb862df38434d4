/* pair_solve.c - cameras of the two views, and the pose between them. */
#include "api/pair.h"
#include "geometry/focal_estimate.h"
#include "geometry/linalg.h"
#include "geometry/pair_pose.h"
#include <math.h>
#include <string.h>

static bool is_known(const theo_intrinsics *camera) {
    return camera->fx != 0;
}

static void set_camera(theo_pair_view *view, theo_intrinsics grid) {
    view->intrinsics = grid;
    view->intrinsics_photo = theo_pair_intrinsics_to_photo(&view->record, grid);
}

/* What an estimator ends in may be no focal length. */
static double focal_or_nan(double focal) {
    return focal > 0 && isfinite(focal) ? focal : NAN;
}

/* One focal length, and the middle of the grid. */
static void set_focal(theo_pair_view *view, double focal) {
    if (!isnan(focal_or_nan(focal)))
        set_camera(view, (theo_intrinsics){focal, focal, view->width / 2.0, view->height / 2.0});
}

static void set_unknown(theo_pair_view *view) {
    view->intrinsics = view->intrinsics_photo = (theo_intrinsics){NAN, NAN, NAN, NAN};
}

/* Points of camera 2's frame into camera 1's: R^T (x - t). What is not finite stays so. */
static void bring_home(const theo_pose *pose, float *out, const float *points, size_t count) {
    double back[9];
    theo_mat3_transpose(back, pose->R);
    for (size_t i = 0; i < count; i++) {
        double x[3], y[3];
        for (size_t k = 0; k < 3; k++)
            x[k] = (double)points[3 * i + k] - pose->t[k];
        theo_mat3_apply(y, back, x);
        for (size_t k = 0; k < 3; k++)
            out[3 * i + k] = (float)y[k];
    }
}

/* swapped: maps of the order (2, 1); pairviewer alone needs those of view 1. */
static theo_status solve_pose(theo_pose *pose, const theo_pair_view v[THEO_PAIR_VIEWS],
                              const theo_view_maps swapped[THEO_PAIR_VIEWS], const theo_pair_options *o, theo_error *err) {
    theo_intrinsics cameras[THEO_PAIR_VIEWS];
    theo_pair_pose_options options = {.confident_percent = o->conf_pct};
    for (int i = 0; i < THEO_PAIR_VIEWS; i++) {
        cameras[i] = theo_pair_intrinsics_to_grid(&v[i].record, o->intrinsics[i]);
        options.cameras[i] = is_known(&o->intrinsics[i]) ? &cameras[i] : NULL;
    }
    const theo_pair_maps maps = {
        .width = {v[0].width, v[1].width},
        .height = {v[0].height, v[1].height},
        .pts_ii = v[0].points,
        .pts_ji = v[1].points,
        .pts_jj = swapped[1].points,
        .pts_ij = swapped[0].points,
        .conf_ii = v[0].confidence,
        .conf_ji = v[1].confidence,
        .conf_jj = swapped[1].confidence,
        .conf_ij = swapped[0].confidence,
    };
    theo_pair_solution found;
    THEO_TRY(o->pose == THEO_POSE_PORT ? theo_pair_pose_port(&maps, &options, &found, err)
                                       : theo_pair_pose_pairviewer(&maps, &options, &found, NULL, err));
    *pose = (theo_pose){.method = o->pose,
                        .found = found.found,
                        .reason = found.reason,
                        .focals = {focal_or_nan(found.focal[0]), focal_or_nan(found.focal[1])}};
    if (!found.found)
        return THEO_OK;
    memcpy(pose->R, found.R, sizeof pose->R);
    memcpy(pose->t, found.t, sizeof pose->t);
    pose->inlier_count = found.inlier_count;
    if (o->pose == THEO_POSE_PAIRVIEWER) {
        pose->edge[0] = found.is_swapped ? 2 : 1;
        pose->edge[1] = 3 - pose->edge[0];
    }
    return THEO_OK;
}

theo_status theo_pair_solve(theo_pair *pair, const theo_view_maps swapped[THEO_PAIR_VIEWS],
                            const theo_pair_writable writable[THEO_PAIR_VIEWS], double *votes, const theo_pair_options *o,
                            theo_error *err) {
    theo_pair_view *views = pair->views;
    for (int v = 0; v < THEO_PAIR_VIEWS; v++)
        set_unknown(&views[v]);
    if (o->pose == THEO_POSE_NONE) {
        const theo_point_map own = {views[0].width, views[0].height, views[0].points};
        set_focal(&views[0], theo_focal_median_in(&own, votes));
        return THEO_OK;
    }
    THEO_TRY(solve_pose(&pair->pose, views, swapped, o, err));
    for (int v = 0; v < THEO_PAIR_VIEWS; v++) {
        if (is_known(&o->intrinsics[v]))
            set_camera(&views[v], theo_pair_intrinsics_to_grid(&views[v].record, o->intrinsics[v]));
        else
            set_focal(&views[v], pair->pose.focals[v]);
        if (pair->pose.edge[0] != 2)
            continue;
        const size_t pixels = (size_t)views[v].width * (size_t)views[v].height;
        bring_home(&pair->pose, writable[v].points, swapped[v].points, pixels);
        memcpy(writable[v].confidence, swapped[v].confidence, pixels * sizeof(float));
    }
    return THEO_OK;
}

theo_status theo_pair_pose(const theo_pair *forward, const theo_pair *backward, const theo_pair_options *options, theo_pose *pose,
                           theo_error *err) {
    if (!forward || !backward || !pose)
        return theo_fail(err, THEO_ARGUMENT, NULL, "pose", "both pairs and the pose must be given");
    theo_pair_options o;
    THEO_TRY(theo_pair_options_take(&o, options, err));
    if (o.pose == THEO_POSE_NONE)
        o.pose = THEO_POSE_PORT;
    for (int v = 0; v < THEO_PAIR_VIEWS; v++)
        if (forward->views[v].width != backward->views[1 - v].width || forward->views[v].height != backward->views[1 - v].height)
            return theo_fail(err, THEO_ARGUMENT, NULL, "pose",
                             "the pairs are not of the same two photos: view %d has other sizes", v + 1);
    const theo_view_maps swapped[THEO_PAIR_VIEWS] = {
        {backward->views[1].points, backward->views[1].confidence},
        {backward->views[0].points, backward->views[0].confidence},
    };
    return solve_pose(pose, forward->views, swapped, &o, err);
}
