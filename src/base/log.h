/* log.h - messages for the caller's log callback. */
#ifndef THEO_BASE_LOG_H
#define THEO_BASE_LOG_H

#include <theo/theo.h>

/* Where messages go; log == NULL: nowhere. */
typedef struct theo_logger {
    theo_log_fn log;
    void *user;
} theo_logger;

/* Formats one line (cut at 1023 bytes, no newline wanted) and hands it over. Never allocates. */
void theo_log(theo_logger logger, theo_log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
