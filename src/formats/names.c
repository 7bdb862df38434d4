#include "formats/names.h"

#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    return strcmp(((const theo_named_value *)a)->text, ((const theo_named_value *)b)->text);
}

const char *theo_names_sort(theo_named_value *names, int count) {
    if (count < 2)
        return NULL;
    qsort(names, (size_t)count, sizeof *names, compare);
    for (int i = 1; i < count; i++)
        if (strcmp(names[i - 1].text, names[i].text) == 0)
            return names[i].text;
    return NULL;
}

int theo_names_find(const theo_named_value *names, int count, const char *text) {
    theo_named_value key = {text, 0};
    const theo_named_value *found = count > 0 ? bsearch(&key, names, (size_t)count, sizeof *names, compare) : NULL;
    return found ? found->value : -1;
}
