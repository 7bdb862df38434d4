/* What the frames of a video share: the first good frame's view, or running means; failed frames change nothing. */
#include "api/sequence.h"
#include "t.h"
#include <math.h>

static theo_error test_error;

static theo_sequence_view step(theo_sequence *s, double half_width, double scale) {
    theo_sequence_view own = {half_width, scale}, view;
    theo_sequence_next(s, &own, &view);
    theo_sequence_advance(s, 320, 240, &view);
    return view;
}

static void test_first(void) {
    theo_sequence *s;
    CHECK(!theo_sequence_open(&s, THEO_SEQUENCE_FIRST, &test_error));
    CHECK(!theo_sequence_has_view(s));
    theo_sequence_view view = {0.7, 3};
    theo_sequence_next(s, NULL, &view); /* nothing is known, nothing is said */
    CHECK_NEAR(view.half_width, 0.7, 0);
    view = step(s, 0.5, 2);
    CHECK_NEAR(view.half_width, 0.5, 0);
    view = step(s, 0.9, 5);
    CHECK_NEAR(view.half_width, 0.5, 0);
    CHECK_NEAR(view.scale, 2, 0);
    theo_sequence_next(s, NULL, &view); /* a frame that says nothing gets what is known */
    CHECK_NEAR(view.scale, 2, 0);
    theo_sequence_close(s);
}

static void test_ema(void) {
    theo_sequence *s;
    CHECK(!theo_sequence_open(&s, THEO_SEQUENCE_EMA, &test_error));
    double width = log(0.5), scale = log(2);
    step(s, 0.5, 2);
    for (int i = 1; i < 5; i++) {
        theo_sequence_view view, own = {0.5 + 0.1 * i, 2 + i};
        theo_sequence_next(s, &own, &view); /* looking changes nothing */
        view = step(s, own.half_width, own.scale);
        width = 0.9 * width + 0.1 * log(own.half_width);
        scale = 0.9 * scale + 0.1 * log(own.scale);
        CHECK_NEAR(view.half_width, exp(width), 1e-12);
        CHECK_NEAR(view.scale, exp(scale), 1e-12);
    }
    theo_sequence_close(s);
}

static void test_refusals(void) {
    theo_sequence *s;
    CHECK(theo_sequence_open(&s, (theo_sequence_mode)0, &test_error) == THEO_ARGUMENT);
    CHECK(!s);
    CHECK(theo_sequence_open(NULL, THEO_SEQUENCE_EMA, &test_error) == THEO_ARGUMENT);
    CHECK(!theo_sequence_open(&s, THEO_SEQUENCE_EMA, &test_error));
    CHECK(!theo_sequence_check(s, 10, 10, &test_error)); /* any aspect before the first good frame */
    step(s, 1, 1);
    CHECK(!theo_sequence_check(s, 640, 480, &test_error));
    CHECK(theo_sequence_check(s, 641, 480, &test_error) == THEO_ARGUMENT);
    theo_sequence_close(s);
    theo_sequence_close(NULL);
}

int main(void) {
    test_first();
    test_ema();
    test_refusals();
    return t_done("sequence");
}
