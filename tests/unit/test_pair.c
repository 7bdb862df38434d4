/* theo_reconstruct on a tiny network: threads, orders, many pairs, raw maps, hostile photos. */
#include "pair_fixture.h"

static size_t pixels_of(const theo_pair_view *view) {
    return (size_t)view->width * (size_t)view->height;
}

static bool same_floats(const float *a, const float *b, size_t count) {
    return !memcmp(a, b, count * sizeof *a);
}

static bool same_view(const theo_pair_view *a, const theo_pair_view *b) {
    const size_t n = pixels_of(a);
    return a->width == b->width && a->height == b->height && same_floats(a->points, b->points, 3 * n) &&
           same_floats(a->confidence, b->confidence, n) && same_floats(a->depth, b->depth, n) && !memcmp(a->rgb, b->rgb, 3 * n) &&
           !memcmp(a->mask, b->mask, n) && !memcmp(&a->intrinsics, &b->intrinsics, sizeof a->intrinsics) &&
           !memcmp(&a->intrinsics_photo, &b->intrinsics_photo, sizeof a->intrinsics_photo);
}

static bool same_pair(const theo_pair *a, const theo_pair *b) {
    return same_view(&a->views[0], &b->views[0]) && same_view(&a->views[1], &b->views[1]) && a->pose.found == b->pose.found &&
           !memcmp(a->pose.R, b->pose.R, sizeof a->pose.R) && !memcmp(a->pose.t, b->pose.t, sizeof a->pose.t) &&
           a->pose.inlier_count == b->pose.inlier_count;
}

static theo_pair *reconstruct(theo_session *session, const theo_image *a, const theo_image *b, const theo_pair_options *o) {
    theo_pair *pair;
    REQUIRE(theo_reconstruct(session, a, b, o, &pair, &test_error));
    return pair;
}

static theo_pair_options native(theo_pose_method pose) {
    theo_pair_options o;
    theo_pair_options_init(&o);
    o.preprocess = THEO_PAIR_NATIVE;
    o.pose = pose;
    return o;
}

/* ---------------------------------------------------------------- one pair */

static void check_result(theo_session *session) {
    theo_image *a = new_picture(80, 60, 3, 0), *b = new_picture(50, 90, 3, 5);
    theo_pair *pair = reconstruct(session, a, b, NULL);
    for (int v = 0; v < 2; v++) {
        const theo_pair_view *view = &pair->views[v];
        size_t photo = 0;
        bool is_right = true;
        for (size_t i = 0; i < pixels_of(view); i++) {
            photo += view->mask[i];
            is_right &= view->depth[i] == view->points[3 * i + 2] && view->confidence[i] >= 1;
            is_right &= view->mask[i] || view->rgb[3 * i] > 0; /* gray, or what the resampling mixes into it */
        }
        CHECK(is_right && view->width == 64 && view->height == 64);
        CHECK(photo == (v ? 64u * 36 : 64u * 48));
    }
    CHECK(!pair->pose.found && strstr(pair->pose.reason, "asked"));
    CHECK(pair->views[0].intrinsics.fx > 0 && pair->views[0].intrinsics.cx == 32);
    CHECK_NEAR(pair->views[0].intrinsics_photo.fx, pair->views[0].intrinsics.fx * 80 / 64, 1e-9);
    CHECK_NEAR(pair->views[0].intrinsics_photo.cy, 40 - 10, 1e-9);
    CHECK(isnan(pair->views[1].intrinsics.fx) && isnan(pair->views[1].intrinsics_photo.cx));
    CHECK(!pair->swapped[0].points && !pair->swapped[1].points);
    CHECK(pair->timing.forward > 0 && pair->timing.forward_swapped == 0);
    CHECK(pair->timing.total >= pair->timing.preprocess + pair->timing.forward + pair->timing.activation);
    theo_pair_free(pair);
    theo_image_free(a);
    theo_image_free(b);
}

