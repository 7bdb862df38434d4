#include "models/superpoint_synth.h"
#include "base/error.h"
#include "models/formula.h"
#include "models/superpoint_names.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct plan {
    const theo_superpoint_names *names;
    int encoder[4], decoder, descriptor_dim;
} plan;

typedef struct maker {
    theo_array *arrays;
    int count;
    theo_bump *memory;
    const theo_superpoint_names *names;
    bool failed; /* out of memory */
} maker;

/* What becomes of v by the part that a tensor plays. */
typedef enum role { WEIGHT, BIAS, GAMMA, BETA_OR_MEAN, VARIANCE } role;

static double value(role r, double v, double fan) {
    switch (r) {
    case WEIGHT:
        return v * 2.0 / sqrt(fan);
    case BIAS:
        return 0.05 * v;
    case GAMMA: /* of either sign: a pool must not change places with it */
        return (v < 0 ? -1.0 : 1.0) * (0.75 + 0.25 * fabs(v));
    case BETA_OR_MEAN:
        return 0.25 * v;
    case VARIANCE:
        break;
    }
    return 0.5 + 0.25 * v;
}

static void make(maker *m, const char *stem, const char *part, role r, int rank, const int64_t *shape) {
    char name[THEO_SP_NAME_BYTES];
    theo_superpoint_tensor_name(name, m->names, stem, part);
    theo_array *a = &m->arrays[m->count++];
    *a = (theo_array){.dtype = THEO_DTYPE_F32, .rank = rank};
    int64_t elements = 1, fan = 1;
    for (int i = 0; i < rank; i++) {
        a->shape[i] = shape[i];
        elements *= shape[i];
        fan *= i ? shape[i] : 1;
    }
    float *data = theo_bump_alloc(m->memory, (size_t)elements, sizeof(float));
    a->name = theo_bump_text(m->memory, name, strlen(name));
    a->data = data;
    if (!data || !a->name) {
        m->failed = true;
        return;
    }
    uint64_t seed = theo_formula_seed(name);
    for (int64_t i = 0; i < elements; i++)
        data[i] = (float)value(r, theo_formula_value(seed, (uint64_t)i), (double)fan);
}

static void make_layer(maker *m, theo_superpoint_layer layer, int out, int in, int kernel) {
    static const role norm_roles[THEO_SP_NORM_PARTS] = {GAMMA, BETA_OR_MEAN, BETA_OR_MEAN, VARIANCE};
    const theo_superpoint_stems *stems = &m->names->layers[layer];
    make(m, stems->conv, "weight", WEIGHT, 4, (int64_t[]){out, in, kernel, kernel});
    make(m, stems->conv, "bias", BIAS, 1, (int64_t[]){out});
    for (int i = 0; stems->norm && i < THEO_SP_NORM_PARTS; i++)
        make(m, stems->norm, theo_superpoint_norm_parts[i], norm_roles[i], 1, (int64_t[]){out});
}

/* ---------------------------------------------------------------- configuration */

static theo_status read_size(int *out, const theo_json *value, const char *key, int low, theo_error *err) {
    if (!value)
        return THEO_OK;
    if (value->type != THEO_JSON_NUMBER || !value->is_integer || value->integer < low || value->integer > 4096)
        return theo_fail(err, THEO_ARGUMENT, NULL, key, "must be a whole number from %d to 4096", low);
    *out = (int)value->integer;
    return THEO_OK;
}

static theo_status read_names(plan *p, const char *layout, theo_error *err) {
    for (int i = 0; i < THEO_SP_LAYOUTS; i++)
        if (!strcmp(theo_superpoint_layouts[i].layout, layout)) {
            p->names = &theo_superpoint_layouts[i];
            return THEO_OK;
        }
    return theo_fail(err, THEO_ARGUMENT, NULL, "names",
                     "\"%s\" is not known: allowed are original, hf, hf-prefixed, rpautrat, magicpoint", layout);
}

