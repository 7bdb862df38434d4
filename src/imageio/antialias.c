#include "imageio/antialias.h"
#include "base/error.h"
#include "imageio/image.h"
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- weights */

static double triangle(double x) {
    return x < 1 ? 1 - x : 0;
}

/* Keys' kernel, a = -0.5 */
static double cubic(double x) {
    if (x < 1)
        return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

static void free_axis(theo_antialias_axis *axis) {
    theo_free(axis->first);
    theo_free(axis->count);
    theo_free(axis->weights);
    *axis = (theo_antialias_axis){0};
}

static bool make_axis(theo_antialias_axis *axis, int in, int out, theo_antialias_kernel kernel) {
    double scale = (double)in / out, widening = scale > 1 ? scale : 1;
    double support = (kernel == THEO_ANTIALIAS_BICUBIC ? 2 : 1) * widening;
    axis->taps = 2 * (int)ceil(support) + 1;
    axis->first = theo_alloc((size_t)out, sizeof(int));
    axis->count = theo_alloc((size_t)out, sizeof(int));
    axis->weights = theo_alloc((size_t)out * (size_t)axis->taps, sizeof(float));
    if (!axis->first || !axis->count || !axis->weights)
        return false;
    for (int o = 0; o < out; o++) {
        double center = scale * (o + 0.5), total = 0;
        int low = (int)(center - support + 0.5), high = (int)(center + support + 0.5);
        low = low > 0 ? low : 0;
        high = high < in ? high : in;
        float *weights = axis->weights + (size_t)o * (size_t)axis->taps;
        for (int pass = 0; pass < 2; pass++)
            for (int j = low; j < high; j++) {
                double x = fabs(j - center + 0.5) / widening, w = kernel == THEO_ANTIALIAS_BICUBIC ? cubic(x) : triangle(x);
                if (pass)
                    weights[j - low] = (float)(w / total);
                else
                    total += w;
            }
        axis->first[o] = low;
        axis->count[o] = high - low;
    }
    return true;
}

theo_status theo_antialias_open(theo_antialias *a, const theo_image *image, bool bgr, int width, int height,
                                theo_antialias_kernel kernel, theo_error *err) {
    *a = (theo_antialias){.image = image, .bgr = bgr, .width = width, .height = height};
    if (make_axis(&a->x, image->width, width, kernel) && make_axis(&a->y, image->height, height, kernel))
        return THEO_OK;
    theo_antialias_close(a);
    return theo_fail(err, THEO_MEMORY, NULL, "image", "out of memory for resizing to %dx%d", width, height);
}

void theo_antialias_close(theo_antialias *a) {
    free_axis(&a->x);
    free_axis(&a->y);
}

/* ---------------------------------------------------------------- rows */

/* Channels that are summed: one of a gray picture, three of colour. */
static int channels_of(const theo_image *image) {
    return image->channels < 3 ? 1 : 3;
}

size_t theo_antialias_floats(const theo_antialias *a) {
    return (size_t)a->image->width * 3;
}

/* sum[i] += weight * sample i, leaving out alpha. */
#define DEFINE_ADD(name, type)                                                                                                   \
    static void name(float *restrict sum, const type *restrict row, int width, int from, int to, float weight) {                 \
        if (from == to) {                                                                                                        \
            for (int i = 0; i < width * to; i++)                                                                                 \
                sum[i] += weight * (float)row[i];                                                                                \
            return;                                                                                                              \
        }                                                                                                                        \
        for (int x = 0; x < width; x++)                                                                                          \
            for (int c = 0; c < to; c++)                                                                                         \
                sum[x * to + c] += weight * (float)row[x * from + c];                                                            \
    }
DEFINE_ADD(add_u8, uint8_t)
DEFINE_ADD(add_u16, uint16_t)
DEFINE_ADD(add_f32, float)

static void add_row(const theo_image *image, int y, float weight, float *sum) {
    const char *row = (const char *)image->pixels + (size_t)y * theo_image_row_bytes(image);
    int from = image->channels, to = channels_of(image);
    switch (image->type) {
    case THEO_U8:
        add_u8(sum, (const uint8_t *)row, image->width, from, to, weight);
        return;
    case THEO_U16:
        add_u16(sum, (const uint16_t *)(const void *)row, image->width, from, to, weight);
        return;
    case THEO_F32:
        add_f32(sum, (const float *)(const void *)row, image->width, from, to, weight);
        return;
    }
}

void theo_antialias_row(const theo_antialias *a, int y, float *workspace, float *out) {
    static const float largest[] = {[THEO_U8] = 255, [THEO_U16] = 65535, [THEO_F32] = 1};
    int channels = channels_of(a->image);
    memset(workspace, 0, (size_t)(a->image->width * channels) * sizeof(float));
    const float *weights = a->y.weights + (size_t)y * (size_t)a->y.taps;
    for (int k = 0; k < a->y.count[y]; k++)
        add_row(a->image, a->y.first[y] + k, weights[k], workspace);

    float divisor = largest[a->image->type];
    int red = a->bgr ? 2 : 0;
    for (int x = 0; x < a->width; x++, out += 3) {
        const float *from = workspace + a->x.first[x] * channels;
        float sum[3] = {0, 0, 0};
        weights = a->x.weights + (size_t)x * (size_t)a->x.taps;
        if (channels == 3) {
            for (int k = 0; k < a->x.count[x]; k++, from += 3) {
                sum[0] += weights[k] * from[0];
                sum[1] += weights[k] * from[1];
                sum[2] += weights[k] * from[2];
            }
        } else {
            for (int k = 0; k < a->x.count[x]; k++)
                sum[0] += weights[k] * from[k];
            sum[1] = sum[2] = sum[0];
        }
        out[0] = sum[red] / divisor;
        out[1] = sum[1] / divisor;
        out[2] = sum[2 - red] / divisor;
    }
}
