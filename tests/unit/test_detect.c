/* theo_detect and its relatives: results, determinism, errors, sessions as one line of work, steady memory. */
#include "superpoint_fixture.h"
#include <pthread.h>

static theo_model *model;

static void test_few_points(void) {
    theo_session *session = open_session(model, 0, NULL, NULL);
    theo_image *image = picture(96, 64, 1);
    theo_detect_options o = native_options();
    o.threshold = 1.0f;
    theo_keypoints *none = detect(session, image, &o);
    CHECK(none->count == 0 && none->descriptor_dim == 64 && none->image_width == 96 && none->net_height == 64);
    o.threshold = 0;
    o.max_keypoints = 1;
    theo_keypoints *one = detect(session, image, &o);
    CHECK(one->count == 1);
    double norm = 0;
    for (int c = 0; c < 64; c++)
        norm += (double)one->descriptors[c] * (double)one->descriptors[c];
    CHECK_NEAR(norm, 1, 1e-5);
    o.max_keypoints = 0;
    theo_keypoints *zero = detect(session, image, &o);
    CHECK(zero->count == 0);
    o.max_keypoints = -1;
    o.descriptors = false;
    theo_keypoints *bare = detect(session, image, &o);
    CHECK(bare->count > 1 && bare->descriptor_dim == 0 && !bare->descriptors);
    CHECK(bare->xy[0] == one->xy[0] && bare->scores[0] == one->scores[0]);
    for (int i = 1; i < bare->count; i++)
        CHECK(bare->scores[i] <= bare->scores[i - 1]);
    theo_keypoints *described;
    REQUIRE(theo_describe(session, image, NULL, 0, NULL, &described, &test_error));
    CHECK(described->count == 0);
    theo_keypoints_free(described);
    theo_keypoints_free(none);
    theo_keypoints_free(one);
    theo_keypoints_free(zero);
    theo_keypoints_free(bare);
    theo_image_free(image);
    theo_session_close(session);
}

static void test_threads(void) {
    theo_image *image = picture(331, 203, 3);
    theo_detect_options o = native_options();
    theo_keypoints *first = NULL;
    const int threads[] = {1, 2, 3, 5};
    for (int i = 0; i < 4; i++) {
        theo_model *m = formula_model(SMALL_NETWORK, threads[i]);
        theo_session *session = open_session(m, 0, NULL, NULL);
        theo_model_close(m); /* the session holds it */
        theo_keypoints *k = detect(session, image, &o);
        theo_session_close(session); /* the result stays */
        if (first) {
            CHECK_MSG(same_keypoints(first, k), "%d threads: %d points instead of %d", threads[i], k->count, first->count);
            theo_keypoints_free(k);
        } else {
            first = k;
            CHECK(first->count > 50);
        }
    }
    theo_keypoints_free(first);
    theo_image_free(image);
}

/* Points that were detected and are described again get the same descriptors. */
static void test_describe(void) {
    theo_session *session = open_session(model, 0, NULL, NULL);
    theo_image *image = picture(200, 150, 3);
    theo_detect_options o = native_options();
    theo_keypoints *found = detect(session, image, &o), *again;
    REQUIRE(theo_describe(session, image, found->xy, found->count, &o, &again, &test_error));
    CHECK(found->count > 20 && same_keypoints(found, again));
    theo_keypoints_free(again);
    theo_keypoints_free(found);

    o.fit = THEO_FIT_EXACT;
    o.net_width = 171;
    o.net_height = 133;
    o.pixel_centers = true;
    found = detect(session, image, &o);
    REQUIRE(theo_describe(session, image, found->xy, found->count, &o, &again, &test_error));
    CHECK(found->count > 20 && again->count == found->count);
    double worst = 0, worst_score = 0;
    for (int i = 0; i < found->count * 64; i++)
        worst = fmax(worst, fabs((double)found->descriptors[i] - (double)again->descriptors[i]));
    for (int i = 0; i < found->count; i++)
        worst_score = fmax(worst_score, fabs((double)found->scores[i] - (double)again->scores[i]));
    CHECK_NEAR(worst, 0, 2e-5);
    CHECK_NEAR(worst_score, 0, 0);
    CHECK_NEAR(found->scale_x, 200.0 / 171, 1e-6);
    theo_keypoints_free(again);
    theo_keypoints_free(found);
    theo_image_free(image);
    theo_session_close(session);
}

