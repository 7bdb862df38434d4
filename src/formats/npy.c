#include "formats/npy.h"

#include "base/error.h"
#include "formats/bytes.h"
#include "formats/dtype.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, LONGEST_HEADER = 65536, LONGEST_NAME = 64 };

static const char magic[] = "\x93NUMPY";

/* numpy has no bfloat16. */
static const struct {
    const char *descr;
    theo_dtype dtype;
} types[] = {
    {"<f8", THEO_DTYPE_F64}, {"<f4", THEO_DTYPE_F32}, {"<f2", THEO_DTYPE_F16}, {"<i8", THEO_DTYPE_I64},
    {"<i4", THEO_DTYPE_I32}, {"<i2", THEO_DTYPE_I16}, {"|i1", THEO_DTYPE_I8},  {"<u8", THEO_DTYPE_U64},
    {"<u4", THEO_DTYPE_U32}, {"<u2", THEO_DTYPE_U16}, {"|u1", THEO_DTYPE_U8},  {"|b1", THEO_DTYPE_BOOL},
};

enum { TYPES = sizeof types / sizeof types[0] };

/* ---------------------------------------------------------------- writing */

void theo_npy_header(theo_text *text, const theo_array *array, size_t characters) {
    const char *descr = "";
    for (int i = 0; i < TYPES; i++)
        if (types[i].dtype == array->dtype)
            descr = types[i].descr;
    theo_text dict = {0};
    if (array->dtype == THEO_DTYPE_TEXT)
        theo_text_printf(&dict, "{'descr': '<U%zu', 'fortran_order': False, 'shape': (", characters);
    else
        theo_text_printf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < array->rank; i++)
        theo_text_printf(&dict, "%s%lld%s", i ? " " : "", (long long)array->shape[i],
                         i + 1 < array->rank || array->rank == 1 ? "," : "");
    theo_text_printf(&dict, "), }");
    /* Padded so that the data stand at a multiple of 64; version 1.0: a u16 length. */
    size_t used = 10 + dict.length + 1, length = dict.length + 1 + (-used % ALIGNMENT);
    uint8_t start[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    theo_put16(start + 8, (uint16_t)length);
    theo_text_add(text, start, sizeof start);
    theo_text_printf(text, "%s%*s\n", dict.data ? dict.data : "", (int)(length - 1 - dict.length), "");
    text->failed |= dict.failed;
    theo_text_free(&dict);
}

size_t theo_npy_text(uint8_t *out, const char *utf8) {
    size_t count = 0, left = strlen(utf8);
    while (left) {
        uint32_t code;
        size_t n = theo_utf8_get(utf8, left, &code);
        if (out)
            theo_put32(out + 4 * count, n ? code : 0xfffd);
        count++;
        utf8 += n ? n : 1;
        left -= n ? n : 1;
    }
    if (!count && out)
        theo_put32(out, 0);
    return count ? count : 1;
}

/* ---------------------------------------------------------------- reading */

/* The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } */
typedef struct header {
    const char *at, *end;
    char descr[LONGEST_NAME];
    bool has_descr, has_order, has_shape, fortran;
    int rank;
    int64_t shape[THEO_MAX_RANK];
} header;

static void skip_space(header *h) {
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n'))
        h->at++;
}

static bool take(header *h, const char *word) {
    skip_space(h);
    size_t length = strlen(word);
    if ((size_t)(h->end - h->at) < length || memcmp(h->at, word, length) != 0)
        return false;
    h->at += length;
    return true;
}

static bool take_string(header *h, char out[LONGEST_NAME]) {
    skip_space(h);
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"'))
        return false;
    const char *start = h->at + 1, *end = memchr(start, *h->at, (size_t)(h->end - start));
    if (!end || end - start >= LONGEST_NAME)
        return false;
    for (const char *c = start; c < end; c++)
        if (*c < 0x20 || *c > 0x7e)
            return false;
    memcpy(out, start, (size_t)(end - start));
    out[end - start] = 0;
    h->at = end + 1;
    return true;
}

/* A number without sign that fits 63 bits. Python 2 wrote an L after long ones. */
static bool take_number(header *h, int64_t *out) {
    skip_space(h);
    const char *start = h->at;
    for (*out = 0; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
        if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, *h->at - '0', out))
            return false;
    bool found = h->at > start;
    if (found && h->at < h->end && *h->at == 'L')
        h->at++;
    return found;
}

static bool take_shape(header *h) {
    if (!take(h, "("))
        return false;
    h->rank = 0;
    while (!take(h, ")")) {
        if (h->rank == THEO_MAX_RANK || !take_number(h, &h->shape[h->rank++]))
            return false;
        if (!take(h, ","))
            return take(h, ")");
    }
    return true;
}

