/* antialias.h - images to float RGB of another size, as PyTorch's interpolate(antialias=True, align_corners=False) does: kernel
 * widened when shrinking, borders renormalised. Row by row, so that callers choose where rows go and which thread makes them. */
#ifndef THEO_IMAGEIO_ANTIALIAS_H
#define THEO_IMAGEIO_ANTIALIAS_H

#include <theo/theo.h>

typedef enum theo_antialias_kernel { THEO_ANTIALIAS_BILINEAR, THEO_ANTIALIAS_BICUBIC } theo_antialias_kernel;

/* Weights of one axis: output o is the sum of weights[o * taps + k] * input[first[o] + k] over k < count[o]. */
typedef struct theo_antialias_axis {
    int *first, *count;
    float *weights;
    int taps;
} theo_antialias_axis;

typedef struct theo_antialias {
    const theo_image
        *image; /* of the caller; checked. Any type, 1 to 4 channels: gray becomes three equal ones, alpha is left out */
    bool bgr;
    int width, height; /* of the result */
    theo_antialias_axis x, y;
} theo_antialias;

theo_status theo_antialias_open(theo_antialias *antialias, const theo_image *image, bool bgr, int width, int height,
                                theo_antialias_kernel kernel, theo_error *err);
void theo_antialias_close(theo_antialias *antialias);

/* Floats of workspace that a thread needs. */
size_t theo_antialias_floats(const theo_antialias *antialias);
/* Row y of the result: out [width * 3], 8-bit and 16-bit samples divided by 255 and 65535. */
void theo_antialias_row(const theo_antialias *antialias, int y, float *workspace, float *out);

#endif
