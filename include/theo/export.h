/* export.h - meshes and point clouds of results, pictures of their maps, and the files that hold them: PLY, GLB, EXR. See theo.h
 * for the rules that hold everywhere.
 *
 * `pool` is for the calls' inner loops and may be NULL: the calling thread alone. Bytes and numbers do not depend on it. Files
 * are written beside their final name and renamed at the end. */
#ifndef THEO_EXPORT_H
#define THEO_EXPORT_H

#include <theo/theo.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A depth map, and which of its pixels count: those where `valid` is not 0 (NULL: everywhere) whose depth is above 0 and finite.
 */
typedef struct theo_depth_map {
    int width, height;
    const float *depth;   /* [height, width] */
    const uint8_t *valid; /* [height, width], or NULL */
} theo_depth_map;

/* Quantiles (0 smallest, 0.5 median, 1 largest; between two pixels linear) of the depths that count, into values[quantile_count];
 * NaN where none does. counted: number of pixels that count. */
THEO_API theo_status theo_depth_quantiles(const theo_depth_map *map, const double *quantiles, int quantile_count, double *values,
                                          int64_t *counted, theo_pool *pool, theo_error *err);

/* ---------------------------------------------------------------- pictures of maps */

/* 16 bits: value = clamp(rint(depth / scale), 1, 65535) for pixels that count, 0 for others. scale (may be NULL): the largest
 * depth / 65535, or 0 where no pixel counts. */
THEO_API theo_status theo_picture_depth(theo_image **out, const theo_depth_map *map, double *scale, theo_pool *pool,
                                        theo_error *err);

typedef struct theo_disparity_options {
    size_t size;
    double low, high;     /* 0.001, 0.99: quantiles of the disparity 1/depth that become the ends of the colours */
    bool infinity_is_far; /* false; true as the program published with MoGe does: infinite depths count, as disparity 0 */
} theo_disparity_options;

THEO_API void theo_disparity_options_init(theo_disparity_options *options);

/* Disparity in the colours of "Spectral", near red, far blue; pixels that do not count are black. RGB, 8 bits. To look at: it
 * keeps no numbers. range (may be NULL): the two quantiles of the disparity. */
THEO_API theo_status theo_picture_disparity(theo_image **out, const theo_depth_map *map, const theo_disparity_options *options,
                                            double range[2], theo_pool *pool, theo_error *err);

/* The colours that theo_picture_disparity uses, from 0 to 1: table[256][3] R, G, B. The eleven colours of ColorBrewer's
 * "Spectral", linearly interpolated. */
THEO_API void theo_spectral_table(double table[256 * 3]);

typedef enum theo_normal_axes {
    THEO_NORMAL_CAMERA = 0, /* rint(255 (n/2 + 1/2)), R,G,B = x,y,z of the camera; a zero normal is 128, 128, 128 */
    THEO_NORMAL_PUBLISHED   /* as the program published with MoGe writes them: y and z turned, truncated instead of rounded */
} theo_normal_axes;

/* Unit normals [height, width, 3] as colours. RGB, 8 bits. */
THEO_API theo_status theo_picture_normal(theo_image **out, const float *normals, int width, int height, theo_normal_axes axes,
                                         theo_pool *pool, theo_error *err);

/* 255 where mask is not 0, else 0. One channel. */
THEO_API theo_status theo_picture_mask(theo_image **out, const uint8_t *mask, int width, int height, theo_error *err);

/* ---------------------------------------------------------------- meshes of maps */

/* Depth edges: edge = 1 for pixels that count where the largest less the smallest depth of the 3x3 pixels around (fewer at the
 * border) is more than `threshold` times their own, in float32. Pixels that do not count are infinitely far, so that their
 * neighbours are edges; they are none themselves. threshold: at least 0; INFINITY finds no edge. edge: [height, width]. */
THEO_API theo_status theo_depth_edges(const theo_depth_map *map, float threshold, uint8_t *edge, theo_pool *pool,
                                      theo_error *err);

/* Vertices are pixels; faces name three vertices, counter-clockwise as the camera sees them. */
typedef struct theo_mesh {
    int width, height; /* of the map */
    int64_t vertex_count;
    const int32_t *pixels; /* [vertex_count] pixel y width + x of each vertex, rising */
    int64_t face_count;
    const int32_t *faces; /* [face_count, 3] vertex numbers */
} theo_mesh;

/* The surface of a depth map: two triangles (top left, bottom left, bottom right; top left, bottom right, top right) for every
 * four pixels that count, touch and are no depth edges; the pixels of these triangles are the vertices. Neither may be left: that
 * is a mesh without vertices. Of the map at most 2^29 pixels. */
