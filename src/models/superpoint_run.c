#include "models/superpoint_run.h"
#include "base/clock.h"
#include "geometry/sample.h"
#include "models/superpoint_input.h"
#include "models/tiles.h"
#include <math.h>
#include <string.h>

enum {
    SHAPES = 4,         /* network sizes that a runner keeps plans for */
    WINDOWS = 4,        /* sizes of windows in one grid: usual or last, in x and in y */
    PARTS = 4,          /* combinations of DETECTOR and DESCRIPTOR */
    BAND_ROWS = 256,    /* rows of the score map that one step of the selection takes */
    POINTS_A_TASK = 32, /* descriptors sampled by one task */
};

typedef struct recorded {
    theo_plan *plan; /* NULL: not yet */
    theo_superpoint_net net;
} recorded;

/* All plans for one size of the network's input. */
typedef struct shape {
    int width, height; /* 0: unused */
    uint64_t last_use;
    theo_tile_grid grid;
    recorded nets[PARTS][WINDOWS];
} shape;

struct theo_superpoint_runner {
    const theo_superpoint *network;
    theo_superpoint_runner_options options;
    shape shapes[SHAPES];
    uint64_t uses;
    theo_scratch memory; /* lent to the plan that runs */

    theo_superpoint_input input;
    theo_selector selector;
    theo_scratch band;   /* rows of the score map of a tiled picture */
    theo_scratch owners; /* see describe_tiles */

    shape *current;      /* of the picture that was set */
    const recorded *ran; /* what lies in `memory`: valid for a picture of one window. NULL: nothing */
    unsigned ran_parts;
    theo_timing timing;
    double started;
    double progress_from, progress_share; /* of the run in progress, within the whole call */
};

static int map_side(int pixels) {
    return pixels / THEO_SUPERPOINT_CELL * THEO_SUPERPOINT_CELL;
}

/* ---------------------------------------------------------------- plans */

static void free_shape(shape *s) {
    for (int p = 0; p < PARTS; p++)
        for (int w = 0; w < WINDOWS; w++)
            theo_plan_free(s->nets[p][w].plan);
    *s = (shape){0};
}

theo_status theo_superpoint_runner_new(theo_superpoint_runner **runner, const theo_superpoint *network,
                                       const theo_superpoint_runner_options *options, theo_error *err) {
    *runner = theo_alloc(1, sizeof **runner);
    if (!*runner)
        return theo_fail(err, THEO_MEMORY, NULL, "session", "out of memory");
    (*runner)->network = network;
    (*runner)->options = *options;
    return THEO_OK;
}

void theo_superpoint_runner_free(theo_superpoint_runner *r) {
    if (!r)
        return;
    for (int i = 0; i < SHAPES; i++)
        free_shape(&r->shapes[i]);
    theo_superpoint_input_free(&r->input);
    theo_selector_free(&r->selector);
    theo_scratch_free(&r->memory);
    theo_scratch_free(&r->band);
    theo_scratch_free(&r->owners);
    theo_free(r);
}

/* The kept shape of that size and tiling, else the least recently used one made anew. */
static shape *shape_for(theo_superpoint_runner *r, int width, int height, int64_t tile_pixels) {
    theo_tile_grid grid = theo_tile_grid_make(width, height, tile_pixels);
    shape *oldest = &r->shapes[0];
    for (int i = 0; i < SHAPES; i++) {
        shape *s = &r->shapes[i];
        if (s->width == width && s->height == height && s->grid.x.count == grid.x.count && s->grid.y.count == grid.y.count) {
            s->last_use = ++r->uses;
            return s;
        }
        if (s->last_use < oldest->last_use)
            oldest = s;
    }
    if (oldest == r->current)
        r->current = NULL;
    r->ran = NULL;
    free_shape(oldest);
    *oldest = (shape){.width = width, .height = height, .grid = grid, .last_use = ++r->uses};
    return oldest;
}

typedef struct window {
    theo_tile_span x, y;
    int kind; /* index of its plan */
} window;

static window window_at(const shape *s, int column, int row) {
    return (window){theo_tile_span_at(&s->grid.x, column), theo_tile_span_at(&s->grid.y, row),
                    (column == s->grid.x.count - 1) + 2 * (row == s->grid.y.count - 1)};
}

static bool is_tiled(const shape *s) {
    return s->grid.x.count > 1 || s->grid.y.count > 1;
}

