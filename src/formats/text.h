/* text.h - text that grows: JSON and file headers are put together in one. */
#ifndef THEO_FORMATS_TEXT_H
#define THEO_FORMATS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct theo_text {
    char *data; /* terminated; NULL while nothing was added */
    size_t length, capacity;
    bool failed; /* memory ran out; everything added since is lost. Check once at the end */
} theo_text;     /* starts zeroed */

void theo_text_add(theo_text *text, const void *bytes, size_t count);
/* Little-endian numbers. */
void theo_text_add16(theo_text *text, uint64_t value);
void theo_text_add32(theo_text *text, uint64_t value);
void theo_text_add64(theo_text *text, uint64_t value);
void theo_text_printf(theo_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes: control characters, quotes and backslashes are escaped; bytes that are not UTF-8 become U+FFFD.
 */
void theo_text_add_json_string(theo_text *text, const char *string);
/* The shortest decimal form that reads back as the same double; Infinity, -Infinity and NaN as these words. */
void theo_text_add_json_number(theo_text *text, double value);
/* strtod with a decimal point, whatever the caller's locale has. */
double theo_text_to_number(const char *text, char **end);
void theo_text_free(theo_text *text);

/* Bytes of the UTF-8 character at text[0..length): 1 to 4, or 0 if there is none (overlong forms and surrogates are none). */
size_t theo_utf8_length(const char *text, size_t length);
/* The same, and the character itself. */
size_t theo_utf8_get(const char *text, size_t length, uint32_t *code);
/* Writes a character as 1 to 4 bytes; the place after it. */
char *theo_utf8_put(char *out, uint32_t code);

#endif
