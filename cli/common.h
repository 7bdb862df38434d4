/* common.h - the options that several commands share, and what they become in the library. */
#ifndef THEO_CLI_COMMON_H
#define THEO_CLI_COMMON_H

#include "arguments.h"
#include <theo/image.h>
#include <theo/theo.h>

/* Tables for the groups of a command. */
extern const option_spec model_options[];    /* --model */
extern const option_spec engine_options[];   /* --device --threads --precision --no-checksum */
extern const option_spec folder_options[];   /* --recursive */
extern const option_spec image_options[];    /* --orientation, ignore by default */
extern const option_spec limit_options[];    /* --allow-truncated --max-pixels */
extern const option_spec result_options[];   /* --output --store --json --time --quiet */
extern const option_spec detector_options[]; /* --max-keypoints ... --hf */
extern const option_spec help_option[];      /* --help */

/* A model with the thread pool that it and the matching use. */
typedef struct engine {
    theo_pool *pool;
    theo_model *model;
    theo_model_info info;
} engine;

/* Opens the model that is called `name`. EXIT_DONE, or EXIT_NOTHING after saying why not. Warnings of the library go to stderr.
 */
int engine_open(engine *opened, const arguments *args, const char *name);
/* The same with the value of --model, else `otherwise`. */
int engine_open_default(engine *opened, const arguments *args, const char *otherwise);
/* EXIT_NOTHING when the opened model is for another task than the command's. */
int engine_needs(const engine *opened, theo_task task);
/* EXIT_NOTHING, with a suggestion, when no known model has that name. */
int catalog_check(const char *name);
/* A session of the opened model that tells its progress and stops when the user interrupts. EXIT_DONE or EXIT_NOTHING. */
int engine_session(const engine *opened, theo_session **session);
void engine_close(engine *opened);

/* The decoder's options; `otherwise` is the command's default for --orientation. */
void decode_options(theo_decode_options *options, const arguments *args, theo_orientation otherwise);

/* The detector's options: the model's defaults, changed by the settings in their order. */
void detect_options(theo_detect_options *options, const arguments *args, const engine *opened);

/* The message of a failed library call; names `path` if the message does not. */
void error_text(char *text, size_t capacity, const char *path, const theo_error *err);

#endif
