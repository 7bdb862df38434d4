/* theo models: the catalogue, and which of it is on this machine. */
#include "command.h"
#include "common.h"
#include "message.h"
#include "outputs.h"
#include <limits.h>
#include <stdlib.h>

static const option_spec models_options[] = {
    {"json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "print one JSON array instead of words"},
    {0},
};

static const option_group groups[] = {{"Options", models_options}, {"Help", help_option}, {0}};

static const char *task_word(theo_task task) {
    switch (task) {
    case THEO_TASK_KEYPOINTS:
        return "keypoints";
    case THEO_TASK_DEPTH:
        return "depth";
    case THEO_TASK_PAIR:
        return "pair";
    }
    return "?";
}

static bool print_json(void) {
    json_out json = {0};
    char path[PATH_MAX];
    json_open(&json, '[');
    const theo_catalog_entry *entry;
    for (int i = 0; (entry = theo_catalog(i)); i++) {
        bool present = theo_model_find(entry->name, path, sizeof path, NULL) == THEO_OK;
        json_open(&json, '{');
        json_member_string(&json, "name", entry->name);
        json_member_string(&json, "task", task_word(entry->task));
        json_member_string(&json, "repo", entry->repo);
        json_member_string(&json, "revision", entry->revision);
        json_member_string(&json, "file", entry->file);
        json_member_int(&json, "bytes", entry->bytes);
        json_member_string(&json, "licence", entry->licence);
        json_member_bool(&json, "supported", entry->is_supported);
        json_member_bool(&json, "present", present);
        json_member_string(&json, "path", present ? path : NULL);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    bool ok = stdout_line(json.text);
    json_free(&json);
    return ok;
}

static bool print_words(void) {
    char path[PATH_MAX];
    const theo_catalog_entry *entry;
    bool ok = true;
    for (int i = 0; ok && (entry = theo_catalog(i)); i++) {
        bool present = theo_model_find(entry->name, path, sizeof path, NULL) == THEO_OK;
        char *line =
            text_format("%-20s %-10s %8.1f MB  %s\n%33s  %s", entry->name, task_word(entry->task), (double)entry->bytes / 1e6,
                        present               ? path
                        : entry->is_supported ? "not found"
                                              : "for a later version",
                        "", entry->licence);
        ok = stdout_line(line);
        free(line);
    }
    return ok;
}

static int run(const arguments *args) {
    if (args->operand_count)
        return usage_error("takes no operand; theo info MODEL tells about one model");
    bool ok = option_given(args, "json") ? print_json() : print_words();
    return ok ? EXIT_DONE : EXIT_FAILED;
}

const command command_models = {
    .name = "models",
    .operands = "",
    .summary = "the models that are known by name: task, size, licence, where found",
    .description = "Lists the known models. Names are looked up in the folders of THEO_MODELS (separated by colons), in the "
                   "installed model folder, and in the Hugging Face cache.",
    .groups = groups,
    .run = run,
};
