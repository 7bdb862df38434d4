#include "api/catalog.h"
#include "formats/torch_write.h"
#include "models/superpoint_synth.h"
#include <string.h>
#include <theo/inspect.h>

/* Names of tensors in the published file of that model. */
static const char *layout_of(const theo_catalog_entry *e) {
    return strcmp(e->name, "superpoint") ? "original" : "hf";
}

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), n = strlen(end);
    return length > n && !strcmp(text + length - n, end);
}

static theo_status write_file(const char *path, const theo_array *arrays, int count, theo_error *err) {
    static const char *const keys[] = {"origin"}, *const values[] = {
                                                      "formula weights: for tests and timing, they detect nothing"};
    if (ends_in(path, ".safetensors"))
        return theo_safetensors_write(path, arrays, count, keys, values, 1, err);
    if (ends_in(path, ".pt") || ends_in(path, ".pth"))
        return theo_torch_write(path, arrays, count, &(theo_torch_options){.legacy = false}, err);
    return theo_fail(err, THEO_ARGUMENT, path, NULL, "the ending tells the container: allowed are .safetensors, .pt and .pth");
}

theo_status theo_synthesize(const char *name, const char *config_json, const char *path, theo_error *err) {
    if (!name || !path)
        return theo_fail(err, THEO_ARGUMENT, NULL, name ? "path" : "name", "is NULL");
    const theo_catalog_entry *e = theo_catalog_find(name);
    if (!e)
        return theo_fail(err, THEO_MISSING, NULL, name, "is not the name of a known model (see theo_catalog)");
    if (!e->is_supported)
        return theo_fail(err, THEO_UNSUPPORTED, NULL, name,
                         "this version of the library does not know how to make its checkpoint");

    theo_bump memory = {0};
    theo_array *arrays;
    int count;
    const theo_json *config = NULL;
    theo_status status = THEO_OK;
    if (config_json)
        status = theo_json_parse(&config, &memory, config_json, strlen(config_json), &(theo_json_options){.file = "config"}, err);
    if (!status)
        status = theo_superpoint_synthesize(&arrays, &count, &memory, layout_of(e), config, err);
    if (!status)
        status = write_file(path, arrays, count, err);
    theo_bump_free(&memory);
    return status;
}
