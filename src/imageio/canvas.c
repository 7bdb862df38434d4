/* canvas.c - see canvas.h. A shape covers a pixel by the distance of the pixel's centre from the shape's edge: fully when half a
 * pixel inside, not at all when half a pixel outside. */
#include "imageio/canvas.h"
#include <math.h>

static float clamp(float v, float low, float high) {
    return v < low ? low : v > high ? high : v;
}

static void blend(uint8_t *pixel, theo_ink ink, float coverage) {
    const float a = ink.alpha * clamp(coverage, 0.0f, 1.0f);
    pixel[0] = (uint8_t)lrintf((float)pixel[0] + a * ((float)ink.r - (float)pixel[0]));
    pixel[1] = (uint8_t)lrintf((float)pixel[1] + a * ((float)ink.g - (float)pixel[1]));
    pixel[2] = (uint8_t)lrintf((float)pixel[2] + a * ((float)ink.b - (float)pixel[2]));
}

/* Integers from low to high that lie in [0, size). */
typedef struct span {
    int first, last;
} span;

static span clip(float low, float high, int size) {
    const float limit = (float)(size - 1);
    return (span){low > limit ? size : (int)ceilf(fmaxf(low, 0.0f)), high < 0.0f ? -1 : (int)floorf(fminf(high, limit))};
}

static uint8_t *at(const theo_canvas *c, int x, int y) {
    return c->pixels + ((size_t)y * (size_t)c->width + (size_t)x) * 3;
}

void theo_canvas_disc(const theo_canvas *canvas, float x, float y, float radius, theo_ink ink) {
    /* A disc is a ring whose line reaches its centre. */
    theo_canvas_ring(canvas, x, y, radius / 2, radius, ink);
}

void theo_canvas_ring(const theo_canvas *canvas, float x, float y, float radius, float width, theo_ink ink) {
    if (!isfinite(x) || !isfinite(y))
        return;
    const float reach = radius + width / 2 + 0.5f;
    const span rows = clip(y - reach, y + reach, canvas->height), columns = clip(x - reach, x + reach, canvas->width);
    for (int j = rows.first; j <= rows.last; j++)
        for (int i = columns.first; i <= columns.last; i++) {
            const float dx = (float)i - x, dy = (float)j - y;
            const float coverage = width / 2 + 0.5f - fabsf(sqrtf(dx * dx + dy * dy) - radius);
            if (coverage > 0.0f)
                blend(at(canvas, i, j), ink, coverage);
        }
}

void theo_canvas_line(const theo_canvas *canvas, float x0, float y0, float x1, float y1, float width, theo_ink ink) {
    if (!isfinite(x0) || !isfinite(y0) || !isfinite(x1) || !isfinite(y1))
        return;
    const float dx = x1 - x0, dy = y1 - y0, square = dx * dx + dy * dy, length = sqrtf(square), half = width / 2 + 0.5f;
    if (length == 0.0f) {
        theo_canvas_disc(canvas, x0, y0, width / 2, ink);
        return;
    }
    /* Row by row, only the columns that the line's band touches: its centre there, and as far as the band reaches sideways. */
    const span rows = clip(fminf(y0, y1) - half, fmaxf(y0, y1) + half, canvas->height);
    for (int j = rows.first; j <= rows.last; j++) {
        float low = fminf(x0, x1) - half, high = fmaxf(x0, x1) + half;
        if (fabsf(dy) > 1e-3f) {
            const float center = x0 + ((float)j - y0) * dx / dy, side = half * length / fabsf(dy);
            low = fmaxf(low, center - side);
            high = fminf(high, center + side);
        }
        const span columns = clip(low, high, canvas->width);
        for (int i = columns.first; i <= columns.last; i++) {
            const float px = (float)i - x0, py = (float)j - y0, along = clamp((px * dx + py * dy) / square, 0.0f, 1.0f);
            const float ex = px - along * dx, ey = py - along * dy;
            const float coverage = half - sqrtf(ex * ex + ey * ey);
            if (coverage > 0.0f)
                blend(at(canvas, i, j), ink, coverage);
        }
    }
}

/* ---------------------------------------------------------------- colours */

/* Linear light to sRGB's 8 bits. */
static uint8_t encode(float v) {
    v = clamp(v, 0.0f, 1.0f);
    const float coded = v <= 0.0031308f ? 12.92f * v : 1.055f * powf(v, 1.0f / 2.4f) - 0.055f;
    return (uint8_t)lrintf(255.0f * coded);
}

/* Björn Ottosson, "A perceptual color space for image processing", 2020. */
theo_ink theo_ink_oklch(float lightness, float chroma, float hue) {
    const float angle = 2.0f * (float)M_PI * hue, a = chroma * cosf(angle), b = chroma * sinf(angle);
    float l = lightness + 0.3963377774f * a + 0.2158037573f * b;
    float m = lightness - 0.1055613458f * a - 0.0638541728f * b;
    float s = lightness - 0.0894841775f * a - 1.2914855480f * b;
    l = l * l * l;
    m = m * m * m;
    s = s * s * s;
    return (theo_ink){encode(+4.0767416621f * l - 3.3077115913f * m + 0.2309699292f * s),
                      encode(-1.2684380046f * l + 2.6097574011f * m - 0.3413193965f * s),
                      encode(-0.0041960863f * l - 0.7034186147f * m + 1.7076147010f * s), 1.0f};
}

theo_ink theo_ink_scale(float t) {
    t = clamp(t, 0.0f, 1.0f);
    return theo_ink_oklch(0.64f + 0.29f * t, 0.17f, (280.0f - 176.0f * t) / 360.0f);
}
