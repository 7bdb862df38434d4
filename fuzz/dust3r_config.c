/* Configurations of DUSt3R, as config.json and as the constructor's call: what is read keeps to its limits, and reads the same
 * once it was written in either form. */
#include "fuzz.h"
#include "models/dust3r_synth.h"
#include "models/transformer.h"

#include <math.h>
#include <string.h>

static void check_limits(const theo_dust3r_config *c) {
    const int sizes[] = {c->enc_width, c->enc_depth, c->enc_heads, c->dec_width, c->dec_depth, c->dec_heads};
    for (int i = 0; i < 6; i++)
        MUST(sizes[i] >= 0 && sizes[i] <= THEO_TRANSFORMER_MAX_WIDTH);
    MUST(c->enc_depth <= THEO_TRANSFORMER_MAX_DEPTH && c->dec_depth <= THEO_TRANSFORMER_MAX_DEPTH);
    MUST(c->image_size >= 16 && c->image_size <= 4096 && c->image_size % 16 == 0);
    MUST(c->rope_base > 1 && isfinite(c->rope_base));
    MUST(c->head == THEO_DUST3R_DPT || c->head == THEO_DUST3R_LINEAR);
    MUST(isfinite(c->output.conf_min) && c->output.conf_max > c->output.conf_min);
    MUST(c->output.conf == THEO_CONF_EXP || isfinite(c->output.conf_max));
}

/* What a file does not tell comes from its tensors. */
static void fill_in(theo_dust3r_config *c) {
    int *const sizes[] = {&c->enc_width, &c->enc_depth, &c->enc_heads, &c->dec_width, &c->dec_depth, &c->dec_heads};
    for (int i = 0; i < 6; i++)
        *sizes[i] = *sizes[i] ? *sizes[i] : 1;
    c->is_head_told = true;
}

static bool same(const theo_dust3r_config *a, const theo_dust3r_config *b) {
    return a->enc_width == b->enc_width && a->enc_depth == b->enc_depth && a->enc_heads == b->enc_heads &&
           a->dec_width == b->dec_width && a->dec_depth == b->dec_depth && a->dec_heads == b->dec_heads &&
           a->image_size == b->image_size && a->rope_base == b->rope_base && a->head == b->head &&
           a->is_head_told == b->is_head_told && a->output.depth == b->output.depth && a->output.conf == b->output.conf &&
           a->output.conf_min == b->output.conf_min && a->output.conf_max == b->output.conf_max;
}

typedef theo_status (*reader)(theo_dust3r_config *config, const char *text, const char *file, theo_error *err);
typedef void (*writer)(theo_text *out, const theo_dust3r_config *config);

static void check_written(const theo_dust3r_config *config, reader read, writer write) {
    theo_dust3r_config back;
    theo_text text = {0};
    theo_error err;
    write(&text, config);
    theo_dust3r_config_init(&back);
    MUST(!text.failed && read(&back, text.data, "written", &err) == THEO_OK && same(config, &back));
    theo_text_free(&text);
}

static void check(const char *text, reader read) {
    theo_dust3r_config config;
    theo_error err = {.status = THEO_OK};
    theo_dust3r_config_init(&config);
    theo_status status = read(&config, text, "fuzz", &err);
    MUST(!status || (err.status == status && err.message[0]));
    if (status)
        return;
    check_limits(&config);
    fill_in(&config);
    check_written(&config, theo_dust3r_config_parse, theo_dust3r_add_config);
    check_written(&config, theo_dust3r_config_from_call, theo_dust3r_add_call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    MUST(text);
    memcpy(text, data, size);
    text[size] = 0;
    check(text, theo_dust3r_config_parse);
    check(text, theo_dust3r_config_from_call);
    free(text);
    return 0;
}
