#include "formats/json.h"

#include "base/error.h"
#include "formats/names.h"
#include "formats/text.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_DEPTH = 64, LONGEST_NUMBER = 1000, FEW_MEMBERS = 8 };

typedef struct parser {
    const char *start, *at, *end;
    theo_bump *memory;
    const theo_json_options *options;
    locale_t c_locale; /* numbers have a point whatever the caller's locale says */
    theo_error *err;
} parser;

static theo_status parse_value(parser *p, theo_json *value, int depth);

/* A failure at the parser's place. */
static theo_status malformed(parser *p, const char *what) {
    int line = 1;
    const char *line_start = p->start;
    for (const char *s = p->start; s < p->at; s++)
        if (*s == '\n') {
            line++;
            line_start = s + 1;
        }
    return theo_fail(p->err, THEO_CONTAINER, p->options->file, NULL, "JSON line %d, column %lld: %s", line,
                     (long long)(p->at - line_start) + 1, what);
}

static theo_status out_of_memory(parser *p) {
    return theo_fail(p->err, THEO_MEMORY, p->options->file, NULL, "out of memory for the JSON tree");
}

static void skip_space(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

static bool take_word(parser *p, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(p->end - p->at) < length || memcmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

static bool is_digit(const parser *p) {
    return p->at < p->end && *p->at >= '0' && *p->at <= '9';
}

static void skip_digits(parser *p) {
    while (is_digit(p))
        p->at++;
}

/* The four hex digits of \uXXXX, or -1. */
static int32_t take_hex4(parser *p) {
    int32_t code = 0;
    if (p->end - p->at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = *p->at++;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        code = code * 16 + digit;
    }
    return code;
}

/* What follows a backslash. */
static theo_status parse_escape(parser *p, char **out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (p->at == p->end)
        return malformed(p, "the text ends inside of a string");
    char c = *p->at++;
    if (c != 'u') {
        const char *found = c ? strchr(from, c) : NULL;
        if (!found)
            return malformed(p, "unknown escape in a string");
        *(*out)++ = to[found - from];
        return THEO_OK;
    }
    int32_t code = take_hex4(p);
    if (code >= 0xd800 && code < 0xdc00) {
        int32_t low = take_word(p, "\\u") ? take_hex4(p) : -1;
        if (low < 0xdc00 || low >= 0xe000)
            return malformed(p, "a high surrogate without its low one");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
        return malformed(p, "a low surrogate without its high one");
    }
    if (code < 0)
        return malformed(p, "\\u needs four hex digits");
    if (code == 0)
        return malformed(p, "U+0000 is not allowed in a string");
    *out = theo_utf8_put(*out, (uint32_t)code);
    return THEO_OK;
}

/* A string from its opening quote on. */
static theo_status parse_string(parser *p, const char **string) {
    const char *scan = ++p->at;
    while (scan < p->end && *scan != '"')
        scan += *scan == '\\' && scan + 1 < p->end ? 2 : 1;
    if (scan >= p->end) {
        p->at = p->end;
        return malformed(p, "the text ends inside of a string");
    }
    /* No escape is shorter than what it stands for. */
    char *out = theo_bump_alloc(p->memory, (size_t)(scan - p->at) + 1, 1);
    if (!out)
        return out_of_memory(p);
    *string = out;
    while (*p->at != '"') {
        if (*p->at == '\\') {
            p->at++;
            THEO_TRY(parse_escape(p, &out));
            continue;
        }
        size_t n = theo_utf8_length(p->at, (size_t)(p->end - p->at));
        if (!n)
            return malformed(p, "a string is not valid UTF-8");
        if ((unsigned char)*p->at < 0x20)
            return malformed(p, "a control character in a string must be escaped");
        memcpy(out, p->at, n);
        out += n;
        p->at += n;
    }
    p->at++;
    return THEO_OK;
}

static bool parse_nonfinite(parser *p, theo_json *value) {
    if (!p->options->allow_nonfinite)
        return false;
    value->type = THEO_JSON_NUMBER;
    if (take_word(p, "NaN"))
        value->number = (double)NAN;
    else if (take_word(p, "Infinity"))
        value->number = HUGE_VAL;
    else if (take_word(p, "-Infinity"))
        value->number = -HUGE_VAL;
    else
        return false;
    return true;
}

static theo_status parse_number(parser *p, theo_json *value) {
    const char *start = p->at;
    bool whole = true, fits = true, negative = take_word(p, "-");
    int64_t integer = 0;
    if (!is_digit(p))
        return malformed(p, "expected a value");
    if (*p->at == '0') {
        p->at++;
        if (is_digit(p))
            return malformed(p, "a number must not start with 0");
    }
    for (; is_digit(p); p->at++) {
        int digit = *p->at - '0';
        fits = fits && !__builtin_mul_overflow(integer, 10, &integer) &&
               !__builtin_add_overflow(integer, negative ? -digit : digit, &integer);
    }
    if (p->at < p->end && *p->at == '.') {
        p->at++;
        whole = false;
        if (!is_digit(p))
            return malformed(p, "a decimal point needs digits after it");
        skip_digits(p);
    }
    if (p->at < p->end && (*p->at == 'e' || *p->at == 'E')) {
        p->at++;
        whole = false;
        if (p->at < p->end && (*p->at == '+' || *p->at == '-'))
            p->at++;
        if (!is_digit(p))
            return malformed(p, "an exponent needs digits");
        skip_digits(p);
    }
    char digits[LONGEST_NUMBER + 1];
    size_t length = (size_t)(p->at - start);
    if (length > LONGEST_NUMBER)
        return malformed(p, "a number is longer than 1000 characters");
    memcpy(digits, start, length);
    digits[length] = 0;
    value->type = THEO_JSON_NUMBER;
    value->is_integer = whole && fits;
    value->integer = value->is_integer ? integer : 0;
    value->number = strtod_l(digits, NULL, p->c_locale);
    if (!isfinite(value->number))
        return malformed(p, "a number is outside of the range of a double");
    return THEO_OK;
}

/* Duplicate names: pairwise while they are few, by sorting otherwise. */
static theo_status check_names(parser *p, const theo_json *object) {
    const char *twice = NULL;
    if (object->count <= FEW_MEMBERS) {
        for (const theo_json *a = object->first; a && !twice; a = a->next)
            for (const theo_json *b = a->next; b && !twice; b = b->next)
                twice = strcmp(a->key, b->key) == 0 ? a->key : NULL;
    } else {
        theo_named_value *names = theo_alloc((size_t)object->count, sizeof *names);
        if (!names)
            return out_of_memory(p);
        int n = 0;
        for (const theo_json *member = object->first; member; member = member->next)
            names[n++].text = member->key;
        twice = theo_names_sort(names, n);
        theo_free(names);
    }
    if (!twice)
        return THEO_OK;
    char what[160];
    snprintf(what, sizeof what, "the name \"%.80s\" stands twice in the object that ends here", twice);
    return malformed(p, what);
}

/* Arrays and objects: children between `open`, which is already read, and `close`. */
static theo_status parse_children(parser *p, theo_json *parent, char close, int depth) {
    const theo_json **link = &parent->first;
    int max_depth = p->options->max_depth ? p->options->max_depth : DEFAULT_DEPTH;
    if (depth >= max_depth)
        return malformed(p, "arrays and objects are nested too deeply");
    skip_space(p);
    if (p->at < p->end && *p->at == close) {
        p->at++;
        return THEO_OK;
    }
    for (;;) {
        theo_json *child = theo_bump_alloc(p->memory, 1, sizeof *child);
        if (!child)
            return out_of_memory(p);
        if (close == '}') {
            skip_space(p);
            if (p->at == p->end || *p->at != '"')
                return malformed(p, "expected a name in quotes");
            THEO_TRY(parse_string(p, &child->key));
            skip_space(p);
            if (!take_word(p, ":"))
                return malformed(p, "expected ':' after a name");
        }
        THEO_TRY(parse_value(p, child, depth + 1));
        *link = child;
        link = (const theo_json **)&child->next;
        if (parent->count == INT32_MAX)
            return malformed(p, "too many elements");
        parent->count++;
        skip_space(p);
        if (take_word(p, ","))
            continue;
        if (p->at == p->end || *p->at != close)
            return malformed(p, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
        p->at++;
        return close == '}' ? check_names(p, parent) : THEO_OK;
    }
}

static theo_status parse_value(parser *p, theo_json *value, int depth) {
    skip_space(p);
    if (p->at == p->end)
        return malformed(p, "the text ends where a value is expected");
    switch (*p->at) {
    case '{':
        p->at++;
        value->type = THEO_JSON_OBJECT;
        return parse_children(p, value, '}', depth);
    case '[':
        p->at++;
        value->type = THEO_JSON_ARRAY;
        return parse_children(p, value, ']', depth);
    case '"':
        value->type = THEO_JSON_STRING;
        return parse_string(p, &value->string);
    default:
        break;
    }
    if (take_word(p, "null")) {
        value->type = THEO_JSON_NULL;
        return THEO_OK;
    }
    bool truth = take_word(p, "true");
    if (truth || take_word(p, "false")) {
        value->type = THEO_JSON_BOOL;
        value->truth = truth;
        return THEO_OK;
    }
    return parse_nonfinite(p, value) ? THEO_OK : parse_number(p, value);
}

theo_status theo_json_parse(const theo_json **root, theo_bump *memory, const char *text, size_t length,
                            const theo_json_options *options, theo_error *err) {
    static const theo_json_options defaults = {0};
    *root = NULL;
    parser p = {
        .start = text, .at = text, .end = text + length, .memory = memory, .options = options ? options : &defaults, .err = err};
    theo_json *value = theo_bump_alloc(memory, 1, sizeof *value);
    p.c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!p.c_locale)
        return out_of_memory(&p);
    theo_status status = value ? parse_value(&p, value, 0) : out_of_memory(&p);
    freelocale(p.c_locale);
    THEO_TRY(status);
    skip_space(&p);
    if (p.at != p.end)
        return malformed(&p, "text after the end of the value");
    *root = value;
    return THEO_OK;
}

const theo_json *theo_json_get(const theo_json *object, const char *key) {
    if (!object || object->type != THEO_JSON_OBJECT)
        return NULL;
    for (const theo_json *member = object->first; member; member = member->next)
        if (strcmp(member->key, key) == 0)
            return member;
    return NULL;
}

const theo_json *theo_json_at(const theo_json *array, int index) {
    if (!array || array->type != THEO_JSON_ARRAY || index < 0)
        return NULL;
    const theo_json *element = array->first;
    while (element && index--)
        element = element->next;
    return element;
}

const char *theo_json_type_name(const theo_json *value) {
    static const char *const names[] = {"null", "true or false", "a number", "a string", "an array", "an object"};
    return value ? names[value->type] : "nothing";
}
