/* message.h - everything the command says on stderr, and its exit codes. */
#ifndef THEO_CLI_MESSAGE_H
#define THEO_CLI_MESSAGE_H

#include <stdbool.h>

/* 130 and 143 (interrupted) come from interrupt.h. */
enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,  /* some or all inputs failed, or a result could not be written */
    EXIT_NOTHING = 2, /* nothing was done: wrong usage, or no model */
};

/* Name of the running command ("keypoints"), part of usage errors; "" outside of any. */
void message_set_command(const char *name);

/* One line each, after wiping the progress line: "theo: ..." and "theo: warning: ...". */
void message_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void message_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* "theo COMMAND: ..." and where the help is. Returns EXIT_NOTHING, so that a check reads: return usage_error("..."). */
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Text in a new string (never NULL: without memory the command ends). */
char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *text_copy(const char *text);

/* count * size zeroed bytes, and realloc; without memory the command says so and ends with EXIT_FAILED. */
void *memory_new(unsigned long count, unsigned long size);
void *memory_grow(void *old, unsigned long count, unsigned long size);

#endif
