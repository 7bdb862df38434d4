#include "models/tiles.h"
#include <math.h>
#include <stdbool.h>

enum { OVERLAP = THEO_TILE_BEFORE + THEO_TILE_AFTER, SMALLEST = OVERLAP + 2 * THEO_TILE_ALIGN };

static int round_up(int64_t value) {
    return (int)((value + THEO_TILE_ALIGN - 1) / THEO_TILE_ALIGN * THEO_TILE_ALIGN);
}

/* As few windows of at most `limit` as possible, all but the last equally large. */
static theo_tile_axis split(int length, int64_t limit) {
    limit = limit / THEO_TILE_ALIGN * THEO_TILE_ALIGN;
    if (limit < SMALLEST)
        limit = SMALLEST;
    if (length <= limit)
        return (theo_tile_axis){length, 1, length, length};
    int64_t own = limit - OVERLAP, count = (length - OVERLAP + own - 1) / own;
    int step = round_up((length - OVERLAP + count - 1) / count);
    count = (length - OVERLAP + step - 1) / step;
    return (theo_tile_axis){length, (int)count, step + OVERLAP, step};
}

theo_tile_grid theo_tile_grid_make(int width, int height, int64_t tile_pixels) {
    theo_tile_grid grid = {{width, 1, width, width}, {height, 1, height, height}};
    if (tile_pixels <= 0 || (int64_t)width * height <= tile_pixels)
        return grid;
    /* Square windows waste least on overlap; a short side is not cut, and leaves more for the other. */
    int64_t side = (int64_t)sqrt((double)tile_pixels);
    int shorter = width < height ? width : height;
    int64_t other = shorter <= side ? tile_pixels / shorter : side;
    grid.x = split(width, width <= height ? side : other);
    grid.y = split(height, width <= height ? other : side);
    return grid;
}

theo_tile_span theo_tile_span_at(const theo_tile_axis *axis, int index) {
    int start = index * axis->step;
    bool last = index == axis->count - 1;
    theo_tile_span span = {.start = start, .size = last ? axis->length - start : axis->window};
    span.own_start = index ? start + THEO_TILE_BEFORE : 0;
    span.own_end = last ? axis->length : start + axis->step + THEO_TILE_BEFORE;
    return span;
}

int theo_tile_owner(const theo_tile_axis *axis, int coordinate) {
    int index = (coordinate - THEO_TILE_BEFORE) / axis->step;
    return coordinate < THEO_TILE_BEFORE + axis->step ? 0 : index < axis->count ? index : axis->count - 1;
}
