/* Exif blocks. */
#include "imageio/exif.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const theo_exif exif = theo_exif_parse(data, size);
    MUST(exif.orientation >= 0 && exif.orientation <= 8);
    MUST(exif.focal_35mm >= 0 && exif.focal_35mm <= UINT16_MAX);
    return 0;
}
