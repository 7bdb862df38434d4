/* npy, npz and safetensors files: round trips of every type, and what the readers and writers refuse. */
#include "base/map.h"
#include "formats/npy.h"
#include "formats/zip_write.h"
#include "scratch.h"
#include "t.h"
#include <theo/image.h>

static const char text[] = "gr\xc3\xbc\xc3\x9f dich \xe2\x82\xac \xf0\x9f\x98\x80";

static uint8_t numbers[64 * 1024];

static const theo_array samples[] = {
    {"f8", THEO_DTYPE_F64, 1, {3}, numbers},
    {"f4", THEO_DTYPE_F32, 3, {2, 3, 4}, numbers + 1},
    {"f2", THEO_DTYPE_F16, 2, {5, 1}, numbers},
    {"i8", THEO_DTYPE_I64, 0, {0}, numbers},
    {"i4", THEO_DTYPE_I32, 2, {0, 7}, NULL},
    {"i2", THEO_DTYPE_I16, 1, {1}, numbers},
    {"i1", THEO_DTYPE_I8, 1, {9}, numbers},
    {"u8", THEO_DTYPE_U64, 1, {2}, numbers},
    {"u4", THEO_DTYPE_U32, 1, {2}, numbers},
    {"u2", THEO_DTYPE_U16, 1, {2}, numbers},
    {"u1", THEO_DTYPE_U8, 8, {1, 2, 1, 2, 1, 2, 1, 3}, numbers},
    {"b1", THEO_DTYPE_BOOL, 2, {100, 200}, numbers},
    {"gr\xc3\xb6\xc3\x9f"
     "e",
     THEO_DTYPE_F32,
     1,
     {10000},
     numbers},
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

static const size_t element_bytes[] = {8, 4, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1, 0};

static void check_same(const theo_array *got, const theo_array *want) {
    CHECK(got != NULL);
    if (!got)
        return;
    int64_t elements = 1;
    CHECK(got->dtype == want->dtype && got->rank == want->rank);
    for (int i = 0; i < want->rank; i++) {
        CHECK(got->shape[i] == want->shape[i]);
        elements *= want->shape[i];
    }
    size_t bytes = (size_t)elements * element_bytes[want->dtype];
    CHECK((uintptr_t)got->data % 8 == 0);
    CHECK_MSG(!bytes || memcmp(got->data, want->data, bytes) == 0, "%s", want->name);
}

/* The bytes of a file, whatever pool helps. */
static void test_npz_in_memory(const theo_array *arrays, int count, bool deflate) {
    static uint8_t large[3 << 20];
    theo_array with_large[64];
    theo_pool *pool;
    theo_map map;
    theo_error err;
    void *data;
    size_t bytes;
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = (uint8_t)(i * i >> 9);
    memcpy(with_large, arrays, (size_t)count * sizeof *arrays);
    with_large[count] = (theo_array){.name = "large", .dtype = THEO_DTYPE_U8, .rank = 1, .shape = {sizeof large}, .data = large};
    CHECK(theo_pool_open(&pool, 3, &err) == THEO_OK);
    CHECK(theo_npz_write(scratch("m.npz"), with_large, count + 1, deflate, NULL, &err) == THEO_OK);
    CHECK(theo_map_open(&map, scratch("m.npz"), &err) == THEO_OK);
    for (int i = 0; i < 2; i++) {
        CHECK_MSG(theo_npz_encode(with_large, count + 1, deflate, i ? pool : NULL, &data, &bytes, &err) == THEO_OK, "%s",
                  err.message);
        CHECK(bytes == map.bytes && !memcmp(data, map.data, bytes));
        theo_buffer_free(data);
    }
    theo_map_close(&map);
    theo_pool_close(pool);
    CHECK(theo_npz_encode(NULL, 0, deflate, NULL, &data, &bytes, &err) == THEO_OK && bytes == 22);
    theo_buffer_free(data);
    CHECK(theo_npz_encode(NULL, 1, deflate, NULL, &data, &bytes, &err) == THEO_ARGUMENT && !data);
    CHECK(theo_npz_encode(arrays, 1, deflate, NULL, NULL, &bytes, &err) == THEO_ARGUMENT);
}

static void test_npz(bool deflate) {
    theo_error err;
    theo_arrays *arrays;
    theo_array all[SAMPLES + 2];
    memcpy(all, samples, sizeof samples);
    all[SAMPLES] = (theo_array){.name = "text", .dtype = THEO_DTYPE_TEXT, .data = text};
    all[SAMPLES + 1] = (theo_array){.name = "empty", .dtype = THEO_DTYPE_TEXT, .data = ""};
    CHECK_MSG(theo_npz_write(scratch("a.npz"), all, SAMPLES + 2, deflate, NULL, &err) == THEO_OK, "%s", err.message);
    CHECK_MSG(theo_npz_read(&arrays, scratch("a.npz"), &err) == THEO_OK, "%s", err.message);
    if (!arrays)
        return;
    CHECK(arrays->count == SAMPLES + 2);
    for (int i = 0; i < SAMPLES; i++)
        check_same(theo_arrays_find(arrays, samples[i].name), &samples[i]);
    CHECK_STR((const char *)theo_arrays_find(arrays, "text")->data, text);
    CHECK_STR((const char *)theo_arrays_find(arrays, "empty")->data, "");
    CHECK(!theo_arrays_find(arrays, "none"));
    theo_arrays_free(arrays);

    test_npz_in_memory(all, SAMPLES + 2, deflate);
    CHECK(theo_npz_write(scratch("a.npz"), NULL, 0, deflate, NULL, &err) == THEO_OK);
    CHECK(theo_npz_read(&arrays, scratch("a.npz"), &err) == THEO_OK && arrays->count == 0);
    theo_arrays_free(arrays);
}

/* Deflated files are smaller where that is possible, and never larger. */
static void test_sizes(void) {
    theo_error err;
    theo_map map;
    static uint8_t zeros[100000];
    size_t bytes[2];
    for (int deflate = 0; deflate < 2; deflate++) {
        theo_array array = {.name = "z", .dtype = THEO_DTYPE_U8, .rank = 1, .shape = {sizeof zeros}, .data = zeros};
        CHECK(theo_npz_write(scratch("z.npz"), &array, 1, deflate, NULL, &err) == THEO_OK);
        CHECK(theo_map_open(&map, scratch("z.npz"), &err) == THEO_OK);
        bytes[deflate] = map.bytes;
        theo_map_close(&map);
    }
    CHECK(bytes[0] > sizeof zeros && bytes[1] < 2000);
}

static void test_npy(void) {
    theo_error err;
    theo_arrays *arrays;
    for (int i = 0; i < SAMPLES; i++) {
        CHECK_MSG(theo_npy_write(scratch("a.npy"), &samples[i], &err) == THEO_OK, "%s", err.message);
        CHECK_MSG(theo_npy_read(&arrays, scratch("a.npy"), &err) == THEO_OK, "%s", err.message);
        if (arrays) {
            CHECK(arrays->count == 1);
            check_same(&arrays->items[0], &samples[i]);
        }
        theo_arrays_free(arrays);
    }
}

static void test_safetensors(void) {
    theo_error err;
    theo_arrays *arrays;
    theo_array all[SAMPLES + 1];
    memcpy(all, samples, sizeof samples);
    all[SAMPLES] = (theo_array){.name = "bf", .dtype = THEO_DTYPE_BF16, .rank = 1, .shape = {3}, .data = numbers};
    const char *keys[] = {"format", "quo\"te"}, *values[] = {"pt", text};
    CHECK_MSG(theo_safetensors_write(scratch("a.safetensors"), all, SAMPLES + 1, keys, values, 2, &err) == THEO_OK, "%s",
              err.message);
    CHECK_MSG(theo_safetensors_read(&arrays, scratch("a.safetensors"), &err) == THEO_OK, "%s", err.message);
    if (!arrays)
        return;
    CHECK(arrays->count == SAMPLES + 1 && arrays->metadata_count == 2);
    for (int i = 0; i <= SAMPLES; i++)
        check_same(theo_arrays_find(arrays, all[i].name), &all[i]);
    CHECK_STR(arrays->metadata_keys[1], "quo\"te");
    CHECK_STR(arrays->metadata_values[1], text);
    theo_arrays_free(arrays);
    CHECK(theo_safetensors_write(scratch("a.safetensors"), NULL, 0, NULL, NULL, 0, &err) == THEO_OK);
    CHECK(theo_safetensors_read(&arrays, scratch("a.safetensors"), &err) == THEO_OK && arrays->count == 0 &&
          arrays->metadata_count == 0);
    theo_arrays_free(arrays);
}

static void test_refused(void) {
    theo_error err;
    theo_arrays *arrays;
    const theo_array bad[] = {
        {NULL, THEO_DTYPE_U8, 0, {0}, numbers},
        {"a", (theo_dtype)99, 0, {0}, numbers},
        {"a", THEO_DTYPE_U8, 9, {0}, numbers},
        {"a", THEO_DTYPE_U8, -1, {0}, numbers},
        {"a", THEO_DTYPE_U8, 1, {-1}, numbers},
        {"a", THEO_DTYPE_U8, 1, {3}, NULL},
        {"a", THEO_DTYPE_U8, 2, {INT64_MAX, 2}, numbers},
        {"a", THEO_DTYPE_TEXT, 1, {1}, "x"},
        {"a", THEO_DTYPE_TEXT, 0, {0}, NULL},
        {"\xff", THEO_DTYPE_U8, 0, {0}, numbers},
    };
    int before = scratch_count();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_MSG(theo_npz_write(scratch("bad.npz"), &bad[i], 1, false, NULL, &err) == THEO_ARGUMENT, "%zu", i);
        CHECK_MSG(theo_npy_write(scratch("bad.npy"), &bad[i], &err) == THEO_ARGUMENT, "%zu", i);
        CHECK_MSG(theo_safetensors_write(scratch("bad.safetensors"), &bad[i], 1, NULL, NULL, 0, &err) == THEO_ARGUMENT, "%zu", i);
    }
    const theo_array twice[2] = {samples[0], samples[0]}, brain = {"a", THEO_DTYPE_BF16, 0, {0}, numbers},
                     reserved = {"__metadata__", THEO_DTYPE_U8, 0, {0}, numbers};
    CHECK(theo_npz_write(scratch("bad.npz"), twice, 2, false, NULL, &err) == THEO_ARGUMENT && strstr(err.message, "f8"));
    CHECK(theo_npz_write(scratch("bad.npz"), &brain, 1, false, NULL, &err) == THEO_UNSUPPORTED);
    CHECK(theo_safetensors_write(scratch("bad.safetensors"), &reserved, 1, NULL, NULL, 0, &err) == THEO_ARGUMENT);
    const char *doubled[] = {"k", "k"};
    CHECK(theo_safetensors_write(scratch("bad.safetensors"), samples, 1, doubled, doubled, 2, &err) == THEO_ARGUMENT);
    CHECK(theo_npz_write("no/such/folder/a.npz", samples, 1, false, NULL, &err) == THEO_MISSING);
    CHECK(theo_npz_read(&arrays, "no/such/file.npz", &err) == THEO_MISSING && !arrays);
    CHECK(theo_npz_read(&arrays, scratch("a.npy"), &err) == THEO_CONTAINER && !arrays);
    CHECK(theo_npy_read(&arrays, scratch("a.npz"), &err) == THEO_CONTAINER && !arrays);
    CHECK(theo_safetensors_read(&arrays, scratch("a.npy"), &err) == THEO_CONTAINER && !arrays);
    CHECK_MSG(scratch_count() == before, "a refused file was left behind");
}

