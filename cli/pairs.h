/* pairs.h - which images are matched with which: two operands, or the lines of a --pairs file. */
#ifndef THEO_CLI_PAIRS_H
#define THEO_CLI_PAIRS_H

#include "inputs.h"

typedef struct pair {
    int a, b;   /* indices into the images */
    char *stem; /* A_B, '/' as '-' */
} pair;

typedef struct pair_list {
    inputs images; /* each once, in the order in which the pairs need them */
    int *uses;     /* how many pairs an image takes part in (twice in a pair with itself) */
    pair *items;
    int count;
} pair_list;

/* Both give EXIT_DONE or EXIT_NOTHING after saying why; release with pairs_free in both cases. */
int pairs_from_operands(pair_list *list, const char *const operands[2]);
/* Two paths a line, separated by white space; '#' begins a comment. Relative paths start at `folder`, else at the file's own
 * folder. An image's name is its path as the file has it. */
int pairs_from_file(pair_list *list, const char *path, const char *folder);
void pairs_free(pair_list *list);

#endif
