/* theo_detect_batch: order, failures of single images, stopping. */
#include "superpoint_fixture.h"

typedef struct batch {
    int made, seen, bad, stop_at, failures;
    bool is_ordered;
    int counts[16];
} batch;

static theo_status make(void *user, int index, theo_image **image, theo_error *err) {
    batch *b = user;
    b->made++;
    if (index == b->bad) {
        memset(err, 0, sizeof *err);
        err->status = THEO_IO;
        snprintf(err->message, sizeof err->message, "image %d is broken", index);
        return THEO_IO;
    }
    *image = picture(64 + 8 * index, 64, 1);
    return THEO_OK;
}

static int take(void *user, int index, const theo_image *image, theo_keypoints *keypoints, const theo_error *err) {
    batch *b = user;
    b->is_ordered &= index == b->seen++;
    if (err) {
        b->failures++;
        CHECK(!keypoints && !image && err->status == THEO_IO && strstr(err->message, "broken"));
    } else {
        CHECK(image && image->width == 64 + 8 * index && keypoints->image_width == image->width);
        b->counts[index] = keypoints->count;
    }
    theo_keypoints_free(keypoints);
    return index == b->stop_at;
}

int main(void) {
    theo_model *model = formula_model(SMALL_NETWORK, 2);
    theo_session *session = open_session(model, 0, NULL, NULL);
    theo_detect_options o = native_options();

    batch b = {.bad = 3, .stop_at = -1, .is_ordered = true};
    REQUIRE(theo_detect_batch(session, 9, make, take, &b, &o, &test_error));
    CHECK(b.made == 9 && b.seen == 9 && b.failures == 1 && b.is_ordered);
    for (int i = 0; i < 9; i++) {
        theo_image *image = picture(64 + 8 * i, 64, 1);
        theo_keypoints *k = detect(session, image, &o);
        CHECK(i == 3 || k->count == b.counts[i]);
        theo_keypoints_free(k);
        theo_image_free(image);
    }

    batch stopped = {.bad = -1, .stop_at = 2, .is_ordered = true};
    CHECK(theo_detect_batch(session, 16, make, take, &stopped, &o, &test_error) == THEO_CANCELLED);
    CHECK(stopped.seen == 3 && stopped.made <= 6 && stopped.is_ordered);

    batch none = {.bad = -1, .stop_at = -1, .is_ordered = true};
    REQUIRE(theo_detect_batch(session, 0, make, take, &none, NULL, &test_error));
    CHECK(none.made == 0 && none.seen == 0);
    CHECK(theo_detect_batch(session, -1, make, take, &none, NULL, &test_error) == THEO_ARGUMENT);
    CHECK(theo_detect_batch(session, 1, NULL, take, &none, NULL, &test_error) == THEO_ARGUMENT);
    o.nms_radius = 99;
    CHECK(theo_detect_batch(session, 1, make, take, &none, &o, &test_error) == THEO_ARGUMENT && none.made == 0);

    theo_session_close(session);
    theo_model_close(model);
    return t_done("test_batch");
}
