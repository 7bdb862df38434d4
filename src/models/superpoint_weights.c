/* superpoint_weights.c - from the tensors of a checkpoint to packed layers: names, checks, batch norm. */
#include "base/error.h"
#include "formats/text.h"
#include "models/problems.h"
#include "models/superpoint.h"
#include "models/superpoint_names.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- which layout */

static const theo_weight *find(const theo_weights *weights, const theo_superpoint_names *set, const char *stem, const char *part,
                               char name[THEO_SP_NAME_BYTES]) {
    return theo_weights_find(weights, theo_superpoint_tensor_name(name, set, stem, part));
}

static int layer_tensors_present(const theo_weights *weights, const theo_superpoint_names *set, theo_superpoint_layer l) {
    const theo_superpoint_stems *t = &set->layers[l];
    char name[THEO_SP_NAME_BYTES];
    int count = 0;
    for (int i = 0; t->conv && i < THEO_SP_CONV_PARTS; i++)
        count += find(weights, set, t->conv, theo_superpoint_conv_parts[i], name) != NULL;
    for (int i = 0; t->norm && i < THEO_SP_NORM_PARTS; i++)
        count += find(weights, set, t->norm, theo_superpoint_norm_parts[i], name) != NULL;
    return count;
}

static int set_tensors_present(const theo_weights *weights, const theo_superpoint_names *set) {
    int count = 0;
    for (theo_superpoint_layer l = 0; l < THEO_SP_LAYERS; l++)
        count += layer_tensors_present(weights, set, l);
    return count;
}

/* The layout with most of its tensors in the file. */
static const theo_superpoint_names *best_set(const theo_weights *weights, int *present) {
    const theo_superpoint_names *best = &theo_superpoint_layouts[0];
    *present = 0;
    for (int i = 0; i < THEO_SP_LAYOUTS; i++) {
        int count = set_tensors_present(weights, &theo_superpoint_layouts[i]);
        if (count > *present) {
            *present = count;
            best = &theo_superpoint_layouts[i];
        }
    }
    return best;
}

int theo_superpoint_recognise(const theo_weights *weights) {
    int present;
    best_set(weights, &present);
    return present;
}

const char *theo_superpoint_kind_name(theo_superpoint_kind kind) {
    static const char *const names[] = {"superpoint", "superpoint-bn", "magicpoint"};
    return names[kind];
}

/* ---------------------------------------------------------------- checks: one pass over all layers, every problem noted */

typedef struct layer_source {
    const theo_weight *conv[THEO_SP_CONV_PARTS], *norm[THEO_SP_NORM_PARTS];
    int out, in, kernel;
} layer_source;

static const theo_weight *expect(const theo_weights *weights, const theo_superpoint_names *set, const char *stem,
                                 const char *part, int rank, const int64_t *want, theo_problems *p) {
    char name[THEO_SP_NAME_BYTES];
    return theo_problems_expect(p, weights, theo_superpoint_tensor_name(name, set, stem, part), rank, want, 4096);
}

/* in, out: channels, 0 = not known. */
static void check_layer(layer_source *s, const theo_weights *weights, const theo_superpoint_names *set, theo_superpoint_layer l,
                        int out, int in, int kernel, theo_problems *p) {
    const theo_superpoint_stems *names = &set->layers[l];
    *s = (layer_source){.in = in, .out = out, .kernel = kernel};
    s->conv[0] = expect(weights, set, names->conv, "weight", 4, (int64_t[]){out, in, kernel, kernel}, p);
    if (s->conv[0]) {
        s->out = (int)s->conv[0]->shape[0];
        s->in = (int)s->conv[0]->shape[1];
    }
    s->conv[1] = expect(weights, set, names->conv, "bias", 1, (int64_t[]){s->out}, p);
    for (int i = 0; names->norm && i < THEO_SP_NORM_PARTS; i++)
        s->norm[i] = expect(weights, set, names->norm, theo_superpoint_norm_parts[i], 1, (int64_t[]){s->out}, p);
}

/* All layers; returns whether there is a descriptor head. */
static bool check_layers(layer_source source[THEO_SP_LAYERS], const theo_weights *weights, const theo_superpoint_names *set,
                         theo_problems *p) {
    int channels = 1;
    for (theo_superpoint_layer l = THEO_SP_1A; l <= THEO_SP_4B; l++) {
        check_layer(&source[l], weights, set, l, 0, channels, 3, p);
        channels = source[l].out;
    }
    check_layer(&source[THEO_SP_PA], weights, set, THEO_SP_PA, 0, channels, 3, p);
    check_layer(&source[THEO_SP_PB], weights, set, THEO_SP_PB, THEO_SUPERPOINT_LOGITS, source[THEO_SP_PA].out, 1, p);
    bool descriptors = layer_tensors_present(weights, set, THEO_SP_DA) + layer_tensors_present(weights, set, THEO_SP_DB) > 0;
    if (descriptors) {
        check_layer(&source[THEO_SP_DA], weights, set, THEO_SP_DA, 0, channels, 3, p);
        check_layer(&source[THEO_SP_DB], weights, set, THEO_SP_DB, 0, source[THEO_SP_DA].out, 1, p);
    }
    return descriptors;
}

