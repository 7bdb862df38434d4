#include "arguments.h"
#include "message.h"
#include <assert.h>
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values */

bool parse_real(const char *text, double *number) {
    char *end;
    if (isspace((unsigned char)*text))
        return false;
    *number = strtod(text, &end);
    return end != text && *end == 0 && isfinite(*number);
}

bool parse_count(const char *text, double *number) {
    char *end;
    if (isspace((unsigned char)*text))
        return false;
    *number = strtod(text, &end);
    if (end == text)
        return false;
    if ((*end == 'K' || *end == 'k') && end[1] == 0)
        *number *= 1e3;
    else if ((*end == 'M' || *end == 'm') && end[1] == 0)
        *number *= 1e6;
    else if (*end)
        return false;
    return isfinite(*number) && *number == floor(*number);
}

enum { SIDE_MIN = 8, SIDE_MAX = 1 << 20, AREA_MAX = 1 << 30 }; /* of the network's input, in pixels */

/* Decimal digits, moving *text behind them. */
static bool parse_side(const char **text, int *side) {
    long value = 0;
    const char *s = *text;
    while (isdigit((unsigned char)*s) && value <= SIDE_MAX)
        value = 10 * value + (*s++ - '0');
    if (s == *text || value < SIDE_MIN || value > SIDE_MAX)
        return false;
    *side = (int)value;
    *text = s;
    return true;
}

bool parse_size(const char *text, network_size *size) {
    memset(size, 0, sizeof *size);
    if (strcmp(text, "native") == 0) {
        size->fit = THEO_FIT_NATIVE;
        return true;
    }
    if (strncmp(text, "long:", 5) == 0) {
        size->fit = THEO_FIT_LONG;
        text += 5;
        return parse_side(&text, &size->long_side) && *text == 0;
    }
    size->fit = THEO_FIT_EXACT;
    if (!parse_side(&text, &size->height) || *text++ != 'x')
        return false;
    return parse_side(&text, &size->width) && *text == 0 && (int64_t)size->width * size->height <= AREA_MAX;
}

int choice_index(const char *words, const char *text) {
    size_t length = strlen(text);
    for (int index = 0;; index++) {
        const char *end = strchrnul(words, '|');
        if ((size_t)(end - words) == length && memcmp(words, text, length) == 0)
            return index;
        if (!*end)
            return -1;
        words = end + 1;
    }
}

static int read_value(setting *given, const char *shown) {
    const option_spec *spec = given->spec;
    switch (spec->kind) {
    case OPTION_COUNT:
        if (!parse_count(given->text, &given->number))
            return usage_error("%s %s: a whole number is needed (%s; K and M stand for thousand and million)", shown, given->text,
                               spec->value);
        break;
    case OPTION_NUMBER:
        if (!parse_real(given->text, &given->number))
            return usage_error("%s %s: a number is needed", shown, given->text);
        break;
    case OPTION_CHOICE:
        given->choice = choice_index(spec->value, given->text);
        if (given->choice < 0)
            return usage_error("%s %s: must be one of %s", shown, given->text, spec->value);
        return EXIT_DONE;
    case OPTION_SIZE:
        if (!parse_size(given->text, &given->size))
            return usage_error(
                "%s %s: must be HxW (height x width, as in 480x640), native or long:N; a side has 8 to 1048576 pixels", shown,
                given->text);
        return EXIT_DONE;
    default:
        if (!*given->text)
            return usage_error("%s: the value is empty", shown);
        return EXIT_DONE;
    }
    if (given->number < spec->low || given->number > spec->high)
        return usage_error("%s %s: must be in %.10g..%.10g", shown, given->text, spec->low, spec->high);
    return EXIT_DONE;
}

/* ---- suggestions */

