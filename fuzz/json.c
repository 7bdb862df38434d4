/* The JSON reader, strict and with bare NaN and Infinity. What it accepts is written again and must read the same. */
#include "formats/json.h"
#include "formats/text.h"
#include "fuzz.h"

#include <math.h>
#include <string.h>

static void write_value(theo_text *text, const theo_json *value) {
    switch (value->type) {
    case THEO_JSON_NULL:
        theo_text_printf(text, "null");
        break;
    case THEO_JSON_BOOL:
        theo_text_printf(text, "%s", value->truth ? "true" : "false");
        break;
    case THEO_JSON_NUMBER:
        if (value->is_integer)
            theo_text_printf(text, "%lld", (long long)value->integer);
        else
            theo_text_add_json_number(text, value->number);
        break;
    case THEO_JSON_STRING:
        theo_text_add_json_string(text, value->string);
        break;
    case THEO_JSON_ARRAY:
    case THEO_JSON_OBJECT:
        theo_text_add(text, value->type == THEO_JSON_ARRAY ? "[" : "{", 1);
        for (const theo_json *child = value->first; child; child = child->next) {
            if (child->key) {
                theo_text_add_json_string(text, child->key);
                theo_text_add(text, ":", 1);
            }
            write_value(text, child);
            theo_text_add(text, child->next ? "," : "", child->next ? 1 : 0);
        }
        theo_text_add(text, value->type == THEO_JSON_ARRAY ? "]" : "}", 1);
        break;
    }
}

static void check_equal(const theo_json *a, const theo_json *b) {
    MUST(a->type == b->type && !a->key == !b->key && (!a->key || strcmp(a->key, b->key) == 0));
    switch (a->type) {
    case THEO_JSON_NULL:
        break;
    case THEO_JSON_BOOL:
        MUST(a->truth == b->truth);
        break;
    case THEO_JSON_NUMBER:
        MUST(a->number == b->number || (isnan(a->number) && isnan(b->number)));
        break;
    case THEO_JSON_STRING:
        MUST(strcmp(a->string, b->string) == 0);
        break;
    case THEO_JSON_ARRAY:
    case THEO_JSON_OBJECT:
        MUST(a->count == b->count);
        for (a = a->first, b = b->first; a && b; a = a->next, b = b->next)
            check_equal(a, b);
        MUST(!a && !b);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    for (int nonfinite = 0; nonfinite < 2; nonfinite++) {
        theo_json_options options = {.file = "fuzz", .allow_nonfinite = nonfinite};
        theo_bump memory = {0};
        const theo_json *first, *again;
        theo_error err;
        if (theo_json_parse(&first, &memory, (const char *)data, size, &options, &err) == THEO_OK) {
            theo_text text = {0};
            write_value(&text, first);
            MUST(!text.failed);
            MUST(theo_json_parse(&again, &memory, text.data, text.length, &options, &err) == THEO_OK);
            check_equal(first, again);
            theo_text_free(&text);
        } else {
            MUST(!first && err.message[0]);
        }
        theo_bump_free(&memory);
    }
    return 0;
}