static void test_npy_headers(void) {
    static const struct {
        const char *header;
        size_t data_bytes;
        theo_status status;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24, THEO_OK},
        {"{\"shape\":(2L,),\"fortran_order\":True,\"descr\":\"<u1\"}", 2, THEO_OK},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, THEO_OK},
        {"{'descr': '<U2', 'fortran_order': False, 'shape': ()}", 8, THEO_OK},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 23, THEO_BOUNDS},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 25, THEO_BOUNDS},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 3), }", 0, THEO_BOUNDS},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775808,), }", 0, THEO_CONTAINER},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", 0, THEO_CONTAINER},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4, THEO_CONTAINER},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24, THEO_UNSUPPORTED},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", 4, THEO_UNSUPPORTED},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, THEO_UNSUPPORTED},
        {"{'descr': '<U2', 'fortran_order': False, 'shape': (1,)}", 8, THEO_UNSUPPORTED},
        {"{'descr': '<U99999999999', 'fortran_order': False, 'shape': ()}", 8, THEO_UNSUPPORTED},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, THEO_CONTAINER},
        {"{'descr': '<f4', 'shape': (1,), }", 4, THEO_CONTAINER},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", 4, THEO_CONTAINER},
        {"{'descr': '<f4', 'fortran_order': None, 'shape': (1,), }", 4, THEO_CONTAINER},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", 4, THEO_CONTAINER},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4, THEO_CONTAINER},
        {"{'descr': '<f4", 0, THEO_CONTAINER},
        {"", 0, THEO_CONTAINER},
    };
    theo_error err;
    theo_arrays *arrays;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t length = strlen(cases[i].header), bytes = 10 + length + cases[i].data_bytes;
        uint8_t *file = calloc(bytes, 1);
        memcpy(file, "\x93NUMPY\x01", 8);
        file[8] = (uint8_t)length;
        memcpy(file + 10, cases[i].header, length);
        theo_status status = theo_npy_read_memory(&arrays, file, bytes, "x.npy", &err);
        CHECK_MSG(status == cases[i].status && (status == THEO_OK) == (arrays != NULL), "%s: %d %s", cases[i].header, status,
                  status ? err.message : "");
        theo_arrays_free(arrays);
        for (size_t n = 0; n < bytes && n < 12; n++)
            CHECK(theo_npy_read_memory(&arrays, file, n, "x.npy", &err) == THEO_CONTAINER && !arrays);
        file[6] = 9;
        CHECK(theo_npy_read_memory(&arrays, file, bytes, "x.npy", &err) != THEO_OK && !arrays);
        free(file);
    }
}