/* The plan of that window and those parts, recorded if need be. */
static theo_status plan_for(recorded **out, theo_superpoint_runner *r, shape *s, const window *w, unsigned parts,
                            theo_error *err) {
    recorded *n = &s->nets[parts][w->kind];
    if (!n->plan) {
        theo_plan *plan;
        THEO_TRY(theo_plan_new(&plan, r->options.level, r->options.pool, err));
        n->net = theo_superpoint_record(plan, r->network, w->y.size, w->x.size, parts & THEO_SUPERPOINT_DETECTOR,
                                        parts & THEO_SUPERPOINT_DESCRIPTOR);
        theo_status status = theo_plan_finish(plan, err);
        if (status) {
            theo_plan_free(plan);
            return status;
        }
        n->plan = plan;
    }
    *out = n;
    return THEO_OK;
}

static theo_status bind(theo_superpoint_runner *r, recorded *n, theo_error *err) {
    size_t bytes = theo_plan_memory_bytes(n->plan);
    if (r->memory.bytes < bytes)
        r->ran = NULL;
    void *memory = theo_scratch_fit(&r->memory, bytes);
    if (!memory)
        return theo_fail(err, THEO_MEMORY, NULL, "session", "out of memory: the activations need %zu bytes", bytes);
    theo_plan_bind(n->plan, memory);
    return THEO_OK;
}

static unsigned all_parts(const theo_superpoint_runner *r) {
    return THEO_SUPERPOINT_DETECTOR | (r->network->descriptor_dim ? THEO_SUPERPOINT_DESCRIPTOR : 0);
}

theo_status theo_superpoint_prepare(theo_superpoint_runner *r, int width, int height, const theo_plan **plan, theo_error *err) {
    shape *s = shape_for(r, width, height, r->options.tile_pixels);
    window first = window_at(s, 0, 0);
    recorded *n;
    if (is_tiled(s)) /* the first pass needs the detector alone */
        THEO_TRY(plan_for(&n, r, s, &first, THEO_SUPERPOINT_DETECTOR, err));
    THEO_TRY(plan_for(&n, r, s, &first, all_parts(r), err));
    THEO_TRY(bind(r, n, err));
    if (plan)
        *plan = n->plan;
    return THEO_OK;
}

/* Rows of the score map that tiled detection holds at once. */
static size_t band_rows(const shape *s, int halo) {
    int own = s->grid.y.count == 1 ? s->height : s->grid.y.step + THEO_TILE_BEFORE;
    for (int j = 0; j < s->grid.y.count; j++) {
        theo_tile_span span = theo_tile_span_at(&s->grid.y, j);
        own = span.own_end - span.own_start > own ? span.own_end - span.own_start : own;
    }
    return (size_t)own + 2 * (size_t)halo;
}

theo_status theo_superpoint_memory(theo_superpoint_runner *r, int width, int height, size_t *bytes, theo_error *err) {
    theo_detect_options defaults = {.nms_radius = 4};
    shape *s = shape_for(r, width, height, r->options.tile_pixels);
    window first = window_at(s, 0, 0);
    recorded *n;
    THEO_TRY(plan_for(&n, r, s, &first, all_parts(r), err));
    *bytes = theo_plan_memory_bytes(n->plan);
    if (is_tiled(s)) {
        theo_select_rule rule = theo_select_rule_of(&defaults);
        *bytes += band_rows(s, theo_select_halo(&rule)) * (size_t)map_side(width) * sizeof(float);
    }
    return THEO_OK;
}

/* ---------------------------------------------------------------- one run of one window */

static int pass_progress(void *user, double done) {
    theo_superpoint_runner *r = user;
    double whole = r->progress_from + r->progress_share * done; /* a sum of shares: may round to above 1 */
    return r->options.progress(r->options.progress_user, whole < 1 ? whole : 1);
}

static theo_status run(theo_superpoint_runner *r, recorded *n, theo_error *err) {
    double start = theo_clock_ms();
    theo_status status = theo_plan_run(n->plan, r->options.progress ? pass_progress : NULL, r, err);
    r->timing.forward += theo_clock_ms() - start;
    r->progress_from += r->progress_share;
    return status;
}

/* Runs the network on a window of the picture. */
static theo_status run_window(recorded **out, theo_superpoint_runner *r, const window *w, unsigned parts, theo_error *err) {
    recorded *n;
    THEO_TRY(plan_for(&n, r, r->current, w, parts, err));
    THEO_TRY(bind(r, n, err));
    r->ran = NULL;

    double start = theo_clock_ms();
    int pitch;
    float *plane = theo_plan_data(n->plan, n->net.plane, &pitch);
    theo_superpoint_input_fill(&r->input, w->x.start, w->y.start, w->x.size, w->y.size, plane, (size_t)pitch);
    r->timing.preprocess += theo_clock_ms() - start;

    THEO_TRY(run(r, n, err));
    r->ran = n;
    r->ran_parts = parts;
    *out = n;
    return THEO_OK;
}

