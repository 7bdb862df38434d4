#include "models/moge_run.h"
#include "base/clock.h"
#include "base/error.h"
#include <math.h>
#include <string.h>

enum { PLANS = 4 };

typedef struct recorded {
    theo_plan *plan; /* NULL: unused */
    unsigned heads;
    uint64_t last_use;
    theo_moge_net net;
} recorded;

struct theo_moge_runner {
    const theo_moge *network;
    theo_moge_runner_options options;
    recorded plans[PLANS];
    uint64_t uses;
    theo_scratch memory; /* lent to the plan that runs */
    theo_moge_input input;
    theo_scratch sampling;
    const recorded *filled; /* whose constant inputs lie in `memory`, for that aspect */
    double filled_aspect;
    const recorded *ran;
    double preprocess_ms, forward_ms;
};

theo_status theo_moge_runner_new(theo_moge_runner **runner, const theo_moge *network, const theo_moge_runner_options *options,
                                 theo_error *err) {
    *runner = theo_alloc(1, sizeof **runner);
    if (!*runner)
        return theo_fail(err, THEO_MEMORY, NULL, "session", "out of memory");
    (*runner)->network = network;
    (*runner)->options = *options;
    return THEO_OK;
}

void theo_moge_runner_free(theo_moge_runner *r) {
    if (!r)
        return;
    for (int i = 0; i < PLANS; i++)
        theo_plan_free(r->plans[i].plan);
    theo_moge_input_free(&r->input);
    theo_scratch_free(&r->memory);
    theo_scratch_free(&r->sampling);
    theo_free(r);
}

/* ---------------------------------------------------------------- plans */

static bool same_grid(const theo_moge_grid *a, const theo_moge_grid *b) {
    return a->rows == b->rows && a->columns == b->columns && a->map_h == b->map_h && a->map_w == b->map_w;
}

/* The kept plan of that grid and those heads, else the least recently used one made anew. */
static theo_status plan_for(recorded **out, theo_moge_runner *r, const theo_moge_grid *grid, unsigned heads, theo_error *err) {
    recorded *oldest = &r->plans[0];
    for (int i = 0; i < PLANS; i++) {
        recorded *n = &r->plans[i];
        if (n->plan && same_grid(&n->net.grid, grid) && n->heads == heads) {
            n->last_use = ++r->uses;
            *out = n;
            return THEO_OK;
        }
        if (n->last_use < oldest->last_use)
            oldest = n;
    }
    r->ran = r->ran == oldest ? NULL : r->ran;
    r->filled = r->filled == oldest ? NULL : r->filled;
    theo_plan_free(oldest->plan);
    *oldest = (recorded){.heads = heads};
    theo_plan *plan;
    THEO_TRY(theo_plan_new(&plan, r->options.level, r->options.pool, err));
    oldest->net = theo_moge_record(plan, r->network, grid, heads, NULL);
    theo_status status = theo_plan_finish(plan, err);
    if (status) {
        theo_plan_free(plan);
        return status;
    }
    oldest->plan = plan;
    oldest->last_use = ++r->uses;
    *out = oldest;
    return THEO_OK;
}

static theo_status ready_plan(recorded **out, theo_moge_runner *r, const theo_moge_grid *grid, unsigned heads, theo_error *err) {
    THEO_TRY(plan_for(out, r, grid, heads & theo_moge_heads(r->network), err));
    size_t bytes = theo_plan_memory_bytes((*out)->plan);
    if (r->memory.bytes < bytes)
        r->ran = r->filled = NULL;
    void *memory = theo_scratch_fit(&r->memory, bytes);
    if (!memory)
        return theo_fail(err, THEO_MEMORY, NULL, "session", "out of memory: the activations need %zu bytes", bytes);
    theo_plan_bind((*out)->plan, memory);
    return THEO_OK;
}

theo_status theo_moge_prepare(theo_moge_runner *r, const theo_moge_grid *grid, unsigned heads, const theo_plan **plan,
                              theo_error *err) {
    recorded *n;
    THEO_TRY(ready_plan(&n, r, grid, heads, err));
    if (plan)
        *plan = n->plan;
    return THEO_OK;
}

theo_status theo_moge_memory(theo_moge_runner *r, const theo_moge_grid *grid, unsigned heads, size_t *bytes, theo_error *err) {
    recorded *n;
    THEO_TRY(plan_for(&n, r, grid, heads & theo_moge_heads(r->network), err));
    *bytes = theo_plan_memory_bytes(n->plan);
    return THEO_OK;
}

/* ---------------------------------------------------------------- a run */

/* The constant inputs stay in memory as long as no other plan runs. */
static void fill_constants(theo_moge_runner *r, const recorded *n, double aspect) {
    if (r->filled == n && r->filled_aspect == aspect)
        return;
    theo_moge_fill_constants(n->plan, r->network, &n->net, aspect);
    r->filled = n;
    r->filled_aspect = aspect;
}

