#include "dump.h"
#include <stdio.h>
#include <string.h>
#include <theo/image.h>

theo_status network_tensors_pair(network_tensors *tensors, theo_session *session, const theo_pair_planes views[2],
                                 theo_error *err) {
    static const char *const names[2][4] = {{"image1", "raw1", "pts3d1", "conf1"}, {"image2", "raw2", "pts3d2", "conf2"}};
    memset(tensors, 0, sizeof *tensors);
    theo_status status = theo_reconstruct_raw(session, views, &tensors->pair, err);
    for (int v = 0; v < 2 && !status; v++) {
        const int64_t h = views[v].height, w = views[v].width;
        const theo_array made[] = {
            {.name = names[v][0], .rank = 3, .shape = {3, h, w}, .data = views[v].planes},
            {.name = names[v][1], .rank = 3, .shape = {4, h, w}, .data = tensors->pair->views[v].raw},
            {.name = names[v][2], .rank = 3, .shape = {h, w, 3}, .data = tensors->pair->views[v].points},
            {.name = names[v][3], .rank = 2, .shape = {h, w}, .data = tensors->pair->views[v].confidence},
        };
        for (int i = 0; i < 4; i++) {
            tensors->arrays[tensors->count] = made[i];
            tensors->arrays[tensors->count++].dtype = THEO_DTYPE_F32;
        }
    }
    return status;
}

theo_status dump_planes(theo_pair_planes views[2], const dump_photo photos[2], const theo_pair_options *options,
                        const engine *opened, theo_error *err) {
    theo_status status = THEO_OK;
    memset(views, 0, 2 * sizeof *views);
    for (int v = 0; v < 2 && !status; v++) {
        float *planes = NULL;
        status = theo_pair_plane(opened->model, photos[v].image, options, &planes, &views[v].width, &views[v].height, err);
        views[v].planes = planes;
    }
    return status;
}

void dump_planes_free(theo_pair_planes views[2]) {
    for (int v = 0; v < 2; v++)
        theo_buffer_free((void *)(uintptr_t)views[v].planes);
}

theo_status dump_write_pair(const char *path, const dump_photo photos[2], const theo_pair_options *options, theo_session *session,
                            const engine *opened, theo_error *err) {
    static const char *const modes[] = {"pad", "crop", "native"};
    theo_pair_planes views[2];
    network_tensors tensors = {.count = 0};
    char program[64];
    snprintf(program, sizeof program, "theo %s", theo_version());
    const struct {
        const char *key, *value;
    } facts[] = {
        {"program", program},
        {"command", "pair"},
        {"model", opened->info.name},
        {"precision", opened->info.precision},
        {"isa", opened->info.isa},
        {"image1", photos[0].path},
        {"image2", photos[1].path},
        {"orientation", photos[0].image->orientation_applied ? "apply" : "ignore"},
        {"preprocess", modes[options->preprocess]},
        {"square-ok", options->square_ok ? "true" : "false"},
    };
    enum { FACTS = sizeof facts / sizeof *facts };
    const char *keys[FACTS], *values[FACTS];
    for (int i = 0; i < FACTS; i++) {
        keys[i] = facts[i].key;
        values[i] = facts[i].value;
    }
    theo_status status = dump_planes(views, photos, options, opened, err);
    if (!status)
        status = network_tensors_pair(&tensors, session, views, err);
    if (!status)
        status = theo_safetensors_write(path, tensors.arrays, tensors.count, keys, values, FACTS, err);
    network_tensors_free(&tensors);
    dump_planes_free(views);
    return status;
}
