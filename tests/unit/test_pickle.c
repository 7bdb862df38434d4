/* The pickle machine and what torch builds with it: values, tensors with every kind of stride, and a stream for every way to be
 * refused. */
#include "formats/bytes.h"
#include "formats/torch.h"
#include "t.h"

#define LIT(text) text, sizeof(text) - 1
/* str(n, "abc"): BINUNICODE of n characters */
#define STR(n, text)                          "X" n "\0\0\0" text
#define STORAGE(class, key, count)            "(" STR("\7", "storage") "ctorch\n" class "\n" STR("\1", key) STR("\3", "cpu") "K" count "tQ"
#define DICT                                  "ccollections\nOrderedDict\n)R"
#define TENSOR(storage, offset, size, stride) "ctorch._utils\n_rebuild_tensor_v2\n(" storage offset size stride "\x89" DICT "tR"

static const float numbers[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

static theo_status find_storage(void *user, const theo_storage *storage, const char *tensor, const uint8_t **data,
                                theo_error *err) {
    (void)tensor, (void)err;
    *(int *)user += 1;
    CHECK(storage->count <= 12);
    *data = (const uint8_t *)numbers;
    return THEO_OK;
}

/* Parses and collects; w->memory is the caller's to free. */
static theo_status load(theo_weights *w, const char *pickle, size_t bytes, theo_error *err) {
    theo_pickle parsed;
    int found = 0;
    uint8_t *exact = malloc(bytes + !bytes);
    memcpy(exact, pickle, bytes);
    *w = (theo_weights){.path = "x.pt"};
    theo_status status = theo_pickle_parse(&parsed, &w->memory, exact, bytes, "x.pt", "data.pkl", err);
    if (status == THEO_OK) {
        CHECK(parsed.bytes == bytes);
        status = theo_torch_collect(w, parsed.root, find_storage, &found, err);
    }
    CHECK(status != THEO_OK || found == w->count);
    free(exact);
    return status;
}

static void test_config(void) {
    theo_weights w;
    theo_error err;
    static const char pickle[] =
        "\x80\2}q\0(" STR("\1", "a") "](K\1M\1\1J\xff\xff\xff\xff\x8a\5\0\0\0\0\1NeX\2\0\0\0\xc3\xa9\x88" STR(
            "\1",
            "b") "\x89" STR("\1",
                            "f") "G?\xe0\0\0\0\0\0\0" STR("\1",
                                                          "t") "(K\1\x85K\2K\3\x86t" STR("\1",
                                                                                         "n") "cargparse\nNamespace\n)"
                                                                                              "\x81}" STR(
                                                                                                  "\1",
                                                                                                  "s") "U\2his"
                                                                                                       "b" STR(
                                                                                                           "\1",
                                                                                                           "o") "ccollections\nOr"
                                                                                                                "deredDict\n]("
                                                                                                                "]"
                                                                                                                "(U\1kK\7e"
                                                                                                                "e\x85R" STR("\1",
                                                                                                                             "z")
                                                                                                                    DICT
        "}b"
        "K\5K\6" STR("\5", "model") "}" STR("\1", "w")
            TENSOR(STORAGE("FloatStorage", "0", "\2"), "K\0", "K\2\x85", "K\1\x85") "su.";
    CHECK_MSG(load(&w, pickle, sizeof pickle - 1, &err) == THEO_OK, "%s", err.message);
    CHECK_STR(w.config_json ? w.config_json : "", "{\"a\":[1,257,-1,4294967296,null],\"\xc3\xa9\":true,\"b\":false,\"f\":0.5,"
                                                  "\"t\":[[1],[2,3]],\"n\":{\"s\":\"hi\"},\"o\":{\"k\":7},\"z\":{}}");
    CHECK(w.count == 1);
    theo_bump_free(&w.memory);
}

/* A pickle put together piece by piece. */
#define PUT(text) put(LIT(text))
static char made[1024];
static size_t made_bytes;

static void put(const char *bytes, size_t count) {
    CHECK(made_bytes + count <= sizeof made);
    memcpy(made + made_bytes, bytes, count);
    made_bytes += count;
}

/* Members that no configuration can have are left out, whatever they would cost to write. */
static void test_left_out(void) {
    theo_weights w;
    theo_error err;
    made_bytes = 0;
    PUT("\x80\2}(" STR("\1", "w") TENSOR(STORAGE("FloatStorage", "0", "\2"), "K\0", "K\2\x85", "K\1\x85"));
    PUT(STR("\1", "b") "]q\xff"
                       "h\xff"
                       "a");             /* a list in itself */
    PUT(STR("\1", "d") "(]q\0(K\1K\1e"); /* 28 lists that stand for 2^28 numbers */
    for (int i = 1; i < 28; i++)
        put((char[]){']', 'q', (char)i, '(', 'h', (char)(i - 1), 'h', (char)(i - 1), 'e'}, 9);
    PUT("t" STR("\1", "k") "K\1"
                           "u.");
    CHECK_MSG(load(&w, made, made_bytes, &err) == THEO_OK, "%s", err.message);
    CHECK_STR(w.config_json ? w.config_json : "", "{\"k\":1}");
    theo_bump_free(&w.memory);
}

static void test_strides(void) {
    static const struct {
        const char *size_and_stride;
        size_t bytes;
        int count;
        float values[12];
    } cases[] = {
        {LIT("K\2K\3\x86"
             "K\3K\1\x86"),
         6,
         {1, 2, 3, 4, 5, 6}},
        {LIT("K\3K\2\x86"
             "K\1K\3\x86"),
         6,
         {1, 4, 2, 5, 3, 6}}, /* transposed */
        {LIT("K\2K\2\x86"
             "K\5K\2\x86"),
         4,
         {1, 3, 6, 8}}, /* every other one */
        {LIT("K\2K\2\x86"
             "K\0K\1\x86"),
         4,
         {1, 2, 1, 2}}, /* repeated */
        {LIT("K\4\x85"
             "K\0\x85"),
         4,
         {1, 1, 1, 1}},
        {LIT("K\2K\1K\2\x87"
             "K\2K\x63K\1\x87"),
         4,
         {1, 2, 3, 4}}, /* the stride of a single one does not count */
        {LIT("))"), 1, {1}},
        {LIT("K\0K\2\x86"
             "K\2K\1\x86"),
         0,
         {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made_bytes = 0;
        PUT("\x80\2}" STR("\1", "w") "ctorch._utils\n_rebuild_tensor_v2\n(" STORAGE("FloatStorage", "0", "\14") "K\1");
        put(cases[i].size_and_stride, cases[i].bytes);
        PUT("\x89" DICT "tRs.");
        theo_weights w;
        theo_error err;
        float values[13] = {[12] = -1};
        CHECK_MSG(load(&w, made, made_bytes, &err) == THEO_OK && w.count == 1, "%zu: %s", i, err.message);
        CHECK(w.items[0].elements == cases[i].count);
        CHECK(theo_weight_to_f32(&w, &w.items[0], values, &err) == THEO_OK);
        CHECK_MSG(memcmp(values, cases[i].values, 4 * (size_t)cases[i].count) == 0 &&
                      (cases[i].count == 12 || values[cases[i].count] == 0),
                  "%zu", i);
        theo_bump_free(&w.memory);
    }
}

#define W "\x80\2}" STR("\1", "w")

static void test_refused(void) {
    static const struct {
        const char *pickle;
        size_t bytes;
        theo_status status;
        const char *says;
    } cases[] = {
        {LIT(""), THEO_PICKLE, "no end"},
        {LIT("\x80\2}"), THEO_PICKLE, "no end"},
        {LIT("\x80\4}."), THEO_PICKLE, "protocol 2"},
        {LIT("\x80\2."), THEO_PICKLE, "stack is empty"},
        {LIT("\x80\2}}."), THEO_PICKLE, "left on the stack"},
        {LIT("\x80\2(}."), THEO_PICKLE, "left on the stack"},
        {LIT("\x80\2\xff."), THEO_PICKLE, "opcode 0xff"},
        {LIT("\x80\2cos\nsystem\n."), THEO_SECURITY, "os.system"},
        {LIT("\x80\2ctorch\nos.system\n."), THEO_SECURITY, "torch.os.system"},
        {LIT("\x80\2ctorch\nload\n."), THEO_SECURITY, "torch.load"},
        {LIT("\x80\2c__builtin__\neval\n."), THEO_SECURITY, "eval"},
        {LIT("\x80\2ccollections\nOrderedDic\n."), THEO_SECURITY, "OrderedDic"},
        {LIT("\x80\2cos\n\x1b[2J\n."), THEO_PICKLE, "printable"},
        {LIT("\x80\2cos\nsystem"), THEO_PICKLE, "ends inside"},
        {LIT("\x80\2(K\1ios\nsystem\n."), THEO_PICKLE, "opcode 0x69"},
        {LIT("\x80\2\x8c\2os\x8c\6system\x93."), THEO_PICKLE, "opcode 0x8c"},
        {LIT("\x80\2R."), THEO_PICKLE, "stack is empty"},
        {LIT("\x80\2K\1)R."), THEO_PICKLE, "not a class"},
        {LIT("\x80\2ccollections\nOrderedDict\nK\1R."), THEO_PICKLE, "not a class"},
        {LIT("\x80\2ccollections\nOrderedDict\nK\1\x85R."), THEO_PICKLE, "pairs"},
        {LIT("\x80\2ctorch\nFloatStorage\n)R."), THEO_PICKLE, "storage class"},
        {LIT("\x80\2cargparse\nNamespace\nK\1\x85\x81."), THEO_PICKLE, "no arguments"},
        {LIT("\x80\2]}b."), THEO_PICKLE, "attributes"},
        {LIT("\x80\2h\0."), THEO_PICKLE, "never written"},
        {LIT("\x80\2}r\xff\xff\xff\xff."), THEO_PICKLE, "memo slot"},
        {LIT("\x80\2X\xff\xff\xff\xff"
             "abc."),
         THEO_PICKLE, "ends inside"},
        {LIT("\x80\2X\2\0\0\0\xc3(."), THEO_PICKLE, "UTF-8"},
        {LIT("\x80\2X\1\0\0\0\0."), THEO_PICKLE, "UTF-8"},
        {LIT("\x80\2\x8a\11"
             "123456789."),
         THEO_PICKLE, "64 bits"},
        {LIT("\x80\2t."), THEO_PICKLE, "no mark"},
        {LIT("\x80\2K\1\x86."), THEO_PICKLE, "too few"},
        {LIT("\x80\2}(K\1u."), THEO_PICKLE, "without a value"},
        {LIT("\x80\2](K\1u."), THEO_PICKLE, "not a dict"},
        {LIT("\x80\2}(K\1e."), THEO_PICKLE, "not a list"},
        {LIT("\x80\2](K\1a."), THEO_PICKLE, "not a list"},
        {LIT("\x80\2K\1Q."), THEO_PICKLE, "persistent id"},
        {LIT("\x80\2(" STR("\7", "storage") "ccollections\nOrderedDict\n" STR("\1", "0") STR("\3", "cpu") "K\1tQ."), THEO_PICKLE,
         "persistent id"},
        {LIT("\x80\2(" STR("\7", "storage") "ctorch\nFloatStorage\n" STR("\1", "0") STR("\3", "cpu") "K\1)tQ."), THEO_UNSUPPORTED,
         "view"},
        {LIT(W "ctorch._utils\n_rebuild_tensor_v2\n)Rs."), THEO_PICKLE, "needs a storage"},
        {LIT(W TENSOR(STORAGE("FloatStorage", "0", "\4"), "K\0", "K\2\x85", "K\1K\1\x86") "s."), THEO_PICKLE, "as many"},
        {LIT(W TENSOR(STORAGE("FloatStorage", "0", "\4"), "K\0", "N\x85", "K\1\x85") "s."), THEO_PICKLE, "as many"},
        {LIT(W TENSOR(STORAGE("FloatStorage", "0", "\4"), "K\0", "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t", ")") "s."), THEO_UNSUPPORTED,
         "8 dimensions"},
        {LIT(W TENSOR(STORAGE("FloatStorage", "0", "\4"), "K\0", "K\5\x85", "K\1\x85") "s."), THEO_BOUNDS, "outside"},
        {LIT(W TENSOR(STORAGE("FloatStorage", "0", "\4"), "K\1", "K\4\x85", "K\1\x85") "s."), THEO_BOUNDS, "outside"},
        {LIT(W TENSOR(STORAGE("FloatStorage", "0", "\4"), "K\0", "K\2\x85", "K\4\x85") "s."), THEO_BOUNDS, "outside"},
        {LIT(W TENSOR(STORAGE("FloatStorage", "0", "\4"), "K\5", "K\0\x85", "K\1\x85") "s."), THEO_BOUNDS, "outside"},
        {LIT(W TENSOR(STORAGE("FloatStorage", "0", "\4"), "J\xff\xff\xff\xff", "K\1\x85", "K\1\x85") "s."), THEO_BOUNDS,
         "outside"},
        {LIT(W TENSOR(STORAGE("FloatStorage", "0", "\4"), "K\0", "J\xff\xff\xff\xff\x85", "K\1\x85") "s."), THEO_BOUNDS,
         "outside"},
        {LIT(W TENSOR(STORAGE("FloatStorage", "0", "\4"), "K\0", "K\2\x85", "J\xff\xff\xff\xff\x85") "s."), THEO_BOUNDS,
         "outside"},
        {LIT(W TENSOR(STORAGE("FloatStorage", "0", "\4"), "K\0", "K\2K\2\x86", "\x8a\10\0\0\0\0\0\0\0\x40K\1\x86") "s."),
         THEO_BOUNDS, "outside"},
        {LIT(W TENSOR(STORAGE("FloatStorage", "0", "\4"), "K\0", "\x8a\5\0\0\0\0\1\x8a\5\0\0\0\0\1\x86", "K\0K\0\x86") "s."),
         THEO_BOUNDS, "overflows"},
        {LIT("\x80\2]."), THEO_STRUCTURE, "not a dict"},
        {LIT("\x80\2}."), THEO_STRUCTURE, "no tensors"},
        {LIT(W "K\1s" STR("\1", "w") "K\2s."), THEO_PICKLE, "twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        theo_weights w;
        theo_error err = {0};
        theo_status status = load(&w, cases[i].pickle, cases[i].bytes, &err);
        CHECK_MSG(status == cases[i].status && strstr(err.message, cases[i].says) && strstr(err.message, "x.pt"),
                  "%zu (%s): %s: %s", i, cases[i].says, theo_status_name(status), err.message);
        theo_bump_free(&w.memory);
    }
}

/* What grows without end is stopped by a limit, not by the memory. */
static void test_limits(void) {
    static const char grow[] = {'(', '}', ']', ')'};
    enum { MANY = 200000 };
    char *pickle = malloc(MANY + 3);
    for (size_t i = 0; i < sizeof grow; i++) {
        theo_weights w;
        theo_error err;
        memcpy(pickle, "\x80\2", 2);
        memset(pickle + 2, grow[i], MANY);
        pickle[MANY + 2] = '.';
        CHECK(load(&w, pickle, MANY + 3, &err) == THEO_PICKLE &&
              (strstr(err.message, "256 marks") || strstr(err.message, "16384 values")));
        CHECK(w.memory.bytes < (4 << 20));
        theo_bump_free(&w.memory);
    }
    free(pickle);
}

/* A Namespace that takes a dict of 1000 members over and over: three bytes each time. */
static void test_unfolding(void) {
    enum { MEMBERS = 1000, TIMES = 50000 };
    char *pickle = malloc(5 * MEMBERS + 3 * TIMES + 64), *p = pickle;
    p = mempcpy(p, LIT("\x80\2}q\0("));
    for (int i = 0; i < MEMBERS; i++)
        p = mempcpy(p, LIT("K\1N"));
    p = mempcpy(p, LIT("ucargparse\nNamespace\n)\x81"));
    for (int i = 0; i < TIMES; i++)
        p = mempcpy(p, LIT("h\0b"));
    *p++ = '.';
    theo_weights w;
    theo_error err = {0};
    CHECK_MSG(load(&w, pickle, (size_t)(p - pickle), &err) == THEO_PICKLE && strstr(err.message, "unfolds"), "%s", err.message);
    CHECK(w.memory.bytes < (1 << 20));
    theo_bump_free(&w.memory);
    free(pickle);
}

int main(void) {
    test_config();
    test_left_out();
    test_strides();
    test_refused();
    test_limits();
    test_unfolding();
    return t_done("pickle");
}
