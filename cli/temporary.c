#include "temporary.h"
#include "common.h"
#include "message.h"
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *temporary_place(void) {
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

char *temporary_folder_make(void) {
    char *folder = text_format("%s/theo-XXXXXX", temporary_place());
    if (mkdtemp(folder))
        return folder;
    message_error("cannot make the temporary folder %s: %s", folder, strerror(errno));
    free(folder);
    return NULL;
}

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *place) {
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

void temporary_folder_remove(char *folder) {
    enum { OPEN_FILES = 8 };
    if (folder)
        nftw(folder, remove_one, OPEN_FILES, FTW_DEPTH | FTW_PHYS);
    free(folder);
}
