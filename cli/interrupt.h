/* interrupt.h - Ctrl-C and SIGTERM become a flag that the work looks at between two operations, so that nothing is left
 * half-written. */
#ifndef THEO_CLI_INTERRUPT_H
#define THEO_CLI_INTERRUPT_H

#include <stdbool.h>

/* Catches SIGINT and SIGTERM, ignores SIGPIPE (a closed reader is seen as EPIPE), and makes sure that descriptors 0, 1 and 2 are
 * taken, so that no file that is opened later becomes stdout. */
void interrupt_install(void);

bool interrupted(void);

/* 130 for SIGINT, 143 for SIGTERM. */
int interrupt_exit_code(void);

#endif