/* Every byte of a zip file changed in turn: an error, or the same arrays (dates, attributes and the like do not matter). */
static void test_damaged_zip(bool deflate, uint32_t limit) {
    theo_error err;
    theo_arrays *arrays;
    theo_zip_writer zip;
    theo_map map;
    static uint8_t body[300];
    theo_text header = {0};
    theo_array array = {.name = "a", .dtype = THEO_DTYPE_U8, .rank = 1, .shape = {sizeof body}, .data = body};
    theo_npy_header(&header, &array, 0);
    CHECK(theo_zip_create(&zip, scratch("d.npz"), THEO_ZIP_PLAIN, &err) == THEO_OK);
    zip.limit = limit;
    CHECK(theo_zip_add(&zip, "a.npy", header.data, header.length, body, sizeof body, deflate, &err) == THEO_OK);
    CHECK(theo_zip_add(&zip, "b.npy", header.data, header.length, body, sizeof body, deflate, &err) == THEO_OK);
    CHECK(theo_zip_finish(&zip, &err) == THEO_OK);
    theo_text_free(&header);
    CHECK(theo_map_open(&map, scratch("d.npz"), &err) == THEO_OK);
    uint8_t *copy = malloc(map.bytes);
    CHECK_MSG(theo_npz_read_memory(&arrays, map.data, map.bytes, "d.npz", &err) == THEO_OK && arrays->count == 2, "%s",
              err.message);
    theo_arrays_free(arrays);
    for (size_t i = 0; i < map.bytes; i++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(copy, map.data, map.bytes);
            copy[i] ^= (uint8_t)(1 << bit);
            if (theo_npz_read_memory(&arrays, copy, map.bytes, "d.npz", &err) == THEO_OK)
                for (int k = 0; k < arrays->count; k++)
                    CHECK_MSG(arrays->items[k].shape[0] == sizeof body && memcmp(arrays->items[k].data, body, sizeof body) == 0,
                              "byte %zu", i);
            theo_arrays_free(arrays);
        }
    for (size_t n = 0; n < map.bytes; n++) {
        uint8_t *cut = malloc(n + !n);
        memcpy(cut, map.data, n);
        CHECK_MSG(theo_npz_read_memory(&arrays, cut, n, "d.npz", &err) != THEO_OK && !arrays, "%zu bytes", n);
        free(cut);
    }
    free(copy);
    theo_map_close(&map);
}

int main(void) {
    for (size_t i = 0; i < sizeof numbers; i++)
        numbers[i] = (uint8_t)(i * i >> 8); /* compressible in part */
    test_npz(false);
    test_npz(true);
    test_sizes();
    test_npy();
    test_safetensors();
    test_refused();
    test_npy_headers();
    for (int deflate = 0; deflate < 2; deflate++) {
        test_damaged_zip(deflate, UINT32_MAX);
        test_damaged_zip(deflate, 0); /* every number in zip64 records */
    }
    scratch_remove();
    return t_done("arrays");
}
