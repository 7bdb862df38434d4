/* dump.h - the network's own outputs as a safetensors file that says how they were made: written by --dump of keypoints, depth
 * and pair, compared by verify. */
#ifndef THEO_CLI_DUMP_H
#define THEO_CLI_DUMP_H

#include "common.h"
#include <theo/depth.h>
#include <theo/files.h>
#include <theo/pair.h>

/* Input and outputs of one run. Names and shapes for keypoints: plane [H, W], logits [65, Hc, Wc], scores [8 Hc, 8 Wc], and,
 * where there is a descriptor head, raw and descriptors [C, Hc, Wc]. For depth: picture [3, 14 rows, 14 columns], points [3, h,
 * w], normal [3, h, w], mask [1, h, w] and metric_scale [1], those that the network has. For pairs, of each view: image1 [3, H,
 * W], raw1 [4, H, W], pts3d1 [H, W, 3] in the frame of view 1, conf1 [H, W]; image2 and so on. */
typedef struct network_tensors {
    theo_superpoint_maps *maps;
    theo_geometry_maps *geometry;
    theo_pair_raw *pair;
    theo_array arrays[8];
    int count;
} network_tensors;

/* Runs the network on a plane, which must stay as long as the tensors. */
theo_status network_tensors_make(network_tensors *tensors, theo_session *session, const float *plane, int width, int height,
                                 theo_error *err);
/* The same on a picture for depth. */
theo_status network_tensors_depth(network_tensors *tensors, theo_session *session, const theo_geometry_input *input,
                                  theo_error *err);
/* The same on two views of a pair. */
theo_status network_tensors_pair(network_tensors *tensors, theo_session *session, const theo_pair_planes views[2],
                                 theo_error *err);
void network_tensors_free(network_tensors *tensors);

/* Writes the tensors of `image` to `path`, with the options that shaped the plane as metadata. */
theo_status dump_write(const char *path, const char *image_path, const theo_image *image, const theo_detect_options *options,
                       theo_session *session, const theo_model_info *info, theo_error *err);

/* The same for depth. */
theo_status dump_write_depth(const char *path, const char *image_path, const theo_image *image,
                             const theo_geometry_options *options, theo_session *session, const engine *opened, theo_error *err);

/* ---- pairs */

/* A photo on the command line. */
typedef struct dump_photo {
    const char *path;
    const theo_image *image;
} dump_photo;

/* Planes of the photos, as the network reads them. Released by dump_planes_free, also after a failure. */
theo_status dump_planes(theo_pair_planes views[2], const dump_photo photos[2], const theo_pair_options *options,
                        const engine *opened, theo_error *err);
void dump_planes_free(theo_pair_planes views[2]);

/* As dump_write; photos[1] may be photos[0] again. */
theo_status dump_write_pair(const char *path, const dump_photo photos[2], const theo_pair_options *options, theo_session *session,
                            const engine *opened, theo_error *err);

#endif
