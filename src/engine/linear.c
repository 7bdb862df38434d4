/* Blocking: C is cut into blocks of up to BLOCK_PANELS A panels times BLOCK_COLUMNS columns, the tasks of the pool. A task walks
 * over K in slices of SLICE: packs its rows' slice (which stays in the second-level cache), and for each B panel (a slice of one
 * fits the first-level cache) goes down its A panels. Between two slices the sums wait in the scratch. */
#include "engine/linear.h"

enum {
    BLOCK_PANELS = 12,
    BLOCK_COLUMNS = 1024,
    SLICE = 16, /* chunks of K: 256 */
};

typedef struct job {
    const theo_linear_call *call;
    const theo_gemm_kernels *gemm;
    int chunks;                           /* of K */
    int row_panels, column_panels;        /* of C */
    int row_blocks, column_blocks;
    size_t pack_floats, scratch_floats;   /* of one worker: the packed rows come first, then the sums */
    float *scratch;
} job;

static int div_up(int a, int b) { return (a + b - 1) / b; }
static int min_int(int a, int b) { return a < b ? a : b; }

static job plan_job(const theo_packed *weight, int rows, int threads) {
    const theo_gemm_kernels *gemm = weight->kernels->gemm;
    job j = {.gemm = gemm};
    j.chunks = div_up(weight->in_c, THEO_KU);
    j.row_panels = div_up(rows, gemm->mr);
    j.column_panels = div_up(weight->out_c, gemm->nr);
    j.row_blocks = div_up(j.row_panels, BLOCK_PANELS);
    j.column_blocks = div_up(weight->out_c, BLOCK_COLUMNS);
    /* Few rows: more blocks of columns, so that every thread has some. */
    if (j.row_blocks * j.column_blocks < 3 * threads && threads > 1)
        j.column_blocks = min_int(j.column_panels, div_up(3 * threads, j.row_blocks));
    int panels = div_up(j.row_panels, j.row_blocks), columns = div_up(j.column_panels, j.column_blocks);
    j.pack_floats = (size_t)panels * (size_t)min_int(j.chunks, SLICE) * (size_t)(gemm->mr * THEO_KU);
    size_t tile = (size_t)(gemm->mr * gemm->nr);
    size_t sums = (j.chunks > SLICE ? (size_t)panels * (size_t)columns : 1) * tile;
    j.scratch_floats = (j.pack_floats + sums + 15) / 16 * 16;
    return j;
}

size_t theo_linear_scratch_bytes(const theo_packed *weight, int rows, int threads) {
    return plan_job(weight, rows, threads).scratch_floats * (size_t)threads * sizeof(float);
}

static theo_gemm_finish finish_of(const theo_linear_call *call, int row, int rows, int column, int columns) {
    return (theo_gemm_finish){
        .rows = rows,
        .cols = columns,
        .epilogue = {.bias = call->weight->bias ? call->weight->bias + column : NULL,
                     .act = call->act,
                     .scale = call->scale ? call->scale + column : NULL,
                     .shift = call->shift ? call->shift + column : NULL},
        .residual = call->residual ? call->residual + (size_t)row * call->residual_pitch + column : NULL,
        .residual_pitch = call->residual_pitch,
        .out = call->out + (size_t)row * call->out_pitch + column,
        .out_pitch = call->out_pitch,
    };
}

static void run_block(void *context, int task, int worker) {
    const job *j = context;
    const theo_linear_call *call = j->call;
    const int mr = j->gemm->mr, nr = j->gemm->nr;
    const size_t tile_floats = (size_t)(mr * nr), panel_floats = (size_t)(mr * THEO_KU); /* of one chunk */
    float *packed = j->scratch + (size_t)worker * j->scratch_floats, *sums = packed + j->pack_floats;
    /* Even shares of the panels. Neighbouring tasks share columns, and so the weights in the last-level cache. */
    int row_block = task % j->row_blocks, column_block = task / j->row_blocks;
    int p0 = row_block * j->row_panels / j->row_blocks, p1 = (row_block + 1) * j->row_panels / j->row_blocks;
    int q0 = column_block * j->column_panels / j->column_blocks, q1 = (column_block + 1) * j->column_panels / j->column_blocks;

    for (int k0 = 0; k0 < j->chunks; k0 += SLICE) {
        int slice = min_int(SLICE, j->chunks - k0);
        bool last = k0 + slice == j->chunks;
        for (int p = p0; p < p1; p++)
            j->gemm->pack_rows(call->in + (size_t)(p * mr) * call->in_pitch + (size_t)k0 * THEO_KU, call->in_pitch,
                               min_int(mr, call->rows - p * mr), min_int(slice * THEO_KU, call->weight->in_c - k0 * THEO_KU),
                               packed + (size_t)(p - p0) * (size_t)slice * panel_floats);
        for (int q = q0; q < q1; q++) {
            const float *b = call->weight->data + ((size_t)q * (size_t)j->chunks + (size_t)k0) * (size_t)(THEO_KU * nr);
            const float *next = b + (size_t)j->chunks * (size_t)(THEO_KU * nr);
            int columns = min_int(nr, call->weight->out_c - q * nr);
            for (int p = p0; p < p1; p++) {
                const size_t ahead = (size_t)(p - p0) * (size_t)slice * THEO_KU * 16; /* the share of `next` that this tile fetches */
                theo_gemm_tile tile = {
                    .a = packed + (size_t)(p - p0) * (size_t)slice * panel_floats,
                    .b = b,
                    .ahead = next + ahead % ((size_t)(slice * THEO_KU * nr)),
                    .c = j->chunks > SLICE ? sums + ((size_t)(q - q0) * (size_t)(p1 - p0) + (size_t)(p - p0)) * tile_floats : sums,
                    .rows = min_int(mr, call->rows - p * mr),
                    .cols = columns,
                    .chunks = slice,
                    .add = k0 > 0,
                };
                j->gemm->tile(&tile);
                if (last) {
                    theo_gemm_finish finish = finish_of(call, p * mr, tile.rows, q * nr, columns);
                    finish.c = tile.c;
                    j->gemm->finish(&finish);
                }
            }
        }
    }
}

void theo_linear_run(const theo_linear_call *call, theo_pool *pool, void *scratch) {
    job j = plan_job(call->weight, call->rows, theo_pool_threads(pool));
    j.call = call;
    j.scratch = scratch;
    theo_pool_run(pool, j.row_blocks * j.column_blocks, run_block, &j);
}
