/* json.h - a strict JSON reader (RFC 8259) that builds a tree in one bump allocator.
 *
 * Strict: no comments, no trailing commas, no duplicate names in an object, valid UTF-8 without U+0000, one value and nothing
 * after it. Nesting is limited, so that no input can exhaust the stack. */
#ifndef THEO_FORMATS_JSON_H
#define THEO_FORMATS_JSON_H

#include "formats/bump.h"

#include <theo/theo.h>

typedef enum theo_json_type {
    THEO_JSON_NULL,
    THEO_JSON_BOOL,
    THEO_JSON_NUMBER,
    THEO_JSON_STRING,
    THEO_JSON_ARRAY,
    THEO_JSON_OBJECT
} theo_json_type;

typedef struct theo_json {
    theo_json_type type;
    bool truth;      /* of a BOOL */
    bool is_integer; /* a NUMBER without fraction and exponent that fits `integer` */
    int count;       /* elements of an ARRAY, members of an OBJECT */
    const char *key; /* name of this member of an OBJECT, else NULL */
    union {
        const char *string; /* STRING: UTF-8, terminated */
        const struct theo_json
            *first;      /* ARRAY, OBJECT: first child; the others follow through `next`, in the order of the text */
        int64_t integer; /* NUMBER with is_integer */
    };
    double number; /* NUMBER */
    const struct theo_json *next;
} theo_json;

typedef struct theo_json_options {
    const char *file;     /* for messages, may be NULL */
    int max_depth;        /* 0 = 64 */
    bool allow_nonfinite; /* bare NaN, Infinity and -Infinity, as Python writes them into config.json */
} theo_json_options;

/* Parses text[length]. *root lives as long as `memory`, and copies everything that it needs from the text.
 * THEO_CONTAINER with line and column for malformed text, THEO_MEMORY. */
theo_status theo_json_parse(const theo_json **root, theo_bump *memory, const char *text, size_t length,
                            const theo_json_options *options, theo_error *err);

/* Member of an object; NULL when absent, or when `object` is NULL or no object. */
const theo_json *theo_json_get(const theo_json *object, const char *key);
/* Element of an array; NULL likewise. Walks the list: use first/next in loops. */
const theo_json *theo_json_at(const theo_json *array, int index);
/* "an array", for messages. */
const char *theo_json_type_name(const theo_json *value);

#endif
