#include "models/dust3r_config.h"
#include "base/error.h"
#include "formats/text.h"
#include "models/transformer.h"
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_WIDTH = THEO_TRANSFORMER_MAX_WIDTH, LARGEST_DEPTH = THEO_TRANSFORMER_MAX_DEPTH, LARGEST_SIDE = 4096 };

void theo_dust3r_config_init(theo_dust3r_config *c) {
    *c = (theo_dust3r_config){
        .image_size = 512,
        .rope_base = 100,
        .output = {.depth = THEO_DEPTH_EXP, .conf = THEO_CONF_EXP, .conf_min = 1, .conf_max = INFINITY},
    };
}

/* ---------------------------------------------------------------- config.json */

static theo_status wrong(const char *file, const char *key, const char *allowed, theo_error *err) {
    return theo_fail(err, THEO_STRUCTURE, file, key, "must be %s", allowed);
}

static theo_status read_int(int *out, const theo_json *config, const char *key, int high, const char *file, theo_error *err) {
    const theo_json *value = theo_json_get(config, key);
    char allowed[64];
    if (!value || value->type == THEO_JSON_NULL)
        return THEO_OK;
    snprintf(allowed, sizeof allowed, "a whole number from 1 to %d", high);
    if (value->type != THEO_JSON_NUMBER || !value->is_integer || value->integer < 1 || value->integer > high)
        return wrong(file, key, allowed, err);
    *out = (int)value->integer;
    return THEO_OK;
}

/* A setting that must be the one that this program can do, or absent. */
static theo_status require(const theo_json *config, const char *key, const char *const *allowed, int count, int *which,
                           const char *file, theo_error *err) {
    const theo_json *value = theo_json_get(config, key);
    if (!value || value->type == THEO_JSON_NULL)
        return THEO_OK;
    const char *text = value->type == THEO_JSON_STRING ? value->string : theo_json_type_name(value);
    for (int i = 0; i < count; i++)
        if (value->type == THEO_JSON_STRING && !strcmp(text, allowed[i])) {
            *which = i;
            return THEO_OK;
        }
    char list[128];
    size_t n = 0;
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", allowed[i]);
    return theo_fail(err, THEO_UNSUPPORTED, file, key, "\"%s\" is not supported: allowed is %s", text, list);
}

/* A number, or "inf" and "-inf" as text. */
static bool is_number(const theo_json *value, double *out) {
    if (value && value->type == THEO_JSON_NUMBER) {
        *out = value->number;
        return true;
    }
    if (value && value->type == THEO_JSON_STRING && (!strcmp(value->string, "inf") || !strcmp(value->string, "-inf"))) {
        *out = *value->string == '-' ? -INFINITY : INFINITY;
        return true;
    }
    return false;
}

/* [name, low, high] */
static theo_status read_mode(const theo_json *config, const char *key, const char *const *names, int count, int *which,
                             double *low, double *high, const char *file, theo_error *err) {
    const theo_json *value = theo_json_get(config, key);
    if (!value || value->type == THEO_JSON_NULL)
        return THEO_OK;
    const theo_json *name = theo_json_at(value, 0);
    bool fits = value->type == THEO_JSON_ARRAY && value->count == 3 && name->type == THEO_JSON_STRING &&
                is_number(theo_json_at(value, 1), low) && is_number(theo_json_at(value, 2), high);
    for (int i = 0; fits && i < count; i++)
        if (!strcmp(name->string, names[i])) {
            *which = i;
            return THEO_OK;
        }
    char allowed[128];
    size_t n = (size_t)snprintf(allowed, sizeof allowed, "[name, lowest, highest] with the name");
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(allowed + n, sizeof allowed - n, "%s %s", i ? " or" : "", names[i]);
    return wrong(file, key, allowed, err);
}

static theo_status read_modes(theo_dust3r_config *c, const theo_json *config, const char *file, theo_error *err) {
    static const char *const depths[] = {"exp", "linear", "square"}, *const confs[] = {"exp", "sigmoid"};
    int depth = (int)c->output.depth, conf = (int)c->output.conf;
    double low = -INFINITY, high = INFINITY;
    THEO_TRY(read_mode(config, "depth_mode", depths, 3, &depth, &low, &high, file, err));
    if (low != -INFINITY || high != INFINITY)
        return theo_fail(err, THEO_UNSUPPORTED, file, "depth_mode",
                         "limits of the depth are not supported: needed are -inf and inf");
    THEO_TRY(read_mode(config, "conf_mode", confs, 2, &conf, &c->output.conf_min, &c->output.conf_max, file, err));
    if (!isfinite(c->output.conf_min) || !(c->output.conf_max > c->output.conf_min) ||
        (conf == THEO_CONF_SIGMOID && isinf(c->output.conf_max)))
        return wrong(file, "conf_mode", "a finite lowest and a larger highest confidence", err);
    c->output.depth = (theo_depth_mode)depth;
    c->output.conf = (theo_conf_mode)conf;
    return THEO_OK;
}

