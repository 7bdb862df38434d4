/* winograd.h - 3x3 convolution, stride 1, by Winograd's F(4x4, 3x3): 36 multiplications for 16 outputs instead of 144.
 *
 *   V = B^T d B   an input tile of 6x6 pixels          -> 36 positions, for each input channel    (input)
 *   U = G g G^T   the weights, once, in double         -> 36 matrices [out, in]                   (theo_winograd_pack_weight)
 *   M = V U       for each of the 36 positions: a matrix multiplication over the input channels   (theo_gemm_kernels.tile)
 *   Y = A^T M A   36 positions                         -> an output tile of 4x4 pixels            (output)
 *
 * Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015. Interpolation points: 0, +-1/sqrt 2, +-sqrt 2 and
 * infinity instead of the usual 0, +-1, +-2: the rounding error is less than half (measured: rms 1.1e-6 of the output's rms
 * instead of 2.4e-6 at 128 channels), and since the points' product is 1 the transforms need hardly more operations. */
#ifndef THEO_KERNELS_WINOGRAD_H
#define THEO_KERNELS_WINOGRAD_H

#include "kernels/epilogue.h"
#include <stdbool.h>
#include <stddef.h>

#define THEO_WINOGRAD_TILE      4  /* pixels a side of an output tile; input tiles have two more */
#define THEO_WINOGRAD_POSITIONS 36 /* (4 + 2)^2 */

typedef struct theo_winograd_input {
    const float *in; /* pixel (y, x) of the 6x6 at in + y * row + x * pixel */
    size_t row, pixel;
    int channels;
    bool relu; /* applied to the input first */
    float *v;  /* position p, channels 16 c ..: v + p * position + c * chunk, 16 floats, zero beyond `channels` */
    size_t position, chunk;
} theo_winograd_input;

/* A run of neighbouring tiles, left to right, nr channels at most. */
typedef struct theo_winograd_output {
    const float *m; /* position p of tile t: m + p * position + t * nr, nr floats of which `channels` count */
    size_t position;
    int channels;
    int h, w; /* pixels of the run before pooling: h <= 4; w = 4 * tiles, or up to 3 less at the right edge */
    theo_channel_epilogue epilogue; /* of these channels; act: none, ReLU, GELU */
    const float *residual;          /* added after the epilogue; NULL, or the top left pixel */
    size_t residual_row, residual_pixel;
    bool pool2; /* 2x2 maximum, an odd last row or column is dropped: out gets h / 2 x w / 2 pixels */
    bool
        stream; /* the output is larger than the caches: whole vectors go past them. `out` and its strides in whole cache lines */
    float *out;
    size_t out_row, out_pixel;
} theo_winograd_output;

typedef struct theo_winograd_kernels {
    void (*input)(const theo_winograd_input *tile);
    void (*output)(const theo_winograd_output *run); /* nr is that of the level's GEMM */
} theo_winograd_kernels;

extern const theo_winograd_kernels theo_winograd_c, theo_winograd_avx2, theo_winograd_avx512,
    theo_winograd_neon; /* those compiled in */

/* Floats of the packed weights: [ceil(out / nr)][36] B panels of [in rounded up to 16][nr]. */
size_t theo_winograd_packed_floats(int nr, int out_c, int in_c);
/* weight OIHW [out_c, in_c, 3, 3]. */
void theo_winograd_pack_weight(int nr, int out_c, int in_c, const float *weight, float *panels);

#endif
