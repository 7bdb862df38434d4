/* take_options.h - how the public structs of options come in. */
#ifndef THEO_BASE_TAKE_OPTIONS_H
#define THEO_BASE_TAKE_OPTIONS_H

#include <theo/theo.h>

/* Copies the caller's struct over `out`, which holds the defaults and is out_size bytes. Both start with their size. One that is
 * shorter, of a program that was built against an older header, leaves the rest at its defaults; a longer one is THEO_ARGUMENT.
 * given may be NULL. type: its name, for the message. */
theo_status theo_options_take(void *out, size_t out_size, const void *given, const char *type, theo_error *err);

#endif
