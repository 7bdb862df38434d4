/* glb.h - what a GLB file consists of, between its writer (glb.c) and the JSON that describes it (glb_json.c). */
#ifndef THEO_FORMATS_GLB_H
#define THEO_FORMATS_GLB_H

#include "formats/text.h"

#include <theo/export.h>

typedef enum theo_glb_mode { THEO_GLB_POINTS = 0, THEO_GLB_LINES = 1, THEO_GLB_TRIANGLES = 4 } theo_glb_mode; /* glTF's numbers */

/* One primitive: a part of the scene, or the pyramids of all cameras. */
typedef struct theo_glb_primitive {
    theo_glb_mode mode;
    const char *name;
    theo_vertices vertices;
    const int32_t *indices;
    int64_t index_count;
    const theo_glb_part *textured; /* NULL without texture */
    float low[3], high[3];         /* bounds of the transformed positions */
} theo_glb_primitive;

typedef enum theo_glb_content {
    THEO_GLB_POSITION,
    THEO_GLB_NORMAL,
    THEO_GLB_TEXCOORD,
    THEO_GLB_COLOR,
    THEO_GLB_INDICES,
    THEO_GLB_IMAGE
} theo_glb_content;

/* A run of the binary chunk: a buffer view, and, but for images, an accessor of the same number. */
typedef struct theo_glb_section {
    theo_glb_content content;
    int primitive;
    int64_t records;
    size_t record_bytes;
    uint64_t offset; /* in the binary chunk; a multiple of 4 */
} theo_glb_section;

typedef struct theo_glb_layout {
    const theo_glb_scene *scene;
    double transform[12]; /* the upper three rows */
    theo_glb_primitive *primitives;
    int primitive_count;
    theo_glb_section *sections; /* images last */
    int section_count;
    uint64_t bytes; /* of the binary chunk */
} theo_glb_layout;

/* The section of that content of a primitive, or -1. */
int theo_glb_find(const theo_glb_layout *layout, int primitive, theo_glb_content content);
/* Number of images in front of section `index`, which is the number of that image. */
int theo_glb_image_number(const theo_glb_layout *layout, int index);
/* "image/jpeg" or "image/png" by the first bytes, or NULL. */
const char *theo_glb_media_type(const void *data, size_t bytes);

void theo_glb_json(theo_text *text, const theo_glb_layout *layout);

#endif
