/* stages_resampling.c - the library's resampling functions one by one, for run.py. See stages.c. */
#include "base/cpu.h"
#include "base/error.h"
#include "geometry/focal.h"
#include "geometry/view_plane.h"
#include "imageio/antialias.h"
#include "kernels/kernels.h"
#include "models/vit.h"
#include <string.h>

#define STAGE THEO_API

STAGE void stage_bilinear(const float *in, const int *from, const int *to, int channels, float *out);
STAGE theo_status stage_antialias(const float *in, const int *from, const int *to, int is_bicubic, float *out, theo_error *err);
STAGE theo_status stage_upsample2(const float *in, const int *from, int channels, float *out, theo_error *err);
STAGE void stage_nearest(int in, int out, int32_t *index);
STAGE void stage_positions(const float *table, int side, int channels, int rows, int columns, float *out);
STAGE void stage_view_plane(double aspect, int height, int width, float *out);

/* Sizes are height, width. in [from, channels] -> out [to, channels]: the kernel of the level in use. */
void stage_bilinear(const float *in, const int *from, const int *to, int channels, float *out) {
    theo_resize r = {
        .in = in,
        .in_h = from[0],
        .in_w = from[1],
        .channels = channels,
        .in_row = (size_t)(from[1] * channels),
        .in_pixel = (size_t)channels,
        .out = out,
        .out_h = to[0],
        .out_w = to[1],
        .out_row = (size_t)(to[1] * channels),
        .out_pixel = (size_t)channels,
        .y1 = to[0],
        .x1 = to[1],
    };
    theo_kernels_for(theo_cpu_level_in_use())->resize_bilinear(&r);
}

/* in [from, 3] -> out [to, 3] */
theo_status stage_antialias(const float *in, const int *from, const int *to, int is_bicubic, float *out, theo_error *err) {
    theo_image image = {
        .width = from[1], .height = from[0], .channels = 3, .type = THEO_F32, .pixels = (void *)(uintptr_t)(const void *)in};
    theo_antialias antialias;
    THEO_TRY(theo_antialias_open(&antialias, &image, false, to[1], to[0],
                                 is_bicubic ? THEO_ANTIALIAS_BICUBIC : THEO_ANTIALIAS_BILINEAR, err));
    float *workspace = theo_alloc(theo_antialias_floats(&antialias), sizeof *workspace);
    for (int y = 0; workspace && y < to[0]; y++)
        theo_antialias_row(&antialias, y, workspace, out + (size_t)y * (size_t)to[1] * 3);
    theo_antialias_close(&antialias);
    theo_free(workspace);
    return workspace ? THEO_OK : theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory");
}

/* Enlarging as networks do it, within the convolution that follows: here one that passes every channel on. */
static theo_status run_upsample2(const theo_packed *identity, const float *in, const int *from, int channels, float *out,
                                 theo_error *err) {
    theo_plan *plan;
    THEO_TRY(theo_plan_new(&plan, theo_cpu_level_in_use(), NULL, err));
    theo_tensor x = theo_plan_input(plan, "map", from[0], from[1], channels);
    theo_tensor y = theo_plan_upsample2_conv(plan, "enlarged", x, identity, theo_epilogue_none());
    theo_plan_output(plan, y);
    theo_status status = theo_plan_finish(plan, err);
    void *memory = status ? NULL : theo_alloc_aligned(theo_plan_memory_bytes(plan));
    if (!status && !memory)
        status = theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory");
    if (!status) {
        int pitch;
        theo_plan_bind(plan, memory);
        float *map = theo_plan_data(plan, x, &pitch);
        for (size_t i = 0; i < (size_t)(from[0] * from[1]); i++)
            memcpy(map + i * (size_t)pitch, in + i * (size_t)channels, (size_t)channels * sizeof(float));
        status = theo_plan_run(plan, NULL, NULL, err);
        map = theo_plan_data(plan, y, &pitch);
        for (size_t i = 0; !status && i < (size_t)(4 * from[0] * from[1]); i++)
            memcpy(out + i * (size_t)channels, map + i * (size_t)pitch, (size_t)channels * sizeof(float));
    }
    theo_free_aligned(memory);
    theo_plan_free(plan);
    return status;
}

theo_status stage_upsample2(const float *in, const int *from, int channels, float *out, theo_error *err) {
    float *weight = theo_alloc((size_t)(channels * channels), 9 * sizeof *weight);
    if (!weight)
        return theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory");
    for (int c = 0; c < channels; c++)
        weight[9 * (c * channels + c) + 4] = 1; /* the middle of 3x3 */
    theo_packed *identity;
    theo_status status = theo_packed_upsample2_conv(&identity, theo_cpu_level_in_use(), channels, channels, weight, NULL, err);
    theo_free(weight);
    if (status)
        return status;
    status = run_upsample2(identity, in, from, channels, out, err);
    theo_packed_free(identity);
    return status;
}

void stage_nearest(int in, int out, int32_t *index) {
    for (int i = 0; i < out; i++)
        index[i] = theo_nearest_index(i, in, out);
}

/* table [1 + side * side, channels], the class token's first -> out [1 + rows * columns, channels]; nothing else is added. */
void stage_positions(const float *table, int side, int channels, int rows, int columns, float *out) {
    float zeros[16] = {0};
    theo_vit vit = {.width = channels,
                    .table = side,
                    .cls = zeros,
                    .embed_bias = zeros,
                    .positions = (float *)(uintptr_t)(const void *)table};
    theo_vit_positions(&vit, rows, columns, out, (size_t)channels);
}

void stage_view_plane(double aspect, int height, int width, float *out) {
    theo_view_plane plane = theo_view_plane_of(aspect);
    theo_view_plane_fill(&plane, height, width, out, 2);
}