/* ---------------------------------------------------------------- reading and packing */

/* Widened numbers of one layer. */
typedef struct layer_values {
    float *weight, *bias; /* [out, in, k, k], [out] */
    float *scale, *shift; /* [out] or NULL */
} layer_values;

static void free_values(layer_values *v) {
    theo_free(v->weight);
    theo_free(v->bias);
    theo_free(v->scale);
    theo_free(v->shift);
    *v = (layer_values){0};
}

static theo_status read_tensor(float *out, const theo_weights *weights, const theo_weight *w, theo_error *err) {
    THEO_TRY(theo_weight_to_f32(weights, w, out, err));
    for (int64_t i = 0; i < w->elements; i++)
        if (!isfinite(out[i]))
            return theo_fail(err, THEO_STRUCTURE, theo_weights_path(weights), w->name, "element %lld is not a finite number",
                             (long long)i);
    theo_weights_release(weights, w);
    return THEO_OK;
}

static theo_status out_of_memory(const theo_weights *weights, theo_error *err) {
    return theo_fail(err, THEO_MEMORY, theo_weights_path(weights), NULL, "out of memory while the weights are read");
}

/* The batch norm as y * scale + shift, computed in double: scale = gamma / sqrt(var + eps), shift = beta - mean * scale. */
static theo_status read_norm(layer_values *v, const theo_weights *weights, const layer_source *s, double eps, theo_error *err) {
    size_t n = (size_t)s->out;
    float *part[THEO_SP_NORM_PARTS];
    float *block = theo_alloc(THEO_SP_NORM_PARTS * n, sizeof(float));
    v->scale = theo_alloc(n, sizeof(float));
    v->shift = theo_alloc(n, sizeof(float));
    theo_status status = block && v->scale && v->shift ? THEO_OK : out_of_memory(weights, err);
    for (int i = 0; i < THEO_SP_NORM_PARTS && !status; i++) {
        part[i] = block + (size_t)i * n;
        status = read_tensor(part[i], weights, s->norm[i], err);
    }
    for (size_t i = 0; i < n && !status; i++) {
        double variance = (double)part[3][i] + eps;
        if (variance <= 0) {
            status = theo_fail(err, THEO_STRUCTURE, theo_weights_path(weights), s->norm[3]->name,
                               "variance %g of channel %zu plus eps %g is not positive", (double)part[3][i], i, eps);
            break;
        }
        double scale = (double)part[0][i] / sqrt(variance);
        v->scale[i] = (float)scale;
        v->shift[i] = (float)((double)part[1][i] - (double)part[2][i] * scale);
    }
    theo_free(block);
    return status;
}

/* A 1x1 head has no ReLU between convolution and norm, and no padding: its norm goes into its weights. */
static void absorb_norm(layer_values *v, const layer_source *s) {
    for (int o = 0; o < s->out; o++) {
        for (int i = 0; i < s->in; i++)
            v->weight[(size_t)o * (size_t)s->in + (size_t)i] *= v->scale[o];
        v->bias[o] = v->bias[o] * v->scale[o] + v->shift[o];
    }
    theo_free(v->scale);
    theo_free(v->shift);
    v->scale = v->shift = NULL;
}

static size_t weight_count(const layer_source *s) {
    return (size_t)s->out * (size_t)s->in * (size_t)(s->kernel * s->kernel);
}

static theo_status read_layer(layer_values *v, const theo_weights *weights, const layer_source *s, double eps, theo_error *err) {
    v->weight = theo_alloc(weight_count(s), sizeof(float));
    v->bias = theo_alloc((size_t)s->out, sizeof(float));
    if (!v->weight || !v->bias)
        return out_of_memory(weights, err);
    THEO_TRY(read_tensor(v->weight, weights, s->conv[0], err));
    THEO_TRY(read_tensor(v->bias, weights, s->conv[1], err));
    if (s->norm[0])
        THEO_TRY(read_norm(v, weights, s, eps, err));
    if (s->norm[0] && s->kernel == 1)
        absorb_norm(v, s);
    return THEO_OK;
}

