#include "inputs.h"
#include "guard.h"
#include "interrupt.h"
#include "message.h"
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STDIN_LIMIT = 1 << 30 }; /* bytes: more is no image */

/* ---- names */

/* The last component of a path; trailing slashes do not count. */
static char *base_name(const char *path) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    return text_format("%.*s", (int)(end - start), path + start);
}

/* Start of the extension of the last component: its dot, or the end. A leading dot starts no extension. */
static const char *extension(const char *name) {
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const char *dot = strrchr(base, '.');
    return dot && dot != base ? dot : base + strlen(base);
}

static bool is_image_name(const char *name) {
    const char *ending = extension(name);
    return strcasecmp(ending, ".jpg") == 0 || strcasecmp(ending, ".jpeg") == 0 || strcasecmp(ending, ".png") == 0;
}

/* ---- the list */

static input *append(inputs *list) {
    list->items = memory_grow(list->items, (size_t)list->count + 1, sizeof *list->items);
    input *item = &list->items[list->count++];
    memset(item, 0, sizeof *item);
    return item;
}

void inputs_add(inputs *list, const char *path, const char *name) {
    input *item = append(list);
    item->path = text_copy(path);
    item->name = text_copy(name);
    item->stem = text_format("%.*s", (int)(extension(name) - name), name);
}

void inputs_free(inputs *list) {
    for (int i = 0; i < list->count; i++) {
        free(list->items[i].path);
        free(list->items[i].name);
        free(list->items[i].stem);
        free(list->items[i].error);
    }
    free(list->items);
    free(list->stdin_data);
    memset(list, 0, sizeof *list);
}

static bool is_folder(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* ---- folders */

typedef struct names {
    char **items;
    int count;
} names;

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Adds the images below FOLDER/inside (inside ends with '/' or is empty) to `found`, relative to FOLDER. Links to folders are not
 * followed: they may lead back. Folders that cannot be read become inputs with an error. */
static void list_folder(inputs *list, names *found, const char *folder, const char *inside, bool recursive) {
    char *path = text_format("%s/%s", folder, inside);
    DIR *stream = opendir(path);
    if (!stream) {
        input *item = append(list);
        item->path = text_format("%s%s%.*s", folder, *inside ? "/" : "", *inside ? (int)strlen(inside) - 1 : 0, inside);
        item->name = text_copy(item->path);
        item->stem = text_copy(item->path);
        item->error = text_format("cannot read the folder: %s", strerror(errno));
        free(path);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(stream));) {
        if (entry->d_name[0] == '.')
            continue;
        char *full = text_format("%s%s", path, entry->d_name);
        struct stat facts;
        bool known = lstat(full, &facts) == 0;
        if (known && S_ISDIR(facts.st_mode)) {
            if (recursive) {
                char *below = text_format("%s%s/", inside, entry->d_name);
                list_folder(list, found, folder, below, true);
                free(below);
            }
        } else if (is_image_name(entry->d_name) && !(known && S_ISLNK(facts.st_mode) && is_folder(full))) {
            found->items = memory_grow(found->items, (size_t)found->count + 1, sizeof *found->items);
            found->items[found->count++] = text_format("%s%s", inside, entry->d_name);
        }
        free(full);
    }
    closedir(stream);
    free(path);
}

/* By its name: the commands' own endings. */
static bool is_drawn(const char *name) {
    static const char *const drawn[] = {".keypoints.png", ".matches.png", ".depth.png",
                                        ".depth_vis.png", ".normal.png",  ".mask.png"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++)
        if (length > strlen(drawn[i]) && strcmp(name + length - strlen(drawn[i]), drawn[i]) == 0)
            return true;
    return false;
}

/* A folder that is input and output at once soon holds our own pictures. */
static void warn_of_drawn(const char *folder, const names *found) {
    int count = 0;
    const char *example = NULL;
    for (int i = 0; i < found->count; i++)
        if (is_drawn(found->items[i])) {
            count++;
            example = found->items[i];
        }
    if (count)
        message_warning("%s holds %d picture%s that theo drew, such as %s; they are taken as images, too", folder, count,
                        count == 1 ? "" : "s", example);
}

static int add_folder(inputs *list, const char *given, bool recursive) {
    size_t end = strlen(given);
    while (end > 1 && given[end - 1] == '/')
        end--;
    char *folder = text_format("%.*s", (int)end, given);
    names found = {0};
    int before = list->count;
    list_folder(list, &found, folder, "", recursive);
    if (found.count)
        qsort(found.items, (size_t)found.count, sizeof *found.items, by_name);
    warn_of_drawn(folder, &found);
    for (int i = 0; i < found.count; i++) {
        char *path = text_format(strcmp(folder, "/") == 0 ? "%s%s" : "%s/%s", folder, found.items[i]);
        inputs_add(list, path, found.items[i]);
        free(path);
        free(found.items[i]);
    }
    free(found.items);
    free(folder);
    list->any_folder = true;
    if (list->count == before)
        return usage_error("the folder %s holds no JPEG or PNG files%s", given,
                           recursive ? "" : " (--recursive takes its subfolders as well)");
    return EXIT_DONE;
}

