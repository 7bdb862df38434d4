/* Files that appear whole or not at all. */
#include "base/file.h"
#include "t.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/theo-test-file-XXXXXX";

static const char *in_folder(const char *name) {
    static char path[4][256];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static int entries(void) {
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));)
        count += e->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return count;
}

static bool holds(const char *path, const char *text) {
    char got[64] = {0};
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    const size_t n = fread(got, 1, sizeof got - 1, f);
    fclose(f);
    return n == strlen(text) && strcmp(got, text) == 0;
}

static void put(const char *path, const char *text) {
    theo_file file;
    theo_error err;
    CHECK(theo_file_open(&file, path, &err) == THEO_OK);
    CHECK(theo_file_append(&file, text, strlen(text), &err) == THEO_OK);
    CHECK(theo_file_commit(&file, &err) == THEO_OK);
    theo_file_abandon(&file);
}

int main(void) {
    theo_file file;
    theo_error err;
    if (!mkdtemp(folder))
        return t_skip("test_file", "no temporary folder can be made");

    /* Not there until the end; gone when abandoned. */
    CHECK(theo_file_open(&file, in_folder("a"), &err) == THEO_OK);
    CHECK(theo_file_append(&file, "half", 4, &err) == THEO_OK);
    CHECK(access(in_folder("a"), F_OK) != 0);
    theo_file_abandon(&file);
    CHECK(entries() == 0);

    put(in_folder("a"), "first");
    CHECK(holds(in_folder("a"), "first"));

    /* Replaced with its permissions, through a symbolic link. */
    CHECK(chmod(in_folder("a"), 0640) == 0);
    CHECK(symlink("a", in_folder("link")) == 0);
    CHECK(theo_file_open(&file, in_folder("link"), &err) == THEO_OK);
    CHECK(theo_file_append(&file, "second", 6, &err) == THEO_OK);
    CHECK(holds(in_folder("a"), "first"));
    CHECK(theo_file_commit(&file, &err) == THEO_OK);
    struct stat info;
    CHECK(holds(in_folder("a"), "second") && stat(in_folder("a"), &info) == 0 && (info.st_mode & 0777) == 0640);
    CHECK(lstat(in_folder("link"), &info) == 0 && S_ISLNK(info.st_mode));
    CHECK(entries() == 2);

    /* Devices are written to, never renamed over. */
    put("/dev/null", "nothing");
    CHECK(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode));

    CHECK(theo_file_open(&file, folder, &err) == THEO_IO && strstr(err.message, "is a directory"));
    CHECK(theo_file_open(&file, in_folder("missing/a"), &err) != THEO_OK && strstr(err.message, "missing/a"));
    theo_file_abandon(&file);

    CHECK(unlink(in_folder("a")) == 0 && unlink(in_folder("link")) == 0 && rmdir(folder) == 0);
    return t_done("test_file");
}
