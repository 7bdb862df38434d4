#include "match_result.h"
#include "message.h"
#include <stdlib.h>
#include <string.h>
#include <theo/draw.h>

static const char *const fit_words[] = {"none", "homography", "essential"};

/* Coordinates of the matched points, [count, 2]. side: 0 = a, 1 = b. */
static float *gather(const match_result *result, int side) {
    const theo_keypoints *points = side ? &result->b : &result->a;
    float *xy = memory_new(2 * (size_t)result->matches->count, sizeof *xy);
    for (int i = 0; i < result->matches->count; i++)
        memcpy(xy + 2 * i, points->xy + 2 * result->matches->pairs[2 * i + side], 2 * sizeof *xy);
    return xy;
}

static theo_status fit_model(match_result *result, const fit_options *fit, theo_error *err) {
    int count = result->matches->count;
    float *xy_a = gather(result, 0), *xy_b = gather(result, 1);
    theo_status status;
    result->inliers = memory_new((size_t)count, 1);
    if (fit->kind == FIT_HOMOGRAPHY) {
        status = theo_fit_homography(xy_a, xy_b, count, &fit->ransac, result->model, result->inliers, &result->inlier_count,
                                     &result->found, &result->reason, err);
    } else {
        theo_relative_pose pose;
        status = theo_fit_essential(xy_a, xy_b, count, fit->cameras, &fit->ransac, &pose, result->inliers, err);
        if (!status) {
            memcpy(result->model, pose.E, sizeof pose.E);
            memcpy(result->R, pose.R, sizeof pose.R);
            memcpy(result->t, pose.t, sizeof pose.t);
            result->inlier_count = pose.inlier_count;
            result->found = pose.found;
            result->reason = pose.reason;
        }
    }
    if (!status && !result->found) {
        memset(result->inliers, 0, (size_t)count);
        result->inlier_count = 0;
    }
    free(xy_a);
    free(xy_b);
    return status;
}

theo_status match_result_make(match_result *result, const theo_match_options *match, const fit_options *fit, theo_error *err) {
    result->kind = fit->kind;
    theo_status status = theo_match(&result->a, &result->b, match, &result->matches, err);
    if (!status && fit->kind != FIT_NONE)
        status = fit_model(result, fit, err);
    return status;
}

void match_result_free(match_result *result) {
    theo_matches_free(result->matches);
    free(result->inliers);
    memset(result, 0, sizeof *result);
}

theo_status match_result_npz(const match_result *result, output_files *files, bool deflate, theo_error *err) {
    const theo_matches *m = result->matches;
    theo_array arrays[8] = {
        {.name = "keypoints0", .dtype = THEO_DTYPE_F32, .rank = 2, .shape = {result->a.count, 2}, .data = result->a.xy},
        {.name = "keypoints1", .dtype = THEO_DTYPE_F32, .rank = 2, .shape = {result->b.count, 2}, .data = result->b.xy},
        {.name = "matches", .dtype = THEO_DTYPE_I32, .rank = 2, .shape = {m->count, 2}, .data = m->pairs},
        {.name = "similarity", .dtype = THEO_DTYPE_F32, .rank = 1, .shape = {m->count}, .data = m->similarity},
    };
    int count = 4;
    if (result->kind != FIT_NONE)
        arrays[count++] =
            (theo_array){.name = "inliers", .dtype = THEO_DTYPE_U8, .rank = 1, .shape = {m->count}, .data = result->inliers};
    if (result->found)
        arrays[count++] =
            (theo_array){.name = "model", .dtype = THEO_DTYPE_F64, .rank = 2, .shape = {3, 3}, .data = result->model};
    if (result->found && result->kind == FIT_ESSENTIAL) {
        arrays[count++] = (theo_array){.name = "R", .dtype = THEO_DTYPE_F64, .rank = 2, .shape = {3, 3}, .data = result->R};
        arrays[count++] = (theo_array){.name = "t", .dtype = THEO_DTYPE_F64, .rank = 1, .shape = {3}, .data = result->t};
    }
    return output_npz(files, "matches.npz", arrays, count, deflate, err);
}

theo_status match_result_draw(const match_result *result, const theo_image *a, const theo_image *b, output_files *files,
                              theo_error *err) {
    theo_image *picture;
    theo_status status = theo_draw_matches(&picture, a, b, result->a.xy, result->b.xy, result->matches->pairs, result->inliers,
                                           result->matches->count, err);
    if (!status) {
        status = output_png(files, "matches.png", picture, err);
        theo_image_free(picture);
    }
    return status;
}

void json_members_match(json_out *json, const match_result *result) {
    const theo_matches *m = result->matches;
    json_member_double(json, "pixel_center", 0);
    json_key(json, "num_keypoints");
    json_open(json, '[');
    json_int(json, result->a.count);
    json_int(json, result->b.count);
    json_close(json, ']');
    json_member_int(json, "num_matches", m->count);
    json_key(json, "matches");
    json_open(json, '[');
    for (int i = 0; i < m->count; i++) {
        json_open(json, '[');
        json_int(json, m->pairs[2 * i]);
        json_int(json, m->pairs[2 * i + 1]);
        json_close(json, ']');
    }
    json_close(json, ']');
    json_key(json, "similarity");
    json_open(json, '[');
    for (int i = 0; i < m->count; i++)
        json_float(json, m->similarity[i]);
    json_close(json, ']');

    json_member_string(json, "model_fit", fit_words[result->kind]);
    if (result->found) {
        json_member_matrix(json, "model", result->model, 3, 3);
    } else {
        json_key(json, "model");
        json_null(json);
    }
    json_key(json, "num_inliers");
    if (result->inliers)
        json_int(json, result->inlier_count);
    else
        json_null(json);
    json_key(json, "inliers");
    if (result->inliers) {
        json_open(json, '[');
        for (int i = 0; i < m->count; i++)
            json_int(json, result->inliers[i]);
        json_close(json, ']');
    } else {
        json_null(json);
    }
    if (result->kind == FIT_ESSENTIAL && result->found) {
        json_member_matrix(json, "R", result->R, 3, 3);
        json_member_vector(json, "t", result->t, 3);
    } else if (result->kind == FIT_ESSENTIAL) {
        json_key(json, "R");
        json_null(json);
        json_key(json, "t");
        json_null(json);
    }
    if (!result->found)
        json_member_string(json, "reason", result->kind == FIT_NONE ? "no model was asked for" : result->reason);
}

char *match_result_words(const match_result *result) {
    char *counts = text_format("%d and %d keypoints, %d match%s", result->a.count, result->b.count, result->matches->count,
                               result->matches->count == 1 ? "" : "es");
    if (result->kind == FIT_NONE)
        return counts;
    const char *what = result->kind == FIT_HOMOGRAPHY ? "homography" : "essential matrix";
    char *words = result->found ? text_format("%s, %s with %d inlier%s", counts, what, result->inlier_count,
                                              result->inlier_count == 1 ? "" : "s")
                                : text_format("%s, no %s: %s", counts, what, result->reason ? result->reason : "none fits");
    free(counts);
    return words;
}
