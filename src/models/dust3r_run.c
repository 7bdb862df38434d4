#include "models/dust3r_run.h"
#include "base/clock.h"
#include "base/error.h"
#include "models/dust3r_input.h"
#include "models/scratch.h"
#include <string.h>

enum { PLANS = 4, PATCH = THEO_DUST3R_PATCH, VIEWS = THEO_DUST3R_VIEWS };

typedef struct encoder_plan {
    theo_plan *plan; /* NULL: unused */
    theo_dust3r_grid grid;
    uint64_t last_use;
    theo_dust3r_encoding net;
} encoder_plan;

typedef struct decoder_plan {
    theo_plan *plan;
    theo_dust3r_grid grids[VIEWS];
    unsigned wanted;
    uint64_t last_use;
    theo_dust3r_decoding net;
} decoder_plan;

struct theo_dust3r_runner {
    const theo_dust3r *network;
    theo_dust3r_runner_options options;
    encoder_plan encoders[PLANS];
    decoder_plan decoders[PLANS];
    uint64_t uses;
    theo_scratch memory; /* lent to the plan that runs */
    const void *filled;  /* the encoder_plan or decoder_plan whose `turn` inputs lie in memory */
    const decoder_plan *ran;
    double last_ms;
};

theo_status theo_dust3r_runner_new(theo_dust3r_runner **runner, const theo_dust3r *network,
                                   const theo_dust3r_runner_options *options, theo_error *err) {
    *runner = theo_alloc(1, sizeof **runner);
    if (!*runner)
        return theo_fail(err, THEO_MEMORY, NULL, "session", "out of memory");
    (*runner)->network = network;
    (*runner)->options = *options;
    return THEO_OK;
}

void theo_dust3r_runner_free(theo_dust3r_runner *r) {
    if (!r)
        return;
    for (int i = 0; i < PLANS; i++) {
        theo_plan_free(r->encoders[i].plan);
        theo_plan_free(r->decoders[i].plan);
    }
    theo_scratch_free(&r->memory);
    theo_free(r);
}

/* ---------------------------------------------------------------- plans */

static bool same_grid(theo_dust3r_grid a, theo_dust3r_grid b) {
    return a.rows == b.rows && a.columns == b.columns;
}

/* The kept plan of that grid, else the least recently used one made anew. */
static theo_status encoder_for(encoder_plan **out, theo_dust3r_runner *r, theo_dust3r_grid grid, theo_error *err) {
    encoder_plan *oldest = &r->encoders[0];
    for (int i = 0; i < PLANS; i++) {
        encoder_plan *e = &r->encoders[i];
        if (e->plan && same_grid(e->grid, grid)) {
            e->last_use = ++r->uses;
            *out = e;
            return THEO_OK;
        }
        if (e->last_use < oldest->last_use)
            oldest = e;
    }
    theo_plan *plan;
    THEO_TRY(theo_plan_new(&plan, r->options.level, r->options.pool, err));
    theo_dust3r_encoding net = theo_dust3r_record_encoder(plan, r->network, grid.rows, grid.columns, NULL);
    theo_status status = theo_plan_finish(plan, err);
    if (status) {
        theo_plan_free(plan);
        return status;
    }
    r->filled = r->filled == oldest ? NULL : r->filled;
    theo_plan_free(oldest->plan);
    *oldest = (encoder_plan){plan, grid, ++r->uses, net};
    *out = oldest;
    return THEO_OK;
}

static theo_status decoder_for(decoder_plan **out, theo_dust3r_runner *r, const theo_dust3r_grid grids[VIEWS], unsigned wanted,
                               theo_error *err) {
    decoder_plan *oldest = &r->decoders[0];
    for (int i = 0; i < PLANS; i++) {
        decoder_plan *d = &r->decoders[i];
        if (d->plan && d->wanted == wanted && same_grid(d->grids[0], grids[0]) && same_grid(d->grids[1], grids[1])) {
            d->last_use = ++r->uses;
            *out = d;
            return THEO_OK;
        }
        if (d->last_use < oldest->last_use)
            oldest = d;
    }
    theo_plan *plan;
    THEO_TRY(theo_plan_new(&plan, r->options.level, r->options.pool, err));
    theo_dust3r_decoding net = theo_dust3r_record_decoder(plan, r->network, grids, wanted, NULL);
    theo_status status = theo_plan_finish(plan, err);
    if (status) {
        theo_plan_free(plan);
        return status;
    }
    r->filled = r->filled == oldest ? NULL : r->filled;
    r->ran = r->ran == oldest ? NULL : r->ran;
    theo_plan_free(oldest->plan);
    *oldest = (decoder_plan){plan, {grids[0], grids[1]}, wanted, ++r->uses, net};
    *out = oldest;
    return THEO_OK;
}