/* One picture in every form that an image may have. */
static void test_image_kinds(void) {
    theo_session *session = open_session(model, 0, NULL, NULL);
    theo_image *image = picture(97, 70, 3);
    const uint8_t *rgb = image->pixels;
    static uint8_t gray[97 * 70], bgra[97 * 70 * 4];
    static uint16_t wide[97 * 70];
    static float real[97 * 70];
    for (int i = 0; i < 97 * 70; i++) {
        gray[i] = rgb[3 * i];
        wide[i] = (uint16_t)(gray[i] << 8 | 0xAB);
        real[i] = (float)gray[i] / 255.0f;
        bgra[4 * i] = rgb[3 * i + 2];
        bgra[4 * i + 1] = rgb[3 * i + 1];
        bgra[4 * i + 2] = rgb[3 * i];
        bgra[4 * i + 3] = 7;
    }
    const theo_image kinds[] = {
        {.width = 97, .height = 70, .channels = 1, .type = THEO_U8, .pixels = gray},
        {.width = 97, .height = 70, .channels = 1, .type = THEO_U16, .pixels = wide},
        {.width = 97, .height = 70, .channels = 1, .type = THEO_F32, .pixels = real},
        {.width = 97, .height = 70, .channels = 4, .type = THEO_U8, .pixels = bgra},
    };
    for (int fit = 0; fit < 2; fit++) {
        theo_detect_options o = native_options();
        o.fit = fit ? THEO_FIT_LONG : THEO_FIT_NATIVE;
        o.long_side = 120;
        theo_keypoints *want = detect(session, image, &o);
        CHECK(want->net_width == (fit ? 120 : 97) && want->net_height == (fit ? 87 : 70));
        for (int i = 0; i < 4; i++) {
            o.bgr = i == 3;
            theo_keypoints *got = detect(session, &kinds[i], &o);
            CHECK_MSG(same_keypoints(want, got), "kind %d, fit %d", i, fit);
            theo_keypoints_free(got);
        }
        theo_keypoints_free(want);
    }
    /* A gray picture has no colours to mix, whatever the rule. */
    theo_detect_options o = native_options();
    theo_keypoints *want = detect(session, &kinds[0], &o);
    for (theo_gray rule = THEO_GRAY_RGB601; rule <= THEO_GRAY_LUMA; rule++) {
        o.gray = rule;
        theo_keypoints *got = detect(session, &kinds[0], &o);
        CHECK(same_keypoints(want, got));
        theo_keypoints_free(got);
    }
    theo_keypoints_free(want);
    real[1234] = NAN;
    theo_keypoints *none;
    CHECK(theo_detect(session, &kinds[2], &o, &none, &test_error) == THEO_ARGUMENT && !none);
    theo_image_free(image);
    theo_session_close(session);
}

/* Gray rules on a picture of one colour: the plane is known to the digit. */
static void test_planes(void) {
    static uint8_t pixels[8 * 8 * 3];
    for (int i = 0; i < 64; i++) {
        pixels[3 * i] = 200;
        pixels[3 * i + 1] = 100;
        pixels[3 * i + 2] = 50;
    }
    const theo_image image = {.width = 8, .height = 8, .channels = 3, .type = THEO_U8, .pixels = pixels};
    const float want[] = {200 / 255.0f, 200 / 255.0f * 0.2989f + 100 / 255.0f * 0.5870f + 50 / 255.0f * 0.1140f,
                          ((19595 * 200 + 38470 * 100 + 7471 * 50 + 32768) >> 16) / 255.0f};
    for (theo_gray rule = THEO_GRAY_RED; rule <= THEO_GRAY_LUMA; rule++) {
        theo_detect_options o = native_options();
        o.gray = rule;
        float *plane;
        int width, height;
        REQUIRE(theo_detect_plane(&image, &o, &plane, &width, &height, &test_error));
        CHECK(width == 8 && height == 8 && plane[0] == want[rule] && plane[63] == want[rule]);
        theo_buffer_free(plane);
    }
}

