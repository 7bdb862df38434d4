#include "api/options.h"
#include "base/error.h"
#include "models/superpoint.h"

void theo_model_options_init(theo_model_options *o) {
    *o = (theo_model_options){.size = sizeof *o, .precision = "fp32", .verify_checksums = true};
}

void theo_session_options_init(theo_session_options *o) {
    *o = (theo_session_options){.size = sizeof *o, .tile_pixels = (int64_t)1 << 21};
}

void theo_detect_options_init(theo_detect_options *o) {
    *o = (theo_detect_options){
        .size = sizeof *o,
        .max_keypoints = 1024,
        .threshold = 0.005f,
        .nms = THEO_NMS_ITERATIVE,
        .nms_radius = 4,
        .border = 4,
        .border_mode = THEO_BORDER_FOUR,
        .gray = THEO_GRAY_RED,
        .fit = THEO_FIT_EXACT,
        .net_width = 640,
        .net_height = 480,
        .order = THEO_ORDER_SCORE,
        .sampling = THEO_SAMPLING_A,
        .descriptors = true,
    };
}

void theo_detect_options_hf(theo_detect_options *o) {
    o->gray = THEO_GRAY_RGB601;
    o->border_mode = THEO_BORDER_HF;
    o->max_keypoints = -1;
    o->order = THEO_ORDER_RASTER;
}

static theo_status range(theo_error *err, const char *field, long long value, long long low, long long high) {
    if (value >= low && value <= high)
        return THEO_OK;
    return theo_fail(err, THEO_ARGUMENT, NULL, field, "%lld is out of range: allowed is %lld to %lld", value, low, high);
}

theo_status theo_detect_options_check(const theo_detect_options *o, theo_error *err) {
    if (o->max_keypoints < -1)
        return theo_fail(err, THEO_ARGUMENT, NULL, "max_keypoints", "%d is out of range: allowed is -1 (all) or at least 0",
                         o->max_keypoints);
    if (!(o->threshold >= 0 && o->threshold <= 1))
        return theo_fail(err, THEO_ARGUMENT, NULL, "threshold", "%g is out of range: allowed is 0 to 1", (double)o->threshold);
    THEO_TRY(range(err, "nms", o->nms, THEO_NMS_ITERATIVE, THEO_NMS_GREEDY));
    THEO_TRY(range(err, "nms_radius", o->nms_radius, 0, 64));
    if (o->border < 0)
        return theo_fail(err, THEO_ARGUMENT, NULL, "border", "%d is out of range: allowed is at least 0", o->border);
    THEO_TRY(range(err, "border_mode", o->border_mode, THEO_BORDER_FOUR, THEO_BORDER_HF));
    THEO_TRY(range(err, "gray", o->gray, THEO_GRAY_RED, THEO_GRAY_LUMA));
    THEO_TRY(range(err, "fit", o->fit, THEO_FIT_EXACT, THEO_FIT_LONG));
    if (o->fit == THEO_FIT_EXACT) {
        THEO_TRY(range(err, "net_width", o->net_width, THEO_SUPERPOINT_MIN_SIDE, THEO_SUPERPOINT_MAX_SIDE));
        THEO_TRY(range(err, "net_height", o->net_height, THEO_SUPERPOINT_MIN_SIDE, THEO_SUPERPOINT_MAX_SIDE));
    }
    if (o->fit == THEO_FIT_LONG)
        THEO_TRY(range(err, "long_side", o->long_side, THEO_SUPERPOINT_MIN_SIDE, THEO_SUPERPOINT_MAX_SIDE));
    THEO_TRY(range(err, "order", o->order, THEO_ORDER_SCORE, THEO_ORDER_RASTER));
    return range(err, "sampling", o->sampling, THEO_SAMPLING_A, THEO_SAMPLING_C);
}
