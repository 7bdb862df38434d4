/* The pickle machine and the search for tensors, without a container around them. Every storage is found, with as many bytes as
 * it claims, up to a limit. */
#include "formats/dtype.h"
#include "formats/torch.h"
#include "fuzz.h"

enum { STORAGE_BYTES = 4096 };

static uint8_t storage_bytes[STORAGE_BYTES];

static theo_status find_storage(void *user, const theo_storage *storage, const char *tensor, const uint8_t **data,
                                theo_error *err) {
    (void)user, (void)tensor, (void)err;
    *data = storage_bytes;
    return (uint64_t)storage->count <= STORAGE_BYTES / theo_dtype_bytes(storage->dtype) ? THEO_OK : THEO_BOUNDS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    theo_weights w = {.path = "fuzz"};
    theo_pickle pickle;
    theo_error err;
    if (theo_pickle_parse(&pickle, &w.memory, data, size, "fuzz", "data.pkl", &err) == THEO_OK) {
        MUST(pickle.root && pickle.bytes <= size);
        if (theo_torch_collect(&w, pickle.root, find_storage, NULL, &err) == THEO_OK)
            for (int i = 0; i < w.count; i++) {
                float values[STORAGE_BYTES];
                if (w.items[i].elements <= STORAGE_BYTES && w.items[i].dtype <= THEO_DTYPE_BF16)
                    MUST(theo_weight_to_f32(&w, &w.items[i], values, &err) == THEO_OK);
            }
    } else {
        MUST(!pickle.root);
    }
    theo_bump_free(&w.memory);
    return 0;
}
