/* dump_depth.c - the network's outputs of theo depth. */
#include "dump.h"
#include <stdio.h>
#include <string.h>

enum { PATCH = 14 };

static void add(network_tensors *tensors, const char *name, const float *data, int rank, int64_t d0, int64_t d1, int64_t d2) {
    if (data)
        tensors->arrays[tensors->count++] =
            (theo_array){.name = name, .dtype = THEO_DTYPE_F32, .rank = rank, .shape = {d0, d1, d2}, .data = data};
}

theo_status network_tensors_depth(network_tensors *tensors, theo_session *session, const theo_geometry_input *input,
                                  theo_error *err) {
    memset(tensors, 0, sizeof *tensors);
    theo_status status =
        theo_geometry_raw(session, input->planes, input->rows, input->columns, input->aspect, &tensors->geometry, err);
    if (status)
        return status;
    const theo_geometry_maps *maps = tensors->geometry;
    add(tensors, "picture", input->planes, 3, 3, PATCH * input->rows, PATCH * input->columns);
    add(tensors, "points", maps->points, 3, 3, maps->height, maps->width);
    add(tensors, "normal", maps->normal, 3, 3, maps->height, maps->width);
    add(tensors, "mask", maps->mask, 3, 1, maps->height, maps->width);
    add(tensors, "metric_scale", &maps->metric_scale, 1, 1, 0, 0);
    return THEO_OK;
}

static theo_status write_tensors(const char *path, const network_tensors *tensors, const char *image_path,
                                 const theo_image *image, const theo_geometry_options *options, const theo_geometry_input *input,
                                 const engine *opened, theo_error *err) {
    static const char *const fits[] = {"native", "pad", "stretch"};
    char program[64], tokens[32], level[32], aspect[40];
    snprintf(program, sizeof program, "theo %s", theo_version());
    snprintf(tokens, sizeof tokens, "%d", options->tokens);
    snprintf(level, sizeof level, "%.17g", options->resolution_level);
    snprintf(aspect, sizeof aspect, "%.17g", input->aspect);
    const char *const keys[] = {"program",     "command", "model",  "precision",        "isa",   "image",
                                "orientation", "fit",     "tokens", "resolution-level", "aspect"};
    const char *const values[] = {program,
                                  "depth",
                                  opened->info.name,
                                  opened->info.precision,
                                  opened->info.isa,
                                  image_path,
                                  image->orientation_applied ? "apply" : "ignore",
                                  fits[options->fit],
                                  tokens,
                                  level,
                                  aspect};
    return theo_safetensors_write(path, tensors->arrays, tensors->count, keys, values, (int)(sizeof keys / sizeof *keys), err);
}

theo_status dump_write_depth(const char *path, const char *image_path, const theo_image *image,
                             const theo_geometry_options *options, theo_session *session, const engine *opened, theo_error *err) {
    theo_geometry_input input;
    network_tensors tensors;
    theo_status status = theo_geometry_planes(opened->model, image, options, &input, err);
    if (status)
        return status;
    status = network_tensors_depth(&tensors, session, &input, err);
    if (!status)
        status = write_tensors(path, &tensors, image_path, image, options, &input, opened, err);
    network_tensors_free(&tensors);
    theo_buffer_free(input.planes);
    return status;
}
