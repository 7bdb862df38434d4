/* match.c - mutual nearest neighbours without the N x M matrix of similarities.
 *
 * A task takes a block of B, packs it once, and multiplies all of A with it, a few rows at a time: scores of those rows go into
 * the running best of the rows (kept by each worker, merged at the end) and of the block's columns (complete when the task ends).
 * Equal scores go to the lowest index everywhere, so that neither blocks nor threads show in the result. */
#include "base/error.h"
#include "base/pool.h"
#include "base/take_options.h"
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>
#include <theo/geometry.h>

enum {
    BLOCK_BYTES = 512 << 10, /* of packed B: half of a small second-level cache */
    LARGEST_DIM = 1 << 16,   /* of a descriptor */
};

typedef struct matcher {
    const theo_kernels *kernels;
    const theo_keypoints *a, *b;
    int block, chunks; /* columns of a block (a multiple of nr); depth in chunks of 16 */
    int workers;
    float *scratch; /* [workers][scratch_floats]: B panels, A panel, tile, scores */
    size_t scratch_floats;
    theo_top2 *rows;                    /* [workers][a->count] */
    float *column_best, *column_second; /* [b->count] */
    int32_t *column_index;              /* [b->count] */
} matcher;

void theo_match_options_init(theo_match_options *options) {
    *options = (theo_match_options){.size = sizeof *options, .min_similarity = -2};
}

static void match_block(void *context, int task, int worker) {
    const matcher *m = context;
    const theo_gemm_kernels *gemm = m->kernels->gemm;
    int mr = gemm->mr, nr = gemm->nr, dim = m->a->descriptor_dim, first = task * m->block;
    int columns = m->b->count - first < m->block ? m->b->count - first : m->block;
    size_t panel_floats = (size_t)m->chunks * THEO_KU * (size_t)nr, block = (size_t)m->block;
    float *b_panels = m->scratch + (size_t)worker * m->scratch_floats;
    float *a_panel = b_panels + panel_floats * (block / (size_t)nr);
    float *tile = a_panel + (size_t)m->chunks * THEO_KU * (size_t)mr;
    float *scores = tile + (size_t)mr * (size_t)nr; /* [mr][block] */
    theo_top2 *rows = m->rows + (size_t)worker * (size_t)m->a->count;

    theo_gemm_pack_weight(nr, m->kernels->transpose, columns, dim, m->b->descriptors + (size_t)first * (size_t)dim, b_panels);
    for (int top = 0; top < m->a->count; top += mr) {
        int height = m->a->count - top < mr ? m->a->count - top : mr;
        gemm->pack_rows(m->a->descriptors + (size_t)top * (size_t)dim, (size_t)dim, height, dim, a_panel);
        for (int left = 0; left < columns; left += nr) {
            int width = columns - left < nr ? columns - left : nr;
            const float *panel = b_panels + panel_floats * (size_t)(left / nr);
            gemm->tile(&(theo_gemm_tile){
                .a = a_panel, .b = panel, .ahead = panel, .c = tile, .rows = height, .cols = width, .chunks = m->chunks});
            for (int r = 0; r < height; r++)
                memcpy(scores + (size_t)r * block + left, tile + (size_t)r * (size_t)nr, (size_t)width * sizeof(float));
        }
        for (int r = 0; r < height; r++) {
            const float *row = scores + (size_t)r * block;
            m->kernels->top2_row(row, columns, first, &rows[top + r]);
            m->kernels->top2_columns(row, columns, top + r, m->column_best + first, m->column_second + first,
                                     m->column_index + first);
        }
    }
}

/* Joins what two workers found for one row. */
static theo_top2 merge(theo_top2 a, theo_top2 b) {
    bool b_wins = b.best > a.best || (b.best == a.best && b.index >= 0 && (a.index < 0 || b.index < a.index));
    theo_top2 winner = b_wins ? b : a, loser = b_wins ? a : b;
    if (loser.best > winner.second)
        winner.second = loser.best;
    return winner;
}

static float distance(float similarity) {
    return sqrtf(fmaxf(0, 2 - 2 * fmaxf(similarity, -1)));
}

static bool passes(const theo_top2 *top, const theo_match_options *o) {
    if (!(top->best > o->min_similarity) && o->min_similarity >= -1)
        return false;
    bool is_alone = top->second == -INFINITY;
    return o->ratio == 0 || is_alone || distance(top->best) < o->ratio * distance(top->second);
}

/* Collects the pairs; the first worker's rows become the merged ones. */
static theo_status collect(matcher *m, const theo_match_options *o, theo_matches **matches, theo_error *err) {
    int count = 0, n = m->a->count;
    for (int i = 0; i < n; i++) {
        theo_top2 *top = &m->rows[i];
        for (int w = 1; w < m->workers; w++)
            *top = merge(*top, m->rows[(size_t)w * (size_t)n + (size_t)i]);
        if (top->index >= 0 && (m->column_index[top->index] != i || !passes(top, o)))
            top->index = -1;
        count += top->index >= 0;
    }
    theo_matches *out = theo_alloc(1, sizeof *out + (size_t)count * (2 * sizeof(int32_t) + sizeof(float)));
    if (!out)
        return theo_fail(err, THEO_MEMORY, NULL, "matching", "no memory for %d matches", count);
    int32_t *pair = (int32_t *)(out + 1);
    float *similarity = (float *)(void *)(pair + 2 * (size_t)count);
    *out = (theo_matches){.count = count, .pairs = pair, .similarity = similarity};
    for (int i = 0; i < n; i++)
        if (m->rows[i].index >= 0) {
            *pair++ = i;
            *pair++ = m->rows[i].index;
            *similarity++ = m->rows[i].best;
        }
    *matches = out;
    return THEO_OK;
}

