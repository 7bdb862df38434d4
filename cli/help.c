/* Help and machine-readable lists, made from the tables of command.h and arguments.h. */
#include "command.h"
#include <stdio.h>
#include <string.h>
#include <theo/theo.h>

enum { WIDTH = 100, COLUMN = 30 }; /* of the terminal; where an option's words begin */

/* Prints text in words from `column` on (where the cursor is), broken before WIDTH and indented by `indent`. */
static void print_wrapped(const char *text, int column, int indent) {
    bool line_start = true;
    while (*text) {
        if (*text == '\n') {
            printf("\n%*s", indent, "");
            column = indent;
            line_start = true;
            text++;
            continue;
        }
        int length = (int)strcspn(text, " \n");
        if (length && !line_start && column + 1 + length > WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
            line_start = true;
        }
        if (length) {
            column += printf("%s%.*s", line_start ? "" : " ", length, text);
            line_start = false;
        }
        text += length;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_option(const option_spec *spec) {
    char left[128], right[512];
    int length = spec->letter ? snprintf(left, sizeof left, "  -%c, --%s", spec->letter, spec->name)
                              : snprintf(left, sizeof left, "      --%s", spec->name);
    if (spec->value)
        snprintf(left + length, sizeof left - (size_t)length, " %s", spec->value);
    length = snprintf(right, sizeof right, "%s", spec->help);
    bool ranged = spec->kind == OPTION_COUNT || spec->kind == OPTION_NUMBER;
    char range[64] = "";
    if (ranged && spec->high >= 2147483647.0)
        snprintf(range, sizeof range, "at least %.10g", spec->low);
    else if (ranged)
        snprintf(range, sizeof range, "%.10g..%.10g", spec->low, spec->high);
    if (*range || spec->initial)
        snprintf(right + length, sizeof right - (size_t)length, " (%s%s%s%s)", range, *range && spec->initial ? "; " : "",
                 spec->initial ? "default " : "", spec->initial ? spec->initial : "");
    int column = printf("%s", left);
    if (column + 2 > COLUMN) {
        printf("\n%*s", COLUMN, "");
    } else {
        printf("%*s", COLUMN - column, "");
    }
    print_wrapped(right, COLUMN, COLUMN);
}

void help_command(const command *which) {
    printf("theo %s - %s\n\nUsage: theo %s [options]%s%s\n\n", which->name, which->summary, which->name,
           *which->operands ? " " : "", which->operands);
    print_wrapped(which->description, 0, 0);
    for (const option_group *group = which->groups; group->options; group++) {
        if (group->title)
            printf("\n%s\n", group->title);
        for (const option_spec *spec = group->options; spec->name; spec++)
            print_option(spec);
    }
}

void help_program(void) {
    printf("theo %s - measures geometry in photographs\n\nUsage: theo COMMAND [options] INPUT...\n\n", theo_version());
    for (int i = 0; commands[i]; i++)
        printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
    printf("  %-10s %s\n", "help", "this text, or that of a command: theo help COMMAND");
    printf(
        "\nExamples\n"
        "  theo keypoints photo.jpg -o out         keypoints of a photo: numbers and a picture into out/\n"
        "  theo keypoints photos/ --json           one JSON object per photo of a folder\n"
        "  theo match left.jpg right.jpg -o out    matches of two photos, and the homography between them\n"
        "  theo depth photo.jpg -o out             metric depth, points and normals of a photo\n"
        "  theo pair left.jpg right.jpg -o out     points of both photos in one frame; --pose adds the second camera's pose\n"
        "  curl -s URL | theo keypoints -          a photo from stdin\n"
        "\nResults go to stdout, progress and complaints to stderr.\n"
        "Exit codes: 0 all done, 1 some or all inputs failed, 2 nothing done (usage, model), 130 interrupted, 143 terminated.\n");
}

void help_options(const command *which) {
    static const char *const kinds[] = {
        [OPTION_FLAG] = "flag", [OPTION_COUNT] = "count", [OPTION_NUMBER] = "number", [OPTION_CHOICE] = "choice",
        [OPTION_SIZE] = "size", [OPTION_TEXT] = "text",   [OPTION_FILE] = "file",     [OPTION_FOLDER] = "folder"};
    for (const option_group *group = which->groups; group->options; group++)
        for (const option_spec *spec = group->options; spec->name; spec++)
            printf("--%s\t%c\t%s\t%s\t%s\n", spec->name, spec->letter ? spec->letter : '-', kinds[spec->kind],
                   spec->value ? spec->value : "", spec->initial ? spec->initial : "");
}
