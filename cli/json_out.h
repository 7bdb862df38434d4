/* json_out.h - writes one JSON document into memory. Never NaN or Infinity (null instead), numbers with just the digits that read
 * back to the same value, strings always valid UTF-8. */
#ifndef THEO_CLI_JSON_OUT_H
#define THEO_CLI_JSON_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Start with a zeroed struct; text is terminated and owned by the struct. */
typedef struct json_out {
    char *text;
    size_t length, capacity;
    bool comma; /* a value stands before the next one */
} json_out;

void json_free(json_out *json);

/* '{' or '['; closed by '}' or ']'. */
void json_open(json_out *json, char bracket);
void json_close(json_out *json, char bracket);
void json_key(json_out *json, const char *key);

void json_null(json_out *json);
void json_bool(json_out *json, bool value);
void json_int(json_out *json, int64_t value);
void json_double(json_out *json, double value);
void json_float(json_out *json, float value);
/* NULL gives null. Bytes that are no UTF-8 (file names may hold them) become U+FFFD. */
void json_string(json_out *json, const char *text);
/* A JSON value made by somebody else. */
void json_raw(json_out *json, const char *text);

/* [[row 0], ...] of a row-major matrix. */
void json_matrix(json_out *json, const double *values, int rows, int columns);

/* Key and value in one call. */
void json_member_int(json_out *json, const char *key, int64_t value);
void json_member_double(json_out *json, const char *key, double value);
void json_member_string(json_out *json, const char *key, const char *text);
void json_member_bool(json_out *json, const char *key, bool value);
/* "key": [a, b, ...] */
void json_member_vector(json_out *json, const char *key, const double *values, int count);
void json_member_matrix(json_out *json, const char *key, const double *values, int rows, int columns);

#endif
