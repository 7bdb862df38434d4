#include "geometry/view_plane.h"
#include <math.h>

theo_view_plane theo_view_plane_of(double aspect) {
    double r = sqrt(1 + aspect * aspect);
    return (theo_view_plane){aspect / r, 1 / r};
}

float theo_view_plane_at(double half, int n, int i) {
    enum { LANES = 8, PAIR = 2 * LANES };
    float end = (float)(half * (n - 1) / n), start = -end;
    if (n == 1)
        return start;
    float step = (end - start) / (float)(n - 1);
    int lane = i < n - n % PAIR ? i % LANES : 0, first = i - lane;
    float base = first < n / 2 ? fmaf(step, (float)first, start) : fmaf(-step, (float)(n - 1 - first), end);
    return base + step * (float)lane;
}

void theo_view_plane_fill(const theo_view_plane *plane, int h, int w, float *out, size_t pitch) {
    const float *top = out;
    for (int y = 0; y < h; y++) {
        float v = theo_view_plane_at(plane->y, h, y);
        for (int x = 0; x < w; x++, out += pitch) {
            out[0] = y ? top[(size_t)x * pitch] : theo_view_plane_at(plane->x, w, x);
            out[1] = v;
        }
    }
}
