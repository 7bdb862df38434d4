/* theo synth: a checkpoint of formula weights in a published layout, to try formats and speed without the real file. */
#include "command.h"
#include "common.h"
#include "message.h"
#include "outputs.h"
#include "text_file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <theo/inspect.h>

static const option_spec synth_options[] = {
    {"config", 0, OPTION_FILE, "FILE", 0, 0, "the published one", "JSON object with the channel plan"},
    {0},
};

static const option_group groups[] = {{"Options", synth_options}, {"Help", help_option}, {0}};

static int run(const arguments *args) {
    if (args->operand_count != 2)
        return usage_error("a model's name and a file to write are needed");
    const char *name = args->operands[0], *path = args->operands[1], *config_path = option_text(args, "config", NULL);
    char *config = NULL;
    int code = catalog_check(name);
    if (code)
        return code;
    if (config_path && !(config = text_file_read(config_path)))
        return usage_error("--config %s: %s", config_path, strerror(errno));
    theo_error err;
    theo_status status = theo_synthesize(name, config, path, &err);
    free(config);
    if (status) {
        message_error("%s", err.message);
        bool of_the_file = strcmp(err.file, path) == 0 && status != THEO_ARGUMENT; /* it could not be written */
        return of_the_file ? EXIT_FAILED : EXIT_NOTHING;
    }
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