/* Lends the memory to a plan, grown if need be. What lay in it is lost. */
static theo_status bind_memory(theo_dust3r_runner *r, theo_plan *plan, theo_error *err) {
    size_t bytes = theo_plan_memory_bytes(plan);
    r->ran = NULL;
    if (r->memory.bytes < bytes)
        r->filled = NULL;
    void *memory = theo_scratch_fit(&r->memory, bytes);
    if (!memory)
        return theo_fail(err, THEO_MEMORY, NULL, "session", "out of memory: the activations need %zu bytes", bytes);
    theo_plan_bind(plan, memory);
    return THEO_OK;
}

enum { BOTH = 3 };

theo_status theo_dust3r_prepare(theo_dust3r_runner *r, const theo_dust3r_grid grids[VIEWS], const theo_plan **encoder,
                                const theo_plan **decoder, theo_error *err) {
    encoder_plan *e;
    decoder_plan *d;
    for (int v = VIEWS - 1; v >= 0; v--) {
        THEO_TRY(encoder_for(&e, r, grids[v], err));
        THEO_TRY(bind_memory(r, e->plan, err));
    }
    THEO_TRY(decoder_for(&d, r, grids, BOTH, err));
    THEO_TRY(bind_memory(r, d->plan, err));
    if (encoder)
        *encoder = e->plan;
    if (decoder)
        *decoder = d->plan;
    return THEO_OK;
}

theo_status theo_dust3r_memory(theo_dust3r_runner *r, const theo_dust3r_grid grids[VIEWS], size_t *bytes, theo_error *err) {
    encoder_plan *e;
    decoder_plan *d;
    *bytes = 0;
    for (int v = 0; v < VIEWS; v++) {
        THEO_TRY(encoder_for(&e, r, grids[v], err));
        size_t need = theo_plan_memory_bytes(e->plan);
        *bytes = need > *bytes ? need : *bytes;
    }
    THEO_TRY(decoder_for(&d, r, grids, BOTH, err));
    size_t need = theo_plan_memory_bytes(d->plan);
    *bytes = need > *bytes ? need : *bytes;
    return THEO_OK;
}

/* ---------------------------------------------------------------- images to features */

size_t theo_dust3r_feature_floats(const theo_dust3r *n, theo_dust3r_grid grid) {
    return (size_t)grid.rows * (size_t)grid.columns * (size_t)n->config.enc_width;
}

static void fill_image(theo_plan *plan, theo_tensor input, const theo_dust3r_image *image) {
    int pitch;
    float *out = theo_plan_data(plan, input, &pitch);
    size_t pixels = (size_t)input.h * (size_t)input.w;
    float table[256];
    theo_dust3r_byte_table(table);
    for (size_t i = 0; i < pixels; i++, out += pitch)
        for (size_t c = 0; c < 3; c++)
            out[c] = image->planes ? image->planes[c * pixels + i] : table[image->bytes[3 * i + c]];
}

theo_status theo_dust3r_encode(theo_dust3r_runner *r, const theo_dust3r_image *image, theo_dust3r_features *features,
                               theo_error *err) {
    double start = theo_clock_ms();
    encoder_plan *e;
    THEO_TRY(encoder_for(&e, r, image->grid, err));
    THEO_TRY(bind_memory(r, e->plan, err));
    if (r->filled != e)
        theo_dust3r_fill_turn(e->plan, r->network, e->net.turn);
    r->filled = e;
    fill_image(e->plan, e->net.image, image);
    THEO_TRY(theo_plan_run(e->plan, r->options.progress, r->options.progress_user, err));
    int pitch;
    const float *made = theo_plan_data(e->plan, e->net.out, &pitch);
    size_t width = (size_t)e->net.out.c, tokens = (size_t)(image->grid.rows * image->grid.columns);
    for (size_t i = 0; i < tokens; i++)
        memcpy(features->data + i * width, made + i * (size_t)pitch, width * sizeof(float));
    features->grid = image->grid;
    r->last_ms = theo_clock_ms() - start;
    return THEO_OK;
}

