/* Blocking: the output is cut into blocks of rows x cols tiles, the tasks of the pool. A task transforms the input of its block
 * once (V, which stays in the second-level cache); then, for one panel of nr output channels at a time, multiplies at all 36
 * positions (M, small: nr channels of one block) and transforms back. The weights stream past once a block, in the order in
 * which they lie in memory. */
#include "engine/winograd.h"
#include <string.h>

enum { TILE = THEO_WINOGRAD_TILE, SIDE = TILE + 2, POSITIONS = THEO_WINOGRAD_POSITIONS };

enum {
    /* A block's V and M are to fit the second-level cache (0.8 MB at 64 channels, 1.3 MB at 128), its weights, fetched from the
     * last level once a block, are to be used often enough (at 256 channels fewer tiles wait for them). Measured best for all. */
    BLOCK_TILES = 56,
    STREAM_BYTES = 8 << 20, /* outputs from here on are written past the caches: they would not be there when they are read */
    SLICE =
        8, /* chunks of input channels multiplied at a time: 128, so that a slice of a B panel stays in the first-level cache */
};

typedef struct job {
    const theo_conv3x3_call *call;
    const theo_gemm_kernels *gemm;
    const theo_winograd_kernels *winograd;
    int chunks, column_panels;
    int tiles_h, tiles_w; /* of the output */
    int rows, cols;       /* tiles of a block; less at the right and bottom edges */
    int down, across;     /* blocks */
    size_t panel;         /* floats of an A panel */
    size_t v_position, m_position;
    size_t v_floats, m_floats, input_floats; /* scratch of one worker, in this order */
    bool stream;
    float *scratch;
} job;

static int div_up(int a, int b) {
    return (a + b - 1) / b;
}
static int min_int(int a, int b) {
    return a < b ? a : b;
}
static int max_int(int a, int b) {
    return a > b ? a : b;
}

/* Floats rounded up to an odd number of cache lines, so that 36 streams at this distance fall into different cache sets. */
static size_t odd_lines(size_t floats) {
    return ((floats + 15) / 16 | 1) * 16;
}

/* Chooses rows x cols: near BLOCK_TILES, square rather than long (neighbouring blocks share a border of two pixels),
 * and so many blocks that the threads end together. Only speed depends on it. */
static void choose_block(job *j, int threads) {
    double best = 0.0;
    for (int rows = 1; rows <= min_int(j->tiles_h, 16); rows++) {
        int across = div_up(j->tiles_w, max_int(1, min_int(j->tiles_w, BLOCK_TILES / rows)));
        int cols = div_up(j->tiles_w, across), down = div_up(j->tiles_h, rows);
        across = div_up(j->tiles_w, cols);
        double tiles = rows * cols, halo = (double)((TILE * rows + 2) * (TILE * cols + 2)) / (TILE * TILE * tiles);
        double rounds = (double)div_up(down * across, threads) * threads * tiles / ((double)j->tiles_h * j->tiles_w);
        double panels = div_up(rows * cols, j->gemm->mr) * j->gemm->mr / tiles;
        /* The weights' fetch counts as some tiles' work a block. */
        double cost = rounds * (1.0 + 0.1 * halo + 0.1 * panels + 4.0 / tiles);
        if (best == 0.0 || cost < best) {
            best = cost;
            j->rows = rows;
            j->cols = cols;
            j->down = down;
            j->across = across;
        }
    }
}

static job plan_job(const theo_conv3x3_call *call, int threads) {
    const theo_packed *weight = call->weight;
    job j = {.call = call, .gemm = weight->kernels->gemm, .winograd = weight->kernels->winograd};
    j.chunks = div_up(weight->in_c, THEO_KU);
    j.column_panels = div_up(weight->out_c, j.gemm->nr);
    j.tiles_h = div_up(call->h, TILE);
    j.tiles_w = div_up(call->w, TILE);
    choose_block(&j, threads);

    int tiles = j.rows * j.cols;
    j.panel = (size_t)j.chunks * (size_t)(j.gemm->mr * THEO_KU);
    j.v_position = odd_lines((size_t)div_up(tiles, j.gemm->mr) * j.panel);
    j.m_position = odd_lines((size_t)(tiles * j.gemm->nr));
    j.v_floats = POSITIONS * j.v_position;
    j.m_floats = POSITIONS * j.m_position;
    size_t pixels = call->region ? (size_t)((TILE * j.rows + 2) * (TILE * j.cols + 2)) : SIDE * SIDE;
    j.input_floats = odd_lines(pixels * (size_t)weight->in_c);
    return j;
}

