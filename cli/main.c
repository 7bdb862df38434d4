/* theo - the command. Finds the command's table entry, sorts its options, runs it. */
#include "command.h"
#include "interrupt.h"
#include "message.h"
#include "outputs.h"
#include <stdio.h>
#include <string.h>
#include <theo/theo.h>

const command *const commands[] = {
    &command_keypoints, &command_match, &command_depth,  &command_pair,  &command_info,
    &command_models,    &command_bench, &command_verify, &command_synth, NULL,
};

/* Commands whose networks this version does not have. */
static const struct {
    const char *name, *what;
} later[] = {
    {"align", "one scene from many photos"},
    {"pull", "fetching models"},
    {"serve", "the HTTP server"},
    {"ps", "the HTTP server"},
    {"stop", "the HTTP server"},
};

static const command *find_command(const char *name) {
    for (int i = 0; commands[i]; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int unknown_command(const char *name) {
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (strcmp(later[i].name, name) == 0)
            return usage_error("the command %s comes with a later version: %s", name, later[i].what);
    const char *names[32] = {"help"};
    int count = 1;
    for (int i = 0; commands[i] && count < 31; i++)
        names[count++] = commands[i]->name;
    names[count] = NULL;
    const char *guess = closest_word(name, names);
    if (guess)
        return usage_error("unknown command %s; did you mean %s?", name, guess);
    return usage_error("unknown command %s", name);
}

/* What was printed must have got through, too. */
static int flushed(void) {
    return stdout_flush() ? EXIT_DONE : EXIT_FAILED;
}

static int run_help(int argc, char **argv) {
    if (argc == 0) {
        help_program();
        return flushed();
    }
    if (argc > 1)
        return usage_error("help takes one command, not %d words", argc);
    const command *which = find_command(argv[0]);
    if (!which) {
        if (strcmp(argv[0], "help") == 0 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)
            return run_help(0, NULL);
        return unknown_command(argv[0]);
    }
    help_command(which);
    return flushed();
}

static int run_command(const command *which, int argc, char **argv) {
    message_set_command(which->name);
    arguments args;
    int code = arguments_parse(&args, which->groups, argc, argv);
    if (code == EXIT_DONE) {
        if (args.help) {
            help_command(which);
            code = flushed();
        } else {
            code = which->run(&args);
        }
    }
    arguments_free(&args);
    return code;
}

int main(int argc, char **argv) {
    interrupt_install();
    if (argc < 2)
        return usage_error("a command is needed, such as: theo keypoints photo.jpg");
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("theo %s\n", theo_version());
        return flushed();
    }
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return run_help(argc - 2, argv + 2);
    if (strcmp(word, "__options") == 0) { /* for theo.bash and the tests; stays out of the help */
        if (argc == 2)
            for (int i = 0; commands[i]; i++)
                printf("%s\n", commands[i]->name);
        else if (find_command(argv[2]))
            help_options(find_command(argv[2]));
        return flushed();
    }
    if (word[0] == '-')
        return usage_error("unknown option %s; a command comes first, such as: theo keypoints photo.jpg", word);
    const command *which = find_command(word);
    return which ? run_command(which, argc - 2, argv + 2) : unknown_command(word);
}