/* ---------------------------------------------------------------- features to raw maps */

static void fill_features(theo_plan *plan, theo_tensor input, const theo_dust3r_features *features) {
    int pitch;
    float *out = theo_plan_data(plan, input, &pitch);
    size_t width = (size_t)input.c;
    for (size_t i = 0; i < (size_t)input.h * (size_t)input.w; i++)
        memcpy(out + i * (size_t)pitch, features->data + i * width, width * sizeof(float));
}

theo_status theo_dust3r_decode(theo_dust3r_runner *r, const theo_dust3r_features views[VIEWS], unsigned wanted, theo_error *err) {
    double start = theo_clock_ms();
    decoder_plan *d;
    const theo_dust3r_grid grids[VIEWS] = {views[0].grid, views[1].grid};
    THEO_TRY(decoder_for(&d, r, grids, wanted, err));
    THEO_TRY(bind_memory(r, d->plan, err));
    for (int v = 0; v < VIEWS; v++) {
        if (r->filled != d)
            theo_dust3r_fill_turn(d->plan, r->network, d->net.turn[v]);
        fill_features(d->plan, d->net.features[v], &views[v]);
    }
    r->filled = d;
    THEO_TRY(theo_plan_run(d->plan, r->options.progress, r->options.progress_user, err));
    r->ran = d;
    r->last_ms = theo_clock_ms() - start;
    return THEO_OK;
}

double theo_dust3r_last_ms(const theo_dust3r_runner *r) {
    return r->last_ms;
}

/* ---------------------------------------------------------------- raw maps to points */

/* A raw map, pixel by pixel or as patches of (channel, y, x). */
typedef struct raw_map {
    const float *data;
    size_t pitch;
    int h, w; /* pixels */
    bool is_patches;
} raw_map;

static raw_map raw_map_of(const theo_dust3r_runner *r, int view) {
    theo_tensor raw = r->ran->net.raw[view];
    int pitch, side = r->network->config.head == THEO_DUST3R_LINEAR ? PATCH : 1;
    raw_map m = {.data = theo_plan_data(r->ran->plan, raw, &pitch), .h = side * raw.h, .w = side * raw.w, .is_patches = side > 1};
    m.pitch = (size_t)pitch;
    return m;
}

static void raw_pixel(const raw_map *m, int y, int x, float out[THEO_DUST3R_CHANNELS]) {
    if (!m->is_patches) {
        memcpy(out, m->data + ((size_t)y * (size_t)m->w + (size_t)x) * m->pitch, THEO_DUST3R_CHANNELS * sizeof *out);
        return;
    }
    const float *patch = m->data + ((size_t)(y / PATCH) * (size_t)(m->w / PATCH) + (size_t)(x / PATCH)) * m->pitch;
    for (int c = 0; c < THEO_DUST3R_CHANNELS; c++)
        out[c] = patch[(c * PATCH + y % PATCH) * PATCH + x % PATCH];
}

typedef struct activating {
    const theo_dust3r_output *rule;
    raw_map raw;
    float *points, *conf;
} activating;

static void activate_row(void *context, int y, int worker) {
    (void)worker;
    const activating *a = context;
    size_t first = (size_t)y * (size_t)a->raw.w;
    for (int x = 0; x < a->raw.w; x++) {
        float raw[THEO_DUST3R_CHANNELS];
        raw_pixel(&a->raw, y, x, raw);
        theo_dust3r_activate(a->rule, raw, a->points + 3 * (first + (size_t)x), a->conf + first + (size_t)x);
    }
}

void theo_dust3r_points(const theo_dust3r_runner *r, int view, float *points, float *conf) {
    activating a = {&r->network->config.output, raw_map_of(r, view), points, conf};
    theo_pool_run(r->options.pool, a.raw.h, activate_row, &a);
}

void theo_dust3r_raw_map(const theo_dust3r_runner *r, int view, float *out) {
    raw_map m = raw_map_of(r, view);
    size_t pixels = (size_t)m.h * (size_t)m.w;
    for (int y = 0; y < m.h; y++)
        for (int x = 0; x < m.w; x++) {
            float raw[THEO_DUST3R_CHANNELS];
            raw_pixel(&m, y, x, raw);
            for (size_t c = 0; c < THEO_DUST3R_CHANNELS; c++)
                out[c * pixels + (size_t)y * (size_t)m.w + (size_t)x] = raw[c];
        }
}
