/* Configurations of both generations of MoGe: what is read keeps to its limits, and reads the same once it was written. */
#include "fuzz.h"
#include "models/moge_synth.h"

#include <string.h>

enum { DEPTH = 12, WIDTH = 384 };

static void check_common(const theo_moge_config *c) {
    MUST(c->tap_count >= 1 && c->tap_count <= THEO_MOGE_MAX_TAPS);
    for (int i = 0; i < c->tap_count; i++)
        MUST(c->taps[i] >= (i ? c->taps[i - 1] + 1 : 0) && c->taps[i] < DEPTH);
    MUST(c->features >= 1 && c->features <= THEO_MOGE_MAX_CHANNELS);
    MUST(c->min_tokens >= 1 && c->max_tokens >= c->min_tokens);
}

static bool same_common(const theo_moge_config *a, const theo_moge_config *b) {
    return a->tap_count == b->tap_count && !memcmp(a->taps, b->taps, (size_t)a->tap_count * sizeof *a->taps) &&
           a->features == b->features && a->remap == b->remap && a->min_tokens == b->min_tokens && a->max_tokens == b->max_tokens;
}

static bool same_stack(const theo_moge2_stack_config *a, const theo_moge2_stack_config *b) {
    return !memcmp(a->in, b->in, sizeof a->in) && !memcmp(a->width, b->width, sizeof a->width) &&
           !memcmp(a->out, b->out, sizeof a->out) && !memcmp(a->blocks, b->blocks, sizeof a->blocks) &&
           !memcmp(a->is_transposed, b->is_transposed, sizeof a->is_transposed) && a->hidden == b->hidden &&
           a->in_norm == b->in_norm && a->hidden_norm == b->hidden_norm && a->f == b->f;
}

static void check_two(const char *text) {
    theo_moge_config common, again;
    theo_moge2_config c, back;
    theo_error err;
    if (theo_moge2_config_parse(&c, &common, text, DEPTH, "fuzz", &err)) {
        MUST(err.message[0]);
        return;
    }
    check_common(&common);
    theo_text written = {0};
    theo_moge2_add_config(&written, WIDTH, &common, &c);
    MUST(!written.failed && theo_moge2_config_parse(&back, &again, written.data, DEPTH, "written", &err) == THEO_OK);
    theo_text_free(&written);
    MUST(same_common(&common, &again) && c.has_mask == back.has_mask && c.has_normal == back.has_normal &&
         c.has_scale == back.has_scale);
    MUST(same_stack(&c.neck, &back.neck) && same_stack(&c.points, &back.points));
    MUST(!c.has_mask || same_stack(&c.mask, &back.mask));
    MUST(!c.has_normal || same_stack(&c.normal, &back.normal));
}

static void check_one(const char *text) {
    theo_moge_config common, again;
    theo_moge1_config c, back;
    theo_error err;
    if (theo_moge1_config_parse(&c, &common, text, DEPTH, "fuzz", &err)) {
        MUST(err.message[0]);
        return;
    }
    check_common(&common);
    MUST(c.stages >= 1 && c.stages <= THEO_MOGE1_MAX_STAGES);
    theo_text written = {0};
    theo_moge1_add_config(&written, WIDTH, &common, &c);
    MUST(!written.failed && theo_moge1_config_parse(&back, &again, written.data, DEPTH, "written", &err) == THEO_OK);
    theo_text_free(&written);
    MUST(same_common(&common, &again) && c.stages == back.stages && c.blocks == back.blocks && c.hidden == back.hidden &&
         c.is_hidden_grouped == back.is_hidden_grouped && c.last_channels == back.last_channels &&
         !memcmp(c.width, back.width, (size_t)c.stages * sizeof *c.width));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    MUST(text);
    memcpy(text, data, size);
    text[size] = 0;
    check_two(text);
    check_one(text);
    free(text);
    return 0;
}
