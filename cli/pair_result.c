#include "pair_result.h"
#include "message.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <theo/export.h>

theo_status pair_measure(pair_facts *facts, const theo_pair *pair, double min_conf, theo_error *err) {
    *facts = (pair_facts){.pair = pair, .min_conf = min_conf};
    theo_status status = THEO_OK;
    for (int v = 0; v < 2 && !status; v++)
        status = theo_pair_summarise(&pair->views[v], &facts->summary[v], err);
    return status ? status : theo_pair_point_cloud(pair, min_conf, &facts->cloud, err);
}

void pair_facts_free(pair_facts *facts) {
    theo_point_cloud_free(facts->cloud);
    facts->cloud = NULL;
}

/* ---- JSON */

static void member_two(json_out *json, const char *key, double a, double b) {
    json_member_vector(json, key, (const double[]){a, b}, 2);
}

static void member_preprocess(json_out *json, const theo_pair *pair) {
    static const char *const modes[] = {"pad", "crop", "native"};
    json_key(json, "preprocess");
    json_open(json, '{');
    json_member_string(json, "mode", modes[pair->views[0].record.preprocess]);
    json_key(json, "views");
    json_open(json, '[');
    for (int v = 0; v < 2; v++) {
        const theo_pair_record *r = &pair->views[v].record;
        json_open(json, '{');
        member_two(json, "size", r->height, r->width);
        member_two(json, "offset", r->offset_x, r->offset_y);
        member_two(json, "scale", r->scale_x, r->scale_y);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
}

static void member_summary(json_out *json, const theo_pair_summary summary[2]) {
    json_key(json, "summary");
    json_open(json, '[');
    for (int v = 0; v < 2; v++) {
        const theo_pair_summary *s = &summary[v];
        json_open(json, '{');
        json_key(json, "conf");
        json_open(json, '{');
        json_member_double(json, "min", s->conf_min);
        json_member_double(json, "median", s->conf_median);
        json_member_double(json, "mean", s->conf_mean);
        json_member_double(json, "max", s->conf_max);
        json_close(json, '}');
        json_member_double(json, "depth_median", s->depth_median);
        json_member_double(json, "photo_fraction", s->photo_fraction);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_key(json, "depth_png");
    json_open(json, '[');
    for (int v = 0; v < 2; v++) {
        json_open(json, '{');
        json_member_double(json, "zmin", summary[v].depth_min);
        json_member_double(json, "zmax", summary[v].depth_max);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* A matrix for each view, null where the camera is not known. */
static void member_cameras(json_out *json, const char *key, const theo_intrinsics *first, const theo_intrinsics *second) {
    const theo_intrinsics *const cameras[] = {first, second};
    json_key(json, key);
    json_open(json, '[');
    for (int v = 0; v < 2; v++) {
        const theo_intrinsics *k = cameras[v];
        const double matrix[9] = {k->fx, 0, k->cx, 0, k->fy, k->cy, 0, 0, 1};
        if (isnan(k->fx))
            json_null(json);
        else
            json_matrix(json, matrix, 3, 3);
    }
    json_close(json, ']');
}

static void member_pose(json_out *json, const theo_pose *pose) {
    if (!pose->found) {
        json_key(json, "pose");
        json_null(json);
        json_member_string(json, "reason", pose->reason);
        return;
    }
    json_key(json, "pose");
    json_open(json, '{');
    json_member_matrix(json, "R", pose->R, 3, 3);
    json_member_vector(json, "t", pose->t, 3);
    json_member_double(json, "focal_1", pose->focals[0]);
    json_member_double(json, "focal_2", pose->focals[1]);
    json_member_int(json, "inliers", pose->inlier_count);
    if (pose->edge[0])
        member_two(json, "edge", pose->edge[0], pose->edge[1]);
    json_close(json, '}');
}

void pair_json_members(json_out *json, const pair_facts *facts) {
    const theo_pair_view *v = facts->pair->views;
    json_member_string(json, "unit", "relative");
    member_preprocess(json, facts->pair);
    member_summary(json, facts->summary);
    json_member_double(json, "min_conf", facts->min_conf);
    json_member_int(json, "num_points", facts->cloud->count);
    member_cameras(json, "intrinsics", &v[0].intrinsics, &v[1].intrinsics);
    member_cameras(json, "intrinsics_original_pixels", &v[0].intrinsics_photo, &v[1].intrinsics_photo);
    json_member_double(json, "pixel_center", 0);
    member_pose(json, &facts->pair->pose);
}

/* ---- words */

static double rotation_degrees(const double R[9]) {
    const double cosine = (R[0] + R[4] + R[8] - 1) / 2;
    return acos(fmin(fmax(cosine, -1), 1)) * 180 / 3.14159265358979323846;
}

char *pair_words(const pair_facts *facts) {
    const theo_pair *p = facts->pair;
    const theo_pair_view *v = p->views;
    char *pose = p->pose.found ? text_format(", rotation %.1f deg, %d inliers", rotation_degrees(p->pose.R), p->pose.inlier_count)
                 : p->pose.method ? text_format(", no pose: %s", p->pose.reason)
                                  : text_copy("");
    char *words = text_format("grids %dx%d and %dx%d, confidence %.3g and %.3g, %lld points of %.3g and more%s", v[0].width,
                              v[0].height, v[1].width, v[1].height, facts->summary[0].conf_median, facts->summary[1].conf_median,
                              (long long)facts->cloud->count, facts->min_conf, pose);
    free(pose);
    return words;
}

/* ---- arrays */

int pair_arrays(theo_array arrays[11], const theo_pair *pair) {
    static const char *const names[2][4] = {{"pts3d1", "conf1", "rgb1", "mask1"}, {"pts3d2", "conf2", "rgb2", "mask2"}};
    int count = 0;
    for (int v = 0; v < 2; v++) {
        const theo_pair_view *view = &pair->views[v];
        const int64_t h = view->height, w = view->width;
        const theo_array made[] = {
            {.name = names[v][0], .dtype = THEO_DTYPE_F32, .rank = 3, .shape = {h, w, 3}, .data = view->points},
            {.name = names[v][1], .dtype = THEO_DTYPE_F32, .rank = 2, .shape = {h, w}, .data = view->confidence},
            {.name = names[v][2], .dtype = THEO_DTYPE_U8, .rank = 3, .shape = {h, w, 3}, .data = view->rgb},
            {.name = names[v][3], .dtype = THEO_DTYPE_U8, .rank = 2, .shape = {h, w}, .data = view->mask},
        };
        memcpy(arrays + count, made, sizeof made);
        count += 4;
    }
    if (pair->pose.found) {
        const theo_array made[] = {
            {.name = "R", .dtype = THEO_DTYPE_F64, .rank = 2, .shape = {3, 3}, .data = pair->pose.R},
            {.name = "t", .dtype = THEO_DTYPE_F64, .rank = 1, .shape = {3}, .data = pair->pose.t},
            {.name = "focals", .dtype = THEO_DTYPE_F64, .rank = 1, .shape = {2}, .data = pair->pose.focals},
        };
        memcpy(arrays + count, made, sizeof made);
        count += 3;
    }
    return count;
}

/* ---- files */

static theo_status write_ply(output_files *files, const theo_point_cloud *cloud, theo_error *err) {
    const theo_vertices vertices = {.count = cloud->count, .positions = cloud->points, .colors = cloud->colors};
    files->stem = "points";
    const char *path = output_path(files, "ply", err);
    return path ? theo_ply_write(path, &vertices, NULL, NULL, 0, "camera 1's axes: x to the right, y down, z forward",
                                 files->pool, err)
                : err->status;
}

static theo_status save(output_files *files, const char *stem, theo_status made, theo_image *picture, theo_error *err) {
    files->stem = stem;
    const theo_status status = made ? made : output_png(files, "png", picture, err);
    theo_image_free(picture);
    return status;
}

static theo_status write_pictures(output_files *files, const theo_pair *pair, theo_error *err) {
    static const char *const depth[] = {"depth1", "depth2"}, *const conf[] = {"conf1", "conf2"};
    theo_status status = THEO_OK;
    theo_image *picture;
    for (int v = 0; v < 2 && !status; v++) {
        status = theo_pair_picture_depth(&picture, &pair->views[v], NULL, err);
        status = save(files, depth[v], status, picture, err);
    }
    for (int v = 0; v < 2 && !status; v++) {
        status = theo_pair_picture_confidence(&picture, &pair->views[v], err);
        status = save(files, conf[v], status, picture, err);
    }
    return status;
}

/* The surface of a view where it is confident enough, as a part of the scene. */
static theo_status make_part(theo_glb_part *part, theo_mesh **mesh, const theo_pair_view *view, double min_conf,
                             theo_error *err) {
    uint8_t *valid = memory_new((size_t)view->width * (size_t)view->height, 1);
    theo_pair_valid(view, min_conf, valid);
    theo_status status = theo_mesh_from_mask(mesh, valid, view->width, view->height, err);
    free(valid);
    if (!status)
        status = theo_mesh_drop_unused(*mesh, err);
    if (status)
        return status;
    part->vertices =
        (theo_vertices){.count = (*mesh)->vertex_count, .rows = (*mesh)->pixels, .positions = view->points, .colors = view->rgb};
    part->faces = (*mesh)->faces;
    part->face_count = (*mesh)->face_count;
    return THEO_OK;
}

/* Is all of its pyramid within GLB's single precision? */
static bool can_be_shown(const theo_glb_camera *c) {
    static const double most = 1e30;
    const double *m = c->camera_to_world;
    return c->focal / c->height < most && fabs(m[3]) < most && fabs(m[7]) < most && fabs(m[11]) < most;
}

/* Those that are known: the first at the origin, the second where the pose puts it. */
static int make_cameras(theo_glb_camera cameras[2], pair_facts *facts) {
    const theo_pair *pair = facts->pair;
    static const uint8_t colors[2][3] = {{255, 0, 0}, {0, 0, 255}};
    int count = 0;
    for (int v = 0; v < 2; v++) {
        const theo_pair_view *view = &pair->views[v];
        if (isnan(view->intrinsics.fx) || (v == 1 && !pair->pose.found))
            continue;
        theo_glb_camera *c = &cameras[count];
        *c = (theo_glb_camera){.focal = view->intrinsics.fx, .width = view->width, .height = view->height};
        memcpy(c->color, colors[v], 3);
        const double *R = pair->pose.R, *t = pair->pose.t;
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++)
                c->camera_to_world[4 * i + j] = v ? R[3 * j + i] : i == j;
            c->camera_to_world[4 * i + 3] = v ? -(R[i] * t[0] + R[3 + i] * t[1] + R[6 + i] * t[2]) : 0;
        }
        c->camera_to_world[15] = 1;
        if (can_be_shown(c))
            count++;
        else
            facts->camera_left_out = true;
    }
    return count;
}

static theo_status write_glb(output_files *files, pair_facts *facts, theo_error *err) {
    static const double home[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    const theo_pair *pair = facts->pair;
    theo_glb_part parts[2] = {{.name = "view1"}, {.name = "view2"}};
    theo_glb_camera cameras[2];
    theo_mesh *meshes[2] = {NULL, NULL};
    double transform[16];
    files->stem = "pair";
    const char *path = output_path(files, "glb", err);
    theo_status status = path ? theo_glb_transform_from_view(transform, home, err) : err->status;
    for (int v = 0; v < 2 && !status; v++)
        status = make_part(&parts[v], &meshes[v], &pair->views[v], facts->min_conf, err);
    if (!status) {
        const theo_glb_scene scene = {.parts = parts,
                                      .part_count = 2,
                                      .cameras = cameras,
                                      .camera_count = make_cameras(cameras, facts),
                                      .transform = transform};
        facts->no_surface = parts[0].face_count + parts[1].face_count == 0;
        status = theo_glb_write(path, &scene, files->pool, err);
    }
    theo_mesh_free(meshes[0]);
    theo_mesh_free(meshes[1]);
    return status;
}

theo_status pair_write_files(output_files *files, pair_facts *facts, bool deflate, bool glb, theo_error *err) {
    theo_array arrays[11];
    theo_status status = write_ply(files, facts->cloud, err);
    files->stem = "pair";
    if (!status)
        status = output_npz(files, "npz", arrays, pair_arrays(arrays, facts->pair), deflate, err);
    if (!status)
        status = write_pictures(files, facts->pair, err);
    if (!status && glb)
        status = write_glb(files, facts, err);
    files->stem = "pair";
    return status;
}
