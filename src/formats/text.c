#include "formats/text.h"

#include "base/error.h"
#include "formats/bytes.h"

#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for `count` more bytes and the terminator. */
static bool reserve(theo_text *text, size_t count) {
    if (text->failed)
        return false;
    size_t needed;
    if (__builtin_add_overflow(text->length, count, &needed) || needed == SIZE_MAX) {
        text->failed = true;
        return false;
    }
    if (needed < text->capacity)
        return true;
    size_t capacity = text->capacity ? text->capacity : 256;
    while (capacity <= needed)
        capacity = capacity > SIZE_MAX / 2 ? needed + 1 : 2 * capacity;
    char *data = theo_realloc(text->data, capacity, 1);
    if (!data) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void theo_text_add(theo_text *text, const void *bytes, size_t count) {
    if (!reserve(text, count))
        return;
    if (count)
        memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = 0;
}

void theo_text_add16(theo_text *text, uint64_t value) {
    uint8_t bytes[2];
    theo_put16(bytes, (uint16_t)value);
    theo_text_add(text, bytes, sizeof bytes);
}

void theo_text_add32(theo_text *text, uint64_t value) {
    uint8_t bytes[4];
    theo_put32(bytes, (uint32_t)value);
    theo_text_add(text, bytes, sizeof bytes);
}

void theo_text_add64(theo_text *text, uint64_t value) {
    uint8_t bytes[8];
    theo_put64(bytes, value);
    theo_text_add(text, bytes, sizeof bytes);
}

void theo_text_printf(theo_text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length < 0 || !reserve(text, (size_t)length)) {
        text->failed = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

size_t theo_utf8_get(const char *text, size_t length, uint32_t *code) {
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *s = (const unsigned char *)text;
    if (!length)
        return 0;
    *code = s[0];
    if (s[0] < 0x80)
        return 1;
    size_t n = s[0] >= 0xf0 && s[0] < 0xf8 ? 4 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xc0 && s[0] < 0xe0 ? 2 : 0;
    if (!n || n > length)
        return 0;
    *code &= 0x7fu >> n;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (s[i] & 0x3fu);
    }
    bool surrogate = *code >= 0xd800 && *code < 0xe000;
    return *code < smallest[n] || *code > 0x10ffff || surrogate ? 0 : n;
}

size_t theo_utf8_length(const char *text, size_t length) {
    uint32_t code;
    return theo_utf8_get(text, length, &code);
}

char *theo_utf8_put(char *out, uint32_t code) {
    if (code < 0x80) {
        *out++ = (char)code;
        return out;
    }
    int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3; /* bytes after the first */
    *out++ = (char)((0xf0 << (3 - more) & 0xff) | (int)(code >> 6 * more));
    while (more--)
        *out++ = (char)(0x80 | (code >> 6 * more & 0x3f));
    return out;
}

void theo_text_add_json_string(theo_text *text, const char *string) {
    theo_text_add(text, "\"", 1);
    for (size_t left = strlen(string); left;) {
        unsigned char c = (unsigned char)*string;
        size_t n = theo_utf8_length(string, left);
        if (!n) {
            theo_text_add(text, "\xef\xbf\xbd", 3);
            n = 1;
        } else if (c == '"' || c == '\\') {
            theo_text_printf(text, "\\%c", c);
        } else if (c < 0x20) {
            theo_text_printf(text, "\\u%04x", c);
        } else {
            theo_text_add(text, string, n);
        }
        string += n;
        left -= n;
    }
    theo_text_add(text, "\"", 1);
}

void theo_text_add_json_number(theo_text *text, double value) {
    if (!isfinite(value)) {
        theo_text_printf(text, "%s", isnan(value) ? "NaN" : value < 0 ? "-Infinity" : "Infinity");
        return;
    }
    /* The caller's locale may write a comma. */
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t callers = c_locale ? uselocale(c_locale) : (locale_t)0;
    char digits[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    if (c_locale) {
        uselocale(callers);
        freelocale(c_locale);
    }
    theo_text_add(text, digits, strlen(digits));
}

double theo_text_to_number(const char *text, char **end) {
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale)
        return strtod(text, end);
    double value = strtod_l(text, end, c_locale);
    freelocale(c_locale);
    return value;
}

void theo_text_free(theo_text *text) {
    theo_free(text->data);
    *text = (theo_text){0};
}
