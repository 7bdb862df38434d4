/* options.h - how the structs of options come in. */
#ifndef THEO_API_OPTIONS_H
#define THEO_API_OPTIONS_H

#include "base/error.h"

/* Copies the caller's struct over `out`, which holds the defaults and is out_size bytes. A program that was built against an
 * older library brings a shorter struct: the rest keeps its defaults. given may be NULL. Both start with their size. */
theo_status theo_options_take(void *out, size_t out_size, const void *given, const char *type, theo_error *err);

/* Ranges of every field. */
theo_status theo_detect_options_check(const theo_detect_options *options, theo_error *err);

#endif
