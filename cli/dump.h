/* dump.h - the network's own outputs as a safetensors file that says how they were made: written by `keypoints --dump`, compared
 * by `verify`. */
#ifndef THEO_CLI_DUMP_H
#define THEO_CLI_DUMP_H

#include "common.h"
#include <theo/files.h>

/* Input and outputs of one run. Names and shapes: plane [H, W], logits [65, Hc, Wc], scores [8 Hc, 8 Wc], and, where there is a
 * descriptor head, raw and descriptors [C, Hc, Wc]. */
typedef struct network_tensors {
    theo_superpoint_maps *maps;
    theo_array arrays[5];
    int count;
} network_tensors;

/* Runs the network on a plane, which must stay as long as the tensors. */
theo_status network_tensors_make(network_tensors *tensors, theo_session *session, const float *plane, int width, int height,
                                 theo_error *err);
void network_tensors_free(network_tensors *tensors);

/* Writes the tensors of `image` to `path`, with the options that shaped the plane as metadata. */
theo_status dump_write(const char *path, const char *image_path, const theo_image *image, const theo_detect_options *options,
                       theo_session *session, const theo_model_info *info, theo_error *err);

#endif