/* What the order (2, 1) gives is what the photos give when they are exchanged. */
static void check_orders(theo_session *session) {
    theo_image *a = new_picture(80, 60, 3, 0), *b = new_picture(50, 90, 3, 5);
    theo_pair_options o = native(THEO_POSE_NONE);
    theo_pair *swapped = reconstruct(session, b, a, &o);
    for (unsigned views = 1; views <= 3; views++) {
        o.swapped = views;
        theo_pair *pair = reconstruct(session, a, b, &o);
        for (int v = 0; v < 2; v++) {
            const theo_pair_view *other = &swapped->views[1 - v];
            if (!(views & 1u << v)) {
                CHECK(!pair->swapped[v].points && !pair->swapped[v].confidence);
                continue;
            }
            CHECK(same_floats(pair->swapped[v].points, other->points, 3 * pixels_of(other)));
            CHECK(same_floats(pair->swapped[v].confidence, other->confidence, pixels_of(other)));
        }
        CHECK(pair->timing.forward_swapped > 0);
        theo_pair_free(pair);
    }
    o.swapped = 0;
    theo_pair *plain = reconstruct(session, a, b, &o);
    for (int method = THEO_POSE_PORT; method <= THEO_POSE_PAIRVIEWER; method++) {
        theo_pose pose;
        theo_pair_options of = native((theo_pose_method)method);
        theo_pair *pair = reconstruct(session, a, b, &of);
        REQUIRE(theo_pair_pose(plain, swapped, &of, &pose, &test_error));
        CHECK(pose.found == pair->pose.found && !memcmp(pose.R, pair->pose.R, sizeof pose.R) &&
              !memcmp(pose.t, pair->pose.t, sizeof pose.t) && !memcmp(pose.edge, pair->pose.edge, sizeof pose.edge));
        CHECK(pose.found || pose.reason);
        CHECK(pair->pose.edge[0] == 2 || same_floats(pair->views[0].points, plain->views[0].points, 3 * pixels_of(plain->views)));
        theo_pair_free(pair);
    }
    theo_pair_free(plain);
    theo_pair_free(swapped);
    theo_image_free(a);
    theo_image_free(b);
}

static void check_alone(theo_session *session) {
    theo_image *a = new_picture(80, 60, 3, 0);
    theo_pair *alone = reconstruct(session, a, NULL, NULL), *twice = reconstruct(session, a, a, NULL);
    CHECK(same_pair(alone, twice));
    CHECK(alone->timing.forward > 0);
    theo_pair_options o = native(THEO_POSE_PORT);
    theo_pair *none;
    CHECK(theo_reconstruct(session, a, NULL, &o, &none, &test_error) == THEO_ARGUMENT && !none);
    CHECK(strstr(test_error.message, "pose"));
    theo_pair_free(alone);
    theo_pair_free(twice);
    theo_image_free(a);
}

static void check_threads(theo_session *session) {
    theo_image *a = new_picture(80, 60, 3, 0), *b = new_picture(50, 90, 3, 5);
    theo_pair_options o = native(THEO_POSE_PORT);
    theo_pair *two = reconstruct(session, a, b, &o);
    for (int threads = 1; threads <= 3; threads += 2) {
        theo_model *model = tiny_model(threads);
        theo_session *other = new_session(model);
        theo_pair *pair = reconstruct(other, a, b, &o);
        CHECK_MSG(same_pair(pair, two), "%d threads", threads);
        theo_pair_free(pair);
        theo_session_close(other);
        theo_model_close(model);
    }
    theo_pair_free(two);
    theo_image_free(a);
    theo_image_free(b);
}

/* The network's own maps of the planes that a photo becomes. */
static void check_raw(theo_session *session, theo_model *model) {
    theo_image *images[2] = {new_picture(80, 60, 3, 0), new_picture(50, 90, 3, 5)};
    theo_pair_options o = native(THEO_POSE_NONE);
    theo_pair *pair = reconstruct(session, images[0], images[1], &o);
    theo_pair_planes planes[2];
    float *made[2];
    theo_pair_raw *raw;
    for (int v = 0; v < 2; v++) {
        REQUIRE(theo_pair_plane(model, images[v], &o, &made[v], &planes[v].width, &planes[v].height, &test_error));
        planes[v].planes = made[v];
    }
    REQUIRE(theo_reconstruct_raw(session, planes, &raw, &test_error));
    for (int v = 0; v < 2; v++) {
        const size_t n = pixels_of(&pair->views[v]);
        CHECK(raw->views[v].width == pair->views[v].width && raw->views[v].height == pair->views[v].height);
        CHECK(same_floats(raw->views[v].points, pair->views[v].points, 3 * n));
        CHECK(same_floats(raw->views[v].confidence, pair->views[v].confidence, n));
        CHECK_NEAR((double)raw->views[v].confidence[7], 1 + exp((double)raw->views[v].raw[3 * n + 7]), 1e-5);
    }
    theo_pair_raw_free(raw);
    made[1][5] = NAN;
    CHECK(theo_reconstruct_raw(session, planes, &raw, &test_error) == THEO_ARGUMENT && !raw);
    planes[1].width = 40;
    CHECK(theo_reconstruct_raw(session, planes, &raw, &test_error) == THEO_ARGUMENT);
    CHECK(strstr(test_error.message, "multiples of 16"));
    for (int v = 0; v < 2; v++) {
        theo_buffer_free(made[v]);
        theo_image_free(images[v]);
    }
    theo_pair_free(pair);
}

