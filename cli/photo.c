#include "photo.h"
#include "message.h"
#include <stdio.h>
#include <stdlib.h>

void photo_remember(photo *facts, const theo_image *image, double decode_ms) {
    facts->width = image->width;
    facts->height = image->height;
    facts->exif_orientation = image->exif_orientation;
    facts->orientation_applied = image->orientation_applied;
    facts->truncated = image->truncated;
    facts->decode_ms = decode_ms;
}

void json_members_photo(json_out *json, const photo *facts) {
    json_member_int(json, "width", facts->width);
    json_member_int(json, "height", facts->height);
    json_key(json, "orientation");
    json_open(json, '{');
    json_member_int(json, "exif", facts->exif_orientation);
    json_member_bool(json, "applied", facts->orientation_applied);
    json_close(json, '}');
}

void photo_warnings(json_out *json, const photo *facts, const char *path, bool aloud) {
    static const char truncated[] = "the file ends early; the missing part is gray";
    if (!facts->truncated)
        return;
    if (json) {
        char *text = text_format("%s: %s", path, truncated);
        json_string(json, text);
        free(text);
    }
    if (aloud)
        message_warning("%s: %s", path, truncated);
}

static double total(const stage_times *times) {
    return times->decode + times->network.preprocess + times->network.forward + times->network.postprocess + times->match +
           times->encode;
}

void json_member_timing(json_out *json, const stage_times *times) {
    json_key(json, "timing_ms");
    json_open(json, '{');
    json_member_double(json, "decode", times->decode);
    json_member_double(json, "preprocess", times->network.preprocess);
    json_member_double(json, "forward", times->network.forward);
    json_member_double(json, "postprocess", times->network.postprocess);
    if (times->match > 0)
        json_member_double(json, "match", times->match);
    json_member_double(json, "encode", times->encode);
    json_member_double(json, "total", total(times));
    json_close(json, '}');
}

void stage_times_add(stage_times *times, double decode_ms, const theo_timing *network) {
    times->decode += decode_ms;
    times->network.preprocess += network->preprocess;
    times->network.forward += network->forward;
    times->network.postprocess += network->postprocess;
}

char *timing_summary(const stage_times *times) {
    char match[32] = "";
    if (times->match > 0)
        snprintf(match, sizeof match, "match %.1f, ", times->match);
    return text_format(" (decode %.1f, preprocess %.1f, forward %.1f, postprocess %.1f, %sencode %.1f, total %.1f ms)",
                       times->decode, times->network.preprocess, times->network.forward, times->network.postprocess, match,
                       times->encode, total(times));
}