static theo_status read_rope(theo_dust3r_config *c, const theo_json *config, const char *file, theo_error *err) {
    const theo_json *value = theo_json_get(config, "pos_embed");
    if (!value || value->type == THEO_JSON_NULL)
        return THEO_OK;
    const char *text = value->type == THEO_JSON_STRING ? value->string : "";
    char *end = NULL;
    double base = strncmp(text, "RoPE", 4) || !isdigit((unsigned char)text[4]) ? 0 : theo_text_to_number(text + 4, &end);
    if (!(base > 1) || *end || !isfinite(base))
        return theo_fail(err, THEO_UNSUPPORTED, file, "pos_embed",
                         "\"%s\" is not supported: allowed is RoPE with its base, such as RoPE100", text);
    c->rope_base = base;
    return THEO_OK;
}

static theo_status read_image_size(theo_dust3r_config *c, const theo_json *config, const char *file, theo_error *err) {
    const theo_json *value = theo_json_get(config, "img_size");
    if (!value || value->type == THEO_JSON_NULL)
        return THEO_OK;
    int largest = 0;
    for (int i = 0; i < (value->type == THEO_JSON_ARRAY ? value->count : 1); i++) {
        const theo_json *side = value->type == THEO_JSON_ARRAY ? theo_json_at(value, i) : value;
        if (side->type != THEO_JSON_NUMBER || !side->is_integer || side->integer < 16 || side->integer > LARGEST_SIDE ||
            side->integer % 16)
            return wrong(file, "img_size", "multiples of 16 up to 4096", err);
        largest = side->integer > largest ? (int)side->integer : largest;
    }
    c->image_size = largest ? largest : c->image_size;
    return THEO_OK;
}