static void test_raw(void) {
    theo_session *session = open_session(model, 0, NULL, NULL);
    static float plane[61 * 83];
    for (int i = 0; i < 61 * 83; i++)
        plane[i] = (float)((i * 7919) % 256) / 255.0f;
    theo_superpoint_maps *all, *some;
    REQUIRE(theo_detect_raw(session, plane, 83, 61, THEO_MAP_ALL, &all, &test_error));
    CHECK(all->cells_x == 10 && all->cells_y == 7 && all->descriptor_dim == 64);
    for (int cell = 0; cell < 70; cell++) { /* softmax of the logits, unfolded; descriptors of length 1 */
        double most = -1e30, sum = 0, norm = 0;
        for (int c = 0; c < 65; c++)
            most = fmax(most, (double)all->logits[c * 70 + cell]);
        for (int c = 0; c < 65; c++)
            sum += exp((double)all->logits[c * 70 + cell] - most);
        for (int c = 0; c < 64; c++) {
            int x = cell % 10 * 8 + c % 8, y = cell / 10 * 8 + c / 8;
            CHECK_NEAR(all->scores[y * 80 + x], exp((double)all->logits[c * 70 + cell] - most) / sum, 1e-6);
            norm += (double)all->descriptors[c * 70 + cell] * (double)all->descriptors[c * 70 + cell];
        }
        CHECK_NEAR(norm, 1, 1e-5);
    }
    some = all; /* on failure the out-pointer is NULL, whatever is wrong */
    CHECK(theo_detect_raw(session, NULL, 83, 61, THEO_MAP_ALL, &some, NULL) == THEO_ARGUMENT && !some);
    theo_session *none = session;
    CHECK(theo_session_open(&none, NULL, NULL, NULL) == THEO_ARGUMENT && !none);
    for (unsigned bit = 1; bit < THEO_MAP_ALL; bit *= 2) {
        REQUIRE(theo_detect_raw(session, plane, 83, 61, bit, &some, &test_error));
        CHECK((some->scores != NULL) == (bit == THEO_MAP_SCORES) && (some->descriptors != NULL) == (bit == THEO_MAP_DESCRIPTORS));
        CHECK((some->logits != NULL) == (bit == THEO_MAP_LOGITS) && (some->raw != NULL) == (bit == THEO_MAP_RAW));
        CHECK(!some->scores || !memcmp(some->scores, all->scores, 64 * 70 * sizeof(float)));
        CHECK(!some->raw || !memcmp(some->raw, all->raw, 64 * 70 * sizeof(float)));
        theo_superpoint_maps_free(some);
    }
    CHECK(theo_detect_raw(session, plane, 83, 61, 0, &some, &test_error) == THEO_ARGUMENT);
    CHECK(theo_detect_raw(session, plane, 7, 61, THEO_MAP_ALL, &some, &test_error) == THEO_ARGUMENT);
    plane[100] = INFINITY;
    CHECK(theo_detect_raw(session, plane, 83, 61, THEO_MAP_ALL, &some, &test_error) == THEO_ARGUMENT && !some);
    theo_superpoint_maps_free(all);
    theo_session_close(session);
}

