/* glb_json.c - the JSON chunk of a GLB file (glTF 2.0, sections in the comments are its). */
#include "formats/glb.h"

#include <math.h>

/* What each content is to an accessor (3.6.2.2). */
typedef struct content_facts {
    const char *attribute, *type;
    int component;
    bool is_normalised;
    int target;
} content_facts;

enum { UNSIGNED_SHORT = 5123, UNSIGNED_INT = 5125, FLOAT = 5126, ARRAY_BUFFER = 34962, ELEMENT_ARRAY_BUFFER = 34963 };

static const content_facts facts[] = {
    [THEO_GLB_POSITION] = {"POSITION", "VEC3", FLOAT, false, ARRAY_BUFFER},
    [THEO_GLB_NORMAL] = {"NORMAL", "VEC3", FLOAT, false, ARRAY_BUFFER},
    [THEO_GLB_TEXCOORD] = {"TEXCOORD_0", "VEC2", FLOAT, false, ARRAY_BUFFER},
    [THEO_GLB_COLOR] = {"COLOR_0", "VEC4", UNSIGNED_SHORT, true, ARRAY_BUFFER},
    [THEO_GLB_INDICES] = {NULL, "SCALAR", UNSIGNED_INT, false, ELEMENT_ARRAY_BUFFER},
};

static void add_numbers(theo_text *text, const double *values, int count) {
    for (int i = 0; i < count; i++) {
        theo_text_printf(text, "%s", i ? "," : "[");
        theo_text_add_json_number(text, values[i]);
    }
    theo_text_printf(text, "]");
}

static void add_floats(theo_text *text, const char *name, const float values[3]) {
    const double wide[3] = {(double)values[0], (double)values[1], (double)values[2]};
    theo_text_printf(text, ",\"%s\":", name);
    add_numbers(text, wide, 3);
}

/* Opens "name":[ in the first round of a list, goes on with a comma in the others. */
static void next_of_list(theo_text *text, const char *name, int index) {
    if (index == 0)
        theo_text_printf(text, ",\"%s\":[", name);
    else
        theo_text_printf(text, ",");
}

static void end_list(theo_text *text, int count) {
    if (count)
        theo_text_printf(text, "]");
}

/* ---------------------------------------------------------------- the scene: nodes, cameras, meshes */

/* Column-major (3.5.2), of the matrix transform * camera_to_world * diag(1,-1,-1,1): glTF's cameras look along -z, y upwards. */
static void add_camera_matrix(theo_text *text, const double transform[12], const double camera[16]) {
    static const double sign[4] = {1, -1, -1, 1};
    double columns[16] = {0};
    for (int column = 0; column < 4; column++)
        for (int row = 0; row < 3; row++) {
            double sum = column == 3 ? transform[4 * row + 3] : 0;
            for (int k = 0; k < 3; k++)
                sum += transform[4 * row + k] * camera[4 * k + column];
            columns[4 * column + row] = sign[column] * sum;
        }
    columns[15] = 1;
    theo_text_printf(text, ",\"matrix\":");
    add_numbers(text, columns, 16);
}

static void add_nodes(theo_text *text, const theo_glb_layout *l) {
    const int nodes = l->primitive_count + l->scene->camera_count;
    for (int i = 0; i < l->primitive_count; i++) {
        next_of_list(text, "nodes", i);
        theo_text_printf(text, "{\"mesh\":%d,\"name\":", i);
        theo_text_add_json_string(text, l->primitives[i].name);
        theo_text_printf(text, "}");
    }
    for (int i = 0; i < l->scene->camera_count; i++) {
        next_of_list(text, "nodes", l->primitive_count + i);
        theo_text_printf(text, "{\"camera\":%d,\"name\":\"camera %d\"", i, i + 1);
        add_camera_matrix(text, l->transform, l->scene->cameras[i].camera_to_world);
        theo_text_printf(text, "}");
    }
    end_list(text, nodes);
    for (int i = 0; i < l->scene->camera_count; i++) {
        const theo_glb_camera *c = &l->scene->cameras[i];
        next_of_list(text, "cameras", i);
        theo_text_printf(text, "{\"type\":\"perspective\",\"perspective\":{\"znear\":0.001,\"aspectRatio\":");
        theo_text_add_json_number(text, (double)c->width / c->height);
        theo_text_printf(text, ",\"yfov\":");
        theo_text_add_json_number(text, 2 * atan(c->height / (2 * c->focal)));
        theo_text_printf(text, "}}");
    }
    end_list(text, l->scene->camera_count);
}

/* A material for every primitive that has a look of its own: normals and nothing else take glTF's default. */
static int material_of(const theo_glb_layout *l, int primitive) {
    int number = -1;
    for (int i = 0; i <= primitive; i++)
        number += l->primitives[i].textured || l->primitives[i].vertices.colors;
    return l->primitives[primitive].textured || l->primitives[primitive].vertices.colors ? number : -1;
}

static void add_primitive(theo_text *text, const theo_glb_layout *l, int primitive) {
    const theo_glb_primitive *p = &l->primitives[primitive];
    theo_text_printf(text, "{\"name\":");
    theo_text_add_json_string(text, p->name);
    theo_text_printf(text, ",\"primitives\":[{\"mode\":%d,\"attributes\":{", (int)p->mode);
    bool first = true;
    for (int content = 0; content < THEO_GLB_INDICES; content++) {
        const int section = theo_glb_find(l, primitive, (theo_glb_content)content);
        if (section < 0)
            continue;
        theo_text_printf(text, "%s\"%s\":%d", first ? "" : ",", facts[content].attribute, section);
        first = false;
    }
    theo_text_printf(text, "}");
    const int indices = theo_glb_find(l, primitive, THEO_GLB_INDICES), material = material_of(l, primitive);
    if (indices >= 0)
        theo_text_printf(text, ",\"indices\":%d", indices);
    if (material >= 0)
        theo_text_printf(text, ",\"material\":%d", material);
    theo_text_printf(text, "}]}");
}

