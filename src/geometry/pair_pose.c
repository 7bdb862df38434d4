#include "geometry/pair_pose.h"
#include "base/error.h"
#include "geometry/linalg.h"
#include "geometry/order.h"
#include <math.h>
#include <string.h>

enum { LEAST_POINTS = 50 };

static const double viewer_least_conf = 3;

static size_t pixels_of(const theo_pair_maps *m, int view) {
    return (size_t)m->width[view] * (size_t)m->height[view];
}

static theo_intrinsics centred(const theo_pair_maps *m, int view, double focal) {
    return (theo_intrinsics){focal, focal, m->width[view] / 2.0, m->height[view] / 2.0};
}

/* ---------------------------------------------------------------- points that go into a fit */

typedef struct chosen {
    float *xyz, *xy; /* one block */
    int count;
} chosen;

static theo_status new_chosen(chosen *c, size_t most, theo_error *err) {
    *c = (chosen){.xyz = theo_alloc(most, 5 * sizeof(float))};
    if (!c->xyz)
        return theo_fail(err, THEO_MEMORY, NULL, "pose", "no memory for %zu points", most);
    c->xy = c->xyz + 3 * most;
    return THEO_OK;
}

static void choose_point(chosen *c, const float *point, int x, int y) {
    memcpy(c->xyz + 3 * c->count, point, 3 * sizeof(float));
    c->xy[2 * c->count] = (float)x;
    c->xy[2 * c->count + 1] = (float)y;
    c->count++;
}

static bool is_finite(const float *p) {
    return isfinite(p[0]) && isfinite(p[1]) && isfinite(p[2]);
}

/* ---------------------------------------------------------------- the port's recipe */

/* The confidence above which that share of the pixels lies, padding included. */
static theo_status threshold_of(double *threshold, const float *conf, size_t pixels, double percent, theo_error *err) {
    double *values = theo_alloc(pixels, sizeof *values);
    if (!values)
        return theo_fail(err, THEO_MEMORY, NULL, "pose", "no memory for %zu confidences", pixels);
    size_t count = 0;
    for (size_t i = 0; i < pixels; i++)
        if (!isnan(conf[i]))
            values[count++] = (double)conf[i];
    *threshold = count ? theo_percentile(values, count, 100 - percent) : NAN;
    theo_free(values);
    return THEO_OK;
}

static theo_status port_focals(const theo_pair_maps *m, const theo_pair_pose_options *o, double focal[2], theo_error *err) {
    const float *const own[2] = {m->pts_ii, m->pts_jj};
    for (int v = 0; v < 2; v++) {
        theo_point_map map = {m->width[v], m->height[v], own[v]};
        if (v == 0 && o->cameras[v]) /* that of view j is reported as estimated, whatever the fit uses */
            focal[v] = (o->cameras[v]->fx + o->cameras[v]->fy) / 2;
        else
            THEO_TRY(theo_focal_median(&map, &focal[v], err));
    }
    return THEO_OK;
}

theo_status theo_pair_pose_port(const theo_pair_maps *m, const theo_pair_pose_options *o, theo_pair_solution *pose,
                                theo_error *err) {
    *pose = (theo_pair_solution){.found = false};
    THEO_TRY(port_focals(m, o, pose->focal, err));
    THEO_TRY(threshold_of(&pose->threshold, m->conf_ji, pixels_of(m, 1), o->confident_percent, err));
    chosen c;
    THEO_TRY(new_chosen(&c, pixels_of(m, 1), err));
    for (int y = 0, i = 0; y < m->height[1]; y++)
        for (int x = 0; x < m->width[1]; x++, i++)
            if ((double)m->conf_ji[i] >= pose->threshold && is_finite(m->pts_ji + 3 * i))
                choose_point(&c, m->pts_ji + 3 * i, x, y);
    pose->used = c.count;
    theo_status status = THEO_OK;
    if (c.count < LEAST_POINTS) {
        pose->reason = "fewer than 50 points of view 2 are confident and finite";
    } else {
        theo_intrinsics camera = o->cameras[1] ? *o->cameras[1] : centred(m, 1, pose->focal[1]);
        theo_camera_pose fitted;
        status = theo_fit_pose(c.xyz, c.xy, c.count, &camera, NULL, &fitted, NULL, err);
        if (!status) {
            pose->found = fitted.found;
            pose->reason = fitted.reason;
            pose->inlier_count = fitted.inlier_count;
            pose->inlier_rms = fitted.inlier_rms;
            memcpy(pose->R, fitted.R, sizeof pose->R);
            memcpy(pose->t, fitted.t, sizeof pose->t);
        }
    }
    theo_free(c.xyz);
    return status;
}

