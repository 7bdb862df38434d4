/* arguments.h - command-line options, declared in tables. Parsing, help, the check of the man page and the completion all read
 * the same tables. */
#ifndef THEO_CLI_ARGUMENTS_H
#define THEO_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <theo/theo.h>

typedef enum option_kind {
    OPTION_FLAG,   /* no value */
    OPTION_COUNT,  /* whole number; K (thousand) and M (million) are allowed */
    OPTION_NUMBER, /* real number */
    OPTION_CHOICE, /* one of the words in `value`, separated by '|' */
    OPTION_SIZE,   /* HxW, native or long:N */
    OPTION_TEXT,
    OPTION_FILE,
    OPTION_FOLDER,
} option_kind;

typedef struct option_spec {
    const char *name; /* without the dashes */
    char letter;      /* 'o' for -o, or 0 */
    option_kind kind;
    const char *value;   /* what help shows for the value: "N", or the words of a choice */
    double low, high;    /* COUNT, NUMBER: the range, ends included */
    const char *initial; /* the default as help shows it, or NULL */
    const char *help;
} option_spec;

/* A table ends with a name of NULL; a list of tables ends with `options` NULL. */
typedef struct option_group {
    const char *title; /* NULL: goes on under the title before */
    const option_spec *options;
} option_group;

typedef struct network_size {
    theo_fit fit;
    int width, height; /* THEO_FIT_EXACT */
    int long_side;     /* THEO_FIT_LONG */
} network_size;

/* An option as given. */
typedef struct setting {
    const option_spec *spec;
    const char *text;  /* the value as written; NULL for a flag */
    double number;     /* COUNT, NUMBER */
    int choice;        /* CHOICE: index of the word */
    network_size size; /* SIZE */
} setting;

typedef struct arguments {
    const option_group *groups;
    setting *settings; /* in the order of the command line: a later one overrides an earlier one */
    int setting_count;
    const char **operands;
    int operand_count;
    bool help; /* -h or --help was among them */
} arguments;

/* Sorts argv into settings and operands; `--` ends the options, options may follow operands. EXIT_DONE, or EXIT_NOTHING after
 * saying what is wrong. Release with arguments_free in both cases. */
int arguments_parse(arguments *args, const option_group *groups, int argc, char **argv);
void arguments_free(arguments *args);

/* The last setting of that name, or NULL. The name must be in the tables. */
const setting *option_find(const arguments *args, const char *name);
bool option_given(const arguments *args, const char *name);
const char *option_text(const arguments *args, const char *name, const char *otherwise);
double option_number(const arguments *args, const char *name, double otherwise);
int64_t option_count(const arguments *args, const char *name, int64_t otherwise);
/* Index of the word of a choice. */
int option_choice(const arguments *args, const char *name, int otherwise);

/* EXIT_NOTHING with a sentence that names both when `name` is given without `needed` (with: when both are given), else EXIT_DONE.
 */
int option_needs(const arguments *args, const char *name, const char *needed);
int option_excludes(const arguments *args, const char *name, const char *other);

/* The candidate that `word` is probably a misspelling of, or NULL. `candidates` ends with NULL. */
const char *closest_word(const char *word, const char *const *candidates);

/* Parses the text of a value; false when it is none of that kind. */
bool parse_real(const char *text, double *number);
bool parse_count(const char *text, double *number);
bool parse_size(const char *text, network_size *size);
/* Index of `text` in words separated by '|', or -1. */
int choice_index(const char *words, const char *text);

#endif
