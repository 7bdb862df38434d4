/* theo synth: a checkpoint of formula weights in a published layout, to try formats and speed without the real file. */
#include "command.h"
#include "common.h"
#include "guard.h"
#include "interrupt.h"
#include "message.h"
#include "outputs.h"
#include "temporary.h"
#include "text_file.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <theo/files.h>
#include <theo/inspect.h>

static const option_spec synth_options[] = {
    {"config", 0, OPTION_FILE, "FILE", 0, 0, "the published one", "JSON object with the channel plan"},
    {"override", 0, OPTION_FILE, "FILE", 0, 0, NULL,
     "take the tensors of this safetensors file instead of the formula's (OUT.safetensors only)"},
    {0},
};

static const option_group groups[] = {{"Options", synth_options}, {"Help", help_option}, {0}};

/* Replaces the tensors of `path` that `other` has too, which must be of the same type and shape. */
static theo_status replace(theo_array *arrays, int count, const theo_arrays *other, const char *other_path, theo_error *err) {
    for (int i = 0; i < other->count; i++) {
        const theo_array *from = &other->items[i];
        theo_array *to = NULL;
        for (int k = 0; k < count && !to; k++)
            to = strcmp(arrays[k].name, from->name) == 0 ? &arrays[k] : NULL;
        bool fits = to && to->dtype == from->dtype && to->rank == from->rank;
        for (int axis = 0; fits && axis < to->rank; axis++)
            fits = to->shape[axis] == from->shape[axis];
        if (!fits) {
            char *reason = text_format("%s: the model has no tensor of that name, type and shape", from->name);
            output_fail(err, THEO_SHAPE, other_path, reason);
            free(reason);
            return THEO_SHAPE;
        }
        to->data = from->data;
    }
    return THEO_OK;
}

/* Formula weights at `made_path`, with the tensors of `other_path`, to `path`. */
static theo_status override(const char *path, const char *made_path, const char *other_path, theo_error *err) {
    theo_arrays *made = NULL, *other = NULL;
    theo_status status = theo_safetensors_read(&other, other_path, err);
    if (!status)
        status = theo_safetensors_read(&made, made_path, err);
    if (!status) {
        theo_array *arrays = memory_new((size_t)made->count, sizeof *arrays);
        memcpy(arrays, made->items, (size_t)made->count * sizeof *arrays);
        status = replace(arrays, made->count, other, other_path, err);
        if (!status)
            status = theo_safetensors_write(path, arrays, made->count, made->metadata_keys, made->metadata_values,
                                            made->metadata_count, err);
        free(arrays);
    }
    theo_arrays_free(made);
    theo_arrays_free(other);
    return status;
}

/* Through the temporary folder, so that `path` holds all of it or what it held before. */
static theo_status write_overridden(const char *name, const char *config, const char *path, const char *other_path,
                                    const char *folder, theo_error *err) {
    char *made_path = text_format("%s/formula.safetensors", folder);
    theo_status status = theo_synthesize(name, config, made_path, err);
    if (!status && !interrupted())
        status = override(path, made_path, other_path, err);
    free(made_path);
    return status;
}

/* Did the file, or one in the temporary folder, fail to be written? */
static bool is_of_output(const theo_error *err, const char *path, const char *folder) {
    bool is_temporary = folder && strncmp(err->file, folder, strlen(folder)) == 0;
    return err->status != THEO_ARGUMENT && (is_temporary || strcmp(err->file, path) == 0);
}

static bool is_safetensors(const char *path) {
    static const char ending[] = ".safetensors";
    size_t length = strlen(path), n = sizeof ending - 1;
    return length > n && strcmp(path + length - n, ending) == 0;
}

static int check_paths(const char *path, const char *config_path, const char *override_path) {
    if (override_path && !is_safetensors(path))
        return usage_error("--override needs an OUT that ends in .safetensors, not %s", path);
    if (config_path)
        guard_file(config_path);
    if (override_path)
        guard_file(override_path);
    char *refusal = guard_refusal(path);
    int code = refusal ? usage_error("%s %s", path, refusal) : EXIT_DONE;
    free(refusal);
    return code;
}

static int write_checkpoint(const char *name, const char *config, const char *path, const char *override_path) {
    char *folder = NULL;
    if (override_path && !(folder = temporary_folder_make()))
        return EXIT_NOTHING;
    theo_error err;
    theo_status status =
        folder ? write_overridden(name, config, path, override_path, folder, &err) : theo_synthesize(name, config, path, &err);
    int code = EXIT_DONE;
    if (status) {
        message_error("%s", err.message);
        code = is_of_output(&err, path, folder) ? EXIT_FAILED : EXIT_NOTHING;
    }
    temporary_folder_remove(folder);
    return code;
}

static int run(const arguments *args) {
    if (args->operand_count != 2)
        return usage_error("a model's name and a file to write are needed");
    const char *name = args->operands[0], *path = args->operands[1];
    const char *config_path = option_text(args, "config", NULL), *override_path = option_text(args, "override", NULL);
    char *config = NULL;
    int code;
    if ((code = catalog_check(name)) || (code = check_paths(path, config_path, override_path)))
        return code;
    if (config_path && !(config = text_file_read(config_path)))
        return usage_error("--config %s: %s", config_path, strerror(errno));
    code = write_checkpoint(name, config, path, override_path);
    free(config);
    if (interrupted())
        return interrupt_exit_code();
    if (code)
        return code;
    char *line = text_format("wrote %s: formula weights in the layout of %s", path, name);
    bool ok = stdout_line(line);
    free(line);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

const command command_synth = {
    .name = "synth",
    .operands = "MODEL OUT",
    .summary = "write a checkpoint of formula weights, for tests and timing",
    .description = "Writes weights that a formula gives for each tensor's name, in the published layout of MODEL. The ending of "
                   "OUT chooses the container: .safetensors, .pt or .pth.",
    .groups = groups,
    .run = run,
};