static void add_meshes(theo_text *text, const theo_glb_layout *l) {
    for (int i = 0; i < l->primitive_count; i++) {
        next_of_list(text, "meshes", i);
        add_primitive(text, l, i);
    }
    end_list(text, l->primitive_count);
}

/* ---------------------------------------------------------------- looks */

/* Photos hold light already: their colours on vertices are shown as they are. */
static void add_materials(theo_text *text, const theo_glb_layout *l) {
    int count = 0;
    bool unlit = false;
    for (int i = 0; i < l->primitive_count; i++) {
        if (material_of(l, i) < 0)
            continue;
        next_of_list(text, "materials", count++);
        if (l->primitives[i].textured) {
            const int image = theo_glb_image_number(l, theo_glb_find(l, i, THEO_GLB_IMAGE));
            theo_text_printf(text,
                             "{\"pbrMetallicRoughness\":{\"baseColorTexture\":{\"index\":%d},\"metallicFactor\":0.5,"
                             "\"roughnessFactor\":1}}",
                             image);
        } else {
            unlit = true;
            theo_text_printf(text, "{\"pbrMetallicRoughness\":{\"metallicFactor\":0,\"roughnessFactor\":1},"
                                   "\"extensions\":{\"KHR_materials_unlit\":{}}}");
        }
    }
    end_list(text, count);
    if (unlit)
        theo_text_printf(text, ",\"extensionsUsed\":[\"KHR_materials_unlit\"]");
}

static void add_textures(theo_text *text, const theo_glb_layout *l) {
    int count = 0;
    for (int i = 0; i < l->section_count; i++) {
        if (l->sections[i].content != THEO_GLB_IMAGE)
            continue;
        const theo_glb_part *part = l->primitives[l->sections[i].primitive].textured;
        next_of_list(text, "images", count++);
        theo_text_printf(text, "{\"bufferView\":%d,\"mimeType\":\"%s\"}", i,
                         theo_glb_media_type(part->texture, part->texture_bytes));
    }
    end_list(text, count);
    for (int i = 0; i < count; i++) {
        next_of_list(text, "textures", i);
        theo_text_printf(text, "{\"sampler\":0,\"source\":%d}", i);
    }
    end_list(text, count);
    if (count) /* linear with mipmaps, clamped to the edge */
        theo_text_printf(text, ",\"samplers\":[{\"magFilter\":9729,\"minFilter\":9987,\"wrapS\":33071,\"wrapT\":33071}]");
}

/* ---------------------------------------------------------------- numbers */

static void add_accessors(theo_text *text, const theo_glb_layout *l) {
    int count = 0;
    for (int i = 0; i < l->section_count; i++) {
        const theo_glb_section *s = &l->sections[i];
        const content_facts *f = &facts[s->content];
        if (s->content == THEO_GLB_IMAGE)
            continue;
        next_of_list(text, "accessors", count++);
        theo_text_printf(text, "{\"bufferView\":%d,\"componentType\":%d,\"count\":%lld,\"type\":\"%s\"", i, f->component,
                         (long long)s->records, f->type);
        if (f->is_normalised)
            theo_text_printf(text, ",\"normalized\":true");
        if (s->content == THEO_GLB_POSITION) {
            add_floats(text, "min", l->primitives[s->primitive].low);
            add_floats(text, "max", l->primitives[s->primitive].high);
        }
        theo_text_printf(text, "}");
    }
    end_list(text, count);
}

static void add_buffers(theo_text *text, const theo_glb_layout *l) {
    for (int i = 0; i < l->section_count; i++) {
        const theo_glb_section *s = &l->sections[i];
        next_of_list(text, "bufferViews", i);
        theo_text_printf(text, "{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu", (unsigned long long)s->offset,
                         (unsigned long long)s->records * s->record_bytes);
        if (s->content != THEO_GLB_IMAGE)
            theo_text_printf(text, ",\"target\":%d", facts[s->content].target);
        theo_text_printf(text, "}");
    }
    end_list(text, l->section_count);
    if (l->section_count)
        theo_text_printf(text, ",\"buffers\":[{\"byteLength\":%llu}]", (unsigned long long)l->bytes);
}

void theo_glb_json(theo_text *text, const theo_glb_layout *l) {
    const int nodes = l->primitive_count + l->scene->camera_count;
    theo_text_printf(text, "{\"asset\":{\"version\":\"2.0\",\"generator\":\"Theodolite %d.%d.%d\"},\"scene\":0,\"scenes\":[{",
                     THEO_VERSION_MAJOR, THEO_VERSION_MINOR, THEO_VERSION_PATCH);
    for (int i = 0; i < nodes; i++)
        theo_text_printf(text, "%s%d", i ? "," : "\"nodes\":[", i);
    theo_text_printf(text, nodes ? "]}]" : "}]");
    add_nodes(text, l);
    add_meshes(text, l);
    add_materials(text, l);
    add_textures(text, l);
    add_accessors(text, l);
    add_buffers(text, l);
    theo_text_printf(text, "}");
}