/* ---------------------------------------------------------------- PairViewer */

/* Of the finite values; 0 where there is none. */
static double mean(const float *x, size_t count) {
    double sum = 0;
    size_t finite = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(x[i])) {
            sum += (double)x[i];
            finite++;
        }
    return finite ? sum / (double)finite : 0;
}

static theo_status viewer_focals(const theo_pair_maps *m, const theo_pair_pose_options *o, double focal[2], theo_error *err) {
    const float *const own[2] = {m->pts_ii, m->pts_jj};
    for (int v = 0; v < 2; v++) {
        theo_point_map map = {m->width[v], m->height[v], own[v]};
        if (o->cameras[v])
            focal[v] = (o->cameras[v]->fx + o->cameras[v]->fy) / 2;
        else
            THEO_TRY(theo_focal_weiszfeld(&map, &focal[v], err));
    }
    return THEO_OK;
}

/* View v in the frame of the other one. */
static theo_status viewer_camera(const theo_pair_maps *m, const theo_pair_pose_options *o, int v, double focal,
                                 theo_camera_pose *out, int *used, theo_error *err) {
    const float *points = v ? m->pts_ji : m->pts_ij, *own = v ? m->conf_jj : m->conf_ii, *other = v ? m->conf_ji : m->conf_ij;
    chosen c;
    THEO_TRY(new_chosen(&c, pixels_of(m, v), err));
    *used = 0;
    for (int y = 0, i = 0; y < m->height[v]; y++)
        for (int x = 0; x < m->width[v]; x++, i++)
            if ((double)fmaxf(own[i], other[i]) > viewer_least_conf) {
                ++*used;
                if (is_finite(points + 3 * i))
                    choose_point(&c, points + 3 * i, x, y);
            }
    theo_status status = THEO_OK;
    *out = (theo_camera_pose){.found = false};
    theo_intrinsics camera = o->cameras[v] ? *o->cameras[v] : centred(m, v, focal);
    if (!c.count)
        out->reason = "no point has a confidence above 3";
    else if (!(camera.fx > 0) || !isfinite(camera.fx))
        out->reason = "the points determine no focal length";
    else
        status = theo_fit_pose(c.xyz, c.xy, c.count, &camera, NULL, out, NULL, err);
    theo_free(c.xyz);
    return status;
}

theo_status theo_pair_pose_pairviewer(const theo_pair_maps *m, const theo_pair_pose_options *o, theo_pair_solution *pose,
                                      theo_pair_view_facts *facts, theo_error *err) {
    theo_pair_view_facts own = {.reference = 0};
    facts = facts ? facts : &own;
    *pose = (theo_pair_solution){.found = false};
    THEO_TRY(viewer_focals(m, o, pose->focal, err));
    facts->scores[0] = mean(m->conf_ii, pixels_of(m, 0)) * mean(m->conf_ji, pixels_of(m, 1));
    facts->scores[1] = mean(m->conf_jj, pixels_of(m, 1)) * mean(m->conf_ij, pixels_of(m, 0));
    facts->reference = facts->scores[0] > facts->scores[1] ? 0 : 1;
    for (int v = 0; v < 2; v++)
        THEO_TRY(viewer_camera(m, o, v, pose->focal[v], &facts->cameras[v], &facts->used[v], err));

    const theo_camera_pose *winner = &facts->cameras[!facts->reference];
    pose->found = winner->found;
    pose->reason = winner->reason;
    pose->inlier_count = winner->inlier_count;
    pose->inlier_rms = winner->inlier_rms;
    pose->used = facts->used[!facts->reference];
    pose->is_swapped = facts->reference == 1;
    if (!pose->is_swapped) {
        memcpy(pose->R, winner->R, sizeof pose->R);
        memcpy(pose->t, winner->t, sizeof pose->t);
    } else { /* view i in the frame of view j: turned round */
        theo_mat3_transpose(pose->R, winner->R);
        theo_mat3_apply(pose->t, pose->R, winner->t);
        for (int k = 0; k < 3; k++)
            pose->t[k] = -pose->t[k];
    }
    return THEO_OK;
}