static size_t worker_floats(const job *j) {
    return j->v_floats + j->m_floats + j->input_floats;
}

size_t theo_winograd_scratch_bytes(const theo_conv3x3_call *call, int threads) {
    job j = plan_job(call, threads);
    return worker_floats(&j) * (size_t)threads * sizeof(float);
}

/* One block at work. */
typedef struct block {
    const job *j;
    int ty, tx, rows, cols; /* tiles */
    int panel_rows;         /* tiles of an A panel: the block's tiles in even shares */
    float *v, *m, *input;
} block;

/* The 6x6 pixels whose top left one is (y, x), with what lies outside of the picture, one after the other. */
static void gather_edge(const theo_conv3x3_call *call, int y, int x, float *patch) {
    size_t channels = (size_t)call->weight->in_c;
    for (int i = 0; i < SIDE; i++)
        for (int k = 0; k < SIDE; k++, patch += channels) {
            int py = y + i, px = x + k;
            bool inside = py >= 0 && py < call->h && px >= 0 && px < call->w;
            if (inside || call->padding == THEO_PAD_REPLICATE) {
                py = max_int(0, min_int(py, call->h - 1));
                px = max_int(0, min_int(px, call->w - 1));
                memcpy(patch, call->in + (size_t)py * call->in_row + (size_t)px * call->in_pixel, channels * sizeof(float));
            } else {
                memset(patch, 0, channels * sizeof(float));
            }
        }
}

static void transform_input(const block *b) {
    const job *j = b->j;
    const theo_conv3x3_call *call = j->call;
    size_t channels = (size_t)call->weight->in_c;
    int y0 = b->ty * TILE - 1, x0 = b->tx * TILE - 1; /* the block's input starts here */
    size_t region_row = (size_t)(b->cols * TILE + 2) * channels;
    if (call->region)
        call->region(call->region_context, y0, y0 + b->rows * TILE + 2, x0, x0 + b->cols * TILE + 2, b->input, region_row,
                     channels);

    theo_winograd_input t = {
        .channels = (int)channels, .relu = call->relu_input, .position = j->v_position, .chunk = (size_t)(j->gemm->mr * THEO_KU)};
    for (int r = 0, n = 0; r < b->rows; r++)
        for (int c = 0; c < b->cols; c++, n++) {
            int y = y0 + r * TILE, x = x0 + c * TILE;
            t.v = b->v + (size_t)(n / b->panel_rows) * j->panel + (size_t)(n % b->panel_rows * THEO_KU);
            if (call->region) {
                t.in = b->input + (size_t)(r * TILE) * region_row + (size_t)(c * TILE) * channels;
                t.row = region_row;
                t.pixel = channels;
            } else if (y >= 0 && x >= 0 && y + SIDE <= call->h && x + SIDE <= call->w) {
                t.in = call->in + (size_t)y * call->in_row + (size_t)x * call->in_pixel;
                t.row = call->in_row;
                t.pixel = call->in_pixel;
            } else {
                gather_edge(call, y, x, b->input);
                t.in = b->input;
                t.row = SIDE * channels;
                t.pixel = channels;
            }
            j->winograd->input(&t);
        }
}