/* Edits (insert, delete, replace, swap neighbours) that turn a into b; words are cut at 40 letters. */
static int edit_distance(const char *a, const char *b) {
    enum { LONGEST = 40 };
    int rows[3][LONGEST + 1];
    int n = (int)strnlen(a, LONGEST), m = (int)strnlen(b, LONGEST);
    for (int j = 0; j <= m; j++)
        rows[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *row = rows[i % 3];
        const int *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best)
                best = above[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && above2[j - 2] + 1 < best)
                best = above2[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *closest_word(const char *word, const char *const *candidates) {
    const char *best = NULL;
    int best_distance = strlen(word) <= 4 ? 2 : 3; /* a suggestion needs fewer edits than this */
    for (; *candidates; candidates++) {
        /* The beginning of a word counts as nearly right. */
        int distance = strlen(word) >= 3 && strncmp(word, *candidates, strlen(word)) == 0 ? 1 : edit_distance(word, *candidates);
        if (distance < best_distance) {
            best = *candidates;
            best_distance = distance;
        }
    }
    return best;
}

static int unknown_option(const option_group *groups, const char *written, const char *name) {
    const char *names[128];
    int count = 0;
    for (; groups->options; groups++)
        for (const option_spec *spec = groups->options; spec->name; spec++)
            if (count < 127)
                names[count++] = spec->name;
    names[count] = NULL;
    const char *guess = closest_word(name, names);
    if (guess)
        return usage_error("unknown option %s; did you mean --%s?", written, guess);
    return usage_error("unknown option %s", written);
}

/* ---- parsing */

static const option_spec *find_name(const option_group *groups, const char *name, size_t length) {
    for (; groups->options; groups++)
        for (const option_spec *spec = groups->options; spec->name; spec++)
            if (strlen(spec->name) == length && memcmp(spec->name, name, length) == 0)
                return spec;
    return NULL;
}

static const option_spec *find_letter(const option_group *groups, char letter) {
    for (; groups->options; groups++)
        for (const option_spec *spec = groups->options; spec->name; spec++)
            if (spec->letter == letter)
                return spec;
    return NULL;
}

/* One option at argv[*i]; moves *i to its last word. */
static int parse_option(arguments *args, int argc, char **argv, int *i) {
    const char *word = argv[*i], *value = NULL;
    const option_spec *spec;
    char shown[80];
    if (word[1] == '-') {
        const char *name = word + 2, *equals = strchr(name, '=');
        size_t length = equals ? (size_t)(equals - name) : strlen(name);
        spec = find_name(args->groups, name, length);
        if (!spec) {
            char *bare = text_format("%.*s", (int)length, name), *written = text_format("--%s", bare);
            int code = unknown_option(args->groups, written, bare);
            free(bare);
            free(written);
            return code;
        }
        value = equals ? equals + 1 : NULL;
        snprintf(shown, sizeof shown, "--%s", spec->name);
    } else {
        spec = find_letter(args->groups, word[1]);
        if (!spec)
            return usage_error("unknown option %s", word);
        value = word[2] ? word + 2 : NULL;
        snprintf(shown, sizeof shown, "-%c", spec->letter);
    }

    if (spec->kind == OPTION_FLAG) {
        if (value)
            return usage_error("%s takes no value (%s)", shown, word);
    } else if (!value) {
        /* A following option is no value; "-1" and "-" (stdin, by habit) are. */
        if (*i + 1 >= argc || strncmp(argv[*i + 1], "--", 2) == 0)
            return usage_error("%s needs a value: %s %s", shown, shown, spec->value);
        value = argv[++*i];
    }
    if (strcmp(spec->name, "help") == 0)
        args->help = true;

    args->settings = memory_grow(args->settings, (size_t)args->setting_count + 1, sizeof *args->settings);
    setting *given = &args->settings[args->setting_count++];
    memset(given, 0, sizeof *given);
    given->spec = spec;
    given->text = value;
    return value ? read_value(given, shown) : EXIT_DONE;
}

int arguments_parse(arguments *args, const option_group *groups, int argc, char **argv) {
    memset(args, 0, sizeof *args);
    args->groups = groups;
    args->operands = memory_new((size_t)argc + 1, sizeof *args->operands);
    bool options_end = false;
    for (int i = 0; i < argc; i++) {
        if (options_end || argv[i][0] != '-' || argv[i][1] == 0) {
            args->operands[args->operand_count++] = argv[i];
        } else if (strcmp(argv[i], "--") == 0) {
            options_end = true;
        } else {
            int code = parse_option(args, argc, argv, &i);
            if (code != EXIT_DONE)
                return code;
        }
    }
    return EXIT_DONE;
}

void arguments_free(arguments *args) {
    free(args->settings);
    free(args->operands);
    memset(args, 0, sizeof *args);
}

/* ---- looking up */

const setting *option_find(const arguments *args, const char *name) {
    assert(find_name(args->groups, name, strlen(name)));
    for (int i = args->setting_count - 1; i >= 0; i--)
        if (strcmp(args->settings[i].spec->name, name) == 0)
            return &args->settings[i];
    return NULL;
}

bool option_given(const arguments *args, const char *name) {
    return option_find(args, name) != NULL;
}

const char *option_text(const arguments *args, const char *name, const char *otherwise) {
    const setting *given = option_find(args, name);
    return given ? given->text : otherwise;
}

double option_number(const arguments *args, const char *name, double otherwise) {
    const setting *given = option_find(args, name);
    return given ? given->number : otherwise;
}

int64_t option_count(const arguments *args, const char *name, int64_t otherwise) {
    const setting *given = option_find(args, name);
    return given ? (int64_t)given->number : otherwise;
}

int option_choice(const arguments *args, const char *name, int otherwise) {
    const setting *given = option_find(args, name);
    return given ? given->choice : otherwise;
}

int option_needs(const arguments *args, const char *name, const char *needed) {
    if (option_given(args, name) && !option_given(args, needed))
        return usage_error("--%s has no effect without --%s", name, needed);
    return EXIT_DONE;
}

int option_excludes(const arguments *args, const char *name, const char *other) {
    if (option_given(args, name) && option_given(args, other))
        return usage_error("--%s and --%s contradict each other", name, other);
    return EXIT_DONE;
}
