/* The safetensors reader behind theo_weights: types, shapes, metadata, conversion, and a file for every way to be malformed. */
#include "formats/weights_internal.h"
#include "t.h"

static uint8_t *file;
static size_t file_bytes;

/* A file in memory: header text and data bytes 0, 1, 2, ... */
static void make(const char *header, size_t data_bytes) {
    uint64_t length = strlen(header);
    free(file);
    file_bytes = 8 + length + data_bytes;
    file = malloc(file_bytes); /* of the exact size, so that AddressSanitizer sees a read past the end */
    memcpy(file, &length, 8);
    memcpy(file + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++)
        file[8 + length + i] = (uint8_t)i;
}

static theo_status open_made(theo_weights **weights, theo_error *err) {
    return theo_weights_open_memory(weights, file, file_bytes, "made.safetensors", NULL, err);
}

static void test_good(void) {
    theo_weights *w;
    theo_error err;
    make("{\"__metadata__\":{\"format\":\"pt\"},\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[3,19]},\"empty\":{\"dtype\":\"I64\",\"shape\":[0,4],\"data_"
         "offsets\":[19,19]},"
         "\"h\":{\"dtype\":\"F16\",\"shape\":[],\"data_offsets\":[19,21]},\"bf\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_"
         "offsets\":[21,23]}}  ",
         23);
    const float four[4] = {1.5f, -2, 0, 3e-42f};
    const uint16_t half = 0xc100, brain = 0x3fc0;
    memcpy(file + file_bytes - 20, four, sizeof four);
    memcpy(file + file_bytes - 4, &half, 2);
    memcpy(file + file_bytes - 2, &brain, 2);
    CHECK_MSG(open_made(&w, &err) == THEO_OK, "%s", err.message);
    if (!w)
        return;
    CHECK_STR(theo_weights_source(w), "safetensors");
    CHECK(theo_weights_count(w) == 5);
    CHECK_STR(theo_weights_metadata(w, "format"), "pt");
    CHECK(!theo_weights_metadata(w, "other") && !theo_weights_config_json(w));
    CHECK_STR(theo_weights_at(w, 0)->name, "b");
    CHECK(!theo_weights_at(w, 5) && !theo_weights_find(w, "c") && !theo_weights_find(w, "__metadata__"));

    float out[4];
    const theo_weight *a = theo_weights_find(w, "a");
    CHECK(a && a->rank == 2 && a->shape[0] == 2 && a->stride[0] == 2 && a->stride[1] == 1 && a->elements == 4);
    CHECK(theo_weight_to_f32(w, a, out, &err) == THEO_OK && memcmp(out, four, sizeof four) == 0);
    CHECK(theo_weight_to_f32(w, theo_weights_find(w, "h"), out, &err) == THEO_OK && out[0] == -2.5f);
    CHECK(theo_weight_to_f32(w, theo_weights_find(w, "bf"), out, &err) == THEO_OK && out[0] == 1.5f);
    CHECK(theo_weight_to_f32(w, theo_weights_find(w, "b"), out, &err) == THEO_SHAPE && strstr(err.message, "U8"));
    theo_weights_close(w);

    make("{}", 0);
    CHECK(open_made(&w, &err) == THEO_OK && theo_weights_count(w) == 0);
    theo_weights_close(w);
}

/* More tensors than any fixed table would hold. */
static void test_many(void) {
    enum { MANY = 20000 };
    char *header = malloc(MANY * 80), *at = header;
    at += sprintf(at, "{");
    for (int i = 0; i < MANY; i++)
        at += sprintf(at, "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", i ? "," : "", i, i, i + 1);
    sprintf(at, "}");
    make(header, MANY);
    free(header);
    theo_weights *w;
    theo_error err;
    CHECK_MSG(open_made(&w, &err) == THEO_OK, "%s", err.message);
    CHECK(theo_weights_count(w) == MANY);
    const theo_weight *t = theo_weights_find(w, "t12345");
    CHECK(t && *(const uint8_t *)t->data == (uint8_t)12345);
    theo_weights_close(w);
}

#define ONE(dtype, shape, offsets) "{\"w\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define TWO(first, second)                                                                                                       \
    "{\"v\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" first                                                             \
    "},\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" second "}}"

