#include "depth_files.h"

/* Everything that the files are made of. */
typedef struct source {
    output_files *files;
    const theo_geometry *geometry;
    const theo_image *photo;
    const depth_facts *facts;
    const depth_wishes *wishes;
    theo_error *err;
} source;

/* ---- pictures */

/* Writes a picture that a library call has made, and frees it. */
static theo_status save(const source *s, theo_status made, theo_image *picture, const char *ending) {
    theo_status status = made ? made : output_png(s->files, ending, picture, s->err);
    theo_image_free(picture);
    return status;
}

/* Metres are value * scale; 0 is invalid. The scale stands in a text chunk. */
static theo_status write_depth(const source *s) {
    theo_image *picture;
    theo_status status = theo_picture_depth(&picture, &s->facts->map, NULL, s->files->pool, s->err);
    if (status)
        return status;
    const char *path = output_path(s->files, "depth.png", s->err);
    json_out scale = {0};
    json_double(&scale, s->facts->png_scale);
    status = path
                 ? theo_image_save_png(picture, path, &(theo_png_text){"theo:depth_scale", scale.text}, 1, s->files->pool, s->err)
                 : s->err->status;
    json_free(&scale);
    theo_image_free(picture);
    return status;
}

static theo_status write_pictures(const source *s) {
    const theo_geometry *g = s->geometry;
    theo_pool *pool = s->files->pool;
    theo_image *picture;
    theo_status status = write_depth(s);
    if (status)
        return status;
    status = theo_picture_disparity(&picture, &s->facts->map, NULL, NULL, pool, s->err);
    status = save(s, status, picture, "depth_vis.png");
    if (!status && g->normal) {
        status = theo_picture_normal(&picture, g->normal, g->width, g->height, THEO_NORMAL_CAMERA, pool, s->err);
        status = save(s, status, picture, "normal.png");
    }
    if (status)
        return status;
    status = theo_picture_mask(&picture, g->mask, g->width, g->height, s->err);
    return save(s, status, picture, "mask.png");
}

/* ---- arrays */

static theo_status write_npz(const source *s) {
    const theo_geometry *g = s->geometry;
    const int64_t h = g->height, w = g->width;
    const theo_array arrays[] = {
        {.name = "points", .dtype = THEO_DTYPE_F32, .rank = 3, .shape = {h, w, 3}, .data = g->points},
        {.name = "depth", .dtype = THEO_DTYPE_F32, .rank = 2, .shape = {h, w}, .data = g->depth},
        {.name = "mask", .dtype = THEO_DTYPE_U8, .rank = 2, .shape = {h, w}, .data = g->mask},
        {.name = "intrinsics", .dtype = THEO_DTYPE_F32, .rank = 2, .shape = {3, 3}, .data = g->intrinsics},
        {.name = "intrinsics_pixels", .dtype = THEO_DTYPE_F32, .rank = 2, .shape = {3, 3}, .data = g->intrinsics_pixels},
        {.name = "metric_scale", .dtype = THEO_DTYPE_F32, .rank = 0, .data = &g->metric_scale},
        {.name = "normal", .dtype = THEO_DTYPE_F32, .rank = 3, .shape = {h, w, 3}, .data = g->normal},
    };
    return output_npz(s->files, "npz", arrays, g->normal ? 7 : 6, s->wishes->deflate, s->err);
}

static theo_status write_exr(const source *s) {
    const theo_geometry *g = s->geometry;
    const char *path = output_path(s->files, "depth.exr", s->err);
    theo_status status = path ? theo_exr_write(path, g->depth, g->width, g->height, 1, s->files->pool, s->err) : s->err->status;
    if (status)
        return status;
    path = output_path(s->files, "points.exr", s->err);
    return path ? theo_exr_write(path, g->points, g->width, g->height, 3, s->files->pool, s->err) : s->err->status;
}

/* ---- meshes */

static theo_vertices vertices_of(const source *s, const theo_mesh *mesh) {
    return (theo_vertices){
        .count = mesh->vertex_count, .rows = mesh->pixels, .positions = s->geometry->points, .normals = s->geometry->normal};
}

static bool is_plain_rgb(const theo_image *photo) {
    return photo->channels == 3 && photo->type == THEO_U8 &&
           (photo->row_bytes == 0 || photo->row_bytes == 3 * (size_t)photo->width);
}

/* In the camera's axes, coloured by the photo. */
static theo_status write_ply(const source *s, const theo_mesh *mesh) {
    const char *path = output_path(s->files, "ply", s->err);
    theo_image *colors = NULL;
    if (!path)
        return s->err->status;
    theo_status status = is_plain_rgb(s->photo) ? THEO_OK : theo_image_to_rgb(&colors, s->photo, s->err);
    if (status)
        return status;
    theo_vertices vertices = vertices_of(s, mesh);
    vertices.colors = colors ? theo_image_pixels(colors) : s->photo->pixels;
    status = theo_ply_write(path, &vertices, mesh->faces, NULL, s->wishes->ply_faces ? mesh->face_count : 0,
                            "camera axes: x to the right, y down, z forward", s->files->pool, s->err);
    theo_image_free(colors);
    return status;
}

/* In glTF's axes, with the photo for a texture. */
static theo_status write_glb(const source *s, const theo_mesh *mesh) {
    enum { TEXTURE_QUALITY = 95 };
    static const double to_gltf[16] = {1, 0, 0, 0, 0, -1, 0, 0, 0, 0, -1, 0, 0, 0, 0, 1};
    const char *path = output_path(s->files, "glb", s->err);
    void *texture;
    size_t texture_bytes;
    if (!path)
        return s->err->status;
    theo_status status = theo_image_encode_jpeg(s->photo, TEXTURE_QUALITY, &texture, &texture_bytes, s->err);
    if (status)
        return status;
    const theo_glb_part part = {
        .name = s->files->stem,
        .vertices = vertices_of(s, mesh),
        .faces = mesh->faces,
        .face_count = mesh->face_count,
        .texture = texture,
        .texture_bytes = texture_bytes,
        .texture_width = mesh->width,
        .texture_height = mesh->height,
    };
    status =
        theo_glb_write(path, &(theo_glb_scene){.parts = &part, .part_count = 1, .transform = to_gltf}, s->files->pool, s->err);
    theo_buffer_free(texture);
    return status;
}

static theo_status write_meshes(const source *s, bool *no_surface) {
    theo_mesh *mesh;
    theo_status status = theo_mesh_from_depth(&mesh, &s->facts->map, s->wishes->edge_threshold, s->files->pool, s->err);
    if (status)
        return status;
    *no_surface = mesh->vertex_count == 0;
    if (s->wishes->ply)
        status = write_ply(s, mesh);
    if (!status && s->wishes->glb)
        status = write_glb(s, mesh);
    theo_mesh_free(mesh);
    return status;
}

theo_status depth_write_files(output_files *files, const theo_geometry *geometry, const theo_image *photo,
                              const depth_facts *facts, const depth_wishes *wishes, bool *no_surface, theo_error *err) {
    const source s = {files, geometry, photo, facts, wishes, err};
    *no_surface = false;
    theo_status status = write_pictures(&s);
    if (!status)
        status = write_npz(&s);
    if (!status && (wishes->ply || wishes->glb))
        status = write_meshes(&s, no_surface);
    if (!status && wishes->exr)
        status = write_exr(&s);
    return status;
}
