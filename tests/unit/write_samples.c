/* write_samples FOLDER: one file of every kind that the library writes, for the readers of others (test_readable.py). */
#include "base/error.h"
#include "formats/torch_write.h"
#include "formats/zip_write.h"

#include <stdio.h>

static const float numbers[6] = {0, 1, -2.5f, 3e-5f, 1e30f, 6};
static const uint16_t halves[3] = {0x3c00, 0xc000, 0x0001};
static const int64_t longs[2] = {-1, (int64_t)1 << 40};
static const uint8_t bytes[3000] = {1, 2, 3};

static const theo_array arrays[] = {
    {"matrix", THEO_DTYPE_F32, 2, {2, 3}, numbers},
    {"half", THEO_DTYPE_F16, 1, {3}, halves},
    {"longs", THEO_DTYPE_I64, 1, {2}, longs},
    {"scalar", THEO_DTYPE_F32, 0, {0}, numbers + 2},
    {"empty", THEO_DTYPE_F32, 2, {0, 2}, NULL},
    {"bytes", THEO_DTYPE_U8, 3, {10, 100, 3}, bytes},
    {"model", THEO_DTYPE_TEXT, 0, {0}, "superpoint-\xc3\xb6pen"},
};
enum { ARRAYS = sizeof arrays / sizeof arrays[0], TENSORS = 5 };

static char path[4096];

static const char *in(const char *folder, const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* A small archive with every number in zip64 records. */
static theo_status write_zip64(const char *name, theo_error *err) {
    theo_zip_writer zip;
    THEO_TRY(theo_zip_create(&zip, name, THEO_ZIP_PLAIN, err));
    zip.limit = 0;
    theo_status status = theo_zip_add(&zip, "stored", "head", 4, "body", 4, 0, err);
    if (!status)
        status = theo_zip_add(&zip, "deflated", "head", 4, bytes, sizeof bytes, 1, err);
    if (!status)
        return theo_zip_finish(&zip, err);
    theo_zip_abandon(&zip);
    return status;
}

static theo_status write_all(const char *folder, theo_error *err) {
    static const char *const key = "format", *const value = "pt";
    theo_torch_options zip = {.state_key = "model", .config_json = "{\"model_config\": {\"a\": [1, null, 0.5, \"b\"]}}"},
                       legacy = {.legacy = true};
    THEO_TRY(theo_npz_write(in(folder, "stored.npz"), arrays, ARRAYS, false, NULL, err));
    THEO_TRY(theo_npz_write(in(folder, "deflated.npz"), arrays, ARRAYS, true, NULL, err));
    THEO_TRY(write_zip64(in(folder, "zip64.zip"), err));
    THEO_TRY(theo_npy_write(in(folder, "matrix.npy"), &arrays[0], err));
    THEO_TRY(theo_safetensors_write(in(folder, "tensors.safetensors"), arrays, TENSORS, &key, &value, 1, err));
    THEO_TRY(theo_torch_write(in(folder, "zip.pt"), arrays, TENSORS, &zip, err));
    return theo_torch_write(in(folder, "legacy.pth"), arrays, TENSORS, &legacy, err);
}

int main(int argc, char **argv) {
    theo_error err;
    if (argc != 2 || write_all(argv[1], &err)) {
        fprintf(stderr, "%s\n", argc == 2 ? err.message : "write_samples FOLDER");
        return 1;
    }
    return 0;
}
