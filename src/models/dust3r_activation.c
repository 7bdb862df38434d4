/* In double, so that only the last step rounds: raw values are of magnitude 1 to 30, and exp of them is sensitive. */
#include "models/dust3r.h"
#include <math.h>

/* What a point's distance from the origin becomes, over that distance. */
static double stretch(theo_depth_mode mode, double distance) {
    switch (mode) {
    case THEO_DEPTH_EXP:
        return expm1(distance) / fmax(distance, 1e-8);
    case THEO_DEPTH_SQUARE:
        return distance * distance / fmax(distance, 1e-8);
    case THEO_DEPTH_LINEAR:
        break;
    }
    return 1;
}

static double confidence(const theo_dust3r_output *rule, double x) {
    double range = rule->conf_max - rule->conf_min, e = exp(x);
    if (rule->conf == THEO_CONF_SIGMOID)
        return range / (1 + exp(-x)) + rule->conf_min;
    return rule->conf_min + (e > range ? range : e); /* not a number stays so */
}

void theo_dust3r_activate(const theo_dust3r_output *rule, const float raw[THEO_DUST3R_CHANNELS], float point[3], float *conf) {
    double x = (double)raw[0], y = (double)raw[1], z = (double)raw[2], factor = stretch(rule->depth, sqrt(x * x + y * y + z * z));
    point[0] = (float)(x * factor);
    point[1] = (float)(y * factor);
    point[2] = (float)(z * factor);
    *conf = (float)confidence(rule, (double)raw[3]);
}