/* Packs `v`; its scale and shift move into the layer. */
static theo_status pack(theo_superpoint_conv *conv, layer_values *v, int out, int in, int kernel, theo_cpu level,
                        theo_error *err) {
    conv->out = out;
    conv->in = in;
    THEO_TRY(theo_packed_conv(&conv->packed, level, out, in, kernel, v->weight, v->bias, err));
    conv->scale = v->scale;
    conv->shift = v->shift;
    v->scale = v->shift = NULL;
    return THEO_OK;
}

static theo_status load_layer(theo_superpoint_conv *conv, const theo_weights *weights, const layer_source *s, theo_cpu level,
                              double eps, theo_error *err) {
    layer_values v = {0};
    theo_status status = read_layer(&v, weights, s, eps, err);
    if (!status)
        status = pack(conv, &v, s->out, s->in, s->kernel, level, err);
    free_values(&v);
    return status;
}

/* a over b: floats of two blocks, one behind the other. NULL when out of memory. */
static float *joined(const float *a, size_t a_count, const float *b, size_t b_count) {
    float *both = theo_alloc(a_count + b_count, sizeof(float));
    if (both) {
        memcpy(both, a, a_count * sizeof(float));
        memcpy(both + a_count, b, b_count * sizeof(float));
    }
    return both;
}

/* convPa alone, for runs that want no descriptors, and convPa over convDa: one convolution, whose input is transformed once. */
static theo_status load_heads(theo_superpoint *n, const theo_weights *weights, const layer_source *pa, const layer_source *da,
                              theo_cpu level, theo_error *err) {
    layer_values a = {0}, b = {0}, both = {0};
    theo_status status = read_layer(&a, weights, pa, n->bn_eps, err);
    if (!status)
        status = read_layer(&b, weights, da, n->bn_eps, err);
    if (!status) {
        both.weight = joined(a.weight, weight_count(pa), b.weight, weight_count(da));
        both.bias = joined(a.bias, (size_t)pa->out, b.bias, (size_t)da->out);
        if (a.scale) {
            both.scale = joined(a.scale, (size_t)pa->out, b.scale, (size_t)da->out);
            both.shift = joined(a.shift, (size_t)pa->out, b.shift, (size_t)da->out);
        }
        if (!both.weight || !both.bias || (a.scale && (!both.scale || !both.shift)))
            status = out_of_memory(weights, err);
    }
    if (!status)
        status = pack(&n->convPa, &a, pa->out, pa->in, 3, level, err);
    if (!status)
        status = pack(&n->heads, &both, pa->out + da->out, pa->in, 3, level, err);
    free_values(&a);
    free_values(&b);
    free_values(&both);
    return status;
}

static void count_sizes(theo_superpoint *n, const layer_source source[THEO_SP_LAYERS]) {
    for (theo_superpoint_layer l = 0; l < THEO_SP_LAYERS; l++) {
        for (int i = 0; i < THEO_SP_CONV_PARTS; i++)
            n->parameters += source[l].conv[i] ? source[l].conv[i]->elements : 0;
        for (int i = 0; i < THEO_SP_NORM_PARTS; i++)
            n->parameters += source[l].norm[i] ? source[l].norm[i]->elements : 0;
    }
    theo_superpoint_conv *convs[] = {&n->conv1a, &n->conv1b, &n->conv2a, &n->conv2b, &n->conv3a, &n->conv3b,
                                     &n->conv4a, &n->conv4b, &n->convPa, &n->convPb, &n->heads,  &n->convDb};
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++)
        n->weight_bytes += convs[i]->packed ? theo_packed_bytes(convs[i]->packed) : 0;
}

/* config_json: through theo_text, since the caller's locale may write eps with a comma. */
static theo_status describe_config(theo_superpoint *n, const theo_weights *weights, const layer_source source[THEO_SP_LAYERS],
                                   theo_error *err) {
    theo_text json = {0};
    theo_text_printf(&json, "{\"kind\": \"%s\", \"encoder\": [", theo_superpoint_kind_name(n->kind));
    for (theo_superpoint_layer l = THEO_SP_1A; l <= THEO_SP_4B; l++)
        theo_text_printf(&json, "%s%d", l ? ", " : "", source[l].out);
    theo_text_printf(&json, "], \"detector\": [%d, %d], \"descriptor\": ", source[THEO_SP_PA].out, source[THEO_SP_PB].out);
    if (n->descriptor_dim)
        theo_text_printf(&json, "[%d, %d]", source[THEO_SP_DA].out, source[THEO_SP_DB].out);
    else
        theo_text_printf(&json, "null");
    if (n->bn_eps > 0) {
        theo_text_printf(&json, ", \"bn_eps\": ");
        theo_text_add_json_number(&json, n->bn_eps);
    }
    theo_text_printf(&json, "}");
    theo_status status = json.failed ? out_of_memory(weights, err) : THEO_OK;
    snprintf(n->config_json, sizeof n->config_json, "%s", status ? "" : json.data);
    theo_text_free(&json);
    return status;
}

