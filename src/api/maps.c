/* maps.c - the network's own outputs, and the plane that it reads. */
#include "api/detect.h"
#include "api/options.h"
#include "models/superpoint_input.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <theo/image.h>

/* NHWC -> NCHW in blocks of cells, so that both sides stay in the cache. */
typedef struct transposition {
    float *out;
    const float *in;
    int cells, channels, pitch;
} transposition;

enum { BLOCK = 16 };

static void transpose_channels(void *context, int task, int worker) {
    (void)worker;
    const transposition *t = context;
    int first = task * BLOCK, end = first + BLOCK < t->channels ? first + BLOCK : t->channels;
    for (int cell = 0; cell < t->cells; cell += BLOCK) {
        int last = cell + BLOCK < t->cells ? cell + BLOCK : t->cells;
        for (int c = first; c < end; c++)
            for (int i = cell; i < last; i++)
                t->out[(size_t)c * (size_t)t->cells + (size_t)i] = t->in[(size_t)i * (size_t)t->pitch + (size_t)c];
    }
}

static void transpose(theo_pool *pool, float *out, const float *in, int pitch, int cells, int channels) {
    transposition t = {out, in, cells, channels, pitch};
    theo_pool_run(pool, (channels + BLOCK - 1) / BLOCK, transpose_channels, &t);
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
    THEO_TRY(theo_superpoint_forward(s->runner, plane, width, height, parts, &out, err));

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
            transpose(s->model->pool, made[i], all[i].from, all[i].pitch, (int)cells, (int)all[i].channels);
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
                                .timing = theo_superpoint_timing(s->runner)};
    *maps = m;
    return THEO_OK;
}

theo_status theo_detect_raw(theo_session *session, const float *plane, int width, int height, unsigned wanted,
                            theo_superpoint_maps **maps, theo_error *err) {
    if (!maps || !plane)
        return theo_fail(err, THEO_ARGUMENT, NULL, maps ? "plane" : "maps", "is NULL");
    *maps = NULL;
    if (!wanted || wanted & ~(unsigned)THEO_MAP_ALL)
        return theo_fail(err, THEO_ARGUMENT, NULL, "wanted", "%u names no known map: allowed are THEO_MAP_* ored together",
                         wanted);
    if (width < THEO_SUPERPOINT_MIN_SIDE || height < THEO_SUPERPOINT_MIN_SIDE || (int64_t)width * height > 1 << 28)
        return theo_fail(err, THEO_ARGUMENT, NULL, "plane", "%dx%d is out of range: allowed is 8x8 to %d pixels in all", width,
                         height, 1 << 28);
    for (size_t i = 0; i < (size_t)width * (size_t)height; i++)
        if (!isfinite(plane[i]))
            return theo_fail(err, THEO_ARGUMENT, NULL, "plane", "pixel (%zu, %zu) is not finite", i % (size_t)width,
                             i / (size_t)width);
    THEO_TRY(theo_session_enter(session, err));
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