static theo_status read_config(theo_dust3r_config *c, const theo_json *config, const char *file, theo_error *err) {
    static const char *const heads[] = {"dpt", "linear"}, *const outputs[] = {"pts3d"},
                             *const embeds[] = {"PatchEmbedDust3R", "ManyAR_PatchEmbed"};
    if (config->type != THEO_JSON_OBJECT)
        return wrong(file, "config", "an object", err);
    const struct {
        const char *key;
        int *value, high;
    } sizes[] = {
        {"enc_embed_dim", &c->enc_width, LARGEST_WIDTH}, {"enc_depth", &c->enc_depth, LARGEST_DEPTH},
        {"enc_num_heads", &c->enc_heads, LARGEST_WIDTH}, {"dec_embed_dim", &c->dec_width, LARGEST_WIDTH},
        {"dec_depth", &c->dec_depth, LARGEST_DEPTH},     {"dec_num_heads", &c->dec_heads, LARGEST_WIDTH},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        THEO_TRY(read_int(sizes[i].value, config, sizes[i].key, sizes[i].high, file, err));
    int head = -1, ignored = 0, patch = 16;
    THEO_TRY(require(config, "output_mode", outputs, 1, &ignored, file, err));
    THEO_TRY(require(config, "head_type", heads, 2, &head, file, err));
    THEO_TRY(require(config, "patch_embed_cls", embeds, 2, &ignored, file, err));
    THEO_TRY(read_int(&patch, config, "patch_size", 64, file, err));
    if (patch != 16)
        return theo_fail(err, THEO_UNSUPPORTED, file, "patch_size", "%d is not supported: allowed is 16", patch);
    if (head >= 0) {
        c->head = (theo_dust3r_head)head;
        c->is_head_told = true;
    }
    THEO_TRY(read_rope(c, config, file, err));
    THEO_TRY(read_image_size(c, config, file, err));
    return read_modes(c, config, file, err);
}

theo_status theo_dust3r_config_parse(theo_dust3r_config *c, const char *text, const char *file, theo_error *err) {
    theo_bump memory = {0};
    const theo_json *config;
    theo_status status =
        theo_json_parse(&config, &memory, text, strlen(text), &(theo_json_options){.file = file, .allow_nonfinite = true}, err);
    if (!status)
        status = read_config(c, config, file, err);
    theo_bump_free(&memory);
    return status;
}

/* ---------------------------------------------------------------- the constructor's call */

/* A Python literal (number, string, True, False, None, inf, tuple or list of them) as JSON. Returns what follows it; NULL: none.
 */
static const char *add_literal(theo_text *out, const char *at, int depth);

static const char *skip_blanks(const char *at) {
    return at + strspn(at, " \t\n");
}

static const char *add_sequence(theo_text *out, const char *at, int depth) {
    char closing = *at == '(' ? ')' : ']';
    theo_text_add(out, "[", 1);
    at = skip_blanks(at + 1);
    for (bool first = true; *at != closing; first = false) {
        if (!first)
            theo_text_add(out, ", ", 2);
        at = add_literal(out, at, depth + 1);
        if (!at)
            return NULL;
        at = skip_blanks(at);
        if (*at == ',')
            at = skip_blanks(at + 1);
        else if (*at != closing)
            return NULL;
    }
    theo_text_add(out, "]", 1);
    return at + 1;
}

static const char *add_string(theo_text *out, const char *at) {
    char quote = *at++;
    size_t length = strcspn(at, quote == '"' ? "\"\\" : "'\\");
    char text[256];
    if (at[length] != quote || length >= sizeof text)
        return NULL;
    memcpy(text, at, length);
    text[length] = 0;
    theo_text_add_json_string(out, text);
    return at + length + 1;
}

static const char *add_word(theo_text *out, const char *at) {
    static const struct {
        const char *python, *json;
    } words[] = {{"True", "true"}, {"False", "false"}, {"None", "null"}, {"inf", "\"inf\""}, {"-inf", "\"-inf\""}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t n = strlen(words[i].python);
        if (!strncmp(at, words[i].python, n) && !isalnum((unsigned char)at[n]) && at[n] != '_') {
            theo_text_printf(out, "%s", words[i].json);
            return at + n;
        }
    }
    char *end;
    bool is_start = isdigit((unsigned char)*at) || (*at == '-' && isdigit((unsigned char)at[1]));
    double number = is_start ? theo_text_to_number(at, &end) : 0;
    if (!is_start || isalnum((unsigned char)*end) || !isfinite(number))
        return NULL;
    theo_text_add_json_number(out, number);
    return end;
}

static const char *add_literal(theo_text *out, const char *at, int depth) {
    at = skip_blanks(at);
    if (depth > 8)
        return NULL;
    if (*at == '(' || *at == '[')
        return add_sequence(out, at, depth);
    if (*at == '"' || *at == '\'')
        return add_string(out, at);
    return add_word(out, at);
}

/* NAME=LITERAL, ... up to the closing bracket, as the members of an object. False where the text is something else. */
static bool add_settings(theo_text *out, const char *at) {
    for (bool first = true;; first = false) {
        at = skip_blanks(at);
        if (*at == ')')
            return !*skip_blanks(at + 1);
        size_t length = 0;
        while (isalnum((unsigned char)at[length]) || at[length] == '_')
            length++;
        const char *equals = skip_blanks(at + length);
        if (!length || *equals != '=')
            return false;
        theo_text_printf(out, "%s\"%.*s\": ", first ? "" : ", ", (int)length, at);
        at = add_literal(out, equals + 1, 0);
        if (!at)
            return false;
        at = skip_blanks(at);
        if (*at == ',')
            at++;
        else if (*at != ')')
            return false;
    }
}

theo_status theo_dust3r_config_from_call(theo_dust3r_config *c, const char *call, const char *file, theo_error *err) {
    static const char name[] = "AsymmetricCroCo3DStereo";
    size_t length = strcspn(call, "(");
    const char *start = skip_blanks(call);
    if (strncmp(start, name, sizeof name - 1) || !call[length])
        return theo_fail(err, THEO_UNSUPPORTED, file, "args.model", "\"%.*s\" is not supported: allowed is %s",
                         (int)(length < 80 ? length : 80), call, name);
    theo_text text = {0};
    theo_text_add(&text, "{", 1);
    bool fits = add_settings(&text, call + length + 1);
    theo_text_add(&text, "}", 1);
    theo_status status;
    if (text.failed)
        status = theo_fail(err, THEO_MEMORY, file, NULL, "out of memory");
    else if (!fits)
        status = theo_fail(err, THEO_STRUCTURE, file, "args.model", "is not a list of settings name=value with plain values");
    else
        status = theo_dust3r_config_parse(c, text.data, file, err);
    theo_text_free(&text);
    return status;
}

/* ---------------------------------------------------------------- the tensors */

static int rows_of(const theo_weights *weights, const char *name) {
    const theo_weight *w = theo_weights_find(weights, name);
    return w && w->rank && w->shape[0] > 0 && w->shape[0] <= LARGEST_WIDTH ? (int)w->shape[0] : 0;
}

void theo_dust3r_config_complete(theo_dust3r_config *c, const theo_weights *weights) {
    enum { HEAD = 64 };
    if (!c->enc_width)
        c->enc_width = rows_of(weights, "patch_embed.proj.weight");
    if (!c->dec_width)
        c->dec_width = rows_of(weights, "decoder_embed.weight");
    if (!c->enc_depth)
        c->enc_depth = theo_transformer_depth(weights, "enc_blocks.");
    if (!c->dec_depth)
        c->dec_depth = theo_transformer_depth(weights, "dec_blocks.");
    if (!c->enc_heads)
        c->enc_heads = c->enc_width / HEAD;
    if (!c->dec_heads)
        c->dec_heads = c->dec_width / HEAD;
    if (!c->is_head_told)
        c->head = theo_weights_find(weights, "downstream_head1.proj.weight") ? THEO_DUST3R_LINEAR : THEO_DUST3R_DPT;
}