/* The other head, whose maps are patches. */
static void check_linear_head(void) {
    theo_model *model = open_tiny(TINY_DUST3R("linear"), 2);
    theo_session *session = new_session(model);
    theo_model_info info;
    theo_model_get_info(model, &info);
    CHECK(strstr(info.config_json, "\"head_type\": \"linear\""));
    check_raw(session, model);
    check_orders(session);
    theo_session_close(session);
    theo_model_close(model);
}

/* ---------------------------------------------------------------- many pairs */

enum { IMAGES = 4 };

typedef struct list_job {
    theo_session *session; /* of its own, for comparing */
    const theo_pair_list *list;
    const theo_pair_options *options;
    theo_image *images[IMAGES];
    int asked[IMAGES], seen, failures, bad, stop_at;
    bool is_silent; /* the bad one fails without a message */
} list_job;

static theo_status give_image(void *user, int index, theo_image **image, theo_error *err) {
    list_job *j = user;
    j->asked[index]++;
    if (index == j->bad) {
        if (j->is_silent)
            return THEO_IO;
        memset(err, 0, sizeof *err);
        snprintf(err->message, sizeof err->message, "image %d is broken", index);
        return THEO_IO;
    }
    *image = new_picture(j->images[index]->width, j->images[index]->height, 3, (unsigned)index);
    return THEO_OK;
}

static int take_pair(void *user, int index, theo_pair *pair, const theo_error *err) {
    list_job *j = user;
    const int32_t *numbers = j->list->pairs + 2 * index;
    CHECK(index == j->seen++);
    if (err) {
        j->failures++;
        CHECK(!pair && err->status == THEO_IO && (j->is_silent ? !err->message[0] : strstr(err->message, "broken") != NULL));
    } else {
        theo_pair *single = reconstruct(j->session, j->images[numbers[0]], j->images[numbers[1]], j->options);
        CHECK_MSG(same_pair(pair, single), "pair %d", index);
        theo_pair_free(single);
    }
    theo_pair_free(pair);
    return index == j->stop_at;
}

static void check_list(theo_session *session, theo_model *model) {
    static const int32_t pairs[] = {0, 1, 1, 0, 2, 2, 0, 3, 3, 2, 1, 2};
    theo_pair_list list = {.image_count = IMAGES, .pairs = pairs, .pair_count = 6};
    theo_pair_options o = native(THEO_POSE_PORT);
    list_job j = {.session = new_session(model), .list = &list, .options = &o, .bad = -1, .stop_at = -1};
    for (int i = 0; i < IMAGES; i++)
        j.images[i] = new_picture(80 - 9 * i, 60 + 4 * i, 3, (unsigned)i);

    REQUIRE(theo_reconstruct_pairs(session, &list, give_image, take_pair, &j, &o, &test_error));
    CHECK(j.seen == 6 && !j.failures);
    for (int i = 0; i < IMAGES; i++)
        CHECK_MSG(j.asked[i] == 1, "image %d was asked for %d times", i, j.asked[i]);

    /* Without room for more than two images some are asked for again: nothing else changes. */
    list.cache_bytes = 1;
    memset(j.asked, 0, sizeof j.asked);
    j.seen = 0;
    REQUIRE(theo_reconstruct_pairs(session, &list, give_image, take_pair, &j, &o, &test_error));
    CHECK(j.seen == 6 && j.asked[0] + j.asked[1] + j.asked[2] + j.asked[3] > IMAGES);

    /* A broken image fails its pairs, and is not tried twice. */
    list.cache_bytes = 0;
    memset(j.asked, 0, sizeof j.asked);
    j.seen = 0;
    j.bad = 2;
    REQUIRE(theo_reconstruct_pairs(session, &list, give_image, take_pair, &j, &o, &test_error));
    CHECK(j.seen == 6 && j.failures == 3 && j.asked[2] == 1);

    j.seen = j.failures = 0;
    j.is_silent = true;
    REQUIRE(theo_reconstruct_pairs(session, &list, give_image, take_pair, &j, &o, &test_error));
    CHECK(j.seen == 6 && j.failures == 3);
    j.is_silent = false;

    j.seen = 0;
    j.stop_at = 1;
    CHECK(theo_reconstruct_pairs(session, &list, give_image, take_pair, &j, &o, &test_error) == THEO_CANCELLED && j.seen == 2);

    static const int32_t wrong[] = {0, IMAGES};
    list.pairs = wrong;
    list.pair_count = 1;
    CHECK(theo_reconstruct_pairs(session, &list, give_image, take_pair, &j, &o, &test_error) == THEO_ARGUMENT);
    list.pair_count = 0;
    REQUIRE(theo_reconstruct_pairs(session, &list, give_image, take_pair, &j, &o, &test_error));
    for (int i = 0; i < IMAGES; i++)
        theo_image_free(j.images[i]);
    theo_session_close(j.session);
}

