#include "models/moge_frame.h"
#include <math.h>

enum { PATCH = THEO_MOGE_PATCH, UP = 16 }; /* UP: pixels of MoGe-2's maps along a patch */

static int at_least_1(int value) {
    return value > 1 ? value : 1;
}

theo_moge_grid theo_moge_grid_of(theo_moge_generation generation, int width, int height, int tokens) {
    theo_moge_grid g;
    if (generation == THEO_MOGE_1) {
        double scale = sqrt(tokens * (double)(PATCH * PATCH) / ((double)width * height));
        g.map_w = at_least_1((int)(width * scale));
        g.map_h = at_least_1((int)(height * scale));
        g.rows = at_least_1(g.map_h / PATCH);
        g.columns = at_least_1(g.map_w / PATCH);
        return g;
    }
    double aspect = (double)width / height;
    return theo_moge_grid_of_patches(generation, at_least_1((int)nearbyint(sqrt(tokens / aspect))),
                                     at_least_1((int)nearbyint(sqrt(tokens * aspect))));
}

theo_moge_grid theo_moge_grid_of_patches(theo_moge_generation generation, int rows, int columns) {
    int times = generation == THEO_MOGE_1 ? PATCH : UP;
    return (theo_moge_grid){rows, columns, times * rows, times * columns};
}

static int scaled(int side, double scale, int limit) {
    int pixels = (int)nearbyint(side * scale);
    return pixels < 1 ? 1 : pixels > limit ? limit : pixels;
}

theo_moge_frame theo_moge_frame_of(theo_moge_generation generation, int width, int height, theo_moge_fit fit, int tokens) {
    const int W = THEO_MOGE_CANVAS_WIDTH, H = THEO_MOGE_CANVAS_HEIGHT;
    theo_moge_frame f = {.generation = generation,
                         .width = width,
                         .height = height,
                         .fit = fit,
                         .canvas_width = W,
                         .canvas_height = H,
                         .w = W,
                         .h = H};
    f.camera_aspect = (double)width / height;
    if (fit == THEO_MOGE_NATIVE) {
        f.canvas_width = f.w = width;
        f.canvas_height = f.h = height;
    } else if (fit == THEO_MOGE_PAD) {
        double scale = fmin((double)W / width, (double)H / height);
        f.w = scaled(width, scale, W);
        f.h = scaled(height, scale, H);
        f.x = (W - f.w) / 2;
        f.y = (H - f.h) / 2;
    } else {
        f.camera_aspect = (double)W / H;
    }
    f.grid = theo_moge_grid_of(generation, f.canvas_width, f.canvas_height,
                               fit == THEO_MOGE_NATIVE ? tokens : THEO_MOGE_CANVAS_TOKENS);
    f.net_aspect = generation == THEO_MOGE_1 ? (double)f.grid.map_w / f.grid.map_h : (double)f.canvas_width / f.canvas_height;
    return f;
}
