/* Blocking: keys and values of every head are packed once, as the B panels of the two products. The tasks are then blocks of
 * queries of one head. A task goes over the keys in blocks, whose panels stay in the second-level cache while all its queries use
 * them; for each A panel of queries: scores = Q K^T, softmax on the way (kernels/attention.h), values += weights V. */
#include "engine/attention.h"
#include <math.h>
#include <string.h>

enum {
    KEY_UNIT = 32,     /* blocks of keys begin at multiples of 16 and of every nr */
    KEY_BLOCK = 704,   /* keys of a block, at most; the blocks of a call are of one size */
    QUERY_PANELS = 12, /* at most, of one task */
};

typedef struct job {
    const theo_attention_call *call;
    const theo_gemm_kernels *gemm;
    int dim_chunks, key_panels, key_chunks, value_panels, key_block;
    size_t key_panel, value_panel; /* floats */
    size_t head_floats;            /* packed keys, then values, of a head */
    int query_panels, query_blocks;
    size_t turned_floats; /* rows of one panel, turned */
    size_t worker_floats;
    float *packed, *workers;
} job;

static int div_up(int a, int b) {
    return (a + b - 1) / b;
}

static int min_int(int a, int b) {
    return a < b ? a : b;
}

static size_t lines(size_t floats) {
    return (floats + 15) / 16 * 16;
}

/* What one A panel of queries keeps from one block of keys to the next. */
typedef struct panel_state {
    float *queries; /* A panel */
    float *values;  /* [value_panels][rows][nr] */
    float *sums;    /* [rows][16] */
    float *largest; /* [rows] */
} panel_state;

static size_t query_floats(const job *j) {
    return (size_t)(j->dim_chunks * j->gemm->mr * THEO_KU);
}

static size_t value_floats(const job *j) {
    return (size_t)(j->value_panels * j->gemm->mr * j->gemm->nr);
}

static size_t state_floats(const job *j) {
    return lines(query_floats(j)) + lines(value_floats(j)) + (size_t)(j->gemm->mr * THEO_SOFTMAX_LANES) +
           lines((size_t)j->gemm->mr);
}

static panel_state state_of(const job *j, float *at) {
    panel_state s = {.queries = at};
    s.values = s.queries + lines(query_floats(j));
    s.sums = s.values + lines(value_floats(j));
    s.largest = s.sums + (size_t)(j->gemm->mr * THEO_SOFTMAX_LANES);
    return s;
}

static size_t block_floats(const job *j) { /* scores, and weights, of one A panel and one block of keys */
    return (size_t)(j->gemm->mr * j->key_block);
}

static job plan_job(const theo_attention_call *call, int threads) {
    job j = {.call = call, .gemm = call->kernels->gemm};
    int mr = j.gemm->mr, nr = j.gemm->nr;
    j.dim_chunks = div_up(call->dim, THEO_KU);
    j.key_panels = div_up(call->keys, nr);
    j.key_chunks = div_up(call->keys, THEO_KU);
    j.value_panels = div_up(call->dim, nr);
    j.key_block = div_up(div_up(call->keys, div_up(call->keys, KEY_BLOCK)), KEY_UNIT) * KEY_UNIT;
    j.key_panel = (size_t)(j.dim_chunks * THEO_KU * nr);
    j.value_panel = (size_t)(j.key_chunks * THEO_KU * nr);
    j.head_floats = lines((size_t)j.key_panels * j.key_panel + (size_t)j.value_panels * j.value_panel);
    j.query_panels = div_up(call->queries, mr);
    j.query_blocks = div_up(j.query_panels, QUERY_PANELS);
    if (call->heads * j.query_blocks < 3 * threads && threads > 1)
        j.query_blocks = min_int(j.query_panels, div_up(3 * threads, call->heads));
    int panels = div_up(j.query_panels, j.query_blocks);
    j.turned_floats = lines((size_t)((mr > nr ? mr : nr) * call->dim));
    j.worker_floats = (size_t)panels * state_floats(&j) + 2 * block_floats(&j) + j.turned_floats;
    return j;
}

size_t theo_attention_scratch_bytes(const theo_attention_call *call, int threads) {
    job j = plan_job(call, threads);
    return ((size_t)call->heads * j.head_floats + (size_t)threads * j.worker_floats) * sizeof(float);
}

/* Rows of one head, where there are positions turned into `turned`. Returns where they are; *pitch is updated. */
static const float *turn_rows(const job *j, const float *in, size_t *pitch, const float *turn, size_t turn_pitch, int rows,
                              float *turned) {
    if (!turn)
        return in;
    theo_rotation rotation = {
        .in = in,
        .turn = turn,
        .out = turned,
        .in_pitch = *pitch,
        .turn_pitch = turn_pitch,
        .out_pitch = (size_t)j->call->dim,
        .rows = rows,
        .half = j->call->dim / 2,
    };
    j->call->kernels->rotate_rows(&rotation);
    *pitch = rotation.out_pitch;
    return turned;
}

static const float *turn_of(const float *turn, size_t pitch, int row) {
    return turn ? turn + (size_t)row * pitch : NULL;
}

/* ---- keys and values of a head */