static theo_status check_keys(const theo_json *config, theo_error *err) {
    static const char *const keys[] = {"names", "encoder", "decoder", "descriptor_dim", "keypoint_dim"};
    for (const theo_json *member = config ? config->first : NULL; member; member = member->next) {
        bool known = false;
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            known = known || !strcmp(member->key, keys[i]);
        if (!known)
            return theo_fail(
                err, THEO_ARGUMENT, NULL, member->key,
                "is not known in a configuration: allowed are names, encoder, decoder, descriptor_dim, keypoint_dim");
    }
    return THEO_OK;
}

static theo_status read_config(plan *p, const char *layout, const theo_json *config, theo_error *err) {
    *p = (plan){.encoder = {64, 64, 128, 128}, .decoder = 256, .descriptor_dim = 256};
    const theo_json *names = theo_json_get(config, "names"), *encoder = theo_json_get(config, "encoder");
    if (config && config->type != THEO_JSON_OBJECT)
        return theo_fail(err, THEO_ARGUMENT, NULL, "config", "must be a JSON object");
    THEO_TRY(check_keys(config, err));
    if (names && names->type != THEO_JSON_STRING)
        return theo_fail(err, THEO_ARGUMENT, NULL, "names", "must be a string");
    THEO_TRY(read_names(p, names ? names->string : layout, err));
    if (encoder && (encoder->type != THEO_JSON_ARRAY || encoder->count != 4))
        return theo_fail(err, THEO_ARGUMENT, NULL, "encoder", "must be a list of four channel counts");
    for (int i = 0; i < 4; i++)
        THEO_TRY(read_size(&p->encoder[i], theo_json_at(encoder, i), "encoder", 1, err));
    THEO_TRY(read_size(&p->decoder, theo_json_get(config, "decoder"), "decoder", 1, err));
    THEO_TRY(read_size(&p->descriptor_dim, theo_json_get(config, "descriptor_dim"), "descriptor_dim", 0, err));
    int logits = THEO_SUPERPOINT_LOGITS;
    THEO_TRY(read_size(&logits, theo_json_get(config, "keypoint_dim"), "keypoint_dim", 1, err));
    if (logits != THEO_SUPERPOINT_LOGITS)
        return theo_fail(err, THEO_ARGUMENT, NULL, "keypoint_dim",
                         "%d is not possible: 65 is needed (8x8 pixels of a cell and the dustbin)", logits);
    if (!p->names->layers[THEO_SP_DA].conv)
        p->descriptor_dim = 0;
    return THEO_OK;
}

theo_status theo_superpoint_synthesize(theo_array **arrays, int *count, theo_bump *memory, const char *layout,
                                       const theo_json *config, theo_error *err) {
    plan p;
    THEO_TRY(read_config(&p, layout, config, err));
    maker m = {.memory = memory, .names = p.names};
    m.arrays = theo_bump_alloc(memory, THEO_SP_LAYERS * (THEO_SP_CONV_PARTS + THEO_SP_NORM_PARTS), sizeof *m.arrays);
    if (!m.arrays)
        return theo_fail(err, THEO_MEMORY, NULL, "synthesis", "out of memory");
    int channels = 1;
    for (theo_superpoint_layer l = THEO_SP_1A; l <= THEO_SP_4B; l++) {
        make_layer(&m, l, p.encoder[l / 2], channels, 3);
        channels = p.encoder[l / 2];
    }
    make_layer(&m, THEO_SP_PA, p.decoder, channels, 3);
    make_layer(&m, THEO_SP_PB, THEO_SUPERPOINT_LOGITS, p.decoder, 1);
    if (p.descriptor_dim) {
        make_layer(&m, THEO_SP_DA, p.decoder, channels, 3);
        make_layer(&m, THEO_SP_DB, p.descriptor_dim, p.decoder, 1);
    }
    if (m.failed)
        return theo_fail(err, THEO_MEMORY, NULL, "synthesis", "out of memory");
    *arrays = m.arrays;
    *count = m.count;
    return THEO_OK;
}
