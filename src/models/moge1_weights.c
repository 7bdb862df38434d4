/* moge1_weights.c - the decoder of MoGe-1 from the tensors of a checkpoint: names, shapes, checks. */
#include "base/error.h"
#include "models/moge1.h"
#include <string.h>

static const int output_channels[THEO_MOGE1_OUTPUTS] = {3, 1};

/* ---------------------------------------------------------------- gathering */

static void gather_block(const theo_gather *g, theo_moge1_block *block, const char *stem, int width, int hidden) {
    theo_gather_norm(g, &block->norm, theo_name("%s.layers.0", stem).text, width);
    theo_gather_3x3(g, &block->first, theo_name("%s.layers.2", stem).text, hidden, width);
    theo_gather_norm(g, &block->hidden_norm, theo_name("%s.layers.3", stem).text, hidden);
    theo_gather_3x3(g, &block->second, theo_name("%s.layers.5", stem).text, width, hidden);
}

/* The transposed convolution reads the map and, behind it, two coordinates: as two layers. */
static void gather_up(const theo_gather *g, theo_moge1_stage *stage, const char *stem, int in, int out) {
    theo_packing_job job = {.kind = THEO_PACKING_TRANSPOSED, .count = in};
    theo_gather_layer(g, &stage->up, job, stem, 4, (int64_t[]){in + 2, out, 2, 2}, 0);
    job.from = in;
    job.count = 2;
    theo_gather_layer(g, &stage->up_coordinates, job, stem, 4, (int64_t[]){in + 2, out, 2, 2}, out);
}

static void gather_output(const theo_gather *g, theo_moge1_output *output, int number, int in, int middle) {
    theo_tensor_name first = theo_name("head.output_block.%d.0", number), second = theo_name("head.output_block.%d.2", number);
    int out = output_channels[number];
    theo_gather_floats(g, &output->conv, theo_name("%s.weight", first.text).text, 4, (int64_t[]){middle, in + 2, 3, 3});
    theo_gather_floats(g, &output->conv_bias, theo_name("%s.bias", first.text).text, 1, (int64_t[]){middle});
    theo_gather_floats(g, &output->last, theo_name("%s.weight", second.text).text, 4, (int64_t[]){out, middle, 1, 1});
    theo_gather_floats(g, &output->last_bias, theo_name("%s.bias", second.text).text, 1, (int64_t[]){out});
}

static theo_status check(const theo_moge1_config *c, const char *path, theo_error *err) {
    if (!c->last_channels)
        return theo_fail(err, THEO_MISSING, path, "head.output_block.0.0.weight", "is missing");
    for (int i = 0; i < c->stages; i++) {
        int hidden = c->hidden * c->width[i];
        if (c->width[i] < THEO_MOGE_MIN_CHANNELS)
            return theo_fail(err, THEO_STRUCTURE, path, "model_config", "stage %d makes %d channels: at least %d are needed", i,
                             c->width[i], THEO_MOGE_MIN_CHANNELS);
        if (c->blocks && c->is_hidden_grouped && (hidden < 32 || hidden % (hidden / 32)))
            return theo_fail(err, THEO_STRUCTURE, path, "model_config",
                             "stage %d: %d channels cannot be cut into %d equal groups for a norm", i, hidden, hidden / 32);
    }
    return THEO_OK;
}

theo_status theo_moge1_gather(theo_moge *network, const theo_gather *g, const char *config_text, theo_error *err) {
    const char *path = theo_weights_path(g->weights);
    theo_moge1 *n = network->one = theo_alloc(1, sizeof *n);
    int depth = network->vit.depth;
    if (!n)
        return theo_fail(err, THEO_MEMORY, path, NULL, "out of memory");
    theo_moge1_config *c = &n->config;
    if (config_text)
        THEO_TRY(theo_moge1_config_parse(c, &network->config, config_text, depth, path, err));
    else
        THEO_TRY(theo_moge1_config_guess(c, &network->config, g->weights, depth, err));
    THEO_TRY(check(c, path, err));

    int in = network->config.features;
    for (int i = 0; i < c->stages; in = c->width[i++]) {
        theo_tensor_name stem = theo_name("head.upsample_blocks.%d", i);
        gather_up(g, &n->stages[i], theo_name("%s.0.0", stem.text).text, in, c->width[i]);
        theo_gather_3x3(g, &n->stages[i].conv, theo_name("%s.0.1", stem.text).text, c->width[i], c->width[i]);
        for (int j = 0; j < c->blocks; j++)
            gather_block(g, &n->stages[i].blocks[j], theo_name("%s.%d", stem.text, j + 1).text, c->width[i],
                         c->hidden * c->width[i]);
    }
    for (int i = 0; i < THEO_MOGE1_OUTPUTS; i++)
        gather_output(g, &n->outputs[i], i, in, c->last_channels);
    return THEO_OK;
}