static void pack_head(void *context, int head, int worker) {
    const job *j = context;
    const theo_attention_call *c = j->call;
    int nr = j->gemm->nr;
    float *out = j->packed + (size_t)head * j->head_floats, *turned = j->workers + (size_t)worker * j->worker_floats;
    for (int p = 0; p < j->key_panels; p++, out += j->key_panel) {
        int keys = min_int(nr, c->keys - p * nr);
        if (keys < nr)
            memset(out, 0, j->key_panel * sizeof(float));
        size_t pitch = c->k_pitch;
        const float *rows = turn_rows(j, c->k + (size_t)(p * nr) * pitch + (size_t)(head * c->dim), &pitch,
                                      turn_of(c->k_turn, c->k_turn_pitch, p * nr), c->k_turn_pitch, keys, turned);
        c->kernels->transpose(rows, pitch, keys, c->dim, out, (size_t)nr);
    }
    for (int p = 0; p < j->value_panels; p++) {
        int columns = min_int(nr, c->dim - p * nr);
        const float *in = c->v + (size_t)(head * c->dim + p * nr);
        for (int key = 0; key < j->key_chunks * THEO_KU; key++, in += c->v_pitch, out += nr) {
            int copied = key < c->keys ? columns : 0;
            if (copied < nr)
                memset(out, 0, (size_t)nr * sizeof(float));
            if (copied)
                memcpy(out, in, (size_t)copied * sizeof(float));
        }
    }
}

/* ---- queries */

/* One A panel of queries against keys [from, from + count). */
static void add_keys(const job *j, const panel_state *s, int rows, const float *head, int from, int count, float *scores,
                     float *weights) {
    int mr = j->gemm->mr, nr = j->gemm->nr;
    theo_gemm_tile t = {.a = s->queries, .rows = rows, .chunks = j->dim_chunks, .ahead_step = 16};
    t.b = head + (size_t)(from / nr) * j->key_panel;
    t.c = scores;
    for (int left = count; left > 0; left -= nr) {
        t.cols = min_int(nr, left);
        t.ahead = t.b + j->key_panel;
        j->gemm->tile(&t);
        t.b += j->key_panel;
        t.c += rows * nr;
    }
    theo_softmax_step step = {
        .scores = scores,
        .rows = rows,
        .mr = mr,
        .nr = nr,
        .keys = count,
        .scale = (float)(M_LOG2E / sqrt((double)j->call->dim)),
        .first = from == 0,
        .weights = weights,
        .largest = s->largest,
        .sums = s->sums,
        .values = s->values,
        .value_panels = j->value_panels,
    };
    j->call->kernels->attention->step(&step);
    t = (theo_gemm_tile){.a = weights, .rows = rows, .chunks = div_up(count, THEO_KU), .add = from > 0, .ahead_step = 16};
    const float *values = head + (size_t)j->key_panels * j->key_panel + (size_t)from * (size_t)nr;
    for (int p = 0; p < j->value_panels; p++) {
        t.b = values + (size_t)p * j->value_panel;
        t.ahead = t.b + t.chunks * THEO_KU * nr;
        t.c = s->values + p * rows * nr;
        t.cols = min_int(nr, j->call->dim - p * nr);
        j->gemm->tile(&t);
    }
}

static void run_block(void *context, int task, int worker) {
    const job *j = context;
    const theo_attention_call *c = j->call;
    int mr = j->gemm->mr, head = task / j->query_blocks, block = task % j->query_blocks;
    int p0 = block * j->query_panels / j->query_blocks, p1 = (block + 1) * j->query_panels / j->query_blocks;
    float *scores = j->workers + (size_t)worker * j->worker_floats, *weights = scores + block_floats(j);
    float *turned = weights + block_floats(j), *states = turned + j->turned_floats;
    const float *packed = j->packed + (size_t)head * j->head_floats;

    for (int p = p0; p < p1; p++) {
        panel_state s = state_of(j, states + (size_t)(p - p0) * state_floats(j));
        int count = min_int(mr, c->queries - p * mr);
        size_t pitch = c->q_pitch;
        const float *rows = turn_rows(j, c->q + (size_t)(p * mr) * pitch + (size_t)(head * c->dim), &pitch,
                                      turn_of(c->q_turn, c->q_turn_pitch, p * mr), c->q_turn_pitch, count, turned);
        j->gemm->pack_rows(rows, pitch, count, c->dim, s.queries);
    }
    for (int from = 0; from < c->keys; from += j->key_block)
        for (int p = p0; p < p1; p++) {
            panel_state s = state_of(j, states + (size_t)(p - p0) * state_floats(j));
            add_keys(j, &s, min_int(mr, c->queries - p * mr), packed, from, min_int(j->key_block, c->keys - from), scores,
                     weights);
        }
    for (int p = p0; p < p1; p++) {
        panel_state s = state_of(j, states + (size_t)(p - p0) * state_floats(j));
        theo_softmax_finish finish = {
            .values = s.values,
            .sums = s.sums,
            .rows = min_int(mr, c->queries - p * mr),
            .nr = j->gemm->nr,
            .columns = c->dim,
            .out = c->out + (size_t)(p * mr) * c->out_pitch + (size_t)(head * c->dim),
            .out_pitch = c->out_pitch,
        };
        c->kernels->attention->finish(&finish);
    }
}

void theo_attention_run(const theo_attention_call *call, theo_pool *pool, void *scratch) {
    job j = plan_job(call, theo_pool_threads(pool));
    j.packed = scratch;
    j.workers = j.packed + (size_t)call->heads * j.head_floats;
    theo_pool_run(pool, call->heads, pack_head, &j);
    theo_pool_run(pool, call->heads * j.query_blocks, run_block, &j);
}