static theo_status forward(theo_moge_runner *r, recorded *n, theo_error *err) {
    double start = theo_clock_ms();
    THEO_TRY(theo_plan_run(n->plan, r->options.progress, r->options.progress_user, err));
    r->forward_ms = theo_clock_ms() - start;
    r->ran = n;
    return THEO_OK;
}

theo_status theo_moge_run(theo_moge_runner *r, const theo_image *image, bool bgr, const theo_moge_frame *f, unsigned heads,
                          theo_error *err) {
    double start = theo_clock_ms();
    recorded *n;
    r->ran = NULL;
    THEO_TRY(ready_plan(&n, r, &f->grid, heads, err));
    fill_constants(r, n, f->net_aspect);
    int pitch;
    float *patches = theo_plan_data(n->plan, n->net.patches, &pitch);
    THEO_TRY(theo_moge_input_fill(&r->input, image, bgr, f, r->network->mean, r->network->deviation, r->options.pool, patches,
                                  (size_t)pitch, err));
    r->preprocess_ms = theo_clock_ms() - start;
    return forward(r, n, err);
}

theo_status theo_moge_run_planes(theo_moge_runner *r, const float *planes, const theo_moge_grid *grid, double aspect,
                                 unsigned heads, theo_error *err) {
    double start = theo_clock_ms();
    recorded *n;
    r->ran = NULL;
    THEO_TRY(ready_plan(&n, r, grid, heads, err));
    fill_constants(r, n, aspect);
    int pitch;
    float *patches = theo_plan_data(n->plan, n->net.patches, &pitch);
    theo_moge_input_planes(planes, grid->rows, grid->columns, patches, (size_t)pitch);
    r->preprocess_ms = theo_clock_ms() - start;
    return forward(r, n, err);
}

double theo_moge_preprocess_ms(const theo_moge_runner *r) {
    return r->preprocess_ms;
}

double theo_moge_forward_ms(const theo_moge_runner *r) {
    return r->forward_ms;
}

float theo_moge_metric_scale(const theo_moge_runner *r) {
    int pitch;
    theo_tensor scale = r->ran->net.scale;
    return scale.id < 0 ? 1.0f : expf(*theo_plan_data(r->ran->plan, scale, &pitch));
}

/* ---------------------------------------------------------------- raw maps */

/* A raw map of h x w pixels, whole or in quads. */
typedef struct raw_map {
    const float *data;
    size_t pitch;
    int channels, h, w;
    bool is_quads;
} raw_map;

static raw_map raw_map_of(const theo_moge_runner *r, theo_moge_head head) {
    const theo_moge_map *map = &r->ran->net.maps[head];
    int pitch;
    const theo_moge_grid *grid = &r->ran->net.grid;
    raw_map m = {.channels = map->channels, .h = grid->map_h, .w = grid->map_w, .is_quads = map->is_quads};
    m.data = theo_plan_data(r->ran->plan, map->tensor, &pitch);
    m.pitch = (size_t)pitch;
    return m;
}

/* (1 - t) * row y0 + t * row y1 into out [w, c]. */
static void blend_rows(const raw_map *m, int y0, int y1, float t, float *out) {
    if (!m->is_quads) {
        const float *a = m->data + (size_t)y0 * (size_t)m->w * m->pitch, *b = m->data + (size_t)y1 * (size_t)m->w * m->pitch;
        for (int x = 0; x < m->w; x++, a += m->pitch, b += m->pitch)
            for (int c = 0; c < m->channels; c++)
                *out++ = (1 - t) * a[c] + t * b[c];
        return;
    }
    size_t row = (size_t)(m->w / 2) * m->pitch;
    const float *a = m->data + (size_t)(y0 / 2) * row + y0 % 2 * 2, *b = m->data + (size_t)(y1 / 2) * row + y1 % 2 * 2;
    for (int x = 0; x < m->w / 2; x++, a += m->pitch, b += m->pitch)
        for (int j = 0; j < 2; j++)
            for (int c = 0; c < m->channels; c++)
                *out++ = (1 - t) * a[4 * c + j] + t * b[4 * c + j];
}

void theo_moge_raw_map(const theo_moge_runner *r, theo_moge_head head, float *out) {
    raw_map m = raw_map_of(r, head);
    for (int y = 0; y < m.h; y++)
        for (int x = 0; x < m.w; x++) {
            const float *pixel =
                m.is_quads ? m.data + ((size_t)(y / 2) * (size_t)(m.w / 2) + (size_t)(x / 2)) * m.pitch + y % 2 * 2 + x % 2
                           : m.data + ((size_t)y * (size_t)m.w + (size_t)x) * m.pitch;
            for (int c = 0; c < m.channels; c++)
                out[((size_t)c * (size_t)m.h + (size_t)y) * (size_t)m.w + (size_t)x] = pixel[m.is_quads ? 4 * c : c];
        }
}

/* ---------------------------------------------------------------- at the photo's size */