/* Columns of a block: what fits the cache, but no fewer than two blocks a thread where that leaves whole panels. */
static int block_columns(const matcher *m, int threads) {
    int nr = m->kernels->gemm->nr, panel_bytes = m->chunks * THEO_KU * nr * (int)sizeof(float);
    int most = BLOCK_BYTES / panel_bytes > 1 ? BLOCK_BYTES / panel_bytes : 1, panels = (m->b->count + nr - 1) / nr;
    int share = threads > 1 ? (panels + 2 * threads - 1) / (2 * threads) : most;
    if (share > most)
        share = most;
    return nr * (share < 1 ? 1 : share);
}

static void close_matcher(matcher *m) {
    theo_free_aligned(m->scratch);
    theo_free(m->rows);
    theo_free(m->column_best);
    theo_free(m->column_second);
    theo_free(m->column_index);
}

static theo_status open_matcher(matcher *m, const theo_keypoints *a, const theo_keypoints *b, theo_pool *pool, theo_error *err) {
    *m = (matcher){.kernels = theo_kernels_for(theo_cpu_level_in_use()), .a = a, .b = b, .workers = theo_pool_threads(pool)};
    size_t mr = (size_t)m->kernels->gemm->mr, nr = (size_t)m->kernels->gemm->nr;
    size_t rows = (size_t)a->count, columns = (size_t)b->count, workers = (size_t)m->workers;
    m->chunks = (a->descriptor_dim + THEO_KU - 1) / THEO_KU;
    m->block = block_columns(m, m->workers);
    size_t depth = (size_t)m->chunks * THEO_KU, block = (size_t)m->block;
    m->scratch_floats = depth * (block + mr) + mr * (nr + block);
    m->scratch_floats = (m->scratch_floats + 15) / 16 * 16;
    m->scratch = theo_alloc_aligned(workers * m->scratch_floats * sizeof(float));
    m->rows = theo_alloc(workers * rows, sizeof *m->rows);
    m->column_best = theo_alloc(columns, sizeof *m->column_best);
    m->column_second = theo_alloc(columns, sizeof *m->column_second);
    m->column_index = theo_alloc(columns, sizeof *m->column_index);
    if (!m->scratch || !m->rows || !m->column_best || !m->column_second || !m->column_index) {
        close_matcher(m);
        return theo_fail(err, THEO_MEMORY, NULL, "matching", "no memory for %d x %d descriptors", a->count, b->count);
    }
    for (size_t i = 0; i < workers * rows; i++)
        m->rows[i] = (theo_top2){-INFINITY, -INFINITY, -1};
    for (size_t i = 0; i < columns; i++) {
        m->column_best[i] = m->column_second[i] = -INFINITY;
        m->column_index[i] = -1;
    }
    return THEO_OK;
}

static theo_status check(const theo_keypoints *a, const theo_keypoints *b, const theo_match_options *o, theo_error *err) {
    if (!a || !b)
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "the keypoints of an image are NULL");
    if (!(o->ratio >= 0 && o->ratio <= 1))
        return theo_fail(err, THEO_ARGUMENT, NULL, "theo_match_options.ratio", "is %g: must lie between 0 (off) and 1",
                         (double)o->ratio);
    if (isnan(o->min_similarity))
        return theo_fail(err, THEO_ARGUMENT, NULL, "theo_match_options.min_similarity", "is not a number");
    if (a->count < 0 || b->count < 0)
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "the number of keypoints is negative");
    if (a->model && b->model && strcmp(a->model, b->model) != 0)
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "descriptors of different models (%s and %s) do not compare", a->model,
                         b->model);
    if (a->descriptor_dim != b->descriptor_dim)
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "descriptors of different lengths (%d and %d) do not compare",
                         a->descriptor_dim, b->descriptor_dim);
    if ((a->count && (a->descriptor_dim < 1 || !a->descriptors)) || (b->count && (b->descriptor_dim < 1 || !b->descriptors)))
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "keypoints without descriptors cannot be matched");
    if (a->descriptor_dim > LARGEST_DIM)
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "descriptors of %d numbers: at most %d are allowed", a->descriptor_dim,
                         LARGEST_DIM);
    return THEO_OK;
}

theo_status theo_match(const theo_keypoints *a, const theo_keypoints *b, const theo_match_options *options,
                       theo_matches **matches, theo_error *err) {
    theo_match_options o;
    if (!matches)
        return theo_fail(err, THEO_ARGUMENT, NULL, NULL, "matches must not be NULL");
    *matches = NULL;
    theo_match_options_init(&o);
    THEO_TRY(theo_options_take(&o, sizeof o, options, "theo_match_options", err));
    THEO_TRY(check(a, b, &o, err));
    if (!a->count || !b->count) {
        *matches = theo_alloc(1, sizeof **matches);
        return *matches ? THEO_OK : theo_fail(err, THEO_MEMORY, NULL, "matching", "no memory for the result");
    }
    matcher m;
    THEO_TRY(open_matcher(&m, a, b, o.pool, err));
    theo_pool_run(o.pool, (b->count + m.block - 1) / m.block, match_block, &m);
    theo_status status = collect(&m, &o, matches, err);
    close_matcher(&m);
    return status;
}

void theo_matches_free(theo_matches *matches) {
    theo_free(matches);
}
