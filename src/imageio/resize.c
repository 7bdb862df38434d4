/* resize.c - Pillow 9.4's resampling, bit for bit: a horizontal pass rounded to 8 bits, then a vertical one; a pass whose
 * dimension does not change is skipped. When shrinking the filter widens with the scale, so that no sample is left out
 * (antialiasing).
 *
 * The two passes run interleaved: a ring keeps the horizontally resized rows that the next output rows need, so that the
 * workspace depends on the widths and on the reach of the filter alone. */
#include "imageio/resize.h"
#include "base/error.h"
#include "imageio/image.h"
#include <math.h>
#include <string.h>

/* Weights are fixed-point numbers of this many fractional bits: with 8-bit samples the sums just fit 32 bits (two bits are left
 * for the overshoot of the negative lobes). */
enum { WEIGHT_BITS = 32 - 8 - 2 };

static double bilinear(double x) {
    x = fabs(x);
    return x < 1.0 ? 1.0 - x : 0.0;
}

/* Keys' cubic with a = -0.5. */
static double bicubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    if (x < 2.0)
        return (((x - 5) * x + 8) * x - 4) * a;
    return 0.0;
}

static double sinc(double x) {
    if (x == 0.0)
        return 1.0;
    x *= M_PI;
    return sin(x) / x;
}

