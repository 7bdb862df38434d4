#include "text_file.h"
#include "message.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { LIMIT = 1 << 20 };

char *text_file_read(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    char *text = memory_new(LIMIT + 1, 1);
    size_t length = fread(text, 1, LIMIT + 1, file);
    int failed = ferror(file) ? errno : length > LIMIT ? EFBIG : 0;
    fclose(file);
    if (failed) {
        free(text);
        errno = failed;
        return NULL;
    }
    text[length] = 0;
    return text;
}
