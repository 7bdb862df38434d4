/* test_two_views.c - from two photos to their geometry, against ground truth: the homography of graf 1-3, relative poses of
 * rendered frames. With the default model, and with superpoint_v1 where it is at hand. */
#include "geometry/linalg.h"
#include <theo/geometry.h>
#include <theo/image.h>

#include "t.h"

#include <sys/stat.h>

static const char *folder(const char *variable, const char *otherwise) {
    const char *value = getenv(variable);
    return value ? value : otherwise;
}

/* Matched points of a pair of photos, all keypoints. */
typedef struct pairs {
    int count;
    float *xy_a, *xy_b;
} pairs;

static theo_keypoints *detect(theo_session *session, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder("THEO_IMAGES", "../shared/images"), name);
    theo_image *photo = NULL;
    theo_keypoints *points = NULL;
    theo_error err;
    theo_detect_options options;
    theo_detect_options_init(&options);
    options.max_keypoints = -1;
    CHECK_MSG(theo_image_load(&photo, path, NULL, &err) == THEO_OK, "%s", err.message);
    if (photo)
        CHECK_MSG(theo_detect(session, photo, &options, &points, &err) == THEO_OK, "%s", err.message);
    theo_image_free(photo);
    return points;
}

static pairs match(theo_session *session, const char *name_a, const char *name_b) {
    pairs p = {0};
    theo_matches *matches = NULL;
    theo_keypoints *a = detect(session, name_a), *b = detect(session, name_b);
    if (a && b)
        CHECK(theo_match(a, b, NULL, &matches, NULL) == THEO_OK);
    if (matches) {
        p.count = matches->count;
        p.xy_a = calloc((size_t)p.count + 1, 2 * sizeof(float));
        p.xy_b = calloc((size_t)p.count + 1, 2 * sizeof(float));
        for (int i = 0; i < 2 * p.count; i++) {
            p.xy_a[i] = a->xy[2 * matches->pairs[i / 2 * 2] + i % 2];
            p.xy_b[i] = b->xy[2 * matches->pairs[i / 2 * 2 + 1] + i % 2];
        }
    }
    theo_matches_free(matches);
    theo_keypoints_free(a);
    theo_keypoints_free(b);
    return p;
}

static void free_pairs(pairs *p) {
    free(p->xy_a);
    free(p->xy_b);
}

/* Reads `count` numbers that follow `mark` in a file. */
static bool read_numbers(const char *name, const char *mark, int count, double *numbers) {
    char path[1024], text[8192];
    snprintf(path, sizeof path, "%s/%s", folder("THEO_IMAGES", "../shared/images"), name);
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    char *at = strstr(text, mark);
    if (!at)
        return false;
    at += strlen(mark);
    for (int i = 0; i < count; i++) {
        char *end;
        numbers[i] = strtod(at, &end);
        if (end == at)
            return false;
        at = end;
    }
    return true;
}

static void map_point(const double H[9], const double x[3], double out[2]) {
    double p[3];
    theo_mat3_apply(p, H, x);
    out[0] = p[0] / p[2];
    out[1] = p[1] / p[2];
}

static void check_graf(theo_session *session, const char *model) {
    double truth[9];
    CHECK(read_numbers("graf/H1to3p.xml", "<data>", 9, truth));
    pairs p = match(session, "graf/graf1.png", "graf/graf3.png");
    for (uint64_t seed = 0; seed < 5; seed++) {
        theo_ransac_options options;
        theo_ransac_options_init(&options);
        options.seed = seed;
        double H[9], error = 0;
        int inliers = 0;
        bool found = false;
        CHECK(theo_fit_homography(p.xy_a, p.xy_b, p.count, &options, H, NULL, &inliers, &found, NULL, NULL) == THEO_OK && found);
        for (int i = 0; found && i < 4; i++) {
            const double corner[3] = {i % 2 * 800, i / 2 * 640, 1};
            double q[2], r[2];
            map_point(H, corner, q);
            map_point(truth, corner, r);
            error += hypot(q[0] - r[0], q[1] - r[1]) / 4;
        }
        if (!seed)
            printf("%s, graf: %d matches, %d inliers, mean corner error %.3f px\n", model, p.count, inliers, error);
        CHECK_MSG(error <= 2.5, "%s, seed %d: mean corner error %g px", model, (int)seed, error);
    }
    free_pairs(&p);
}

