#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

void theo_log(theo_logger logger, theo_log_level level, const char *format, ...) {
    if (!logger.log)
        return;
    char message[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    logger.log(logger.user, level, message);
}
