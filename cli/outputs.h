/* outputs.h - where results go: the lines on stdout and the files of --output. */
#ifndef THEO_CLI_OUTPUTS_H
#define THEO_CLI_OUTPUTS_H

#include "json_out.h"
#include <stdbool.h>
#include <theo/files.h>
#include <theo/image.h>

/* Writes one line and flushes it, so that a reader sees every result at once. False when stdout takes no more: the work then
 * ends. The reason is said on stderr, but not for a reader that went away (EPIPE). */
bool stdout_line(const char *text);
/* The same for text that was printed with printf. */
bool stdout_flush(void);
/* Did a line fail? The exit code is then EXIT_FAILED. */
bool stdout_failed(void);

/* The files of one result. Start with {.folder = ..., .stem = ...}; a NULL folder means that no files are wanted. */
typedef struct output_files {
    const char *folder, *stem; /* DIR/stem.ENDING; the stem may hold '/' */
    theo_pool *pool;           /* for the writing; may be NULL */
    char *names[12];           /* written so far */
    int count;
} output_files;

/* Makes the folder and its parents. EXIT_DONE; EXIT_NOTHING if something else has that name; EXIT_FAILED if it cannot be made. */
int output_folder_make(const char *folder);

/* Makes DIR/stem.ENDING the next name in `names` (and the subfolders that the stem names): the path to write to, or NULL after
 * filling err, where that is a file that is read (guard.h), too. A JSON file lists itself among the files, so names come before
 * the writing; a failed result reports none of them.
 */
const char *output_path(output_files *files, const char *ending, theo_error *err);

/* output_path, then the writing. */
theo_status output_npz(output_files *files, const char *ending, const theo_array *arrays, int count, bool deflate,
                       theo_error *err);
theo_status output_png(output_files *files, const char *ending, const theo_image *image, theo_error *err);

void output_files_free(output_files *files);

/* "files": [names] and, for people, "DIR/stem.{npz,json}". */
void json_member_files(json_out *json, const output_files *files);
char *output_summary(const output_files *files);

/* Fills err like a failed library call. */
theo_status output_fail(theo_error *err, theo_status status, const char *path, const char *reason);

#endif