/* ---------------------------------------------------------------- both outputs as one */

static void free_output(theo_moge1_output *o) {
    theo_free_aligned(o->conv);
    theo_free_aligned(o->conv_bias);
    theo_free_aligned(o->last);
    theo_free_aligned(o->last_bias);
    *o = (theo_moge1_output){.conv = NULL};
}

/* Their first layers read the same map: one above the other. Each last layer reads its own half of what these give. */
typedef struct joined {
    float *conv, *conv_bias; /* [2 * middle, in + 2, 3, 3] [2 * middle] */
    float *last, *last_bias; /* [4, 2 * middle] [4] */
} joined;

static void join(joined *to, const theo_moge1 *n, size_t middle, size_t kernel) {
    size_t row = 0;
    for (size_t i = 0; i < THEO_MOGE1_OUTPUTS; i++) {
        const theo_moge1_output *from = &n->outputs[i];
        memcpy(to->conv + i * middle * kernel, from->conv, middle * kernel * sizeof(float));
        memcpy(to->conv_bias + i * middle, from->conv_bias, middle * sizeof(float));
        for (size_t o = 0; o < (size_t)output_channels[i]; o++, row++) {
            memcpy(to->last + row * 2 * middle + i * middle, from->last + o * middle, middle * sizeof(float));
            to->last_bias[row] = from->last_bias[o];
        }
    }
}

theo_status theo_moge1_join(theo_moge1 *n, theo_cpu level, theo_error *err) {
    int middle = n->config.last_channels, in = n->config.width[n->config.stages - 1] + 2;
    size_t m = (size_t)middle, kernel = (size_t)in * 9, both = 2 * m;
    float *memory = theo_alloc(both * kernel + both + THEO_MOGE1_CHANNELS * both + THEO_MOGE1_CHANNELS, sizeof *memory);
    if (!memory)
        return theo_fail(err, THEO_MEMORY, NULL, NULL, "out of memory while the weights are read");
    joined to = {.conv = memory, .conv_bias = memory + both * kernel};
    to.last = to.conv_bias + both;
    to.last_bias = to.last + THEO_MOGE1_CHANNELS * both;
    join(&to, n, m, kernel);
    theo_status status = theo_packed_conv(&n->conv, level, 2 * middle, in, 3, to.conv, to.conv_bias, err);
    if (!status)
        status = theo_packed_linear(&n->last, level, THEO_MOGE1_CHANNELS, 2 * middle, to.last, to.last_bias, err);
    theo_free(memory);
    for (int i = 0; i < THEO_MOGE1_OUTPUTS; i++)
        free_output(&n->outputs[i]);
    return status;
}

/* ---------------------------------------------------------------- all layers */

void theo_moge1_visit(theo_moge1 *n, theo_packed_visitor visit, void *context) {
    for (int i = 0; i < THEO_MOGE1_MAX_STAGES; i++) {
        theo_moge1_stage *s = &n->stages[i];
        visit(s->up, context);
        visit(s->up_coordinates, context);
        visit(s->conv, context);
        for (int j = 0; j < THEO_MOGE_MAX_BLOCKS; j++) {
            visit(s->blocks[j].first, context);
            visit(s->blocks[j].second, context);
        }
    }
    visit(n->conv, context);
    visit(n->last, context);
}

void theo_moge1_free(theo_moge1 *n) {
    if (!n)
        return;
    theo_moge1_visit(n, theo_packed_visit_free, NULL);
    for (int i = 0; i < THEO_MOGE1_MAX_STAGES; i++)
        for (int j = 0; j < THEO_MOGE_MAX_BLOCKS; j++) {
            theo_norm_free(&n->stages[i].blocks[j].norm);
            theo_norm_free(&n->stages[i].blocks[j].hidden_norm);
        }
    for (int i = 0; i < THEO_MOGE1_OUTPUTS; i++)
        free_output(&n->outputs[i]);
    theo_free(n);
}
