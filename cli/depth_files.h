/* depth_files.h - the files that theo depth writes of one geometry. */
#ifndef THEO_CLI_DEPTH_FILES_H
#define THEO_CLI_DEPTH_FILES_H

#include "depth_result.h"
#include "outputs.h"

typedef struct depth_wishes {
    bool deflate, ply, ply_faces, glb, exr;
    float edge_threshold; /* of meshes and point files */
} depth_wishes;

/* stem.depth.png, stem.depth_vis.png, stem.normal.png (where there are normals), stem.mask.png, stem.npz, and as wished stem.ply,
 * stem.glb, stem.depth.exr, stem.points.exr. photo: the geometry's. *no_surface: meshes were wished, and none has a vertex. */
theo_status depth_write_files(output_files *files, const theo_geometry *geometry, const theo_image *photo,
                              const depth_facts *facts, const depth_wishes *wishes, bool *no_surface, theo_error *err);

#endif
