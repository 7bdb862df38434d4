/* canvas.h - antialiased shapes with transparency on an RGB U8 image. Coordinates are pixels, integers are pixel centres. */
#ifndef THEO_IMAGEIO_CANVAS_H
#define THEO_IMAGEIO_CANVAS_H

#include <theo/theo.h>

typedef struct theo_ink {
    uint8_t r, g, b;
    float alpha; /* 0..1 */
} theo_ink;

typedef struct theo_canvas {
    uint8_t *pixels; /* [height][width][3] */
    int width, height;
} theo_canvas;

/* Everything is clipped; shapes with coordinates that are not finite are left out. Widths and radii are in pixels, > 0. */
void theo_canvas_disc(const theo_canvas *canvas, float x, float y, float radius, theo_ink ink);
void theo_canvas_ring(const theo_canvas *canvas, float x, float y, float radius, float width, theo_ink ink);
void theo_canvas_line(const theo_canvas *canvas, float x0, float y0, float x1, float y1, float width, theo_ink ink);

/* Opaque colours of even brightness. lightness and chroma as in Oklch (0..1, 0..0.4), hue in turns. */
theo_ink theo_ink_oklch(float lightness, float chroma, float hue);

/* A scale from blue (0) over teal to bright yellow (1), rising in brightness: readable in gray and by the colour-blind. */
theo_ink theo_ink_scale(float t);

#endif
