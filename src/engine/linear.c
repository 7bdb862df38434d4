/* Blocking: C is cut into blocks of up to BLOCK_PANELS A panels times some columns, the tasks of the pool. A task packs
 * its rows, up to DEPTH chunks of them at a time, which stay in the second-level cache. For each B panel it then goes down its A
 * panels once a slice of k: a slice of the B panel, the one fetched ahead and one of an A panel fit the first-level cache, and
 * the sums of one column of tiles stay near. */
#include "engine/linear.h"

enum {
    BLOCK_PANELS = 12,
    SUM_COLUMNS = 1024, /* at most, where sums wait for the next depth: they are to stay in the second-level cache */
    DEPTH = 64,         /* chunks of 16 k: 1024 */
    SLICE = 16,         /* 256 */
};

typedef struct job {
    const theo_linear_call *call;
    const theo_gemm_kernels *gemm;
    int chunks;                    /* of K */
    int row_panels, column_panels; /* of C */
    int phase_panels;              /* B panels of one phase of transposed weights; else all of them */
    int row_blocks, column_blocks;
    size_t pack_floats, scratch_floats; /* of one worker: the packed rows come first, then the sums */
    float *scratch;
} job;

static int div_up(int a, int b) {
    return (a + b - 1) / b;
}
static int min_int(int a, int b) {
    return a < b ? a : b;
}

/* Chooses the number of blocks: as few as the caches allow, but so many that the threads end together. Only speed depends on it.
 */
static void choose_blocks(job *j, int least_columns, int threads) {
    int least_rows = div_up(j->row_panels, BLOCK_PANELS);
    double best = 0.0;
    for (int rows = least_rows; rows <= min_int(least_rows + 15, j->row_panels); rows++)
        for (int columns = least_columns; columns <= min_int(least_columns + 15, j->column_panels); columns++) {
            int panels = div_up(j->row_panels, rows);
            double rounds = div_up(rows * columns, threads), tiles = (double)panels * div_up(j->column_panels, columns);
            /* Each block of columns packs the rows again; each block of rows fetches the weights again. */
            double cost = rounds * tiles * (1.0 + 0.02 * columns + 0.3 / panels);
            if (best == 0.0 || cost < best) {
                best = cost;
                j->row_blocks = rows;
                j->column_blocks = columns;
            }
        }
}

static job plan_job(const theo_packed *weight, int rows, int threads) {
    const theo_gemm_kernels *gemm = weight->kernels->gemm;
    job j = {.gemm = gemm};
    j.chunks = div_up(weight->depth, THEO_KU);
    j.row_panels = div_up(rows, gemm->mr);
    j.phase_panels = div_up(weight->out_c, gemm->nr);
    j.column_panels = weight->phases * j.phase_panels;
    choose_blocks(&j, j.chunks > DEPTH ? div_up(j.column_panels * gemm->nr, SUM_COLUMNS) : 1, threads);
    int panels = div_up(j.row_panels, j.row_blocks), columns = div_up(j.column_panels, j.column_blocks);
    j.pack_floats = (size_t)panels * (size_t)min_int(j.chunks, DEPTH) * (size_t)(gemm->mr * THEO_KU);
    size_t tile = (size_t)(gemm->mr * gemm->nr);
    size_t sums = (size_t)panels * (j.chunks > DEPTH ? (size_t)columns : 1) * tile;
    j.scratch_floats = (j.pack_floats + sums + 15) / 16 * 16;
    return j;
}

size_t theo_linear_scratch_bytes(const theo_packed *weight, int rows, int threads) {
    return plan_job(weight, rows, threads).scratch_floats * (size_t)threads * sizeof(float);
}

/* The first of the rows goes to pixel `at` of the output, the others `step` pixels behind one another. */
static theo_gemm_finish finish_of(const theo_linear_call *call, size_t at, size_t step, int rows, int column, int columns) {
    return (theo_gemm_finish){
        .rows = rows,
        .cols = columns,
        .epilogue = {.bias = call->weight->bias ? call->weight->bias + column : NULL,
                     .act = call->act,
                     .scale = call->scale ? call->scale + column : NULL,
                     .shift = call->shift ? call->shift + column : NULL},
        .residual = call->residual ? call->residual + at * call->residual_pitch + column : NULL,
        .residual_pitch = step * call->residual_pitch,
        .out = call->out + at * call->out_pitch + column,
        .out_pitch = step * call->out_pitch,
    };
}

/* Block of C: A panels p0 .. p1-1, B panels q0 .. q1-1. */
typedef struct block {
    const job *j;
    int p0, p1, q0, q1;
    float *packed; /* [panel][chunk of the current depth] */
    float *sums;   /* [panel], or [B panel][panel] where they wait for the next depth */
} block;

static int rows_of(const job *j, int p) {
    return min_int(j->gemm->mr, j->call->rows - p * j->gemm->mr);
}

static int columns_of(const job *j, int q) {
    return min_int(j->gemm->nr, j->call->weight->out_c - q % j->phase_panels * j->gemm->nr);
}

/* Chunks k0 .. k0 + depth - 1 of the rows. */
static void pack(const block *b, int k0, int depth) {
    const job *j = b->j;
    const theo_linear_call *call = j->call;
    int mr = j->gemm->mr, count = min_int(depth * THEO_KU, call->weight->depth - k0 * THEO_KU);
    for (int p = b->p0; p < b->p1; p++)
        j->gemm->pack_rows(call->in + (size_t)(p * mr) * call->in_pitch + (size_t)(k0 * THEO_KU), call->in_pitch, rows_of(j, p),
                           count, b->packed + (size_t)(p - b->p0) * (size_t)(depth * mr * THEO_KU));
}

