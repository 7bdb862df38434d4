/* progress.h - one line on stderr that says how far the work is and how long it will take: only on a terminal, only when the
 * work takes longer than a moment. */
#ifndef THEO_CLI_PROGRESS_H
#define THEO_CLI_PROGRESS_H

#include <stdbool.h>

/* `unit` is the plural of what is counted ("images"). Nothing is drawn when `quiet` or when stderr is no terminal. */
void progress_start(const char *unit, int total, bool quiet);
/* So many units are finished. */
void progress_done(int done);
/* theo_progress_fn: the current unit is finished to this part. Non-zero (cancel) when the user interrupted. */
int progress_within(void *user, double part);
/* Removes the line, before something else is printed. It comes back with the next change. */
void progress_wipe(void);
void progress_end(void);

/* "0:07", "12:30", "3:05:00" into text[16]. */
void progress_clock(char *text, double seconds);

#endif