theo_status theo_superpoint_set_image(theo_superpoint_runner *r, const theo_image *image, const theo_detect_options *options,
                                      int *width, int *height, theo_error *err) {
    r->started = theo_clock_ms();
    r->timing = (theo_timing){0};
    r->ran = NULL;
    r->current = NULL;
    r->progress_from = 0;
    THEO_TRY(theo_superpoint_input_set(&r->input, image, options, err));
    r->timing.preprocess = theo_clock_ms() - r->started;
    r->current = shape_for(r, r->input.width, r->input.height, r->options.tile_pixels);
    *width = r->input.width;
    *height = r->input.height;
    return THEO_OK;
}

theo_timing theo_superpoint_timing(const theo_superpoint_runner *r) {
    theo_timing timing = r->timing;
    timing.total = theo_clock_ms() - r->started;
    return timing;
}

/* ---------------------------------------------------------------- detection */

static const float *scores_of(const recorded *n) {
    int pitch; /* one channel: rows are packed */
    return theo_plan_data(n->plan, n->net.scores, &pitch);
}

static theo_status detect_whole(theo_superpoint_runner *r, const theo_select_rule *rule, bool descriptors, theo_error *err) {
    window w = window_at(r->current, 0, 0);
    recorded *n;
    r->progress_share = 1;
    THEO_TRY(run_window(&n, r, &w, THEO_SUPERPOINT_DETECTOR | (descriptors ? THEO_SUPERPOINT_DESCRIPTOR : 0), err));
    double start = theo_clock_ms();
    theo_status status =
        theo_select(&r->selector, rule, scores_of(n), n->net.scores.w, n->net.scores.h, (size_t)n->net.scores.w, err);
    r->timing.postprocess += theo_clock_ms() - start;
    return status;
}

/* Rows [first, first + count) of the score map in the band buffer, whose rows are `width` floats. */
typedef struct band {
    float *rows;
    int first, count, width;
} band;

/* Own part of a window's scores into the band. */
static void keep_scores(const band *b, const recorded *n, const window *w) {
    const float *scores = scores_of(n);
    int end_x = w->x.own_end < b->width ? w->x.own_end : b->width;
    for (int y = w->y.own_start; y < w->y.own_end && y - w->y.start < n->net.scores.h; y++)
        memcpy(b->rows + (size_t)(y - b->first) * (size_t)b->width + w->x.own_start,
               scores + (size_t)(y - w->y.start) * (size_t)n->net.scores.w + (w->x.own_start - w->x.start),
               (size_t)(end_x - w->x.own_start) * sizeof(float));
}

/* Selects in rows [from, to) and drops from the band what later rows will not look at. */
static theo_status select_rows(theo_superpoint_runner *r, band *b, int from, int to, int halo, theo_error *err) {
    double start = theo_clock_ms();
    for (int y = from; y < to; y += BAND_ROWS) {
        int count = to - y < BAND_ROWS ? to - y : BAND_ROWS;
        int top = y - halo > b->first ? y - halo : b->first, end = b->first + b->count;
        int bottom = y + count + halo < end ? y + count + halo : end;
        THEO_TRY(theo_select_rows(&r->selector, b->rows + (size_t)(top - b->first) * (size_t)b->width, (size_t)b->width, top,
                                  bottom - top, y, count, err));
    }
    int keep = to - halo > b->first ? to - halo : b->first;
    b->count -= keep - b->first;
    memmove(b->rows, b->rows + (size_t)(keep - b->first) * (size_t)b->width, (size_t)b->count * (size_t)b->width * sizeof(float));
    b->first = keep;
    r->timing.postprocess += theo_clock_ms() - start;
    return THEO_OK;
}

