#include "json_out.h"
#include "message.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(json_out *json, const char *text, size_t length) {
    if (json->length + length + 1 > json->capacity) {
        json->capacity = 2 * (json->length + length) + 256;
        json->text = memory_grow(json->text, json->capacity, 1);
    }
    memcpy(json->text + json->length, text, length);
    json->length += length;
    json->text[json->length] = 0;
}

static void put_value(json_out *json, const char *text, size_t length) {
    if (json->comma)
        put(json, ", ", 2);
    put(json, text, length);
    json->comma = true;
}

void json_free(json_out *json) {
    free(json->text);
    memset(json, 0, sizeof *json);
}

void json_open(json_out *json, char bracket) {
    put_value(json, &bracket, 1);
    json->comma = false;
}

void json_close(json_out *json, char bracket) {
    put(json, &bracket, 1);
    json->comma = true;
}

/* Length of the well-formed UTF-8 sequence at s, 0 if there is none (overlong forms, surrogates and values over U+10FFFF are
 * none). */
static size_t utf8_length(const unsigned char *s) {
    if (s[0] < 0x80)
        return 1;
    if (s[0] >= 0xC2 && s[0] <= 0xDF)
        return (s[1] & 0xC0) == 0x80 ? 2 : 0;
    if (s[0] >= 0xE0 && s[0] <= 0xEF) {
        if ((s[1] & 0xC0) != 0x80 || (s[2] & 0xC0) != 0x80)
            return 0;
        return (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) ? 0 : 3;
    }
    if (s[0] >= 0xF0 && s[0] <= 0xF4) {
        if ((s[1] & 0xC0) != 0x80 || (s[2] & 0xC0) != 0x80 || (s[3] & 0xC0) != 0x80)
            return 0;
        return (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F) ? 0 : 4;
    }
    return 0;
}

static void put_quoted(json_out *json, const char *text) {
    put(json, "\"", 1);
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t length = utf8_length(s);
        if (length == 0) {
            put(json, "\xEF\xBF\xBD", 3);
            s++;
        } else if (*s == '"' || *s == '\\') {
            char escaped[2] = {'\\', (char)*s++};
            put(json, escaped, 2);
        } else if (*s < 0x20 || *s == 0x7F) {
            char escaped[8];
            int size = snprintf(escaped, sizeof escaped, "\\u%04x", *s++);
            put(json, escaped, (size_t)size);
        } else {
            put(json, (const char *)s, length);
            s += length;
        }
    }
    put(json, "\"", 1);
}

void json_key(json_out *json, const char *key) {
    if (json->comma)
        put(json, ", ", 2);
    put_quoted(json, key);
    put(json, ": ", 2);
    json->comma = false;
}

void json_null(json_out *json) {
    put_value(json, "null", 4);
}

void json_bool(json_out *json, bool value) {
    put_value(json, value ? "true" : "false", value ? 4 : 5);
}

void json_int(json_out *json, int64_t value) {
    char text[24];
    int length = snprintf(text, sizeof text, "%" PRId64, value);
    put_value(json, text, (size_t)length);
}

void json_double(json_out *json, double value) {
    char text[40];
    int length = 0;
    if (!isfinite(value)) {
        json_null(json);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        length = snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    put_value(json, text, (size_t)length);
}

void json_float(json_out *json, float value) {
    char text[40];
    int length = 0;
    if (!isfinite(value)) {
        json_null(json);
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        length = snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    put_value(json, text, (size_t)length);
}

void json_string(json_out *json, const char *text) {
    if (!text) {
        json_null(json);
        return;
    }
    if (json->comma)
        put(json, ", ", 2);
    put_quoted(json, text);
    json->comma = true;
}

void json_raw(json_out *json, const char *text) {
    put_value(json, text, strlen(text));
}

void json_member_int(json_out *json, const char *key, int64_t value) {
    json_key(json, key);
    json_int(json, value);
}

void json_member_double(json_out *json, const char *key, double value) {
    json_key(json, key);
    json_double(json, value);
}

void json_member_string(json_out *json, const char *key, const char *text) {
    json_key(json, key);
    json_string(json, text);
}

void json_member_bool(json_out *json, const char *key, bool value) {
    json_key(json, key);
    json_bool(json, value);
}

static void put_vector(json_out *json, const double *values, int count) {
    json_open(json, '[');
    for (int i = 0; i < count; i++)
        json_double(json, values[i]);
    json_close(json, ']');
}

void json_member_vector(json_out *json, const char *key, const double *values, int count) {
    json_key(json, key);
    put_vector(json, values, count);
}

void json_matrix(json_out *json, const double *values, int rows, int columns) {
    json_open(json, '[');
    for (int i = 0; i < rows; i++)
        put_vector(json, values + i * columns, columns);
    json_close(json, ']');
}

void json_member_matrix(json_out *json, const char *key, const double *values, int rows, int columns) {
    json_key(json, key);
    json_matrix(json, values, rows, columns);
}
