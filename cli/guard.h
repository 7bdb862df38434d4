/* guard.h - what no output may replace: files that a command reads (the model, images and settings that the command line names)
 * and outputs that have a name of their own. (A folder may be input and output at once: its images may be what an earlier run
 * wrote.) */
#ifndef THEO_CLI_GUARD_H
#define THEO_CLI_GUARD_H

/* No output may replace this file from now on. Before the first result; what does not exist is passed over. */
void guard_file(const char *path);
/* EXIT_NOTHING when --`option` would overwrite a guarded file, or what another option writes, with its file `path` (NULL: not
 * given). Else nothing but this option may write there. Both strings stay valid. Before the first result. */
int guard_option(const char *option, const char *path);
/* Why nothing may be written to `path`, by this name, another one or through a link; NULL: it may. For the caller to free. Any
 * thread. */
char *guard_refusal(const char *path);

#endif