/* ---------------------------------------------------------------- hostile photos and options */

static void check_photos(theo_session *session) {
    static const int sizes[][2] = {{1, 1}, {1, 5000}, {5000, 1}, {3, 700}, {2000, 900}, {17, 16}};
    theo_image *other = new_picture(70, 50, 3, 1);
    for (int channels = 1; channels <= 4; channels++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int fit = THEO_PAIR_PAD; fit <= THEO_PAIR_NATIVE; fit++) {
                theo_image *image = new_picture(sizes[i][0], sizes[i][1], channels, 3);
                theo_pair_options o = native(THEO_POSE_PORT);
                o.preprocess = (theo_pair_preprocess)fit;
                theo_pair *pair;
                const theo_status status = theo_reconstruct(session, other, image, &o, &pair, &test_error);
                const bool is_narrow = fit == THEO_PAIR_NATIVE && i > 0 && i < 4;
                CHECK_MSG(status == (is_narrow ? THEO_ARGUMENT : THEO_OK), "%dx%d, %d: %s", sizes[i][0], sizes[i][1], fit,
                          status ? test_error.message : "worked");
                CHECK(!status || strstr(test_error.message, "elongated"));
                theo_pair_free(pair);
                theo_image_free(image);
            }
    float samples[64 * 64] = {0.5F};
    theo_image plane = {.width = 64, .height = 64, .channels = 1, .type = THEO_F32, .pixels = samples};
    theo_pair *pair = reconstruct(session, &plane, other, NULL);
    CHECK(pair->views[0].rgb[0] == 128 && pair->views[0].rgb[3] == 0);
    theo_pair_free(pair);
    samples[9] = NAN;
    CHECK(theo_reconstruct(session, &plane, other, NULL, &pair, &test_error) == THEO_ARGUMENT && !pair);
    CHECK(theo_reconstruct(session, NULL, other, NULL, &pair, &test_error) == THEO_ARGUMENT);
    theo_image_free(other);
}

static void check_options(theo_session *session) {
    theo_image *a = new_picture(70, 50, 3, 1);
    for (int i = 0; i < 8; i++) {
        theo_pair_options o;
        theo_pair_options_init(&o);
        static const char *const words[] = {"square_ok", "long_side", "long_side",  "conf_pct",
                                            "conf_pct",  "swapped",   "intrinsics", "intrinsics"};
        o.square_ok = i == 0;
        o.long_side = i == 1 ? 40 : i == 2 ? 8192 : 0;
        o.conf_pct = i == 3 ? -1 : i == 4 ? NAN : 50;
        o.swapped = i == 5 ? 4 : 0;
        o.pose = i == 7 ? THEO_POSE_PORT : THEO_POSE_NONE;
        if (i >= 6)
            o.intrinsics[i - 6] = (theo_intrinsics){i == 6 ? 50 : -50, 50, 30, 30};
        theo_pair *pair;
        CHECK(theo_reconstruct(session, a, a, &o, &pair, &test_error) == THEO_ARGUMENT);
        CHECK_MSG(strstr(test_error.message, words[i]), "%s", test_error.message);
    }
    theo_pair_options o;
    theo_pair_options_init(&o);
    theo_image *square = new_picture(41, 41, 3, 2);
    for (int side = 32; side <= 256; side += 16) /* any grid: a square photo becomes 4:3 in whole patches */
        for (int fit = THEO_PAIR_PAD; fit <= THEO_PAIR_NATIVE; fit++) {
            o.long_side = side;
            o.preprocess = (theo_pair_preprocess)fit;
            theo_pair *pair = reconstruct(session, square, NULL, &o);
            const int height = fit < THEO_PAIR_NATIVE || side == 224 ? side : 3 * side / 4 / 16 * 16;
            CHECK_MSG(pair->views[0].width == side && pair->views[0].height == height, "%d x %d of %d, %d", pair->views[0].width,
                      pair->views[0].height, side, fit);
            theo_pair_free(pair);
        }
    theo_image_free(square);
    theo_keypoints *points;
    CHECK(theo_detect(session, a, NULL, &points, &test_error) == THEO_UNSUPPORTED);
    CHECK(strstr(test_error.message, "for pairs (dust3r), not for keypoints"));
    static const int wrong[][2] = {{40, 64}, {64, 40}, {4112, 64}, {64, 1 << 20}};
    for (int i = 0; i < 4; i++)
        CHECK(theo_session_prepare(session, wrong[i][0], wrong[i][1], 0, &test_error) == THEO_ARGUMENT &&
              strstr(test_error.message, "multiples of 16 up to 4096"));
    theo_image_free(a);
}