static double lanczos3(double x) {
    return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

typedef struct kernel {
    double (*weight)(double x);
    double support; /* weight is 0 beyond it */
} kernel;

static const kernel kernels[] = {
    [THEO_BILINEAR] = {bilinear, 1.0}, [THEO_BICUBIC] = {bicubic, 2.0}, [THEO_LANCZOS] = {lanczos3, 3.0}};

/* One axis: how output positions read input positions. */
typedef struct axis {
    int in, out;
    const kernel *kernel;
    double scale, widen, support; /* input per output; max(scale, 1); reach of the widened filter */
    int taps;                     /* most weights that one output needs */
} axis;

static axis make_axis(int in, int out, theo_filter filter) {
    axis a = {.in = in, .out = out, .kernel = &kernels[filter]};
    a.scale = (double)in / out;
    a.widen = a.scale < 1.0 ? 1.0 : a.scale;
    a.support = a.kernel->support * a.widen;
    const double reach = ceil(a.support) * 2 + 1;
    a.taps = reach < in ? (int)reach : in;
    return a;
}

/* Weights of output i: returns the first input position, *count of them are used. */
static int weigh(const axis *a, int i, int32_t *weights, int *count) {
    const double center = (i + 0.5) * a->scale, shrink = 1.0 / a->widen;
    int low = (int)(center - a->support + 0.5), high = (int)(center + a->support + 0.5);
    low = low < 0 ? 0 : low;
    high = high > a->in ? a->in : high;

    double sum = 0.0;
    for (int j = low; j < high; j++)
        sum += a->kernel->weight((j - center + 0.5) * shrink);
    for (int j = low; j < high; j++) {
        double w = a->kernel->weight((j - center + 0.5) * shrink);
        if (sum != 0.0)
            w /= sum;
        w *= 1 << WEIGHT_BITS;
        weights[j - low] = (int32_t)(w < 0 ? w - 0.5 : w + 0.5);
    }
    *count = high - low;
    return low;
}

static inline uint8_t clip(int32_t sum) {
    const int32_t v = sum >> WEIGHT_BITS;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* What the horizontal pass knows of every output column. */
typedef struct column {
    int first, count;
} column;

static inline __attribute__((always_inline)) void across(uint8_t *dst, const uint8_t *src, const axis *x, const column *columns,
                                                         const int32_t *weights, int channels) {
    for (int i = 0; i < x->out; i++, weights += x->taps, dst += channels) {
        const uint8_t *from = src + (size_t)columns[i].first * (size_t)channels;
        int32_t sum[4] = {1 << (WEIGHT_BITS - 1), 1 << (WEIGHT_BITS - 1), 1 << (WEIGHT_BITS - 1), 1 << (WEIGHT_BITS - 1)};
        for (int j = 0; j < columns[i].count; j++)
            for (int c = 0; c < channels; c++)
                sum[c] += from[j * channels + c] * weights[j];
        for (int c = 0; c < channels; c++)
            dst[c] = clip(sum[c]);
    }
}

static void pass_across(uint8_t *dst, const uint8_t *src, const axis *x, const column *columns, const int32_t *weights,
                        int channels) {
    switch (channels) {
    case 1:
        across(dst, src, x, columns, weights, 1);
        break;
    case 2:
        across(dst, src, x, columns, weights, 2);
        break;
    case 3:
        across(dst, src, x, columns, weights, 3);
        break;
    default:
        across(dst, src, x, columns, weights, 4);
    }
}

/* dst[k] = sum over rows of weight * row[k], in blocks whose sums stay in the first-level cache. Row j lies in slot (first + j) %
 * slots of the ring. */
static void pass_down(uint8_t *restrict dst, const uint8_t *restrict ring, size_t row, int slots, int first,
                      const int32_t *weights, int count) {
    enum { BLOCK = 512 };
    int32_t sum[BLOCK];
    for (size_t at = 0; at < row; at += BLOCK) {
        const size_t n = row - at < BLOCK ? row - at : BLOCK;
        for (size_t k = 0; k < n; k++)
            sum[k] = 1 << (WEIGHT_BITS - 1);
        for (int j = 0; j < count; j++) {
            const uint8_t *restrict from = ring + (size_t)((first + j) % slots) * row + at;
            const int32_t w = weights[j];
            for (size_t k = 0; k < n; k++)
                sum[k] += from[k] * w;
        }
        for (size_t k = 0; k < n; k++)
            dst[at + k] = clip(sum[k]);
    }
}

/* Where the rows come from: row y, either in place or written into scratch; NULL = it cannot be read. */
typedef struct source {
    const uint8_t *(*row)(const struct source *source, int y, uint8_t *scratch);
    const uint8_t *pixels;
    size_t row_bytes;
    int width;
    theo_row_rule rule;
    const theo_plane *plane; /* of a window */
} source;

typedef struct parts {
    int32_t *across;  /* [dst_width][taps of x] */
    int32_t *down;    /* [taps of y] */
    column *columns;  /* [dst_width] */
    uint8_t *ring;    /* [taps of y][dst_width][channels] */
    uint8_t *scratch; /* [src_width][channels]: a converted row */
} parts;

/* Lays the parts out from `base` (NULL to measure); the total, or SIZE_MAX on overflow. */
static size_t lay_out(const theo_resize *r, void *base, parts *w) {
    const axis x = make_axis(r->src_width, r->dst_width, r->filter), y = make_axis(r->src_height, r->dst_height, r->filter);
    const size_t row = (size_t)r->dst_width * (size_t)r->channels;
    const size_t counts[5][2] = {{(size_t)r->dst_width * sizeof(int32_t), (size_t)x.taps},
                                 {sizeof(int32_t), (size_t)y.taps},
                                 {sizeof(column), (size_t)r->dst_width},
                                 {row, (size_t)y.taps},
                                 {(size_t)r->channels, (size_t)r->src_width}};
    size_t at[5], total = 0;
    for (int i = 0; i < 5; i++) {
        size_t bytes;
        at[i] = total;
        if (__builtin_mul_overflow(counts[i][0], counts[i][1], &bytes) || bytes > SIZE_MAX / 2 - 7 ||
            __builtin_add_overflow(total, (bytes + 7) & ~(size_t)7, &total))
            return SIZE_MAX;
    }
    if (base) {
        char *p = base;
        *w = (parts){(void *)(p + at[0]), (void *)(p + at[1]), (void *)(p + at[2]), (void *)(p + at[3]), (void *)(p + at[4])};
    }
    return total;
}

size_t theo_resize_bytes(const theo_resize *resize) {
    return lay_out(resize, NULL, NULL);
}

static bool run(const theo_resize *r, uint8_t *dst, size_t dst_row_bytes, const source *from, void *memory) {
    const axis x = make_axis(r->src_width, r->dst_width, r->filter), y = make_axis(r->src_height, r->dst_height, r->filter);
    const bool wider = x.in != x.out, taller = y.in != y.out;
    const size_t row_bytes = (size_t)r->dst_width * (size_t)r->channels;
    parts w;
    lay_out(r, memory, &w);

    for (int i = 0; wider && i < x.out; i++)
        w.columns[i].first = weigh(&x, i, w.across + (size_t)i * (size_t)x.taps, &w.columns[i].count);

    for (int i = 0, next = 0; i < y.out; i++, dst += dst_row_bytes) {
        int count = 1, first = i;
        if (taller)
            first = weigh(&y, i, w.down, &count);
        for (next = next < first ? first : next; next < first + count; next++) {
            uint8_t *slot = taller ? w.ring + (size_t)(next % y.taps) * row_bytes : dst;
            const uint8_t *row = from->row(from, next, w.scratch);
            if (!row)
                return false;
            if (wider)
                pass_across(slot, row, &x, w.columns, w.across, r->channels);
            else
                memcpy(slot, row, row_bytes);
        }
        if (taller)
            pass_down(dst, w.ring, row_bytes, y.taps, first, w.down, count);
    }
    return true;
}

static const uint8_t *plain_row(const source *s, int y, uint8_t *scratch) {
    (void)scratch;
    return s->pixels + (size_t)y * s->row_bytes;
}

static const uint8_t *converted_row(const source *s, int y, uint8_t *scratch) {
    return theo_row_u8(scratch, s->pixels + (size_t)y * s->row_bytes, s->width, &s->rule) ? scratch : NULL;
}

void theo_resize_u8(const theo_resize *resize, uint8_t *dst, size_t dst_row_bytes, const uint8_t *src, size_t src_row_bytes,
                    void *workspace) {
    const source from = {.row = plain_row, .pixels = src, .row_bytes = src_row_bytes};
    run(resize, dst, dst_row_bytes, &from, workspace);
}

/* ---------------------------------------------------------------- planes of images */

/* Row y of the window: fill, pixels, fill. */
static const uint8_t *window_row(const source *s, int y, uint8_t *scratch) {
    const theo_plane *p = s->plane;
    const int channels = theo_row_channels(&s->rule), row = y + p->window_y;
    const int right = p->window_x + p->window_width < s->width ? p->window_x + p->window_width : s->width;
    const int left = p->window_x > 0 ? p->window_x : 0, count = row >= 0 && row < p->image->height ? right - left : 0;
    const size_t before = count > 0 ? (size_t)(left - p->window_x) * (size_t)channels : 0;
    const size_t made = count > 0 ? (size_t)count * (size_t)channels : 0;
    memset(scratch, p->fill, (size_t)p->window_width * (size_t)channels);
    if (!made)
        return scratch;
    const uint8_t *from =
        s->pixels + (size_t)row * s->row_bytes + (size_t)(left * p->image->channels) * theo_pixel_bytes(p->image->type);
    return theo_row_u8(scratch + before, from, count, &s->rule) ? scratch : NULL;
}

static theo_row_rule rule_of(const theo_plane *p) {
    return (theo_row_rule){.channels = p->image->channels, .type = p->image->type, .pick = p->pick, .bgr = p->bgr};
}

int theo_plane_channels(const theo_plane *plane) {
    const theo_row_rule rule = rule_of(plane);
    return theo_row_channels(&rule);
}

static theo_resize resize_of(const theo_plane *p) {
    return (theo_resize){.src_width = p->window_width ? p->window_width : p->image->width,
                         .src_height = p->window_width ? p->window_height : p->image->height,
                         .dst_width = p->width,
                         .dst_height = p->height,
                         .channels = theo_plane_channels(p),
                         .filter = p->filter};
}

size_t theo_plane_bytes(const theo_plane *plane) {
    const theo_resize resize = resize_of(plane);
    return theo_resize_bytes(&resize);
}

theo_status theo_plane_resize(const theo_plane *plane, uint8_t *dst, void *workspace, theo_error *err) {
    const theo_image *image = plane->image;
    const theo_resize resize = resize_of(plane);
    source from = {
        .pixels = image->pixels, .row_bytes = theo_image_row_bytes(image), .width = image->width, .rule = rule_of(plane)};
    from.row = plane->window_width ? window_row : theo_row_is_copy(&from.rule) ? plain_row : converted_row;
    from.plane = plane;
    if (!run(&resize, dst, (size_t)plane->width * (size_t)resize.channels, &from, workspace))
        return theo_fail(err, THEO_ARGUMENT, NULL, "image",
                         "a float image holds NaN or infinity: its samples must be finite, in [0, 1]");
    return THEO_OK;
}
