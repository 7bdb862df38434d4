#include "models/moge_config.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

/* In the order of theo_moge_remap. */
static const char *const remaps[] = {"linear", "exp", "sinh", "sinh_exp", NULL};

const char *theo_moge_remap_name(theo_moge_remap remap) {
    return remaps[remap];
}

theo_status theo_moge_config_root(const theo_json **root, theo_bump *memory, const char *text, const char *file,
                                  theo_error *err) {
    THEO_TRY(theo_json_parse(root, memory, text, strlen(text), &(theo_json_options){.file = file}, err));
    const theo_json *inner = theo_json_get(*root, "model_config");
    *root = inner ? inner : *root;
    return THEO_OK;
}

bool theo_moge_is_null(const theo_json *value) {
    return !value || value->type == THEO_JSON_NULL;
}

typedef struct place_text {
    char text[96];
} place_text;

static place_text place_of(const theo_moge_place *at, const char *key) {
    place_text p;
    snprintf(p.text, sizeof p.text, "model_config.%s%s%s", at->part, *at->part && *key ? "." : "", key);
    return p;
}

theo_status theo_moge_wrong(const theo_moge_place *at, const char *key, const char *allowed) {
    return theo_fail(at->err, THEO_STRUCTURE, at->file, place_of(at, key).text, "must be %s", allowed);
}

theo_status theo_moge_unsupported(const theo_moge_place *at, const char *key, const char *value, const char *allowed) {
    return theo_fail(at->err, THEO_UNSUPPORTED, at->file, place_of(at, key).text, "\"%s\" is not supported: allowed is %s", value,
                     allowed);
}

theo_status theo_moge_read_int(int *out, const theo_json *value, int absent, int low, int high, const theo_moge_place *at,
                               const char *key) {
    *out = absent;
    if (theo_moge_is_null(value))
        return THEO_OK;
    char allowed[64];
    snprintf(allowed, sizeof allowed, "a whole number from %d to %d", low, high);
    if (value->type != THEO_JSON_NUMBER || !value->is_integer || value->integer < low || value->integer > high)
        return theo_moge_wrong(at, key, allowed);
    *out = (int)value->integer;
    return THEO_OK;
}

theo_status theo_moge_read_range(bool *is_there, int range[2], const theo_json *object, const char *key, int lowest, int highest,
                                 const theo_moge_place *at) {
    const theo_json *value = theo_json_get(object, key);
    *is_there = !theo_moge_is_null(value);
    if (!*is_there)
        return THEO_OK;
    int low, high;
    if (value->type != THEO_JSON_ARRAY || value->count != 2)
        return theo_moge_wrong(at, key, "a list of two whole numbers");
    THEO_TRY(theo_moge_read_int(&low, theo_json_at(value, 0), lowest, lowest, highest, at, key));
    THEO_TRY(theo_moge_read_int(&high, theo_json_at(value, 1), highest, low, highest, at, key));
    range[0] = low;
    range[1] = high;
    return THEO_OK;
}

theo_status theo_moge_read_name(int *which, const theo_json *object, const char *key, const char *absent,
                                const char *const *names, const theo_moge_place *at) {
    const theo_json *value = theo_json_get(object, key);
    const char *text = theo_moge_is_null(value)          ? absent
                       : value->type == THEO_JSON_STRING ? value->string
                                                         : theo_json_type_name(value);
    char allowed[128];
    size_t length = 0;
    for (int i = 0; names[i]; i++) {
        if (!strcmp(text, names[i])) {
            *which = i;
            return THEO_OK;
        }
        length += (size_t)snprintf(allowed + length, sizeof allowed - length, "%s%s", i ? ", " : "", names[i]);
    }
    return theo_moge_unsupported(at, key, text, allowed);
}

theo_status theo_moge_read_taps(theo_moge_config *c, const theo_json *value, int depth, const theo_moge_place *at) {
    static const char key[] = "intermediate_layers",
                      allowed[] = "a list of up to 8 blocks of the backbone, or how many of the last ones";
    if (value && value->type == THEO_JSON_NUMBER) { /* the last n blocks */
        THEO_TRY(
            theo_moge_read_int(&c->tap_count, value, 0, 1, depth < THEO_MOGE_MAX_TAPS ? depth : THEO_MOGE_MAX_TAPS, at, key));
        for (int i = 0; i < c->tap_count; i++)
            c->taps[i] = depth - c->tap_count + i;
        return THEO_OK;
    }
    if (!value || value->type != THEO_JSON_ARRAY || value->count < 1 || value->count > THEO_MOGE_MAX_TAPS)
        return theo_moge_wrong(at, key, allowed);
    c->tap_count = value->count;
    for (int i = 0; i < c->tap_count; i++) {
        THEO_TRY(theo_moge_read_int(&c->taps[i], theo_json_at(value, i), -1, 0, depth - 1, at, key));
        if (c->taps[i] < 0 || (i && c->taps[i] <= c->taps[i - 1]))
            return theo_moge_wrong(at, key, "rising numbers of blocks");
    }
    return THEO_OK;
}

theo_status theo_moge_read_remap(theo_moge_config *c, const theo_json *root, const theo_moge_place *at) {
    int which = 0;
    THEO_TRY(theo_moge_read_name(&which, root, "remap_output", "linear", remaps, at));
    c->remap = (theo_moge_remap)which;
    return THEO_OK;
}