/* One row of windows after another: never more of the score map than such a row and what the suppression looks back. */
static theo_status detect_tiles(theo_superpoint_runner *r, const theo_select_rule *rule, bool descriptors, theo_error *err) {
    shape *s = r->current;
    int halo = theo_select_halo(rule), map_width = map_side(s->width), map_height = map_side(s->height), done = 0;
    size_t bytes = band_rows(s, halo) * (size_t)map_width * sizeof(float);
    band b = {.rows = theo_scratch_fit(&r->band, bytes), .width = map_width};
    if (!b.rows)
        return theo_fail(err, THEO_MEMORY, NULL, "session", "out of memory: %zu bytes for a band of the score map", bytes);
    r->progress_share = (descriptors ? 0.5 : 1.0) / ((double)s->grid.x.count * s->grid.y.count);
    THEO_TRY(theo_select_begin(&r->selector, rule, map_width, map_height, err));
    for (int j = 0; j < s->grid.y.count; j++) {
        int end = 0;
        for (int i = 0; i < s->grid.x.count; i++) {
            window w = window_at(s, i, j);
            recorded *n;
            THEO_TRY(run_window(&n, r, &w, THEO_SUPERPOINT_DETECTOR, err));
            keep_scores(&b, n, &w);
            end = w.y.own_end < map_height ? w.y.own_end : map_height;
        }
        b.count = end - b.first;
        int ready = end == map_height ? end : end - halo > done ? end - halo : done;
        THEO_TRY(select_rows(r, &b, done, ready, halo, err));
        done = ready;
    }
    r->ran = NULL;
    return theo_select_end(&r->selector, err);
}

theo_status theo_superpoint_detect(theo_superpoint_runner *r, const theo_detect_options *options, const theo_selected **points,
                                   int *count, theo_error *err) {
    theo_select_rule rule = theo_select_rule_of(options);
    bool descriptors = options->descriptors && r->network->descriptor_dim;
    THEO_TRY(is_tiled(r->current) ? detect_tiles(r, &rule, descriptors, err) : detect_whole(r, &rule, descriptors, err));
    *points = r->selector.points;
    *count = r->selector.count;
    return THEO_OK;
}

/* ---------------------------------------------------------------- values at points */

typedef struct sampling {
    const float *xy;
    float *descriptors, *scores;
    const int *order; /* which points; NULL: all in order */
    int count;
    theo_sampling rule;
    theo_cells cells;
    const float *score_map;                  /* of the window */
    int map_x, map_y, map_width, map_height; /* pixels of the whole that the window's score map covers */
} sampling;

static float score_at(const sampling *s, float x, float y) {
    /* Compared as floats: a far point does not fit an int. */
    float column = rintf(x) - (float)s->map_x, row = rintf(y) - (float)s->map_y;
    if (!(column >= 0 && row >= 0 && column < (float)s->map_width && row < (float)s->map_height))
        return 0;
    return s->score_map[(size_t)row * (size_t)s->map_width + (size_t)column];
}

static void sample_points(void *context, int task, int worker) {
    (void)worker;
    const sampling *s = context;
    int end = (task + 1) * POINTS_A_TASK < s->count ? (task + 1) * POINTS_A_TASK : s->count;
    for (int k = task * POINTS_A_TASK; k < end; k++) {
        size_t i = (size_t)(s->order ? s->order[k] : k);
        if (s->descriptors)
            theo_sample_descriptors(s->descriptors + i * (size_t)s->cells.channels, &s->cells, s->rule, s->xy + 2 * i, 1);
        if (s->scores)
            s->scores[i] = score_at(s, s->xy[2 * i], s->xy[2 * i + 1]);
    }
}

/* Values at points that lie in the own part of the window that ran. */
static void sample_window(theo_superpoint_runner *r, sampling *s, const recorded *n, const window *w) {
    double start = theo_clock_ms();
    if (s->descriptors) {
        int pitch;
        s->cells.data = theo_plan_data(n->plan, n->net.descriptors, &pitch);
        s->cells.cell_pitch = (size_t)pitch;
        s->cells.row_pitch = (size_t)pitch * (size_t)n->net.descriptors.w;
        s->cells.origin_x = w->x.start / THEO_SUPERPOINT_CELL;
        s->cells.origin_y = w->y.start / THEO_SUPERPOINT_CELL;
        s->cells.width = n->net.descriptors.w;
        s->cells.height = n->net.descriptors.h;
    }
    if (s->scores) {
        s->score_map = scores_of(n);
        s->map_x = w->x.start;
        s->map_y = w->y.start;
        s->map_width = n->net.scores.w;
        s->map_height = n->net.scores.h;
    }
    theo_pool_run(r->options.pool, (s->count + POINTS_A_TASK - 1) / POINTS_A_TASK, sample_points, s);
    r->timing.postprocess += theo_clock_ms() - start;
}

/* Which window serves a point: the one that owns the upper left of the four cells it reads. */
static int owner_of(const shape *s, const sampling *p, int i) {
    int cell_x, cell_y;
    theo_sample_footprint(&p->cells, p->rule, p->xy[2 * i], p->xy[2 * i + 1], &cell_x, &cell_y);
    return theo_tile_owner(&s->grid.y, cell_y * THEO_SUPERPOINT_CELL) * s->grid.x.count +
           theo_tile_owner(&s->grid.x, cell_x * THEO_SUPERPOINT_CELL);
}