static void test_bad_options(void) {
    theo_session *session = open_session(model, 0, NULL, NULL);
    theo_image *image = picture(64, 64, 1);
    theo_keypoints *k;
#define BAD(field, value)                                                                                                        \
    do {                                                                                                                         \
        theo_detect_options bad;                                                                                                 \
        theo_detect_options_init(&bad);                                                                                          \
        bad.field = value;                                                                                                       \
        theo_status got = theo_detect(session, image, &bad, &k, &test_error);                                                    \
        CHECK_MSG(got == THEO_ARGUMENT && strstr(test_error.message, #field), "%s: %s", #field, test_error.message);             \
    } while (0)
    BAD(max_keypoints, -2);
    BAD(threshold, NAN);
    BAD(threshold, 1.5f);
    BAD(threshold, -0.1f);
    BAD(nms, (theo_nms)3);
    BAD(nms_radius, 65);
    BAD(nms_radius, -1);
    BAD(border, -1);
    BAD(border_mode, (theo_border)9);
    BAD(gray, (theo_gray)3);
    BAD(fit, (theo_fit)3);
    BAD(net_width, 7);
    BAD(net_height, 0);
    BAD(order, (theo_order)-1);
    BAD(sampling, (theo_sampling)4);
    BAD(size, 0);
    BAD(size, sizeof(theo_detect_options) + 1);
    theo_detect_options o = native_options();
    theo_image strip = {.width = 5000, .height = 1, .channels = 1, .pixels = image->pixels};
    CHECK(theo_detect(session, &strip, &o, &k, &test_error) == THEO_ARGUMENT && strstr(test_error.message, "8x8"));
    theo_image broken = {.width = 64, .height = 64, .channels = 5, .pixels = image->pixels};
    CHECK(theo_detect(session, &broken, &o, &k, &test_error) == THEO_ARGUMENT);
    broken = (theo_image){.width = 64, .height = 64, .channels = 3, .row_bytes = 100, .pixels = image->pixels};
    CHECK(theo_detect(session, &broken, &o, &k, &test_error) == THEO_ARGUMENT);
    broken = (theo_image){.width = 20, .height = 20, .channels = 1, .type = THEO_U16, .pixels = (const char *)image->pixels + 1};
    CHECK(theo_detect(session, &broken, &o, &k, &test_error) == THEO_ARGUMENT);
    broken = (theo_image){.width = 20, .height = 20, .channels = 1, .type = THEO_F32, .row_bytes = 82, .pixels = image->pixels};
    CHECK(theo_detect(session, &broken, &o, &k, &test_error) == THEO_ARGUMENT);
    CHECK(theo_detect(session, NULL, &o, &k, &test_error) == THEO_ARGUMENT);
    CHECK(theo_detect(NULL, image, &o, &k, &test_error) == THEO_ARGUMENT);
    const float far[] = {NAN, 0};
    CHECK(theo_describe(session, image, far, 1, &o, &k, &test_error) == THEO_ARGUMENT);
    /* An older program's shorter struct: the rest keeps its default. */
    o.size = offsetof(theo_detect_options, pixel_centers);
    o.descriptors = false;
    CHECK(theo_detect(session, image, &o, &k, &test_error) == THEO_OK && k->descriptor_dim == 64);
    theo_keypoints_free(k);
    theo_image_free(image);
    theo_session_close(session);
}

/* ---------------------------------------------------------------- one line of work */

typedef struct watcher {
    theo_session *session;
    const theo_image *image;
    int calls, cancel_at;
    double last;
    bool is_rising, was_busy;
} watcher;

static int watch(void *user, double done) {
    watcher *w = user;
    theo_keypoints *k;
    w->is_rising &= done >= w->last && done >= 0 && done <= 1;
    w->last = done;
    if (!w->calls++)
        w->was_busy = theo_detect(w->session, w->image, NULL, &k, NULL) == THEO_BUSY && !k;
    return w->calls == w->cancel_at;
}

static void test_progress(void) {
    for (int tiled = 0; tiled < 2; tiled++) {
        watcher w = {.is_rising = true};
        theo_image *image = picture(700, 500, 1);
        theo_detect_options o = native_options();
        w.session = open_session(model, tiled ? 360 * 360 : 0, watch, &w);
        w.image = image;
        theo_keypoints *whole = detect(w.session, image, &o), *k;
        CHECK_MSG(w.calls > 5 && w.is_rising && w.was_busy, "tiled %d: %d calls, rising %d, last %.17g, busy %d", tiled, w.calls,
                  w.is_rising, w.last, w.was_busy);
        for (int at = 1; at < w.calls; at += 1 + w.calls / 7) {
            watcher before = w;
            w.calls = 0;
            w.last = 0;
            w.cancel_at = at;
            CHECK(theo_detect(w.session, image, &o, &k, &test_error) == THEO_CANCELLED && !k);
            w = before;
        }
        w.last = 0;
        w.cancel_at = 0;
        k = detect(w.session, image, &o);
        CHECK(same_keypoints(whole, k));
        theo_keypoints_free(whole);
        theo_keypoints_free(k);
        theo_image_free(image);
        theo_session_close(w.session);
    }
}

static void test_steady_memory(void) {
    theo_image *image = picture(420, 400, 3);
    theo_detect_options o;
    theo_detect_options_init(&o);
    o.net_width = 203;
    o.net_height = 111;
    o.gray = THEO_GRAY_RGB601;
    o.max_keypoints = -1;
    for (int tiled = 0; tiled < 2; tiled++) {
        theo_session *session = open_session(model, tiled ? 1000 : 0, NULL, NULL);
        if (tiled) {
            o.net_width = 640;
            o.net_height = 420;
        }
        theo_keypoints_free(detect(session, image, &o));
        uint64_t before = theo_allocation_count();
        for (int i = 0; i < (tiled ? 5 : 100); i++)
            theo_keypoints_free(detect(session, image, &o));
        CHECK_MSG(theo_allocation_count() == before, "%llu allocations (tiled: %d)",
                  (unsigned long long)(theo_allocation_count() - before), tiled);
        theo_session_close(session);
    }
    theo_image_free(image);
}

/* Sizes come and go: four plans stay. */
static void test_plans(void) {
    theo_session *session = open_session(model, 0, NULL, NULL);
    size_t small, large;
    REQUIRE(theo_session_bytes(model, 64, 64, 0, NULL, &small, &test_error));
    REQUIRE(theo_session_bytes(model, 640, 480, 0, NULL, &large, &test_error));
    CHECK(small > 64 * 64 * 4 && large > 10 * small);
    size_t tiled, whole;
    theo_session_options never;
    theo_session_options_init(&never);
    never.tile_pixels = 0;
    REQUIRE(theo_session_bytes(model, 8000, 8000, 0, NULL, &tiled, &test_error));
    REQUIRE(theo_session_bytes(model, 8000, 8000, 0, &never, &whole, &test_error));
    CHECK(tiled < whole / 8);
    CHECK(theo_session_bytes(model, 7, 64, 0, NULL, &small, &test_error) == THEO_ARGUMENT);
    CHECK(theo_session_bytes(model, 64, 64, 100, NULL, &small, &test_error) == THEO_ARGUMENT &&
          strstr(test_error.message, "tokens"));

    theo_detect_options o = native_options();
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 6; i++) {
            theo_image *image = picture(64 + 8 * i, 72, 1);
            theo_keypoints *k = detect(session, image, &o);
            CHECK(k->net_width == 64 + 8 * i);
            theo_keypoints_free(k);
            theo_image_free(image);
        }
    REQUIRE(theo_session_prepare(session, 320, 240, 0, &test_error));
    theo_plan_report *report;
    REQUIRE(theo_session_plan(session, 640, 480, 0, &report, &test_error));
    CHECK(report->count >= 10 && report->flops > 1e9 && report->arena_bytes > 0);
    CHECK_STR(report->ops[0].name, "conv1a+conv1b+pool");
    theo_plan_report_free(report);
    theo_session_close(session);
}

typedef struct worker {
    pthread_t thread;
    theo_session *session;
    const theo_image *image;
    theo_keypoints *last;
} worker;

static void *work(void *context) {
    worker *w = context;
    theo_detect_options o = native_options();
    for (int i = 0; i < 5; i++) {
        theo_keypoints *k;
        if (theo_detect(w->session, w->image, &o, &k, NULL))
            return NULL;
        theo_keypoints_free(w->last);
        w->last = k;
    }
    return NULL;
}

/* X = x W0/W, or by pixel centres X = (x + 0.5) W0/W - 0.5; and the level that is told is the one that runs. */
static void test_coordinates(void) {
    theo_session *session = open_session(model, 0, NULL, NULL);
    theo_image *image = picture(150, 120, 1);
    theo_detect_options o;
    theo_detect_options_init(&o);
    theo_keypoints *plain, *centred;
    REQUIRE(theo_detect(session, image, &o, &plain, &test_error));
    o.pixel_centers = true;
    REQUIRE(theo_detect(session, image, &o, &centred, &test_error));
    CHECK(plain->count > 0 && plain->count == centred->count);
    for (int i = 0; i < 2 * plain->count; i++) {
        double scale = i % 2 ? 120 / 480.0 : 150 / 640.0;
        CHECK_NEAR(centred->xy[i], (double)plain->xy[i] + 0.5 * scale - 0.5, 1e-4);
    }
    theo_model_info info;
    theo_model_get_info(model, &info);
    CHECK_STR(info.isa, theo_cpu_level());
    theo_keypoints_free(plain);
    theo_keypoints_free(centred);
    theo_image_free(image);
    theo_session_close(session);
}

/* Two sessions of one model at once; their results are freed by this thread, after the sessions were closed. */
static void test_two_sessions(void) {
    theo_image *image = picture(150, 120, 3);
    worker w[2] = {{.image = image}, {.image = image}};
    for (int i = 0; i < 2; i++) {
        w[i].session = open_session(model, 0, NULL, NULL);
        CHECK(!pthread_create(&w[i].thread, NULL, work, &w[i]));
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(w[i].thread, NULL);
        theo_session_close(w[i].session);
    }
    CHECK(w[0].last && w[1].last && same_keypoints(w[0].last, w[1].last));
    theo_keypoints_free(w[0].last);
    theo_keypoints_free(w[1].last);
    theo_image_free(image);
}

int main(void) {
    model = formula_model(SMALL_NETWORK, 2);
    test_few_points();
    test_threads();
    test_describe();
    test_image_kinds();
    test_planes();
    test_raw();
    test_bad_options();
    test_progress();
    test_steady_memory();
    test_plans();
    test_coordinates();
    test_two_sessions();
    theo_model_close(model);
    return t_done("test_detect");
}
