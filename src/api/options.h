/* options.h - checks of the options of a call. */
#ifndef THEO_API_OPTIONS_H
#define THEO_API_OPTIONS_H

#include "base/take_options.h"

/* Ranges of every field. */
theo_status theo_detect_options_check(const theo_detect_options *options, theo_error *err);

#endif