static void check_rendered(theo_session *session, const char *model, int frame) {
    /* Camera-to-world matrices: X_b = Rb^T (Ra X_a + pa - pb). */
    double Ma[16], Mb[16], Ra[9], Rb[9], inverse[9], R[9], t[3], moved[3], product[9];
    char mark[16], name[64];
    snprintf(mark, sizeof mark, "%d %d %d", frame, frame, frame + 1);
    snprintf(name, sizeof name, "rgbd_rendered/color_%05d.jpg", frame);
    CHECK(read_numbers("rgbd_rendered/trajectory.log", "0 0 1", 16, Ma) &&
          read_numbers("rgbd_rendered/trajectory.log", mark, 16, Mb));
    for (int i = 0; i < 9; i++) {
        Ra[i] = Ma[i / 3 * 4 + i % 3];
        Rb[i] = Mb[i / 3 * 4 + i % 3];
    }
    for (int i = 0; i < 3; i++)
        moved[i] = Ma[4 * i + 3] - Mb[4 * i + 3];
    theo_mat3_transpose(inverse, Rb);
    theo_mat3_multiply(R, inverse, Ra);
    theo_mat3_apply(t, inverse, moved);
    theo_vec3_normalise(t);

    const theo_intrinsics camera = {525, 525, 319.5, 239.5}, cameras[2] = {camera, camera};
    pairs p = match(session, "rgbd_rendered/color_00000.jpg", name);
    theo_relative_pose pose;
    CHECK(theo_fit_essential(p.xy_a, p.xy_b, p.count, cameras, NULL, &pose, NULL, NULL) == THEO_OK && pose.found);
    theo_mat3_transpose(inverse, pose.R);
    theo_mat3_multiply(product, inverse, R);
    double turn = acos(fmin(1, (product[0] + product[4] + product[8] - 1) / 2)) * 57.29577951308232;
    double direction = acos(fmin(1, theo_vec3_dot(pose.t, t))) * 57.29577951308232;
    printf("%s, frame %d: %d matches, %d inliers, rotation off by %.3f, direction by %.2f degrees\n", model, frame, p.count,
           pose.inlier_count, turn, direction);
    CHECK_MSG(turn <= 0.3 && direction <= 3, "%s, frame %d: rotation off by %g, direction by %g degrees", model, frame, turn,
              direction);
    free_pairs(&p);
}

static void check_model(const char *path) {
    theo_model *model = NULL;
    theo_session *session = NULL;
    theo_error err;
    CHECK_MSG(theo_model_open(&model, path, NULL, &err) == THEO_OK && theo_session_open(&session, model, NULL, &err) == THEO_OK,
              "%s", err.message);
    if (session) {
        theo_model_info info;
        theo_model_get_info(model, &info);
        check_graf(session, info.name);
        check_rendered(session, info.name, 2);
        check_rendered(session, info.name, 4);
    }
    theo_session_close(session);
    theo_model_close(model);
}

int main(void) {
    char path[1024];
    struct stat info;
    snprintf(path, sizeof path, "%s/graf/graf1.png", folder("THEO_IMAGES", "../shared/images"));
    if (stat(path, &info) != 0)
        return t_skip("two_views", "no photos: set THEO_IMAGES");
    check_model("models/superpoint-open.safetensors");
    snprintf(path, sizeof path, "%s/superpoint_v1.safetensors", folder("THEO_WEIGHTS", "../shared/weights"));
    if (stat(path, &info) == 0)
        check_model(path);
    return t_done("two_views");
}