static void test_malformed(void) {
    static const struct {
        const char *header;
        size_t data_bytes;
        theo_status status;
        const char *says;
    } cases[] = {
        {"[]", 0, THEO_CONTAINER, "by its first bytes"},
        {"{\"w\":", 0, THEO_CONTAINER, "JSON"},
        {"{\"w\":{\"a\":[[[[[[[[[[]]]]]]]]]]}}", 0, THEO_CONTAINER, "deep"},
        {"{\"w\":1}", 0, THEO_CONTAINER, "w: expected an object"},
        {"{\"w\":{}}", 0, THEO_CONTAINER, "dtype"},
        {"{\"__metadata__\":1}", 0, THEO_CONTAINER, "__metadata__"},
        {"{\"__metadata__\":{\"a\":1}}", 0, THEO_CONTAINER, "\"a\""},
        {"{\"w\\u0000\":{}}", 0, THEO_CONTAINER, "U+0000"},
        {ONE("1", "[4]", "[0,4]"), 4, THEO_CONTAINER, "dtype"},
        {ONE("\"F8_E4M3\"", "[4]", "[0,4]"), 4, THEO_UNSUPPORTED, "F8_E4M3"},
        {ONE("\"text\"", "[4]", "[0,4]"), 4, THEO_UNSUPPORTED, "text"},
        {ONE("\"U8\"", "4", "[0,4]"), 4, THEO_CONTAINER, "shape"},
        {ONE("\"U8\"", "[-4]", "[0,4]"), 4, THEO_CONTAINER, "shape"},
        {ONE("\"U8\"", "[4.0]", "[0,4]"), 4, THEO_CONTAINER, "shape"},
        {ONE("\"U8\"", "[\"4\"]", "[0,4]"), 4, THEO_CONTAINER, "shape"},
        {ONE("\"U8\"", "[1,1,1,1,1,1,1,1,4]", "[0,4]"), 4, THEO_UNSUPPORTED, "9 dimensions"},
        {ONE("\"U8\"", "[8589934592,8589934592]", "[0,4]"), 4, THEO_BOUNDS, "overflows"},
        {ONE("\"F64\"", "[2305843009213693952]", "[0,4]"), 4, THEO_BOUNDS, "overflows"},
        {ONE("\"U8\"", "[4]", "4"), 4, THEO_CONTAINER, "data_offsets"},
        {ONE("\"U8\"", "[4]", "[0]"), 4, THEO_CONTAINER, "data_offsets"},
        {ONE("\"U8\"", "[4]", "[0,4,8]"), 4, THEO_CONTAINER, "data_offsets"},
        {ONE("\"U8\"", "[4]", "[0,4.0]"), 4, THEO_CONTAINER, "data_offsets"},
        {ONE("\"U8\"", "[4]", "[4,0]"), 4, THEO_BOUNDS, "data_offsets"},
        {ONE("\"U8\"", "[4]", "[-4,0]"), 4, THEO_BOUNDS, "data_offsets"},
        {ONE("\"U8\"", "[4]", "[0,5]"), 4, THEO_BOUNDS, "data_offsets"},
        {ONE("\"U8\"", "[4]", "[0,18446744073709551616]"), 4, THEO_CONTAINER, "data_offsets"},
        {ONE("\"U8\"", "[4]", "[0,3]"), 4, THEO_BOUNDS, "span 3 bytes"},
        {ONE("\"U8\"", "[4]", "[0,4]"), 5, THEO_BOUNDS, "end at byte 4"},
        {ONE("\"U8\"", "[4]", "[1,5]"), 5, THEO_BOUNDS, "hole"},
        {TWO("[0,4]", "[3,7]"), 7, THEO_BOUNDS, "inside of another"},
        {TWO("[0,4]", "[0,4]"), 4, THEO_BOUNDS, "inside of another"},
        {TWO("[0,4]", "[5,9]"), 9, THEO_BOUNDS, "hole"},
        {"{\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},\"w\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":["
         "0,0]}}",
         0, THEO_CONTAINER, "twice"},
    };
    theo_weights *w;
    theo_error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        make(cases[i].header, cases[i].data_bytes);
        theo_status status = open_made(&w, &err);
        CHECK_MSG(status == cases[i].status && !w, "%s: status %d, %s", cases[i].header, status, err.message);
        CHECK_MSG(status && strstr(err.message, cases[i].says) && strstr(err.message, "made.safetensors"), "%s: %s",
                  cases[i].header, err.message);
    }
    /* Cut anywhere, it is an error. */
    make(ONE("\"U8\"", "[4]", "[0,4]"), 4);
    for (size_t n = 0; n < file_bytes; n++) {
        uint8_t *cut = malloc(n + !n);
        memcpy(cut, file, n);
        CHECK_MSG(theo_weights_open_memory(&w, cut, n, "cut", NULL, &err) != THEO_OK && !w, "%zu bytes", n);
        free(cut);
    }
    /* Header lengths over the limit and over the file. */
    for (int shift = 8; shift < 64; shift++) {
        const uint64_t length = (uint64_t)1 << shift;
        make(ONE("\"U8\"", "[4]", "[0,4]"), 4);
        memcpy(file, &length, 8);
        CHECK(open_made(&w, &err) == THEO_CONTAINER && strstr(err.message, "length"));
    }
}

static void test_files(void) {
    theo_weights *w;
    theo_error err;
    CHECK(theo_weights_open(&w, "no/such/file.safetensors", NULL, &err) == THEO_MISSING && !w);
    CHECK(theo_weights_open(&w, "tests", NULL, &err) == THEO_IO && !w);
}

int main(void) {
    test_good();
    test_many();
    test_malformed();
    test_files();
    free(file);
    return t_done("safetensors");
}
