/* names.h - which number belongs to a name. A sorted table: building costs n log n and a look-up log n whatever a hostile file
 * chose as names, which a hash table does not promise. */
#ifndef THEO_FORMATS_NAMES_H
#define THEO_FORMATS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct theo_named_value {
    const char *text; /* borrowed */
    int value;
} theo_named_value;

/* Sorts names[count] by text. The text that occurs twice, or NULL. */
const char *theo_names_sort(theo_named_value *names, int count);
/* Value of that name in a sorted table, or -1. */
int theo_names_find(const theo_named_value *names, int count, const char *text);

#endif
