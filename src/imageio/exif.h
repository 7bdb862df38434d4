/* exif.h - the few Exif facts that matter for geometry, read by a strict parser. */
#ifndef THEO_IMAGEIO_EXIF_H
#define THEO_IMAGEIO_EXIF_H

#include <theo/theo.h>

typedef struct theo_exif {
    int orientation; /* 1..8; 0 = none given, or not one of these */
    int focal_35mm;  /* FocalLengthIn35mmFilm in millimetres; 0 = none given */
} theo_exif;

/* Reads a TIFF-structured block (the content of PNG's eXIf, or of JPEG's APP1 after "Exif\0\0"). Every offset is checked;
 * whatever is broken counts as not given, since damaged metadata does not make a photo unusable. */
theo_exif theo_exif_parse(const uint8_t *data, size_t bytes);

#endif