/* Fetches the output's cache lines of tile (p, q) for writing, so that they are there when its sums are complete. */
static void fetch_output(const job *j, int p, int q) {
    const theo_linear_call *call = j->call;
    if (call->weight->phases > 1) /* rows that are not neighbours */
        return;
    int columns = columns_of(j, q), rows = rows_of(j, p);
    const float *out = call->out + (size_t)(p * j->gemm->mr) * call->out_pitch + (size_t)(q * j->gemm->nr);
    for (int r = 0; r < rows; r++, out += call->out_pitch)
        for (int i = 0; i < columns; i += 16)
            __builtin_prefetch(out + i, 1);
}

/* Adds what those chunks give to the sums of B panel q. */
static void multiply(const block *b, int q, int k0, int depth, float *sums) {
    const job *j = b->j;
    int mr = j->gemm->mr, nr = j->gemm->nr;
    theo_gemm_tile t = {.cols = columns_of(j, q), .ahead_step = (size_t)min_int(16, div_up(2 * nr, b->p1 - b->p0))};
    t.b = j->call->weight->data + ((size_t)q * (size_t)j->chunks + (size_t)k0) * (size_t)(THEO_KU * nr);
    for (int chunk = 0; chunk < depth; chunk += SLICE) {
        t.chunks = min_int(SLICE, depth - chunk);
        t.add = k0 + chunk > 0;
        t.c = sums;
        t.a = b->packed + (size_t)(chunk * mr * THEO_KU);
        /* The slice that follows is fetched while this one is used, each tile taking its share. */
        const float *next = t.b + (size_t)(t.chunks * THEO_KU * nr);
        size_t share = 0, shares = (size_t)(t.chunks * THEO_KU * nr);
        for (int p = b->p0; p < b->p1; p++) {
            t.rows = rows_of(j, p);
            t.ahead = share < shares ? next + share : t.b;
            if (k0 + chunk + t.chunks == j->chunks)
                fetch_output(j, p, q);
            j->gemm->tile(&t);
            share += (size_t)(t.chunks * THEO_KU / 2) * t.ahead_step;
            t.a += (size_t)(depth * mr * THEO_KU);
            t.c += (size_t)(mr * nr);
        }
        t.b = next;
    }
}

/* Rows of one phase of a transposed convolution: as far as the end of the map's row at a time. */
static void finish_transposed(const job *j, int row, int rows, int q, const float *sums) {
    const theo_linear_call *call = j->call;
    int w = call->map_w, column = q % j->phase_panels * j->gemm->nr;
    size_t side = (size_t)call->weight->kernel, phase = (size_t)(q / j->phase_panels);
    for (int count; rows > 0; row += count, rows -= count, sums += count * j->gemm->nr) {
        size_t y = (size_t)(row / w), x = (size_t)(row % w);
        count = min_int(rows, w - (int)x);
        size_t at = (side * y + phase / side) * side * (size_t)w + side * x + phase % side;
        theo_gemm_finish f = finish_of(call, at, side, count, column, columns_of(j, q));
        f.c = sums;
        j->gemm->finish(&f);
    }
}

static void finish(const block *b, int q, const float *sums) {
    const job *j = b->j;
    int mr = j->gemm->mr, nr = j->gemm->nr;
    for (int p = b->p0; p < b->p1; p++, sums += mr * nr) {
        if (j->call->weight->phases > 1) {
            finish_transposed(j, p * mr, rows_of(j, p), q, sums);
        } else {
            theo_gemm_finish f = finish_of(j->call, (size_t)(p * mr), 1, rows_of(j, p), q * nr, columns_of(j, q));
            f.c = sums;
            j->gemm->finish(&f);
        }
    }
}

static void run_block(void *context, int task, int worker) {
    const job *j = context;
    /* Even shares of the panels. Neighbouring tasks share columns, and so the weights in the last-level cache. */
    int row_block = task % j->row_blocks, column_block = task / j->row_blocks;
    block b = {.j = j,
               .p0 = row_block * j->row_panels / j->row_blocks,
               .p1 = (row_block + 1) * j->row_panels / j->row_blocks,
               .q0 = column_block * j->column_panels / j->column_blocks,
               .q1 = (column_block + 1) * j->column_panels / j->column_blocks,
               .packed = j->scratch + (size_t)worker * j->scratch_floats};
    b.sums = b.packed + j->pack_floats;
    size_t waiting = j->chunks > DEPTH ? (size_t)(b.p1 - b.p0) * (size_t)(j->gemm->mr * j->gemm->nr) : 0;
    for (int k0 = 0; k0 < j->chunks; k0 += DEPTH) {
        int depth = min_int(DEPTH, j->chunks - k0);
        pack(&b, k0, depth);
        for (int q = b.q0; q < b.q1; q++) {
            float *sums = b.sums + (size_t)(q - b.q0) * waiting;
            multiply(&b, q, k0, depth, sums);
            if (k0 + depth == j->chunks)
                finish(&b, q, sums);
        }
    }
}

void theo_linear_run(const theo_linear_call *call, theo_pool *pool, void *scratch) {
    job j = plan_job(call->weight, call->rows, theo_pool_threads(pool));
    j.call = call;
    j.scratch = scratch;
    theo_pool_run(pool, j.row_blocks * j.column_blocks, run_block, &j);
}
