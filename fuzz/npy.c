/* npy files. */
#include "formats/npy.h"
#include "formats/arrays.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    theo_arrays *arrays;
    theo_error err;
    if (theo_npy_read_memory(&arrays, data, size, "fuzz", &err)) {
        MUST(!arrays && err.message[0]);
        return 0;
    }
    for (int i = 0; i < arrays->count; i++) {
        size_t bytes;
        MUST(theo_array_check(&arrays->items[i], "fuzz", &bytes, &err) == THEO_OK);
        fuzz_touch(arrays->items[i].data, bytes);
    }
    theo_arrays_free(arrays);
    return 0;
}
