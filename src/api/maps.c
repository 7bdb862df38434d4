/* maps.c - the network's own outputs, and the plane that it reads. */
#include "api/detect.h"
#include "api/options.h"
#include "base/finite.h"
#include "kernels/kernels.h"
#include "models/superpoint_input.h"
#include <stdlib.h>
#include <string.h>
#include <theo/image.h>

/* NHWC -> NCHW. A task takes some channels of all cells: it writes as many streams, each from front to back, which is twice as
 * fast as blocks of cells, whose rows are a page apart. */
typedef struct transposition {
    const theo_kernels *kernels;
    float *out;
    const float *in;
    int cells, channels;
    size_t pitch;
} transposition;

enum { STREAMS = 16 };

static void transpose_streams(void *context, int task, int worker) {
    (void)worker;
    const transposition *t = context;
    int first = task * STREAMS, count = t->channels - first < STREAMS ? t->channels - first : STREAMS;
    t->kernels->transpose(t->in + first, t->pitch, t->cells, count, t->out + (size_t)first * (size_t)t->cells, (size_t)t->cells);
}

static void transpose(const theo_model *m, float *out, const float *in, int pitch, size_t cells, size_t channels) {
    transposition t = {theo_kernels_for(m->level), out, in, (int)cells, (int)channels, (size_t)pitch};
    theo_pool_run(m->pool, (t.channels + STREAMS - 1) / STREAMS, transpose_streams, &t);
}

static theo_status raw_entered(theo_session *s, const float *plane, int width, int height, unsigned wanted,
                               theo_superpoint_maps **maps, theo_error *err) {
    int dim = s->model->superpoint->descriptor_dim;
    if (!dim)
        wanted &= ~(unsigned)(THEO_MAP_DESCRIPTORS | THEO_MAP_RAW);
    unsigned parts = (wanted & (THEO_MAP_SCORES | THEO_MAP_LOGITS) ? THEO_SUPERPOINT_DETECTOR : 0u) |
                     (wanted & (THEO_MAP_DESCRIPTORS | THEO_MAP_RAW) ? THEO_SUPERPOINT_DESCRIPTOR : 0u);
    theo_superpoint_outputs out;
    if (!parts)
        return theo_fail(err, THEO_UNSUPPORTED, NULL, s->model->info.name,
                         "this model has no descriptor head, and no other map is wanted");
    THEO_TRY(theo_superpoint_forward(s->superpoint, plane, width, height, parts, &out, err));

    size_t cells = (size_t)out.cells_x * (size_t)out.cells_y;
    const struct {
        unsigned bit;
        size_t channels;
        const float *from;
        int pitch;
    } all[] = {{THEO_MAP_SCORES, 64, out.scores, 0},
               {THEO_MAP_LOGITS, THEO_SUPERPOINT_LOGITS, out.logits, out.logits_pitch},
               {THEO_MAP_DESCRIPTORS, (size_t)dim, out.descriptors, out.descriptors_pitch},
               {THEO_MAP_RAW, (size_t)dim, out.raw, out.raw_pitch}};
    size_t floats = 0;
    for (int i = 0; i < 4; i++)
        floats += wanted & all[i].bit ? all[i].channels * cells : 0;
    char *memory = theo_results_take(s->results, sizeof(theo_superpoint_maps) + floats * sizeof(float));
    if (!memory)
        return theo_fail(err, THEO_MEMORY, NULL, "maps", "out of memory for %zu numbers", floats);

    theo_superpoint_maps *m = (theo_superpoint_maps *)(void *)memory;
    float *next = (float *)(void *)(memory + sizeof *m), *made[4] = {NULL};
    for (int i = 0; i < 4; i++) {
        if (!(wanted & all[i].bit))
            continue;
        made[i] = next;
        next += all[i].channels * cells;
        if (all[i].bit == THEO_MAP_SCORES)
            memcpy(made[i], all[i].from, 64 * cells * sizeof(float));
        else
            transpose(s->model, made[i], all[i].from, all[i].pitch, cells, all[i].channels);
    }
    *m = (theo_superpoint_maps){.net_width = width,
                                .net_height = height,
                                .cells_x = out.cells_x,
                                .cells_y = out.cells_y,
                                .descriptor_dim = dim,
                                .scores = made[0],
                                .logits = made[1],
                                .descriptors = made[2],
                                .raw = made[3],
                                .timing = theo_superpoint_timing(s->superpoint)};
    *maps = m;
    return THEO_OK;
}

theo_status theo_detect_raw(theo_session *session, const float *plane, int width, int height, unsigned wanted,
                            theo_superpoint_maps **maps, theo_error *err) {
    if (maps)
        *maps = NULL;
    if (!maps || !plane)
        return theo_fail(err, THEO_ARGUMENT, NULL, maps ? "plane" : "maps", "is NULL");
    if (!wanted || wanted & ~(unsigned)THEO_MAP_ALL)
        return theo_fail(err, THEO_ARGUMENT, NULL, "wanted", "%u names no known map: allowed are THEO_MAP_* ored together",
                         wanted);
    if (width < THEO_SUPERPOINT_MIN_SIDE || height < THEO_SUPERPOINT_MIN_SIDE || (int64_t)width * height > 1 << 28)
        return theo_fail(err, THEO_ARGUMENT, NULL, "plane", "%dx%d is out of range: allowed is 8x8 to %d pixels in all", width,
                         height, 1 << 28);
    if (!theo_all_finite(plane, (size_t)width * (size_t)height))
        return theo_fail(err, THEO_ARGUMENT, NULL, "plane", "holds a number that is not finite");
    THEO_TRY(theo_session_enter_for(session, THEO_TASK_KEYPOINTS, err));
    theo_status status = raw_entered(session, plane, width, height, wanted, maps, err);
    theo_session_leave(session);
    return status;
}

void theo_superpoint_maps_free(theo_superpoint_maps *maps) {
    theo_results_give(maps);
}

theo_status theo_detect_plane(const theo_image *image, const theo_detect_options *options, float **plane, int *width, int *height,
                              theo_error *err) {
    if (!plane || !width || !height)
        return theo_fail(err, THEO_ARGUMENT, NULL, "plane", "plane, width and height must be given");
    *plane = NULL;
    theo_detect_options o;
    theo_detect_options_init(&o);
    THEO_TRY(theo_options_take(&o, sizeof o, options, "theo_detect_options", err));
    THEO_TRY(theo_detect_options_check(&o, err));
    theo_superpoint_input input = {0};
    theo_status status = theo_superpoint_input_set(&input, image, &o, err);
    if (!status) {
        *plane = theo_alloc((size_t)input.width * (size_t)input.height, sizeof(float));
        if (*plane)
            theo_superpoint_input_fill(&input, 0, 0, *width = input.width, *height = input.height, *plane, 1);
        else
            status = theo_fail(err, THEO_MEMORY, NULL, "plane", "out of memory for %dx%d numbers", input.width, input.height);
    }
    theo_superpoint_input_free(&input);
    return status;
}
