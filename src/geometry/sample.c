/* sample.c - bilinear sampling of descriptor maps by the coordinate rules of the upstream programs (docs/models/superpoint.md).
 *
 * Positions follow the float32 operations of the originals in their order: one rounding more or less moves a descriptor visibly
 * at the far end of a wide map. */
#include "geometry/sample.h"

#include <math.h>
#include <string.h>

enum { CELL = 8, LANES = 16 };

/* Position in cells of a pixel coordinate along one axis; `cells` of the whole map, `pixels` of the network's input. */
static float position(theo_sampling rule, float pixel, int cells, int pixels) {
    float n = (float)cells;
    switch (rule) {
    case THEO_SAMPLING_A: { /* SuperGlue, LightGlue, Hugging Face: not geometrically exact, but what matchers were trained on */
        float t = (pixel - 4.0f + 0.5f) / (8.0f * n - 4.0f - 0.5f);
        float g = 2.0f * t - 1.0f;
        return (g + 1.0f) / 2.0f * (n - 1.0f);
    }
    case THEO_SAMPLING_B: /* the Magic Leap demo under a torch that does not align corners */
        return pixel / CELL - 0.5f;
    case THEO_SAMPLING_B_OLD: /* and under the older one that does */
        return pixel * (n - 1.0f) / (float)pixels;
    case THEO_SAMPLING_C: /* rpautrat: exact geometry */
        break;
    }
    return (pixel + 0.5f) / CELL - 0.5f;
}

/* Cell at or before the position; far outside positions are brought near so that they fit an int. */
static int floor_cell(float position, int cells) {
    return (int)floorf(fminf(fmaxf(position, -2.0f), (float)cells + 1.0f));
}

void theo_sample_footprint(const theo_cells *map, theo_sampling rule, float x, float y, int *first_x, int *first_y) {
    *first_x = floor_cell(position(rule, x, map->whole_width, map->net_width), map->whole_width);
    *first_y = floor_cell(position(rule, y, map->whole_height, map->net_height), map->whole_height);
}

/* Divides a row by its L2 norm. Sixteen partial sums: the order does not depend on the machine, and compilers vectorise it. */
static void normalise(float *row, int channels) {
    float sums[LANES] = {0};
    int c = 0;
    for (; c + LANES <= channels; c += LANES)
        for (int i = 0; i < LANES; i++)
            sums[i] += row[c + i] * row[c + i];
    for (int i = 0; c < channels; c++, i++)
        sums[i] += row[c] * row[c];
    for (int width = LANES / 2; width; width /= 2)
        for (int i = 0; i < width; i++)
            sums[i] += sums[i + width];
    float norm = fmaxf(sqrtf(sums[0]), 1e-12f);
    for (c = 0; c < channels; c++)
        row[c] /= norm;
}

void theo_sample_descriptors(float *out, const theo_cells *map, theo_sampling rule, const float *xy, int count) {
    int channels = map->channels;
    for (int n = 0; n < count; n++, out += channels) {
        float px = position(rule, xy[2 * n], map->whole_width, map->net_width);
        float py = position(rule, xy[2 * n + 1], map->whole_height, map->net_height);
        int x0 = floor_cell(px, map->whole_width), y0 = floor_cell(py, map->whole_height);
        float fx = px - (float)x0, fy = py - (float)y0;
        memset(out, 0, (size_t)channels * sizeof(float));
        bool is_inside = false;
        for (int corner = 0; corner < 4; corner++) {
            int x = x0 + (corner & 1), y = y0 + (corner >> 1);
            if (x < 0 || y < 0 || x >= map->whole_width || y >= map->whole_height)
                continue;
            float weight = (corner & 1 ? fx : 1.0f - fx) * (corner >> 1 ? fy : 1.0f - fy);
            const float *restrict cell =
                map->data + (size_t)(y - map->origin_y) * map->row_pitch + (size_t)(x - map->origin_x) * map->cell_pitch;
            float *restrict sum = out;
            for (int c = 0; c < channels; c++)
                sum[c] += weight * cell[c];
            is_inside = true;
        }
        if (is_inside)
            normalise(out, channels);
    }
}