static bool take_member(header *h) {
    char key[LONGEST_NAME];
    if (!take_string(h, key) || !take(h, ":"))
        return false;
    if (strcmp(key, "descr") == 0 && !h->has_descr)
        return h->has_descr = take_string(h, h->descr);
    if (strcmp(key, "shape") == 0 && !h->has_shape)
        return h->has_shape = take_shape(h);
    if (strcmp(key, "fortran_order") != 0 || h->has_order)
        return false;
    h->has_order = true;
    h->fortran = take(h, "True");
    return h->fortran || take(h, "False");
}

static bool parse_header(header *h) {
    if (!take(h, "{"))
        return false;
    while (!take(h, "}")) {
        if (!take_member(h))
            return false;
        if (take(h, ","))
            continue;
        if (!take(h, "}"))
            return false;
        break;
    }
    skip_space(h);
    return h->at == h->end && h->has_descr && h->has_order && h->has_shape;
}

/* UTF-32 to UTF-8; numpy pads with zeros. */
static theo_status parse_text(theo_array *array, theo_bump *memory, const uint8_t *data, size_t characters, const char *file,
                              const char *place, theo_error *err) {
    char *out = characters > SIZE_MAX / 4 ? NULL : theo_bump_alloc(memory, characters + 1, 4);
    if (!out)
        return theo_fail(err, THEO_MEMORY, file, place, "out of memory for a text");
    array->data = out;
    for (size_t i = 0; i < characters; i++) {
        uint32_t c = theo_get32(data + 4 * i);
        if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
            return theo_fail(err, THEO_CONTAINER, file, place, "npy: a text holds what is no character");
        if (!c)
            break;
        out = theo_utf8_put(out, c);
    }
    return THEO_OK;
}

/* Type, and for '<U' the number of characters. */
static theo_status parse_descr(const header *h, theo_array *array, size_t *characters, const char *file, const char *place,
                               theo_error *err) {
    for (int i = 0; i < TYPES; i++)
        if (strcmp(h->descr, types[i].descr) == 0 ||
            (types[i].descr[0] == '|' && h->descr[0] == '<' && strcmp(h->descr + 1, types[i].descr + 1) == 0)) {
            array->dtype = types[i].dtype;
            return THEO_OK;
        }
    char *end;
    if (strncmp(h->descr, "<U", 2) == 0 && h->rank == 0 && h->descr[2] >= '0' && h->descr[2] <= '9') {
        unsigned long count = strtoul(h->descr + 2, &end, 10);
        if (!*end && count < (unsigned long)INT32_MAX) {
            array->dtype = THEO_DTYPE_TEXT;
            *characters = count;
            return THEO_OK;
        }
    }
    return theo_fail(err, THEO_UNSUPPORTED, file, place,
                     "npy: arrays of type \"%s\" are not supported; little-endian numbers are, and single texts", h->descr);
}

theo_status theo_npy_parse(theo_array *array, theo_bump *memory, uint8_t *data, size_t bytes, const char *file, const char *place,
                           theo_error *err) {
    if (bytes < 12 || memcmp(data, magic, 6) != 0)
        return theo_fail(err, THEO_CONTAINER, file, place, "npy: no numpy array by its first bytes");
    if (data[6] < 1 || data[6] > 3 || data[7] != 0)
        return theo_fail(err, THEO_UNSUPPORTED, file, place, "npy: version %d.%d is not known", data[6], data[7]);
    size_t start = data[6] == 1 ? 10 : 12, length = data[6] == 1 ? theo_get16(data + 8) : theo_get32(data + 8);
    if (length > LONGEST_HEADER || length > bytes - start)
        return theo_fail(err, THEO_CONTAINER, file, place,
                         "npy: the header's length of %zu bytes is over the file's or over 65536", length);
    header h = {.at = (const char *)data + start, .end = (const char *)data + start + length};
    if (!parse_header(&h))
        return theo_fail(err, THEO_CONTAINER, file, place, "npy: a malformed header, or more than %d dimensions", THEO_MAX_RANK);
    if (h.fortran && h.rank > 1)
        return theo_fail(err, THEO_UNSUPPORTED, file, place, "npy: Fortran order is not supported");

    size_t characters = 0, needed, left = bytes - start - length;
    int64_t elements;
    THEO_TRY(parse_descr(&h, array, &characters, file, place, err));
    array->rank = h.rank;
    memcpy(array->shape, h.shape, sizeof array->shape);
    if (array->dtype == THEO_DTYPE_TEXT)
        needed = 4 * characters;
    else if (!theo_shape_bytes(h.shape, h.rank, array->dtype, &elements, &needed))
        return theo_fail(err, THEO_BOUNDS, file, place, "npy: the size of the shape overflows 64 bits");
    if (needed != left)
        return theo_fail(err, THEO_BOUNDS, file, place, "npy: %zu bytes of data, but type and shape need %zu", left, needed);
    if (array->dtype == THEO_DTYPE_TEXT)
        return parse_text(array, memory, data + start + length, characters, file, place, err);
    memmove(data, data + start + length, needed);
    array->data = data;
    return THEO_OK;
}
