/* The readable reference of Winograd's transforms, and the transform of the weights for all levels. In double throughout. */
#include "kernels/gemm.h"
#include "kernels/winograd.h"
#include <math.h>
#include <string.h>

enum { TILE = THEO_WINOGRAD_TILE, SIDE = TILE + 2, POSITIONS = THEO_WINOGRAD_POSITIONS };

#define A 0.70710678118654752 /* points 0, a, -a, b, -b, infinity; a b = 1 */
#define B 1.41421356237309505

/* Row i: the polynomial that is zero at every finite point but the i-th, by rising powers; last: zero at all of them. */
static const double bt[SIDE][SIDE] = {
    {1, 0, -2.5, 0, 1, 0},        /* (x^2 - 1/2) (x^2 - 2) */
    {0, -2 * A, -2, A, 1, 0},     /* x (x + a) (x^2 - 2) */
    {0, 2 * A, -2, -A, 1, 0},     /* x (x - a) (x^2 - 2) */
    {0, -0.5 * B, -0.5, B, 1, 0}, /* x (x + b) (x^2 - 1/2) */
    {0, 0.5 * B, -0.5, -B, 1, 0}, /* x (x - b) (x^2 - 1/2) */
    {0, 1, 0, -2.5, 0, 1},        /* x (x^2 - 1/2) (x^2 - 2) */
};
/* Row i: powers 0, 1, 2 of the point, over the value of its polynomial of bt there. */
static const double g[SIDE][3] = {
    {1, 0, 0},
    {-2.0 / 3, -2.0 / 3 * A, -1.0 / 3},
    {-2.0 / 3, 2.0 / 3 * A, -1.0 / 3},
    {1.0 / 6, 1.0 / 6 * B, 1.0 / 3},
    {1.0 / 6, -1.0 / 6 * B, 1.0 / 3},
    {0, 0, 1},
};
/* Row i: the i-th power of each point. */
static const double at[TILE][SIDE] = {
    {1, 1, 1, 1, 1, 0},
    {0, A, -A, B, -B, 0},
    {0, 0.5, 0.5, 2, 2, 0},
    {0, 0.5 * A, -0.5 * A, 2 * B, -2 * B, 1},
};

static void input(const theo_winograd_input *t) {
    int padded = (t->channels + THEO_KU - 1) / THEO_KU * THEO_KU;
    for (int c = 0; c < padded; c++) {
        double d[SIDE][SIDE], half[SIDE][SIDE];
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                float value = c < t->channels ? t->in[(size_t)y * t->row + (size_t)x * t->pixel + (size_t)c] : 0.0f;
                d[y][x] = (double)(t->relu && value < 0.0f ? 0.0f : value);
            }
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                half[y][x] = 0.0;
                for (int i = 0; i < SIDE; i++)
                    half[y][x] += bt[y][i] * d[i][x];
            }
        for (int y = 0; y < SIDE; y++)
            for (int x = 0; x < SIDE; x++) {
                double sum = 0.0;
                for (int i = 0; i < SIDE; i++)
                    sum += half[y][i] * bt[x][i];
                t->v[(size_t)(y * SIDE + x) * t->position + (size_t)(c / THEO_KU) * t->chunk + (size_t)(c % THEO_KU)] =
                    (float)sum;
            }
    }
}

/* One channel of one tile: y[4][4] before the epilogue. */
static void output_tile(const float *m, size_t position, double y[TILE][TILE]) {
    double half[TILE][SIDE];
    for (int i = 0; i < TILE; i++)
        for (int x = 0; x < SIDE; x++) {
            half[i][x] = 0.0;
            for (int k = 0; k < SIDE; k++)
                half[i][x] += at[i][k] * (double)m[(size_t)(k * SIDE + x) * position];
        }
    for (int i = 0; i < TILE; i++)
        for (int x = 0; x < TILE; x++) {
            y[i][x] = 0.0;
            for (int k = 0; k < SIDE; k++)
                y[i][x] += half[i][k] * at[x][k];
        }
}