/* The network again, on the windows that own points. */
static theo_status describe_tiles(theo_superpoint_runner *r, sampling *s, int count, unsigned parts, theo_error *err) {
    const shape *whole = r->current;
    int windows = whole->grid.x.count * whole->grid.y.count, busy = 0;
    /* order: points by window; owner: of each point; starts: where a window's points start in `order`. */
    int *order = theo_scratch_fit(&r->owners, (2 * (size_t)count + (size_t)windows + 1) * sizeof(int));
    if (!order)
        return theo_fail(err, THEO_MEMORY, NULL, "session", "out of memory for the order of %d points", count);
    int *owner = order + count, *starts = owner + count;
    memset(starts, 0, ((size_t)windows + 1) * sizeof(int));
    for (int i = 0; i < count; i++) {
        owner[i] = owner_of(whole, s, i);
        starts[owner[i] + 1]++;
    }
    for (int k = 0; k < windows; k++) {
        busy += starts[k + 1] > 0;
        starts[k + 1] += starts[k];
    }
    for (int i = 0; i < count; i++)
        order[starts[owner[i]]++] = i;

    r->progress_share = (1 - r->progress_from) / (busy ? busy : 1);
    for (int k = 0, from = 0; k < windows; from = starts[k], k++) { /* starts[k] has become the end of window k */
        if (starts[k] == from)
            continue;
        window w = window_at(whole, k % whole->grid.x.count, k / whole->grid.x.count);
        recorded *n;
        THEO_TRY(run_window(&n, r, &w, parts, err));
        s->order = order + from;
        s->count = starts[k] - from;
        sample_window(r, s, n, &w);
    }
    return THEO_OK;
}

theo_status theo_superpoint_describe(theo_superpoint_runner *r, theo_sampling rule, const float *xy, int count,
                                     float *descriptors, float *scores, theo_error *err) {
    const shape *s = r->current;
    unsigned parts = (descriptors ? THEO_SUPERPOINT_DESCRIPTOR : 0u) | (scores ? THEO_SUPERPOINT_DETECTOR : 0u);
    sampling job = {.xy = xy, .descriptors = descriptors, .scores = scores, .rule = rule, .count = count};
    job.cells = (theo_cells){.channels = r->network->descriptor_dim,
                             .whole_width = s->width / THEO_SUPERPOINT_CELL,
                             .whole_height = s->height / THEO_SUPERPOINT_CELL,
                             .net_width = s->width,
                             .net_height = s->height};
    if (!parts || !count)
        return THEO_OK;
    if (is_tiled(s))
        return describe_tiles(r, &job, count, parts, err);
    window w = window_at(s, 0, 0);
    recorded *n;
    r->progress_share = 1 - r->progress_from;
    if (!r->ran || (r->ran_parts & parts) != parts)
        THEO_TRY(run_window(&n, r, &w, parts, err));
    sample_window(r, &job, r->ran, &w);
    return THEO_OK;
}

/* ---------------------------------------------------------------- a plane as given */

static const float *output(const recorded *n, theo_tensor x, int *pitch) {
    return x.id < 0 ? NULL : theo_plan_data(n->plan, x, pitch);
}

theo_status theo_superpoint_forward(theo_superpoint_runner *r, const float *plane, int width, int height, unsigned parts,
                                    theo_superpoint_outputs *out, theo_error *err) {
    r->started = theo_clock_ms();
    r->timing = (theo_timing){0};
    r->progress_from = 0;
    r->progress_share = 1;
    r->ran = NULL;
    shape *s = shape_for(r, width, height, 0);
    window w = window_at(s, 0, 0);
    recorded *n;
    THEO_TRY(plan_for(&n, r, s, &w, parts, err));
    THEO_TRY(bind(r, n, err));
    int pitch;
    float *in = theo_plan_data(n->plan, n->net.plane, &pitch);
    if (pitch == 1)
        memcpy(in, plane, (size_t)width * (size_t)height * sizeof(float));
    else
        for (size_t i = 0; i < (size_t)width * (size_t)height; i++)
            in[i * (size_t)pitch] = plane[i];
    THEO_TRY(run(r, n, err));
    *out = (theo_superpoint_outputs){.cells_x = width / THEO_SUPERPOINT_CELL, .cells_y = height / THEO_SUPERPOINT_CELL};
    out->scores = output(n, n->net.scores, &pitch);
    out->logits = output(n, n->net.logits, &out->logits_pitch);
    out->raw = output(n, n->net.raw, &out->raw_pitch);
    out->descriptors = output(n, n->net.descriptors, &out->descriptors_pitch);
    return THEO_OK;
}