THEO_API theo_status theo_mesh_from_depth(theo_mesh **mesh, const theo_depth_map *map, float edge_threshold, theo_pool *pool,
                                          theo_error *err);

/* As DUSt3R's programs do: every pixel is a vertex; triangles (top left, top right, bottom left) and (top right, bottom left,
 * bottom right) whose three pixels are valid, each followed by itself seen from behind: all of the first kind, the same
 * backwards, all of the second kind, the same backwards. valid: [height, width], NULL = all. */
THEO_API theo_status theo_mesh_from_mask(theo_mesh **mesh, const uint8_t *valid, int width, int height, theo_error *err);

/* Leaves out the vertices that no face has, in place; faces keep their order. */
THEO_API theo_status theo_mesh_drop_unused(theo_mesh *mesh, theo_error *err);

/* Colours [face_count, 3] for flat faces: that of the pixel at the right angle. rgb: [height, width, 3] of the map. */
THEO_API void theo_mesh_face_colors(const theo_mesh *mesh, const uint8_t *rgb, uint8_t *colors);
THEO_API void theo_mesh_free(theo_mesh *mesh);

/* ---------------------------------------------------------------- PLY and GLB */

/* Vertices whose attributes are rows of larger arrays, such as maps. */
typedef struct theo_vertices {
    int64_t count;
    const int32_t *rows;    /* [count] which row belongs to each vertex (theo_mesh.pixels); NULL: vertex i has row i */
    const float *positions; /* [.., 3], finite where they are used */
    const float *normals;   /* [.., 3] of length 1, or NULL */
    const uint8_t *colors;  /* [.., 3] R,G,B (sRGB), or NULL */
} theo_vertices;

/* Binary little-endian PLY: x y z, then nx ny nz and red green blue where given, then faces (face_count 0: none) with their
 * colours [face_count, 3] where given. comment: a line for its header, may be NULL. */
THEO_API theo_status theo_ply_write(const char *path, const theo_vertices *vertices, const int32_t *faces,
                                    const uint8_t *face_colors, int64_t face_count, const char *comment, theo_pool *pool,
                                    theo_error *err);

/* One mesh, or point cloud, of a GLB file. */
typedef struct theo_glb_part {
    const char *name; /* may be NULL */
    theo_vertices vertices;
    const int32_t *faces; /* [face_count, 3]; face_count 0: points */
    int64_t face_count;
    /* A texture instead of colours: the bytes of a JPEG or PNG file. Vertex rows are then the pixels of a picture of that size,
     * and texture coordinates their centres. */
    const void *texture;
    size_t texture_bytes;
    int texture_width, texture_height;
} theo_glb_part;

/* A camera, shown by the edges of a pyramid from its centre to its picture. Looks along +z, x to the right, y downwards. */
typedef struct theo_glb_camera {
    double camera_to_world[16]; /* row-major [4, 4] */
    double focal;               /* in pixels */
    int width, height;          /* of the picture, in pixels */
    uint8_t color[3];
} theo_glb_camera;

typedef struct theo_glb_scene {
    const theo_glb_part *parts;
    int part_count;
    const theo_glb_camera *cameras;
    int camera_count;
    double camera_size; /* height of the pyramids' pictures in the unit of the scene; 0 = 0.05 */
    const double
        *transform; /* row-major [4, 4], rigid: into the file's axes (glTF: x to the right, y up, z backwards). NULL: none */
} theo_glb_scene;

/* glTF 2.0 binary. Textured parts have the material of a rough surface (metallic 0.5, roughness 1), coloured ones show their
 * colours unlit. Parts without vertices are left out; a scene without any part is a valid file that shows nothing. THEO_ARGUMENT
 * for positions that are not finite, THEO_BOUNDS for more than 4 GiB. */
THEO_API theo_status theo_glb_write(const char *path, const theo_glb_scene *scene, theo_pool *pool, theo_error *err);

/* The transform that DUSt3R's programs give their scenes, which begins with view 1: inv(camera_to_world diag(1,-1,-1,1) rotY(180
 * degrees)). Row-major. THEO_ARGUMENT where the matrix has no inverse. */
THEO_API theo_status theo_glb_transform_from_view(double transform[16], const double camera_to_world[16], theo_error *err);

/* ---------------------------------------------------------------- OpenEXR */

/* Can this build write EXR? (It was then built with OpenEXR's library.) */
THEO_API bool theo_exr_available(void);

/* A map [height, width, channels] of 32-bit floats, losslessly compressed: 1 channel named Y, or 3 named R, G, B. Values may be
 * infinite or NaN. THEO_UNSUPPORTED where this build cannot. */
THEO_API theo_status theo_exr_write(const char *path, const float *map, int width, int height, int channels, theo_pool *pool,
                                    theo_error *err);

#ifdef __cplusplus
}
#endif
#endif