static float output_epilogue(const theo_winograd_output *o, int y, int x, int c, double value) {
    const theo_channel_epilogue *e = &o->epilogue;
    if (e->bias)
        value += (double)e->bias[c];
    if (e->act == THEO_ACT_RELU)
        value = value < 0.0 ? 0.0 : value;
    if (e->act == THEO_ACT_GELU)
        value = 0.5 * value * (1.0 + erf(value * A));
    if (e->scale)
        value = value * (double)e->scale[c] + (double)e->shift[c];
    if (o->residual)
        value += (double)o->residual[(size_t)y * o->residual_row + (size_t)x * o->residual_pixel + (size_t)c];
    return (float)value;
}

static void output(const theo_winograd_output *o) {
    size_t nr = (size_t)theo_gemm_c.nr;
    for (int x0 = 0; x0 < o->w; x0 += TILE)
        for (int c = 0; c < o->channels; c++) {
            double sum[TILE][TILE];
            float tile[TILE][TILE] = {{0}};
            output_tile(o->m + (size_t)(x0 / TILE) * nr + (size_t)c, o->position, sum);
            int h = o->h, w = o->w - x0 < TILE ? o->w - x0 : TILE;
            for (int y = 0; y < h; y++)
                for (int x = 0; x < w; x++)
                    tile[y][x] = output_epilogue(o, y, x0 + x, c, sum[y][x]);
            if (!o->pool2) {
                for (int y = 0; y < h; y++)
                    for (int x = 0; x < w; x++)
                        o->out[(size_t)y * o->out_row + (size_t)(x0 + x) * o->out_pixel + (size_t)c] = tile[y][x];
            } else {
                for (int y = 0; y + 1 < h; y += 2)
                    for (int x = 0; x + 1 < w; x += 2)
                        o->out[(size_t)(y / 2) * o->out_row + (size_t)((x0 + x) / 2) * o->out_pixel + (size_t)c] =
                            fmaxf(fmaxf(tile[y][x], tile[y][x + 1]), fmaxf(tile[y + 1][x], tile[y + 1][x + 1]));
            }
        }
}

const theo_winograd_kernels theo_winograd_c = {input, output};

/* ---- weights */

size_t theo_winograd_packed_floats(int nr, int out_c, int in_c) {
    return POSITIONS * theo_gemm_packed_floats(nr, out_c, in_c);
}

/* LANES output channels side by side: whole cache lines are written, and the compiler vectorises. */
enum { LANES = 16 };

/* u[6 y + x][lane] = (G g G^T)[y][x] of the lane's 3x3 weights, w[3 y + x][lane]. */
static void transform_weights(double w[9][LANES], float u[POSITIONS][LANES]) {
    double half[SIDE][3][LANES];
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < 3; x++)
            for (int l = 0; l < LANES; l++)
                half[y][x][l] = g[y][0] * w[x][l] + g[y][1] * w[3 + x][l] + g[y][2] * w[6 + x][l];
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            for (int l = 0; l < LANES; l++)
                u[SIDE * y + x][l] = (float)(half[y][0][l] * g[x][0] + half[y][1][l] * g[x][1] + half[y][2][l] * g[x][2]);
}

void theo_winograd_pack_weight(int nr, int out_c, int in_c, const float *weight, float *panels) {
    size_t panel = theo_gemm_packed_floats(nr, nr, in_c);
    if (out_c % nr || in_c % THEO_KU)
        memset(panels, 0, theo_winograd_packed_floats(nr, out_c, in_c) * sizeof(float));
    for (int o = 0; o < out_c;) {
        /* A run of outputs within one panel. */
        int room = nr - o % nr, lanes = out_c - o;
        lanes = lanes > room ? room : lanes;
        lanes = lanes > LANES ? LANES : lanes;
        float *columns = panels + (size_t)(o / nr) * POSITIONS * panel + (size_t)(o % nr);
        for (int i = 0; i < in_c; i++) {
            double w[9][LANES] = {{0}};
            float u[POSITIONS][LANES];
            for (int l = 0; l < lanes; l++)
                for (int k = 0; k < 9; k++)
                    w[k][l] = (double)weight[((size_t)(o + l) * (size_t)in_c + (size_t)i) * 9 + (size_t)k];
            transform_weights(w, u);
            for (int p = 0; p < POSITIONS; p++)
                memcpy(columns + (size_t)p * panel + (size_t)i * (size_t)nr, u[p], (size_t)lanes * sizeof(float));
        }
        o += lanes;
    }
}
