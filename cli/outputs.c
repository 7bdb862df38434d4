#include "outputs.h"
#include "guard.h"
#include "message.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- stdout */

static bool failed;

bool stdout_flush(void) {
    if (!failed && (fflush(stdout) != 0 || ferror(stdout))) {
        failed = true;
        if (errno != EPIPE)
            message_error("cannot write to stdout: %s", strerror(errno));
    }
    return !failed;
}

bool stdout_line(const char *text) {
    if (failed)
        return false;
    fputs(text, stdout);
    putchar('\n');
    return stdout_flush();
}

bool stdout_failed(void) {
    return failed;
}

/* ---- folders */

theo_status output_fail(theo_error *err, theo_status status, const char *path, const char *reason) {
    memset(err, 0, sizeof *err);
    err->status = status;
    snprintf(err->file, sizeof err->file, "%s", path);
    snprintf(err->message, sizeof err->message, "%.500s: %.500s", path, reason);
    return status;
}

/* mkdir -p; on failure errno tells why, and the part that failed is left in `path`. */
static bool make_folders(char *path) {
    for (char *slash = path;; *slash = '/') {
        slash = strchr(slash + 1, '/');
        if (slash)
            *slash = 0;
        struct stat facts;
        if (mkdir(path, 0777) != 0 && (errno != EEXIST || stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode)))
            return false;
        if (!slash)
            return true;
    }
}

int output_folder_make(const char *folder) {
    char *path = text_copy(folder);
    int code = EXIT_DONE;
    if (!make_folders(path)) {
        if (errno == EEXIST || errno == ENOTDIR)
            code = usage_error("--output %s: %s is not a folder", folder, path);
        else {
            message_error("cannot make the folder %s: %s", path, strerror(errno));
            code = EXIT_FAILED;
        }
    }
    free(path);
    return code;
}

/* ---- files */

const char *output_path(output_files *files, const char *ending, theo_error *err) {
    bool slashed = files->folder[strlen(files->folder) - 1] == '/';
    char *path = text_format("%s%s%s.%s", files->folder, slashed ? "" : "/", files->stem, ending);
    char *slash = strrchr(path, '/');
    *slash = 0;
    bool made = make_folders(path);
    if (!made) {
        output_fail(err, THEO_IO, path, strerror(errno));
        free(path);
        return NULL;
    }
    *slash = '/';
    char *refusal = guard_refusal(path);
    if (refusal) {
        output_fail(err, THEO_ARGUMENT, path, refusal);
        free(refusal);
        free(path);
        return NULL;
    }
    return files->names[files->count++] = path;
}

theo_status output_npz(output_files *files, const char *ending, const theo_array *arrays, int count, bool deflate,
                       theo_error *err) {
    const char *path = output_path(files, ending, err);
    return path ? theo_npz_write(path, arrays, count, deflate, files->pool, err) : err->status;
}

theo_status output_png(output_files *files, const char *ending, const theo_image *image, theo_error *err) {
    const char *path = output_path(files, ending, err);
    return path ? theo_image_save_png(image, path, NULL, 0, files->pool, err) : err->status;
}

void output_files_free(output_files *files) {
    for (int i = 0; i < files->count; i++)
        free(files->names[i]);
    files->count = 0;
}

void json_member_files(json_out *json, const output_files *files) {
    json_key(json, "files");
    json_open(json, '[');
    for (int i = 0; i < files->count; i++)
        json_string(json, files->names[i]);
    json_close(json, ']');
}

char *output_summary(const output_files *files) {
    if (files->count == 0)
        return text_copy("");
    /* All names begin alike, up to a dot or a slash. */
    size_t base = (size_t)(strrchr(files->names[0], '.') - files->names[0]) + 1;
    for (int i = 1; i < files->count; i++)
        while (strncmp(files->names[0], files->names[i], base) != 0)
            for (base--; base > 0 && !strchr("./", files->names[0][base - 1]);)
                base--;
    char *list = text_copy("");
    for (int i = 0; i < files->count; i++) {
        char *longer = text_format("%s%s%s", list, i ? "," : "", files->names[i] + base);
        free(list);
        list = longer;
    }
    char *summary = text_format(files->count > 1 ? " -> %.*s{%s}" : " -> %.*s%s", (int)base, files->names[0], list);
    free(list);
    return summary;
}