/* All positions for the output channels of panel q. */
static void multiply(const block *b, int q) {
    const job *j = b->j;
    int tiles = b->rows * b->cols, nr = j->gemm->nr;
    theo_gemm_tile t = {.cols = min_int(nr, j->call->weight->out_c - q * nr),
                        .ahead_step = (size_t)min_int(16, div_up(2 * nr, div_up(tiles, b->panel_rows)))};
    t.b = j->call->weight->data + (size_t)q * POSITIONS * (size_t)(j->chunks * THEO_KU * nr);
    for (int position = 0; position < POSITIONS; position++)
        for (int chunk = 0; chunk < j->chunks; chunk += SLICE) {
            t.chunks = min_int(SLICE, j->chunks - chunk);
            t.add = chunk > 0;
            t.c = b->m + (size_t)position * j->m_position;
            const float *a = b->v + (size_t)position * j->v_position + (size_t)(chunk * j->gemm->mr * THEO_KU);
            const float *next = t.b + (size_t)(t.chunks * THEO_KU * nr);
            /* The slice that follows is fetched while this one is used, each tile taking its share. */
            size_t share = 0, shares = (size_t)(t.chunks * THEO_KU * nr);
            for (int n = 0; n < tiles; n += b->panel_rows, a += j->panel) {
                t.rows = min_int(b->panel_rows, tiles - n);
                t.a = a;
                t.ahead = share < shares ? next + share : t.b;
                j->gemm->tile(&t);
                share += (size_t)(t.chunks * THEO_KU / 2) * t.ahead_step;
                t.c += (size_t)(t.rows * nr);
            }
            t.b = next;
        }
}

static void transform_output(const block *b, int q) {
    const job *j = b->j;
    const theo_conv3x3_call *call = j->call;
    const theo_packed *weight = call->weight;
    int nr = j->gemm->nr, channel = q * nr, shrink = call->pool2 ? 2 : 1;
    int x = b->tx * TILE;
    theo_winograd_output o = {
        .position = j->m_position,
        .channels = min_int(nr, weight->out_c - channel),
        .w = min_int(b->cols * TILE, call->w - x),
        .epilogue = {.bias = weight->bias ? weight->bias + channel : NULL,
                     .act = call->act,
                     .scale = call->scale ? call->scale + channel : NULL,
                     .shift = call->shift ? call->shift + channel : NULL},
        .residual_row = call->residual_row,
        .residual_pixel = call->residual_pixel,
        .pool2 = call->pool2,
        .stream = j->stream,
        .out_row = call->out_row,
        .out_pixel = call->out_pixel,
    };
    for (int r = 0; r < b->rows; r++) {
        int y = (b->ty + r) * TILE;
        o.h = min_int(TILE, call->h - y);
        o.m = b->m + (size_t)(r * b->cols * nr);
        if (call->residual)
            o.residual = call->residual + (size_t)y * call->residual_row + (size_t)x * call->residual_pixel + channel;
        o.out = call->out + (size_t)(y / shrink) * call->out_row + (size_t)(x / shrink) * call->out_pixel + channel;
        j->winograd->output(&o);
    }
}

static void run_block(void *context, int task, int worker) {
    const job *j = context;
    int down = task / j->across, across = task % j->across;
    block b = {.j = j, .ty = down * j->rows, .tx = across * j->cols};
    b.rows = min_int(j->rows, j->tiles_h - b.ty);
    b.cols = min_int(j->cols, j->tiles_w - b.tx);
    int tiles = b.rows * b.cols;
    b.panel_rows = div_up(tiles, div_up(tiles, j->gemm->mr));
    b.v = j->scratch + (size_t)worker * worker_floats(j);
    b.m = b.v + j->v_floats;
    b.input = b.m + j->m_floats;

    transform_input(&b);
    for (int q = 0; q < j->column_panels; q++) {
        multiply(&b, q);
        transform_output(&b, q);
    }
}

void theo_winograd_run(const theo_conv3x3_call *call, theo_pool *pool, void *scratch) {
    job j = plan_job(call, theo_pool_threads(pool));
    j.scratch = scratch;
    bool lines = (((uintptr_t)call->out | (call->out_row | call->out_pixel) * sizeof(float)) & 63) == 0;
    int side = call->pool2 ? 2 : 1;
    j.stream = lines && (size_t)(call->h / side) * (size_t)(call->w / side) * call->out_pixel * sizeof(float) >= STREAM_BYTES;
    theo_pool_run(pool, j.down * j.across, run_block, &j);
}
