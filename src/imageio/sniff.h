/* sniff.h - what a file is, told by its first bytes. */
#ifndef THEO_IMAGEIO_SNIFF_H
#define THEO_IMAGEIO_SNIFF_H

#include <theo/theo.h>

typedef enum theo_format { THEO_FORMAT_OTHER = 0, THEO_FORMAT_JPEG, THEO_FORMAT_PNG } theo_format;

theo_format theo_sniff(const uint8_t *data, size_t bytes);

/* The error for data that are neither JPEG nor PNG, naming what they are where that can be told. */
theo_status theo_sniff_refuse(const uint8_t *data, size_t bytes, const char *name, theo_error *err);

#endif
