/* test_sample.c - descriptor sampling against closed forms. */
#include "geometry/sample.h"
#include "t.h"

enum { CHANNELS = 19, WIDTH = 7, HEIGHT = 5 };

static float cells[HEIGHT][WIDTH][CHANNELS];

static const theo_cells whole = {.data = &cells[0][0][0],
                                 .cell_pitch = CHANNELS,
                                 .row_pitch = WIDTH * CHANNELS,
                                 .channels = CHANNELS,
                                 .width = WIDTH,
                                 .height = HEIGHT,
                                 .whole_width = WIDTH,
                                 .whole_height = HEIGHT,
                                 .net_width = 8 * WIDTH + 3,
                                 .net_height = 8 * HEIGHT + 1};

/* Position in cells, in double, from the formulas of the spec. */
static double place(theo_sampling rule, double x, int n, int pixels) {
    switch (rule) {
    case THEO_SAMPLING_A:
        return (x - 3.5) / (8.0 * n - 4.5) * (n - 1);
    case THEO_SAMPLING_B:
        return x / 8 - 0.5;
    case THEO_SAMPLING_B_OLD:
        return x * (n - 1) / pixels;
    case THEO_SAMPLING_C:
        break;
    }
    return (x + 0.5) / 8 - 0.5;
}

static void expected(double *out, double px, double py) {
    double norm = 0;
    for (int c = 0; c < CHANNELS; c++) {
        out[c] = 0;
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) /* a tent around every cell */
                out[c] += fmax(0, 1 - fabs(px - x)) * fmax(0, 1 - fabs(py - y)) * (double)cells[y][x][c];
        norm += out[c] * out[c];
    }
    for (int c = 0; c < CHANNELS; c++)
        out[c] /= fmax(sqrt(norm), 1e-12);
}

int main(void) {
    uint32_t state = 7;
    for (int i = 0; i < HEIGHT * WIDTH * CHANNELS; i++) {
        state = state * 1664525u + 1013904223u;
        (&cells[0][0][0])[i] = (float)(state >> 8) / 8388608.0f - 1.0f;
    }
    static const float points[][2] = {{0, 0},      {55, 39},   {3.5f, 3.5f}, {27, 20}, {54.9f, 0.1f}, {-3, 10},
                                      {12, 44.5f}, {31.5f, 7}, {59, 41},     {1, 38},  {-4.4f, -4.4f}};
    enum { POINTS = sizeof points / sizeof points[0] };
    for (int rule = THEO_SAMPLING_A; rule <= THEO_SAMPLING_C; rule++) {
        float got[POINTS][CHANNELS], part[CHANNELS];
        theo_sample_descriptors(got[0], &whole, (theo_sampling)rule, points[0], POINTS);
        for (int n = 0; n < POINTS; n++) {
            double want[CHANNELS], px = place((theo_sampling)rule, (double)points[n][0], WIDTH, whole.net_width);
            double py = place((theo_sampling)rule, (double)points[n][1], HEIGHT, whole.net_height);
            expected(want, px, py);
            for (int c = 0; c < CHANNELS; c++)
                CHECK_NEAR((double)got[n][c], want[c], 3e-6);

            /* A tile that holds just the footprint gives the same bits. */
            int x0, y0;
            theo_sample_footprint(&whole, (theo_sampling)rule, points[n][0], points[n][1], &x0, &y0);
            CHECK(x0 == (int)floor(px) || fabs(px - round(px)) < 1e-5);
            CHECK(y0 == (int)floor(py) || fabs(py - round(py)) < 1e-5);
            int x = x0 < 0 ? 0 : x0, y = y0 < 0 ? 0 : y0;
            float tile[2][2][CHANNELS];
            for (int j = 0; j < 2; j++)
                for (int i = 0; i < 2; i++)
                    if (x + i < WIDTH && y + j < HEIGHT)
                        memcpy(tile[j][i], cells[y + j][x + i], sizeof tile[j][i]);
            theo_cells small = whole;
            small.data = tile[0][0];
            small.row_pitch = 2 * CHANNELS;
            small.origin_x = x;
            small.origin_y = y;
            small.width = small.height = 2;
            theo_sample_descriptors(part, &small, (theo_sampling)rule, points[n], 1);
            CHECK(memcmp(part, got[n], sizeof part) == 0);
        }
    }
    static const float far_away[][2] = {{1e30f, 5}, {-1e30f, 5}, {5, 1e9f}, {-200, -200}};
    float zeros[4][CHANNELS];
    theo_sample_descriptors(zeros[0], &whole, THEO_SAMPLING_A, far_away[0], 4);
    for (int i = 0; i < 4 * CHANNELS; i++)
        CHECK((&zeros[0][0])[i] == 0.0f);
    return t_done("sample");
}
