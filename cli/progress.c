#include "progress.h"
#include "clock.h"
#include "interrupt.h"
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { FIRST_MS = 700, EVERY_MS = 100 }; /* shorter work shows nothing; later the line changes so often at most */

static struct {
    bool active;
    const char *unit;
    int total, done;
    double part; /* of the current unit, 0..1 */
    double start_ms, drawn_ms;
} line;
static atomic_bool visible; /* messages of the decoding thread wipe the line too */

void progress_start(const char *unit, int total, bool quiet) {
    line.active = !quiet && isatty(STDERR_FILENO);
    line.unit = unit;
    line.total = total;
    line.done = 0;
    line.part = 0;
    line.start_ms = clock_ms();
    line.drawn_ms = line.start_ms + FIRST_MS - EVERY_MS;
}

void progress_clock(char *text, double seconds) {
    unsigned all = (unsigned)fmin(fmax(seconds, 0), 3600 * 9999.0);
    if (all >= 3600)
        snprintf(text, 16, "%u:%02u:%02u", all / 3600 % 10000, all / 60 % 60, all % 60);
    else
        snprintf(text, 16, "%u:%02u", all / 60 % 60, all % 60);
}

static void draw(void) {
    double now = clock_ms();
    if (!line.active || now - line.drawn_ms < EVERY_MS)
        return;
    line.drawn_ms = now;
    double share = (line.done + line.part) / line.total;
    char left[32] = "";
    if (share > 0) {
        char clock[16];
        progress_clock(clock, (now - line.start_ms) / 1000 * (1 - share) / share);
        snprintf(left, sizeof left, ", %s left", clock);
    }
    fprintf(stderr, "\r%d of %d %s, %.0f %%%s\033[K", line.done, line.total, line.unit, 100 * share, left);
    fflush(stderr);
    atomic_store(&visible, true);
}

void progress_done(int done) {
    line.done = done;
    line.part = 0;
    draw();
}

int progress_within(void *user, double part) {
    (void)user;
    if (part < 1) { /* a finished unit is counted by progress_done */
        line.part = part;
        draw();
    }
    return interrupted();
}

void progress_wipe(void) {
    if (atomic_exchange(&visible, false)) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
}

void progress_end(void) {
    progress_wipe();
    line.active = false;
}