int inputs_collect(inputs *list, const char *const *operands, int count, bool allow_folders, bool recursive) {
    memset(list, 0, sizeof *list);
    bool has_stdin = false;
    for (int i = 0; i < count; i++) {
        const char *operand = operands[i];
        if (strcmp(operand, "-") == 0) {
            if (has_stdin)
                return usage_error("- stands twice among the inputs, but stdin holds one image");
            has_stdin = true;
            inputs_add(list, "-", "stdin");
        } else if (!*operand) {
            return usage_error("an input is an empty word");
        } else if (is_folder(operand)) {
            if (!allow_folders)
                return usage_error("%s is a folder; images are needed here", operand);
            int code = add_folder(list, operand, recursive);
            if (code != EXIT_DONE)
                return code;
        } else {
            char *name = base_name(operand);
            inputs_add(list, operand, name);
            guard_file(operand);
            free(name);
        }
    }
    if (recursive && !list->any_folder)
        return usage_error("--recursive has no effect: none of the inputs is a folder");
    return EXIT_DONE;
}

/* ---- reading */

int inputs_read_stdin(inputs *list) {
    input *item = NULL;
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].path, "-") == 0)
            item = &list->items[i];
    if (!item)
        return EXIT_DONE;
    if (isatty(STDIN_FILENO))
        return usage_error("- is an image on stdin, but stdin is a terminal");
    size_t capacity = 0;
    for (;;) {
        /* poll, since a read goes on waiting after a signal */
        struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
        int ready = poll(&wait, 1, 200);
        if (interrupted())
            return interrupt_exit_code();
        if (ready == 0 || (ready < 0 && errno == EINTR))
            continue;
        if (list->stdin_bytes > STDIN_LIMIT) {
            item->error = text_copy("stdin holds more than 1 GiB");
            return EXIT_DONE;
        }
        if (list->stdin_bytes == capacity) {
            capacity = 2 * capacity + 65536;
            list->stdin_data = memory_grow(list->stdin_data, capacity, 1);
        }
        ssize_t got = read(STDIN_FILENO, (char *)list->stdin_data + list->stdin_bytes, capacity - list->stdin_bytes);
        if (got < 0 && errno != EINTR) {
            item->error = text_format("cannot read stdin: %s", strerror(errno));
            return EXIT_DONE;
        }
        if (got == 0)
            break;
        if (got > 0)
            list->stdin_bytes += (size_t)got;
    }
    if (list->stdin_bytes == 0)
        item->error = text_copy("stdin is empty");
    return EXIT_DONE;
}

theo_status input_decode(const inputs *list, int index, const theo_decode_options *options, theo_image **image, theo_error *err) {
    const input *item = &list->items[index];
    *image = NULL;
    if (item->error) {
        memset(err, 0, sizeof *err);
        err->status = THEO_IO;
        snprintf(err->file, sizeof err->file, "%s", item->path);
        snprintf(err->message, sizeof err->message, "%.500s: %.500s", item->path, item->error);
        return err->status;
    }
    if (strcmp(item->path, "-") == 0)
        return theo_image_decode(image, list->stdin_data, list->stdin_bytes, "stdin", options, err);
    return theo_image_load(image, item->path, options, err);
}

/* ---- collisions */

int inputs_spare(const inputs *list, const char *option, const char *path) {
    struct stat target, facts;
    if (!path || stat(path, &target) != 0)
        return EXIT_DONE;
    for (int i = 0; i < list->count; i++)
        if (stat(list->items[i].path, &facts) == 0 && facts.st_dev == target.st_dev && facts.st_ino == target.st_ino)
            return usage_error("--%s %s would overwrite the input %s", option, path, list->items[i].path);
    return EXIT_DONE;
}

typedef struct indexed_key {
    const char *key;
    int index;
} indexed_key;

static int by_key(const void *a, const void *b) {
    const indexed_key *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order ? order : x->index - y->index;
}

bool find_duplicate(const char *const *keys, int count, int *a, int *b) {
    indexed_key *sorted = memory_new((size_t)count, sizeof *sorted);
    for (int i = 0; i < count; i++)
        sorted[i] = (indexed_key){keys[i], i};
    qsort(sorted, (size_t)count, sizeof *sorted, by_key);
    bool found = false;
    for (int i = 1; i < count && !found; i++)
        if (strcmp(sorted[i - 1].key, sorted[i].key) == 0) {
            *a = sorted[i - 1].index;
            *b = sorted[i].index;
            found = true;
        }
    free(sorted);
    return found;
}
