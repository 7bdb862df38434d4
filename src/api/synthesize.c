#include "api/catalog.h"
#include "formats/text.h"
#include "formats/torch_write.h"
#include "models/moge2_synth.h"
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

static theo_status write_file(const char *path, const theo_array *arrays, int count, const char *model_config, theo_error *err) {
    const char *const keys[] = {"origin", "model_config"};
    const char *const values[] = {"formula weights: for tests and timing, they see nothing", model_config};
    if (ends_in(path, ".safetensors"))
        return theo_safetensors_write(path, arrays, count, keys, values, model_config ? 2 : 1, err);
    if (!ends_in(path, ".pt") && !ends_in(path, ".pth"))
        return theo_fail(err, THEO_ARGUMENT, path, NULL,
                         "the ending tells the container: allowed are .safetensors, .pt and .pth");
    if (!model_config)
        return theo_torch_write(path, arrays, count, &(theo_torch_options){.legacy = false}, err);
    theo_text top = {0};
    theo_text_printf(&top, "{\"model_config\": %s}", model_config);
    theo_status status = top.failed ? theo_fail(err, THEO_MEMORY, path, NULL, "out of memory")
                                    : theo_torch_write(path, arrays, count,
                                                       &(theo_torch_options){.state_key = "model", .config_json = top.data}, err);
    theo_text_free(&top);
    return status;
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
    const char *model_config = NULL;
    if (!status)
        status = e->task == THEO_TASK_DEPTH
                     ? theo_moge2_synthesize(&arrays, &count, &model_config, &memory, name, config, config_json, err)
                     : theo_superpoint_synthesize(&arrays, &count, &memory, layout_of(e), config, err);
    if (!status)
        status = write_file(path, arrays, count, model_config, err);
    theo_bump_free(&memory);
    return status;
}
