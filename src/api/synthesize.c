#include "api/catalog.h"
#include "formats/text.h"
#include "formats/torch_write.h"
#include "models/dust3r_synth.h"
#include "models/moge_synth.h"
#include "models/superpoint_synth.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <theo/inspect.h>

/* Names of tensors in the published file of that model. */
static const char *layout_of(const theo_catalog_entry *e) {
    return strcmp(e->name, "superpoint") ? "original" : "hf";
}

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), n = strlen(end);
    return length > n && !strcmp(text + length - n, end);
}

/* What a checkpoint holds besides its tensors. */
typedef struct beside {
    const char *model_config; /* MoGe: in the header, or in the pickle under that key; else NULL */
    const char *config_json;  /* DUSt3R: config.json of a folder; else NULL */
    const char *call;         /* DUSt3R: args.model of a training checkpoint */
    int aliases;              /* DUSt3R: tensors behind the others that only a training checkpoint has */
} beside;

static theo_status write_torch(const char *path, const theo_array *arrays, int count, const beside *b, theo_error *err) {
    if (!b->model_config && !b->call)
        return theo_torch_write(path, arrays, count, &(theo_torch_options){.legacy = false}, err);
    theo_text top = {0};
    if (b->model_config) {
        theo_text_printf(&top, "{\"model_config\": %s}", b->model_config);
    } else {
        theo_text_printf(&top, "{\"args\": {\"model\": ");
        theo_text_add_json_string(&top, b->call);
        theo_text_printf(&top, "}}");
    }
    theo_torch_options options = {.state_key = "model", .config_json = top.data, .namespace_key = b->call ? "args" : NULL};
    theo_status status = top.failed ? theo_fail(err, THEO_MEMORY, path, NULL, "out of memory")
                                    : theo_torch_write(path, arrays, count, &options, err);
    theo_text_free(&top);
    return status;
}

static theo_status write_safetensors(const char *path, const theo_array *arrays, int count, const beside *b, theo_error *err) {
    const char *const keys[] = {"origin", "model_config"};
    const char *const values[] = {"formula weights: for tests and timing, they see nothing", b->model_config};
    return theo_safetensors_write(path, arrays, count, keys, values, b->model_config ? 2 : 1, err);
}

/* config.json and model.safetensors. */
static theo_status write_folder(const char *path, const theo_array *arrays, int count, const beside *b, theo_error *err) {
    char file[4096];
    if (mkdir(path, 0777) && errno != EEXIST)
        return theo_fail(err, THEO_IO, path, NULL, "cannot be created: %s", strerror(errno));
    if (snprintf(file, sizeof file, "%s/model.safetensors", path) >= (int)sizeof file)
        return theo_fail(err, THEO_ARGUMENT, path, NULL, "the path is too long");
    THEO_TRY(write_safetensors(file, arrays, count, b, err));
    snprintf(file, sizeof file, "%s/config.json", path);
    return theo_file_write(file, b->config_json, strlen(b->config_json), err);
}

static theo_status write_checkpoint(const char *path, const theo_array *arrays, int count, const beside *b, theo_error *err) {
    if (ends_in(path, ".safetensors"))
        return write_safetensors(path, arrays, count, b, err);
    if (ends_in(path, ".pt") || ends_in(path, ".pth"))
        return write_torch(path, arrays, count + b->aliases, b, err);
    if (b->config_json && !strchr(strrchr(path, '/') ? strrchr(path, '/') : path, '.'))
        return write_folder(path, arrays, count, b, err);
    return theo_fail(err, THEO_ARGUMENT, path, NULL, "the ending tells the container: allowed are .safetensors, .pt and .pth%s",
                     b->config_json ? ", and a folder's name without an ending" : "");
}

/* The tensors of a catalogue entry, in `memory`. */
static theo_status make(theo_array **arrays, int *count, beside *b, theo_bump *memory, const theo_catalog_entry *e,
                        const char *config_json, theo_error *err) {
    const theo_json *config = NULL;
    theo_json_options options = {.file = "config", .allow_nonfinite = e->task == THEO_TASK_PAIR};
    if (config_json)
        THEO_TRY(theo_json_parse(&config, memory, config_json, strlen(config_json), &options, err));
    if (e->task == THEO_TASK_DEPTH)
        return theo_moge_synthesize(arrays, count, &b->model_config, memory, e->name, config, config_json, err);
    if (e->task == THEO_TASK_KEYPOINTS)
        return theo_superpoint_synthesize(arrays, count, memory, layout_of(e), config, err);
    theo_dust3r_synthetic made;
    THEO_TRY(theo_dust3r_synthesize(&made, memory, e->name, config, config_json, err));
    *arrays = made.arrays;
    *count = made.count;
    b->config_json = made.config_json;
    b->call = made.call;
    b->aliases = made.aliases;
    return THEO_OK;
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
    beside b = {0};
    theo_status status = make(&arrays, &count, &b, &memory, e, config_json, err);
    if (!status)
        status = write_checkpoint(path, arrays, count, &b, err);
    theo_bump_free(&memory);
    return status;
}
