#include "pairs.h"
#include "guard.h"
#include "message.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names of images that are already in the list: open addressing, power of two */

typedef struct name_table {
    int *slots; /* index + 1 of an image, 0 = free */
    size_t size, used;
} name_table;

static size_t hash(const char *text) {
    uint64_t h = 1469598103934665603u; /* FNV-1a */
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

static int *find_slot(const name_table *table, const inputs *images, const char *name) {
    for (size_t i = hash(name);; i++) {
        int *slot = &table->slots[i & (table->size - 1)];
        if (*slot == 0 || strcmp(images->items[*slot - 1].name, name) == 0)
            return slot;
    }
}

static void make_room(name_table *table, const inputs *images) {
    if (2 * table->used < table->size)
        return;
    free(table->slots);
    table->size = table->size ? 2 * table->size : 64;
    table->slots = memory_new(table->size, sizeof *table->slots);
    for (int i = 0; i < images->count; i++)
        *find_slot(table, images, images->items[i].name) = i + 1;
}

/* Index of the image of that name, which is added if it is new. */
static int find_image(pair_list *list, name_table *table, const char *name, const char *folder) {
    make_room(table, &list->images);
    int *slot = find_slot(table, &list->images, name);
    if (*slot == 0) {
        char *path = *name == '/' || !*folder ? text_copy(name) : text_format("%s/%s", folder, name);
        inputs_add(&list->images, path, name);
        guard_file(path);
        free(path);
        *slot = list->images.count;
        table->used++;
    }
    return *slot - 1;
}

/* ---- pairs */

static void append(pair_list *list, int a, int b) {
    pair *item;
    list->items = memory_grow(list->items, (size_t)list->count + 1, sizeof *list->items);
    item = &list->items[list->count++];
    item->a = a;
    item->b = b;
    item->stem = text_format("%s_%s", list->images.items[a].stem, list->images.items[b].stem);
    for (char *s = item->stem; *s; s++)
        if (*s == '/')
            *s = '-';
}

static void count_uses(pair_list *list) {
    list->uses = memory_new((size_t)list->images.count, sizeof *list->uses);
    for (int i = 0; i < list->count; i++) {
        list->uses[list->items[i].a]++;
        list->uses[list->items[i].b]++;
    }
}

int pairs_from_operands(pair_list *list, const char *const operands[2]) {
    memset(list, 0, sizeof *list);
    int code = inputs_collect(&list->images, operands, 2, false, false);
    if (code == EXIT_DONE) {
        append(list, 0, 1);
        count_uses(list);
    }
    return code;
}

static int read_line(pair_list *list, name_table *table, char *line, const char *path, long number, const char *folder) {
    char *words[3];
    int count = 0;
    line[strcspn(line, "#\n")] = 0;
    for (char *rest = NULL, *word = strtok_r(line, " \t\r\v\f", &rest); word && count < 3;
         word = strtok_r(NULL, " \t\r\v\f", &rest))
        words[count++] = word;
    if (count == 0)
        return EXIT_DONE;
    if (count != 2)
        return usage_error("%s: line %ld: two paths are needed, not %s", path, number, count == 1 ? "one" : "more");
    int index[2];
    for (int i = 0; i < 2; i++) {
        char *name = words[i];
        while (strncmp(name, "./", 2) == 0 && name[2]) /* one image, one name */
            name += 2;
        index[i] = find_image(list, table, name, folder);
    }
    append(list, index[0], index[1]);
    return EXIT_DONE;
}

int pairs_from_file(pair_list *list, const char *path, const char *folder) {
    memset(list, 0, sizeof *list);
    FILE *file = fopen(path, "r");
    if (!file)
        return usage_error("--pairs %s: %s", path, strerror(errno));
    const char *slash = strrchr(path, '/');
    char *own_folder = text_format("%.*s", slash ? (int)(slash - path) : 0, path);
    name_table table = {0};
    char *line = NULL;
    size_t capacity = 0;
    int code = EXIT_DONE;
    for (long number = 1; code == EXIT_DONE && getline(&line, &capacity, file) >= 0; number++)
        code = read_line(list, &table, line, path, number, folder ? folder : slash == path ? "/" : own_folder);
    if (code == EXIT_DONE && ferror(file))
        code = usage_error("--pairs %s: %s", path, strerror(errno));
    if (code == EXIT_DONE && list->count == 0)
        code = usage_error("--pairs %s: the file names no pair", path);
    if (code == EXIT_DONE)
        count_uses(list);
    fclose(file);
    free(line);
    free(own_folder);
    free(table.slots);
    return code;
}

void pairs_free(pair_list *list) {
    for (int i = 0; i < list->count; i++)
        free(list->items[i].stem);
    free(list->items);
    free(list->uses);
    inputs_free(&list->images);
    memset(list, 0, sizeof *list);
}
