/* Checkpoints that we write, read back: both layouts, flat and beside a configuration, every type. */
#include "base/map.h"
#include "formats/bytes.h"
#include "formats/torch_write.h"
#include "formats/weights_internal.h"
#include "formats/zip.h"
#include "scratch.h"
#include "t.h"

static const float numbers[64] = {1, -2, 3.5f};

static const theo_array samples[] = {
    {"conv1a.weight", THEO_DTYPE_F32, 4, {2, 1, 3, 3}, numbers},
    {"conv1a.bias", THEO_DTYPE_F32, 1, {2}, numbers},
    {"scalar", THEO_DTYPE_I64, 0, {0}, numbers},
    {"half", THEO_DTYPE_F16, 2, {3, 5}, numbers},
    {"brain", THEO_DTYPE_BF16, 1, {7}, numbers},
    {"double", THEO_DTYPE_F64, 1, {9}, numbers},
    {"int", THEO_DTYPE_I32, 1, {3}, numbers},
    {"flag", THEO_DTYPE_BOOL, 1, {3}, numbers},
    {"empty", THEO_DTYPE_F32, 2, {0, 3}, NULL},
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static const size_t element_bytes[] = {8, 4, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1, 0};

static void check_file(const char *path, bool legacy, const char *config) {
    theo_weights *w;
    theo_error err;
    CHECK_MSG(theo_weights_open(&w, path, &(theo_weights_options){.verify_checksums = true}, &err) == THEO_OK, "%s", err.message);
    if (!w)
        return;
    CHECK_STR(theo_weights_source(w), legacy ? "torch-legacy" : "torch-zip");
    CHECK_STR(theo_weights_config_json(w) ? theo_weights_config_json(w) : "", config);
    CHECK(theo_weights_count(w) == SAMPLES);
    for (int i = 0; i < SAMPLES; i++) {
        const theo_weight *t = theo_weights_find(w, samples[i].name);
        CHECK_MSG(t && t->dtype == samples[i].dtype && t->rank == samples[i].rank &&
                      memcmp(t->shape, samples[i].shape, 8 * (size_t)t->rank) == 0,
                  "%s", samples[i].name);
        CHECK(t && (!t->elements || memcmp(t->data, samples[i].data, (size_t)t->elements * element_bytes[t->dtype]) == 0));
    }
    theo_weights_close(w);
}

static void test_layouts(void) {
    theo_error err;
    static const char config[] =
        "{\"model_config\":{\"a\":[1,-300,70000,9007199254740993,0.5,null,true,false],\"b\":\"c\",\"r\":[-Infinity]}}";
    for (int legacy = 0; legacy < 2; legacy++) {
        theo_torch_options flat = {.legacy = legacy}, beside = {.legacy = legacy, .state_key = "model", .config_json = config};
        CHECK_MSG(theo_torch_write(scratch("a.pth"), samples, SAMPLES, &flat, &err) == THEO_OK, "%s", err.message);
        check_file(scratch("a.pth"), legacy, "");
        CHECK_MSG(theo_torch_write(scratch("a.pth"), samples, SAMPLES, &beside, &err) == THEO_OK, "%s", err.message);
        check_file(scratch("a.pth"), legacy, config);
    }
}

/* Arrays of the same data are two names of one storage. */
static void test_shared(void) {
    theo_error err;
    static const theo_array arrays[] = {{"a", THEO_DTYPE_F32, 2, {8, 8}, numbers},
                                        {"b", THEO_DTYPE_F32, 1, {8}, numbers + 8},
                                        {"a again", THEO_DTYPE_F32, 1, {64}, numbers},
                                        {"c", THEO_DTYPE_I32, 1, {64}, numbers}};
    for (int legacy = 0; legacy < 2; legacy++) {
        theo_weights *w;
        CHECK(theo_torch_write(scratch("s.pth"), arrays, 4, &(theo_torch_options){.legacy = legacy}, &err) == THEO_OK);
        CHECK_MSG(theo_weights_open(&w, scratch("s.pth"), NULL, &err) == THEO_OK, "%s", err.message);
        const theo_weight *a = theo_weights_find(w, "a"), *again = theo_weights_find(w, "a again");
        CHECK(theo_weights_count(w) == 4 && a->data == again->data && again->rank == 1 && again->shape[0] == 64);
        CHECK(!memcmp(theo_weights_find(w, "b")->data, numbers + 8, 32) && theo_weights_find(w, "c")->data != a->data);
        theo_weights_close(w);
    }
}

/* What torch's reader and the facts known of published files ask for. */
static void test_zip_facts(void) {
    theo_error err;
    theo_map map;
    theo_zip zip;
    theo_bump memory = {0};
    CHECK(theo_torch_write(scratch("a.pt"), samples, SAMPLES, NULL, &err) == THEO_OK);
    CHECK(theo_map_open(&map, scratch("a.pt"), &err) == THEO_OK);
    CHECK(theo_zip_parse(&zip, &memory, map.data, map.bytes, "a.pt", &err) == THEO_OK);
    CHECK_STR(zip.entries[0].name, "archive/data.pkl");
    CHECK(zip.count == SAMPLES + 3 && theo_zip_find(&zip, "archive/version") && theo_zip_find(&zip, "archive/data/0"));
    for (int i = 0; i < zip.count; i++) {
        const uint8_t *local = zip.entries[i].data;
        CHECK((zip.entries[i].data - map.data) % 64 == 0 && zip.entries[i].method == THEO_ZIP_STORED);
        do
            local--;
        while (theo_get32(local) != 0x04034b50);
        CHECK(theo_get16(local + 6) == 0x0808 && theo_get32(local + 14) == 0 && theo_get32(local + 18) == 0 &&
              theo_get32(local + 22) == 0);
    }
    CHECK(theo_get32(map.data + map.bytes - 42) == 0x07064b50); /* zip64 locator */
    theo_bump_free(&memory);
    theo_map_close(&map);
}

static void test_refused(void) {
    theo_error err;
    const theo_array byte = {"a", THEO_DTYPE_U8, 0, {0}, numbers};
    CHECK(theo_torch_write(scratch("b.pt"), &byte, 1, NULL, &err) == THEO_ARGUMENT && strstr(err.message, "U8"));
    CHECK(theo_torch_write(scratch("b.pt"), samples, 1, &(theo_torch_options){.config_json = "{}"}, &err) == THEO_ARGUMENT);
    CHECK(theo_torch_write(scratch("b.pt"), samples, 1, &(theo_torch_options){.config_json = "[]", .state_key = "model"}, &err) ==
          THEO_ARGUMENT);
    CHECK(theo_torch_write(scratch("b.pt"), samples, 1, &(theo_torch_options){.config_json = "{", .state_key = "model"}, &err) ==
          THEO_CONTAINER);
    CHECK(access(scratch("b.pt"), F_OK) != 0);
}

/* Cut anywhere and with every byte changed in turn, a file is refused or read, but never more. */
static void test_damaged(bool legacy) {
    theo_error err;
    theo_weights *w;
    theo_map map;
    theo_weights_options options = {.verify_checksums = true};
    CHECK(theo_torch_write(scratch("d.pth"), samples, 2,
                           &(theo_torch_options){.legacy = legacy, .state_key = "model", .config_json = "{\"a\":[1]}"},
                           &err) == THEO_OK);
    CHECK(theo_map_open(&map, scratch("d.pth"), &err) == THEO_OK);
    for (size_t i = 0; i < map.bytes; i++)
        for (int change = 1; change < 256; change *= 4) {
            char *copy = malloc(map.bytes);
            memcpy(copy, map.data, map.bytes);
            copy[i] = (char)(copy[i] ^ change);
            if (theo_weights_open_memory(&w, copy, map.bytes, "d.pth", &options, &err) == THEO_OK)
                for (int k = 0; k < theo_weights_count(w); k++) {
                    const theo_weight *t = theo_weights_at(w, k);
                    float values[64];
                    if (t->elements <= 64 && t->dtype <= THEO_DTYPE_BF16)
                        CHECK(theo_weight_to_f32(w, t, values, &err) == THEO_OK);
                }
            theo_weights_close(w);
            free(copy);
        }
    for (size_t n = 0; n < map.bytes; n++) {
        char *cut = malloc(n + !n);
        memcpy(cut, map.data, n);
        CHECK_MSG(theo_weights_open_memory(&w, cut, n, "d.pth", &options, &err) != THEO_OK && !w, "%zu of %zu bytes", n,
                  map.bytes);
        free(cut);
    }
    theo_map_close(&map);
}

int main(void) {
    test_layouts();
    test_shared();
    test_zip_facts();
    test_refused();
    test_damaged(false);
    test_damaged(true);
    scratch_remove();
    return t_done("torch_write");
}
