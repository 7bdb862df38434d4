/* Checkpoints of every container; the corpus decides which. Checksums are off: a fuzzer could not get past them. */
#include "formats/weights_internal.h"
#include "fuzz.h"

#include <string.h>

enum { LARGEST_TENSOR = 1 << 16 };

static void check_tensor(const theo_weights *w, const theo_weight *t) {
    theo_error err;
    MUST(theo_weights_find(w, t->name) == t);
    MUST(t->rank >= 0 && t->rank <= THEO_MAX_RANK && t->elements >= 0);
    if (t->elements > LARGEST_TENSOR || t->dtype > THEO_DTYPE_BF16)
        return;
    float *values = malloc((size_t)t->elements * sizeof *values + 1);
    MUST(values && theo_weight_to_f32(w, t, values, &err) == THEO_OK);
    free(values);
    theo_weights_release(w, t);
}

/* The configuration that is handed on is JSON. */
static void check_config(const theo_weights *w) {
    const char *config = theo_weights_config_json(w);
    const theo_json *root;
    theo_bump memory = {0};
    theo_error err;
    if (config)
        MUST(theo_json_parse(&root, &memory, config, strlen(config), &(theo_json_options){.allow_nonfinite = true}, &err) ==
             THEO_OK);
    theo_bump_free(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    theo_weights *w;
    theo_error err;
    if (theo_weights_open_memory(&w, data, size, "fuzz", NULL, &err)) {
        MUST(!w && err.status != THEO_OK && err.message[0]);
        return 0;
    }
    for (int i = 0; i < theo_weights_count(w); i++)
        check_tensor(w, theo_weights_at(w, i));
    check_config(w);
    theo_weights_close(w);
    return 0;
}