typedef struct watch {
    double last, stop_at;
    int calls;
    bool fell;
} watch;

static int tell(void *user, double done) {
    watch *w = user;
    w->calls++;
    w->fell |= done < w->last;
    w->last = done;
    return done > w->stop_at;
}

/* Progress rises over the whole call, and can stop it at any plan. */
static void check_progress(theo_model *model) {
    theo_image *a = new_picture(80, 60, 3, 0), *b = new_picture(50, 90, 3, 5);
    theo_pair_options o = native(THEO_POSE_PORT);
    for (int i = 0; i <= 4; i++) {
        watch w = {.stop_at = i < 4 ? 0.2 + 0.2 * i : 2};
        theo_session_options s;
        theo_session *session;
        theo_pair *pair;
        theo_session_options_init(&s);
        s.progress = tell;
        s.progress_user = &w;
        REQUIRE(theo_session_open(&session, model, &s, &test_error));
        const theo_status status = theo_reconstruct(session, a, b, &o, &pair, &test_error);
        CHECK(status == (i < 4 ? THEO_CANCELLED : THEO_OK) && !w.fell && w.calls > 10);
        CHECK(i < 4 ? w.last > w.stop_at && w.last < w.stop_at + 0.1 : w.last > 0.95 && w.last <= 1);
        theo_pair_free(pair);
        w = (watch){.stop_at = 2};
        pair = reconstruct(session, a, b, &o); /* goes on after it was stopped */
        theo_pair_free(pair);
        theo_session_close(session);
    }
    theo_image_free(a);
    theo_image_free(b);
}

/* A session that has met its sizes allocates no more. */
static void check_allocations(theo_session *session) {
    theo_image *a = new_picture(80, 60, 3, 0), *b = new_picture(50, 90, 3, 5);
    uint64_t before = 0;
    for (int i = 0; i < 4; i++) {
        if (i == 2)
            before = theo_allocation_count();
        theo_pair_free(reconstruct(session, a, b, NULL));
    }
    CHECK_MSG(theo_allocation_count() == before, "%d", (int)(theo_allocation_count() - before));
    theo_image_free(a);
    theo_image_free(b);
}

/* Both views count in the report, and the bytes are told without running. */
static void check_plan(theo_session *session, theo_model *model) {
    theo_plan_report *plan;
    size_t bytes;
    REQUIRE(theo_session_plan(session, 64, 48, 0, &plan, &test_error));
    double flops = 0;
    int twice = 0;
    for (int i = 0; i < plan->count; i++) {
        flops += plan->ops[i].runs * plan->ops[i].flops;
        twice += plan->ops[i].runs == 2;
    }
    CHECK(twice > 10 && twice < plan->count / 2);
    CHECK_NEAR(flops / plan->flops, 1, 1e-12);
    theo_plan_report_free(plan);
    REQUIRE(theo_session_bytes(model, 64, 48, 0, NULL, &bytes, &test_error));
    CHECK(bytes > 64 * 48 * 16);
}

int main(void) {
    theo_model *model = tiny_model(2);
    theo_session *session = new_session(model);
    theo_model_info info;
    theo_model_get_info(model, &info);
    CHECK_STR(info.kind, "dust3r");
    CHECK(info.task == THEO_TASK_PAIR && strstr(info.licence, "CC BY-NC-SA") && info.input_width == 64);
    check_result(session);
    check_orders(session);
    check_alone(session);
    check_threads(session);
    check_raw(session, model);
    check_linear_head();
    check_list(session, model);
    check_photos(session);
    check_options(session);
    check_progress(model);
    check_allocations(session);
    check_plan(session, model);
    theo_session_close(session);
    theo_model_close(model);
    scratch_remove();
    return t_done("pair");
}