/* Sample o of the photo's axis: between i0 and i1 of the raw map's n. `from`: where the photo begins on the canvas, `size` its
 * extent there, `canvas` the canvas's, all in the canvas's pixels. */
typedef struct between {
    int i0, i1;
    float t;
} between;

static between sample_at(int o, int count, double from, double size, double canvas, int n) {
    double x = (from + (o + 0.5) * size / count) * n / canvas - 0.5;
    x = x > 0 ? x : 0;
    int i0 = (int)x < n - 1 ? (int)x : n - 1;
    return (between){i0, i0 + 1 < n ? i0 + 1 : i0, (float)(x - i0)};
}

/* A head's map on its way to the photo's pixels; the rows are the tasks. */
typedef struct sampling {
    raw_map raw;
    const theo_moge_frame *frame;
    theo_moge_head head;
    theo_moge_remap remap;
    bool is_raw;      /* the samples themselves are wanted */
    float *out;       /* [height, width, c] */
    float *blended;   /* a row of the raw map for each worker */
    const between *x; /* [width] */
} sampling;

static void remap(float *p, theo_moge_remap rule) {
    switch (rule) {
    case THEO_MOGE_REMAP_LINEAR:
        return;
    case THEO_MOGE_REMAP_EXP:
        p[2] = expf(p[2]);
        p[0] *= p[2];
        p[1] *= p[2];
        return;
    case THEO_MOGE_REMAP_SINH:
        for (int c = 0; c < 3; c++)
            p[c] = sinhf(p[c]);
        return;
    case THEO_MOGE_REMAP_SINH_EXP:
        p[0] = sinhf(p[0]);
        p[1] = sinhf(p[1]);
        p[2] = expf(p[2]);
        return;
    }
}

static void normalise(float *n) {
    float length = sqrtf(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    length = length > 1e-12f ? length : 1e-12f;
    for (int c = 0; c < 3; c++)
        n[c] /= length;
}

static void finish_row(const sampling *s, float *row) {
    for (int x = 0; x < s->frame->width; x++, row += s->raw.channels) {
        if (s->head == THEO_MOGE_POINTS)
            remap(row, s->remap);
        else if (s->head == THEO_MOGE_NORMAL)
            normalise(row);
        else if (s->frame->generation == THEO_MOGE_2)
            *row = 1 / (1 + expf(-*row));
    }
}

static void sample_row(void *context, int y, int worker) {
    const sampling *s = context;
    const theo_moge_frame *f = s->frame;
    int channels = s->raw.channels, width = f->width;
    float *blended = s->blended + (size_t)worker * (size_t)(s->raw.w * channels);
    float *row = s->out + (size_t)y * (size_t)(width * channels), *out = row;
    between v = sample_at(y, f->height, f->y, f->h, f->canvas_height, s->raw.h);
    blend_rows(&s->raw, v.i0, v.i1, v.t, blended);
    for (int x = 0; x < width; x++) {
        const between *h = &s->x[x];
        const float *a = blended + h->i0 * channels, *b = blended + h->i1 * channels;
        for (int c = 0; c < channels; c++)
            *out++ = (1 - h->t) * a[c] + h->t * b[c];
    }
    if (!s->is_raw)
        finish_row(s, row);
}

static theo_status sample(theo_moge_runner *r, const theo_moge_frame *f, theo_moge_head head, bool is_raw, float *out,
                          theo_error *err) {
    sampling s = {.raw = raw_map_of(r, head), .frame = f, .head = head, .remap = r->network->config.remap, .is_raw = is_raw};
    size_t columns = (size_t)f->width * sizeof(between),
           rows = (size_t)theo_pool_threads(r->options.pool) * (size_t)(3 * s.raw.w);
    char *memory = theo_scratch_fit(&r->sampling, columns + rows * sizeof(float));
    if (!memory)
        return theo_fail(err, THEO_MEMORY, NULL, "session", "out of memory for sampling the maps");
    between *x = (between *)(void *)memory;
    for (int i = 0; i < f->width; i++)
        x[i] = sample_at(i, f->width, f->x, f->w, f->canvas_width, s.raw.w);
    s.x = x;
    s.blended = (float *)(void *)(memory + columns);
    s.out = out;
    theo_pool_run(r->options.pool, f->height, sample_row, &s);
    return THEO_OK;
}

theo_status theo_moge_sample(theo_moge_runner *r, const theo_moge_frame *frame, const theo_moge_maps *maps, theo_error *err) {
    float *const outs[THEO_MOGE_HEADS] = {maps->points, maps->normal, maps->mask};
    for (theo_moge_head h = 0; h < THEO_MOGE_HEADS; h++)
        if (outs[h])
            THEO_TRY(sample(r, frame, h, false, outs[h], err));
    return THEO_OK;
}

theo_status theo_moge_sample_raw(theo_moge_runner *r, const theo_moge_frame *frame, theo_moge_head head, float *out,
                                 theo_error *err) {
    return sample(r, frame, head, true, out, err);
}
