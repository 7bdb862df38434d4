#include "dump.h"
#include "message.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add(network_tensors *tensors, const char *name, const float *data, int rank, int64_t d0, int64_t d1, int64_t d2) {
    if (data)
        tensors->arrays[tensors->count++] =
            (theo_array){.name = name, .dtype = THEO_DTYPE_F32, .rank = rank, .shape = {d0, d1, d2}, .data = data};
}

theo_status network_tensors_make(network_tensors *tensors, theo_session *session, const float *plane, int width, int height,
                                 theo_error *err) {
    memset(tensors, 0, sizeof *tensors);
    theo_status status = theo_detect_raw(session, plane, width, height, THEO_MAP_ALL, &tensors->maps, err);
    if (status)
        return status;
    const theo_superpoint_maps *maps = tensors->maps;
    add(tensors, "plane", plane, 2, height, width, 0);
    add(tensors, "logits", maps->logits, 3, 65, maps->cells_y, maps->cells_x);
    add(tensors, "scores", maps->scores, 2, 8 * maps->cells_y, 8 * maps->cells_x, 0);
    add(tensors, "raw", maps->raw, 3, maps->descriptor_dim, maps->cells_y, maps->cells_x);
    add(tensors, "descriptors", maps->descriptors, 3, maps->descriptor_dim, maps->cells_y, maps->cells_x);
    return THEO_OK;
}

void network_tensors_free(network_tensors *tensors) {
    theo_superpoint_maps_free(tensors->maps);
    theo_geometry_maps_free(tensors->geometry);
    theo_pair_raw_free(tensors->pair);
    memset(tensors, 0, sizeof *tensors);
}

theo_status dump_write(const char *path, const char *image_path, const theo_image *image, const theo_detect_options *options,
                       theo_session *session, const theo_model_info *info, theo_error *err) {
    static const char *const gray_words[] = {"red", "rgb601", "luma"};
    float *plane;
    int width, height;
    theo_status status = theo_detect_plane(image, options, &plane, &width, &height, err);
    if (status)
        return status;
    network_tensors tensors;
    status = network_tensors_make(&tensors, session, plane, width, height, err);
    if (status) {
        theo_buffer_free(plane);
        return status;
    }

    char size[32], program[64];
    snprintf(size, sizeof size, "%dx%d", height, width);
    snprintf(program, sizeof program, "theo %s", theo_version());
    const char *const keys[] = {"program", "command", "model", "precision", "isa", "image", "orientation", "gray", "size"};
    const char *const values[] = {program,
                                  "keypoints",
                                  info->name,
                                  info->precision,
                                  info->isa,
                                  image_path,
                                  image->orientation_applied ? "apply" : "ignore",
                                  gray_words[options->gray],
                                  size};
    status = theo_safetensors_write(path, tensors.arrays, tensors.count, keys, values, (int)(sizeof keys / sizeof *keys), err);
    network_tensors_free(&tensors);
    theo_buffer_free(plane);
    return status;
}
