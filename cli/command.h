/* command.h - the commands of the program: their texts, options and functions. One file each, cmd_NAME.c. */
#ifndef THEO_CLI_COMMAND_H
#define THEO_CLI_COMMAND_H

#include "arguments.h"

typedef struct command {
    const char *name;
    const char *operands;              /* "IMAGE..." */
    const char *summary;               /* one line, for `theo help` */
    const char *description;           /* paragraphs for `theo help NAME` */
    const option_group *groups;        /* ends with options == NULL */
    int (*run)(const arguments *args); /* gives the exit code */
} command;

extern const command command_keypoints, command_match, command_depth, command_pair, command_info, command_models, command_bench,
    command_verify, command_synth;

/* All of them, NULL at the end. */
extern const command *const commands[];

/* Text of `theo help` and of `theo help NAME`. */
void help_program(void);
void help_command(const command *which);
/* For the completion and the check of the man page: a line for each option, "--name letter kind value", separated by tabs. */
void help_options(const command *which);

#endif
