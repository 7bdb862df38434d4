/* The parts of the command that can be tested without running it: values of options, JSON, intrinsics, comparison, the store of
 * keypoints. */
#include "arguments.h"
#include "compare.h"
#include "inputs.h"
#include "intrinsics.h"
#include "json_out.h"
#include "keystore.h"
#include "message.h"
#include "progress.h"
#include "t.h"
#include <float.h>
#include <unistd.h>

static const option_spec table[] = {
    {"count", 'c', OPTION_COUNT, "N", -1, 1e6, NULL, "a count"},
    {"real", 0, OPTION_NUMBER, "X", 0, 1, NULL, "a number"},
    {"word", 0, OPTION_CHOICE, "one|two|two-old", 0, 0, NULL, "a choice"},
    {"size", 0, OPTION_SIZE, "HxW", 0, 0, NULL, "a size"},
    {"file", 0, OPTION_FILE, "FILE", 0, 0, NULL, "a file"},
    {"flag", 'f', OPTION_FLAG, NULL, 0, 0, NULL, "a flag"},
    {0},
};
static const option_group groups[] = {{"Options", table}, {0}};

static int parse(arguments *args, int argc, const char *const *argv) {
    return arguments_parse(args, groups, argc, (char **)argv);
}

static void test_values(void) {
    double x = 0;
    CHECK(parse_count("12", &x) && x == 12);
    CHECK(parse_count("-1", &x) && x == -1);
    CHECK(parse_count("2K", &x) && x == 2000);
    CHECK(parse_count("1.5M", &x) && x == 1500000);
    CHECK(parse_count("1e3", &x) && x == 1000);
    CHECK(parse_count("0x10", &x) && x == 16);
    CHECK(parse_count("010", &x) && x == 10);
    static const char *const bad_counts[] = {"", " 1", "1 ", "1.5", "K", "1KK", "1G", "nan", "inf", "1,5", "one"};
    for (size_t i = 0; i < sizeof bad_counts / sizeof *bad_counts; i++)
        CHECK_MSG(!parse_count(bad_counts[i], &x), "\"%s\"", bad_counts[i]);
    CHECK(parse_real("0.005", &x) && x == 0.005);
    CHECK(parse_real("5e-3", &x) && x == 0.005);
    CHECK(!parse_real("0.5x", &x) && !parse_real("", &x) && !parse_real("nan", &x) && !parse_real("1K", &x));

    network_size size;
    CHECK(parse_size("480x640", &size) && size.fit == THEO_FIT_EXACT && size.height == 480 && size.width == 640);
    CHECK(parse_size("native", &size) && size.fit == THEO_FIT_NATIVE);
    CHECK(parse_size("long:1024", &size) && size.fit == THEO_FIT_LONG && size.long_side == 1024);
    CHECK(parse_size("8x8", &size));
    static const char *const bad_sizes[] = {"",        "480",       "480x",         "x640",        "7x640",     "480x7",
                                            "480X640", "480x640x3", "long:",        "long:7",      "-480x640",  "480 x 640",
                                            "natives", "1048577x8", "long:1048577", "40000x40000", "99999999x8"};
    for (size_t i = 0; i < sizeof bad_sizes / sizeof *bad_sizes; i++)
        CHECK_MSG(!parse_size(bad_sizes[i], &size), "\"%s\"", bad_sizes[i]);

    CHECK(choice_index("one|two|two-old", "two") == 1);
    CHECK(choice_index("one|two|two-old", "two-old") == 2);
    CHECK(choice_index("one|two|two-old", "tw") == -1);
    CHECK(choice_index("one|two|two-old", "") == -1);
}

