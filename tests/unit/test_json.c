/* The JSON reader: values, escapes, numbers, and one text for every way to be malformed. */
#include "formats/json.h"
#include "formats/text.h"
#include "t.h"

#include <theo/theo.h>

/* Parses; the error's message or "" */
static const char *parse(const theo_json **root, theo_bump *memory, const char *text, const theo_json_options *options) {
    static theo_error err;
    theo_bump_free(memory);
    theo_status status = theo_json_parse(root, memory, text, strlen(text), options, &err);
    CHECK((status == THEO_OK) == (*root != NULL));
    return status == THEO_OK ? "" : err.message;
}

static void test_values(void) {
    theo_bump memory = {0};
    const theo_json *root;
    CHECK_STR(parse(&root, &memory, " {\"a\": [1, -2.5e3, true, false, null], \"b\": {\"c\": \"d\"}, \"\": \"\"}\r\n", NULL), "");
    CHECK(root->type == THEO_JSON_OBJECT && root->count == 3);
    const theo_json *a = theo_json_get(root, "a");
    CHECK(a && a->type == THEO_JSON_ARRAY && a->count == 5);
    CHECK(theo_json_at(a, 0)->is_integer && theo_json_at(a, 0)->integer == 1 && theo_json_at(a, 0)->number == 1);
    CHECK(!theo_json_at(a, 1)->is_integer && theo_json_at(a, 1)->number == -2500);
    CHECK(theo_json_at(a, 2)->truth && !theo_json_at(a, 3)->truth && theo_json_at(a, 3)->type == THEO_JSON_BOOL);
    CHECK(theo_json_at(a, 4)->type == THEO_JSON_NULL);
    CHECK(!theo_json_at(a, 5) && !theo_json_at(a, -1) && !theo_json_at(root, 0) && !theo_json_get(a, "a") &&
          !theo_json_get(root, "z"));
    CHECK_STR(theo_json_get(theo_json_get(root, "b"), "c")->string, "d");
    CHECK_STR(theo_json_get(root, "")->string, "");

    CHECK_STR(parse(&root, &memory, "9223372036854775807", NULL), "");
    CHECK(root->is_integer && root->integer == INT64_MAX);
    CHECK_STR(parse(&root, &memory, "-9223372036854775808", NULL), "");
    CHECK(root->is_integer && root->integer == INT64_MIN);
    CHECK_STR(parse(&root, &memory, "9223372036854775808", NULL), "");
    CHECK(!root->is_integer && root->number == 9223372036854775808.0);
    CHECK_STR(parse(&root, &memory, "0.00392156862745098", NULL), "");
    CHECK(root->number == 0.00392156862745098);
    CHECK_STR(parse(&root, &memory, "-0", NULL), "");
    CHECK(root->is_integer && root->integer == 0);

    CHECK_STR(parse(&root, &memory, "\"\\\"\\\\\\/\\b\\f\\n\\r\\t \\u00e9 \\u20AC \\ud83d\\ude00 \xc3\xa9\"", NULL), "");
    CHECK_STR(root->string, "\"\\/\b\f\n\r\t \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xc3\xa9");
    theo_bump_free(&memory);
}

static void test_malformed(void) {
    static const char *const texts[] = {
        "",
        " ",
        "{",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "[,1]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "[1 2]",
        "1 2",
        "{} {}",
        "nul",
        "True",
        "+1",
        "01",
        "-",
        "-a",
        "1.",
        ".5",
        "1e",
        "1e+",
        "0x10",
        "1e999",
        "-1e999",
        "NaN",
        "Infinity",
        "-Infinity",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\u0000\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "\"\x01\"",
        "\"\n\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "\"\xe2\x82\"",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}",
        "[1}",
        "{\"a\":1]",
        "// c\n1",
        "[\"a\" \"b\"]",
        "'a'",
        "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,\"h\":1,\"i\":1,\"c\":1}",
    };
    theo_bump memory = {0};
    const theo_json *root;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        CHECK_MSG(parse(&root, &memory, texts[i], NULL)[0], "accepted: %s", texts[i]);
    /* Says where. */
    CHECK(strstr(parse(&root, &memory, "{\n  \"a\": 1,\n  \"b\" 2}", NULL), "line 3, column 7"));
    CHECK(strstr(parse(&root, &memory, "[1", &(theo_json_options){.file = "x.json"}), "x.json"));
    /* An embedded zero byte ends nothing. */
    theo_error err;
    CHECK(theo_json_parse(&root, &memory, "1\0", 2, NULL, &err) == THEO_CONTAINER);
    CHECK(theo_json_parse(&root, &memory, "\"a\0b\"", 5, NULL, &err) == THEO_CONTAINER);

    char number[1200];
    memset(number, '1', sizeof number - 1);
    number[sizeof number - 1] = 0;
    CHECK(strstr(parse(&root, &memory, number, NULL), "1000 characters"));
    theo_bump_free(&memory);
}

static void test_options(void) {
    theo_bump memory = {0};
    const theo_json *root;
    theo_json_options nonfinite = {.allow_nonfinite = true};
    CHECK_STR(parse(&root, &memory, "[NaN, Infinity, -Infinity, -1]", &nonfinite), "");
    CHECK(isnan(theo_json_at(root, 0)->number) && theo_json_at(root, 1)->number > 1e308 &&
          theo_json_at(root, 2)->number < -1e308);
    CHECK(theo_json_at(root, 3)->integer == -1);
    CHECK(parse(&root, &memory, "[-Inf]", &nonfinite)[0]);

    CHECK_STR(parse(&root, &memory, "[[[]]]", &(theo_json_options){.max_depth = 3}), "");
    CHECK(parse(&root, &memory, "[[[[]]]]", &(theo_json_options){.max_depth = 3})[0]);
    char deep[200];
    memset(deep, '[', sizeof deep);
    theo_error err;
    CHECK(theo_json_parse(&root, &memory, deep, sizeof deep, NULL, &err) == THEO_CONTAINER && strstr(err.message, "deep"));
    theo_bump_free(&memory);
}

static void test_text(void) {
    theo_text text = {0};
    theo_text_add_json_string(&text, "a\"b\\c\n\xc3\xa9\xff");
    CHECK_STR(text.data, "\"a\\\"b\\\\c\\u000a\xc3\xa9\xef\xbf\xbd\"");
    theo_text_free(&text);
    const double values[] = {0.1, 1, 1e300, -2.5, 0.00392156862745098, 1.0 / 3};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        theo_text_add_json_number(&text, values[i]);
        CHECK(strtod(text.data, NULL) == values[i]);
        theo_text_free(&text);
    }
    theo_text_add_json_number(&text, 0.1);
    CHECK_STR(text.data, "0.1");
    theo_text_free(&text);
}

int main(void) {
    test_values();
    test_malformed();
    test_options();
    test_text();
    return t_done("json");
}
