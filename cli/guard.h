/* guard.h - files that a command reads, and that none of its outputs may replace: the model, images and settings that the command
 * line names. (A folder may be input and output at once: its images may be what an earlier run wrote.) */
#ifndef THEO_CLI_GUARD_H
#define THEO_CLI_GUARD_H

/* No output may replace this file from now on. Before the first result; what does not exist is passed over. */
void guard_file(const char *path);
/* The guarded file that `path` is, maybe by another name or through a link; NULL: none. Any thread. */
const char *guarded_file(const char *path);
/* EXIT_NOTHING when --`option` would overwrite a guarded file with its file `path` (which may be NULL). */
int guard_option(const char *option, const char *path);

#endif