static void test_arguments(void) {
    arguments args;
    const char *const line[] = {"a", "--count", "3", "-f", "b", "--count=4", "-c5", "--word=two", "--", "--flag", "-"};
    CHECK(parse(&args, 11, line) == EXIT_DONE);
    CHECK(args.operand_count == 4);
    CHECK_STR(args.operands[1], "b");
    CHECK_STR(args.operands[2], "--flag");
    CHECK_STR(args.operands[3], "-");
    CHECK(option_count(&args, "count", 0) == 5); /* the last one holds */
    CHECK(option_choice(&args, "word", 0) == 1);
    CHECK(option_given(&args, "flag") && !option_given(&args, "size"));
    CHECK(option_number(&args, "real", 0.25) == 0.25);
    CHECK(option_needs(&args, "flag", "count") == EXIT_DONE);
    CHECK(option_needs(&args, "flag", "size") == EXIT_NOTHING);
    CHECK(option_excludes(&args, "flag", "word") == EXIT_NOTHING);
    arguments_free(&args);

    static const char *const wrong[][2] = {
        {"--unknown", NULL}, {"--count", NULL},   {"--count", "x"},  {"--count", "-2"},    {"--count", "2M"},
        {"--real", "1.5"},   {"--word", "three"}, {"--size", "3x3"}, {"--file", "--flag"}, {"--file", ""},
        {"--flag=1", NULL},  {"-x", NULL},        {"--coun", "3"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_MSG(parse(&args, wrong[i][1] ? 2 : 1, wrong[i]) == EXIT_NOTHING, "%s", wrong[i][0]);
        arguments_free(&args);
    }
    static const char *const words[] = {"threshold", "threads", "max-keypoints", NULL};
    CHECK_STR(closest_word("treshold", words), "threshold");
    CHECK_STR(closest_word("max", words), "max-keypoints");
    CHECK(closest_word("zzzzzz", words) == NULL);
}

static void check_json(void (*write)(json_out *), const char *want) {
    json_out json = {0};
    write(&json);
    CHECK_STR(json.text, want);
    json_free(&json);
}

static void write_structure(json_out *json) {
    const double matrix[4] = {1, 0.5, -2, 1e300};
    json_open(json, '{');
    json_member_string(json, "a", "x\"\\\n\x01");
    json_key(json, "list");
    json_open(json, '[');
    json_int(json, -7);
    json_bool(json, true);
    json_null(json);
    json_open(json, '[');
    json_close(json, ']');
    json_raw(json, "{\"k\": 1}");
    json_close(json, ']');
    json_member_matrix(json, "m", matrix, 2, 2);
    json_member_string(json, "none", NULL);
    json_close(json, '}');
}

static void write_not_finite(json_out *json) {
    json_open(json, '[');
    json_double(json, NAN);
    json_double(json, -INFINITY);
    json_float(json, INFINITY);
    json_close(json, ']');
}

/* Well-formed UTF-8 stays; a stray byte, an overlong slash, a surrogate and a cut sequence are replaced. */
static void write_utf8(json_out *json) {
    json_string(json, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 \xFF \xC0\xAF \xED\xA0\x80 \xE2\x82");
}

static void test_json(void) {
    check_json(write_structure, "{\"a\": \"x\\\"\\\\\\u000a\\u0001\", \"list\": [-7, true, null, [], {\"k\": 1}], \"m\": [[1, "
                                "0.5], [-2, 1e+300]], \"none\": null}");
    check_json(write_not_finite, "[null, null, null]");
#define R "\xEF\xBF\xBD"
    check_json(write_utf8, "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80 " R " " R R " " R R R " " R R "\"");

    /* Every float reads back to itself. */
    uint32_t state = 1;
    for (int i = 0; i < 20000; i++) {
        state = state * 1664525u + 1013904223u;
        float value, back;
        memcpy(&value, &state, sizeof value);
        if (!isfinite(value))
            continue;
        json_out json = {0};
        json_float(&json, value);
        back = strtof(json.text, NULL);
        CHECK(back == value);
        json.length = 0;
        json.comma = false;
        json_double(&json, (double)value / 3);
        CHECK(strtod(json.text, NULL) == (double)value / 3);
        json_free(&json);
    }
}

static void test_intrinsics(void) {
    theo_intrinsics k;
    CHECK(intrinsics_read(&k, "intrinsics", "500,501,320.5,240") == EXIT_DONE && k.fx == 500 && k.fy == 501 && k.cx == 320.5 &&
          k.cy == 240);
    static const char *const bad[] = {"500,501,320", "0,1,2,3", "-5,5,1,1", "a,b,c,d", "500,501,320,240,1", "no/such/file"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_MSG(intrinsics_read(&k, "intrinsics", bad[i]) == EXIT_NOTHING, "%s", bad[i]);

    static const struct {
        const char *text;
        int code;
        double cx;
    } files[] = {
        {"500 501 320 240\n", EXIT_DONE, 320},
        {"{\"intrinsics_pixels\": [[500, 0, 320.5], [0, 501, 240.5], [0, 0, 1]], \"pixel_center\": 0.5}", EXIT_DONE, 320},
        {"{\"x\": 1, \"intrinsics_pixels\" : [[500,0,320],[0,501,240],[0,0,1]]}", EXIT_DONE, 320},
        {"{\"intrinsics_pixels\": [[500, 0], [0, 501]]}", EXIT_NOTHING, 0},
        {"{\"intrinsics\": [[500, 0, 320], [0, 501, 240], [0, 0, 1]]}", EXIT_NOTHING, 0},
        {"500 501 320", EXIT_NOTHING, 0},
        {"", EXIT_NOTHING, 0},
    };
    char path[] = "/tmp/theo-test-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        CHECK(ftruncate(fd, 0) == 0 && pwrite(fd, files[i].text, strlen(files[i].text), 0) == (ssize_t)strlen(files[i].text));
        CHECK_MSG(intrinsics_read(&k, "intrinsics", path) == files[i].code, "%s", files[i].text);
        if (files[i].code == EXIT_DONE)
            CHECK(k.fx == 500 && k.fy == 501 && k.cx == files[i].cx && k.cy == 240);
    }
    close(fd);
    unlink(path);
}

static void test_compare(void) {
    const float ours[4] = {1, 2, 3, 4}, off[4] = {1, 2, 3, 4.5f}, nan[4] = {1, NAN, 3, 4}, flat[4] = {2, 2, 2, 2};
    const uint16_t half[4] = {0x3C00, 0x4000, 0x4200, 0x4400}, brain[4] = {0x3F80, 0x4000, 0x4040, 0x4080};
    const double wide[4] = {1, 2, 3, 4};
    theo_array a = {.name = "x", .dtype = THEO_DTYPE_F32, .rank = 2, .shape = {2, 2}, .data = ours}, b = a;
    const compare_gate exact = {.max_rel = 0, .pcc = 1}, loose = {.max_rel = 0.2, .pcc = -INFINITY},
                       tight = {.max_rel = 0.1, .pcc = -INFINITY};

    compare_result r = compare_arrays(&a, &b, &exact);
    CHECK(r.ok && r.max_error == 0 && r.pcc > 0.999999);
    CHECK_NEAR(r.rms, sqrt(30.0 / 4), 1e-12);
    b.data = off;
    r = compare_arrays(&a, &b, &loose);
    CHECK(r.ok && r.max_error == 0.5);
    CHECK_NEAR(r.rms_error, 0.25 / r.rms, 1e-12);
    CHECK(!compare_arrays(&a, &b, &tight).ok);
    b.data = nan;
    r = compare_arrays(&a, &b, &loose);
    CHECK(!r.ok && r.problem);

    b.dtype = THEO_DTYPE_F16, b.data = half;
    CHECK(compare_arrays(&a, &b, &loose).max_error == 0);
    b.dtype = THEO_DTYPE_BF16, b.data = brain;
    CHECK(compare_arrays(&a, &b, &loose).max_error == 0);
    b.dtype = THEO_DTYPE_F64, b.data = wide;
    CHECK(compare_arrays(&a, &b, &loose).max_error == 0);
    b.dtype = THEO_DTYPE_I32;
    CHECK(compare_arrays(&a, &b, &loose).problem != NULL);
    b.dtype = THEO_DTYPE_F32, b.data = ours, b.shape[0] = 4, b.shape[1] = 1;
    CHECK(!compare_arrays(&a, &b, &loose).ok);

    /* Constants have no correlation, except with themselves. */
    const compare_gate correlation = {.max_rel = INFINITY, .pcc = 0.9};
    theo_array c = a, d = a;
    c.data = d.data = flat;
    CHECK(compare_arrays(&c, &d, &correlation).ok);
    CHECK(!compare_arrays(&a, &d, &correlation).ok);
}

/* Keypoints of image i: i + 1 points whose numbers tell the image and the place. */
static theo_keypoints make_points(int image, float *block) {
    int n = image + 1, c = 8;
    for (int i = 0; i < n * (3 + c); i++)
        block[i] = (float)(1000 * image + i);
    return (theo_keypoints){
        .count = n, .descriptor_dim = c, .xy = block, .scores = block + 2 * n, .descriptors = block + 3 * n, .model = "m"};
}

static void test_keystore(void) {
    enum { IMAGES = 20, BUDGET = 1024 };
    float block[IMAGES * 11];
    int uses[IMAGES];
    theo_error err;
    for (int i = 0; i < IMAGES; i++)
        uses[i] = 2;
    keystore *store = keystore_new(IMAGES, uses, BUDGET);
    for (int i = 0; i < IMAGES; i++) {
        theo_keypoints points = make_points(i, block);
        CHECK(keystore_put(store, i, &points, &err) == THEO_OK);
        CHECK(keystore_memory(store) <= BUDGET);
    }
    size_t spilled = keystore_spilled(store);
    CHECK(spilled > 0);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < IMAGES; i++) {
            theo_keypoints view, want = make_points(i, block);
            CHECK(keystore_get(store, i, &view, &err) == THEO_OK);
            CHECK(view.count == want.count && view.descriptor_dim == 8);
            CHECK_STR(view.model, "m");
            CHECK(memcmp(view.xy, want.xy, 2 * sizeof(float) * (size_t)want.count) == 0);
            CHECK(memcmp(view.scores, want.scores, sizeof(float) * (size_t)want.count) == 0);
            CHECK(memcmp(view.descriptors, want.descriptors, 8 * sizeof(float) * (size_t)want.count) == 0);
            keystore_release(store, i);
        }
    CHECK(keystore_memory(store) == 0);
    CHECK(keystore_spilled(store) <= 2 * spilled); /* each block is written once at most */
    keystore_free(store);
}

static void test_names(void) {
    const char *const keys[] = {"b", "a", "c", "a", "b"};
    int a = -1, b = -1;
    CHECK(!find_duplicate(keys, 3, &a, &b));
    CHECK(find_duplicate(keys, 5, &a, &b) && a == 1 && b == 3);

    static const struct {
        const char *name, *stem;
    } cases[] = {{"a.jpg", "a"},     {"a.b.png", "a.b"},     {"sub/a.jpg", "sub/a"},
                 {"s.d/a", "s.d/a"}, {".hidden", ".hidden"}, {"a", "a"}};
    inputs list = {0};
    for (int i = 0; i < 6; i++) {
        inputs_add(&list, cases[i].name, cases[i].name);
        CHECK_STR(list.items[i].stem, cases[i].stem);
    }
    inputs_free(&list);

    char clock[16];
    progress_clock(clock, 7.4);
    CHECK_STR(clock, "0:07");
    progress_clock(clock, 750);
    CHECK_STR(clock, "12:30");
    progress_clock(clock, 11100);
    CHECK_STR(clock, "3:05:00");
    progress_clock(clock, 1e30);
    CHECK(strlen(clock) < 16);
}

int main(void) {
    test_values();
    test_arguments();
    test_json();
    test_intrinsics();
    test_compare();
    test_keystore();
    test_names();
    return t_done("test_cli_parts");
}