static theo_status take_fingerprint(theo_superpoint *n, const theo_weights *weights, const theo_weight *w, theo_error *err) {
    float *values = theo_alloc((size_t)w->elements, sizeof(float));
    theo_status status = values ? theo_weight_to_f32(weights, w, values, err) : out_of_memory(weights, err);
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t i = 0; !status && i < (size_t)w->elements * sizeof(float); i++)
        hash = (hash ^ ((const unsigned char *)values)[i]) * 0x100000001B3u;
    n->fingerprint = hash;
    theo_free(values);
    return status;
}

static theo_status load_all(theo_superpoint *n, const theo_weights *weights, const layer_source source[THEO_SP_LAYERS],
                            bool descriptors, theo_cpu level, theo_error *err) {
    THEO_TRY(take_fingerprint(n, weights, source[THEO_SP_4A].conv[1], err));
    theo_superpoint_conv *const encoder[] = {&n->conv1a, &n->conv1b, &n->conv2a, &n->conv2b,
                                             &n->conv3a, &n->conv3b, &n->conv4a, &n->conv4b};
    for (theo_superpoint_layer l = THEO_SP_1A; l <= THEO_SP_4B; l++)
        THEO_TRY(load_layer(encoder[l], weights, &source[l], level, n->bn_eps, err));
    THEO_TRY(load_layer(&n->convPb, weights, &source[THEO_SP_PB], level, n->bn_eps, err));
    if (!descriptors)
        return load_layer(&n->convPa, weights, &source[THEO_SP_PA], level, n->bn_eps, err);
    THEO_TRY(load_heads(n, weights, &source[THEO_SP_PA], &source[THEO_SP_DA], level, err));
    n->descriptor_dim = source[THEO_SP_DB].out;
    return load_layer(&n->convDb, weights, &source[THEO_SP_DB], level, n->bn_eps, err);
}

theo_status theo_superpoint_load(theo_superpoint **network, const theo_weights *weights, theo_cpu level, double bn_eps,
                                 theo_error *err) {
    *network = NULL;
    const char *path = theo_weights_path(weights);
    int present;
    const theo_superpoint_names *set = best_set(weights, &present);
    if (!present)
        return theo_fail(err, THEO_STRUCTURE, path, NULL,
                         "no tensor carries a name of SuperPoint (such as conv1a.weight or encoder.conv_blocks.0.conv_a.weight)");
    if (!(bn_eps >= 0 && bn_eps < 1))
        return theo_fail(err, THEO_ARGUMENT, NULL, "bn_eps", "%g is out of range: allowed is 0 (by the kind of file) to below 1",
                         bn_eps);
    if (bn_eps > 0 && set->bn_eps <= 0)
        return theo_fail(err, THEO_ARGUMENT, path, "bn_eps", "has no effect: this network has no batch norm");

    layer_source source[THEO_SP_LAYERS] = {{.out = 0}};
    theo_problems p = {.count = 0};
    bool descriptors = check_layers(source, weights, set, &p);
    THEO_TRY(theo_problems_status(&p, path, "SuperPoint", err));

    theo_superpoint *n = theo_alloc(1, sizeof *n);
    if (!n)
        return out_of_memory(weights, err);
    n->kind = set->kind;
    n->bn_eps = bn_eps > 0 ? bn_eps : set->bn_eps;
    theo_status status = load_all(n, weights, source, descriptors, level, err);
    if (!status)
        status = describe_config(n, weights, source, err);
    if (status) {
        theo_superpoint_free(n);
        return status;
    }
    count_sizes(n, source);
    *network = n;
    return THEO_OK;
}

static void free_conv(theo_superpoint_conv *conv) {
    theo_packed_free(conv->packed);
    theo_free(conv->scale);
    theo_free(conv->shift);
}

void theo_superpoint_free(theo_superpoint *n) {
    if (!n)
        return;
    theo_superpoint_conv *convs[] = {&n->conv1a, &n->conv1b, &n->conv2a, &n->conv2b, &n->conv3a, &n->conv3b,
                                     &n->conv4a, &n->conv4b, &n->convPa, &n->convPb, &n->heads,  &n->convDb};
    for (size_t i = 0; i < sizeof convs / sizeof *convs; i++)
        free_conv(convs[i]);
    theo_free(n);
}
