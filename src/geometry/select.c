/* select.c - suppression of non-maxima and selection of points, exact to the upstream programs (docs/models/superpoint.md).
 *
 * Iterative suppression is defined on dense maps by five max-pools (SuperGlue, Sarlin et al. 2020). Scores at or below the
 * threshold cannot change what is kept above it, so they are zeroed first and only the remaining candidates are tested:
 *
 *     plane    candidates' scores, 0 elsewhere (also where a kept point suppresses)
 *     row_max  maximum of `plane` over x - r .. x + r
 *     keep     a candidate whose score is the maximum of row_max over y - r .. y + r
 *
 * Most candidates meet a greater neighbour after a look or two. Ties and plateaus cost at most 2r + 1 looks a candidate, and
 * suppression at most 2r + 1 writes a pixel, whatever the map. What a band of rows decides is right from 5r rows inside its cut
 * edges (r for the first maximum, then 2r for each suppression and maximum), hence the halo.
 *
 * A selected point is a 64-bit key whose order is that of the result: score descending, then y, then x:
 *     bits 63..32: complement of the score's bits (scores are >= 0, so their bits order like the numbers); bits 31..0: y * width
 * + x. */
#include "geometry/select.h"

#include "base/error.h"

#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

theo_select_rule theo_select_rule_of(const theo_detect_options *o) {
    return (theo_select_rule){.nms = o->nms,
                              .radius = o->nms_radius,
                              .threshold = o->threshold,
                              .border = o->border,
                              .border_mode = o->border_mode,
                              .order = o->order,
                              .max_points = o->max_keypoints};
}

/* ---------------------------------------------------------------- memory */

/* Makes room for count elements; the first `used` bytes stay. */
static theo_status grow(theo_growing *block, size_t count, size_t size, size_t used, theo_error *err) {
    if (count <= block->bytes / size)
        return THEO_OK;
    /* An eighth more, so that slowly rising demands do not allocate each time. Contents are not kept unless asked for: a fresh
     * block comes from the system as untouched pages. */
    size_t room = count + count / 8;
    void *data = used ? theo_realloc(block->data, room, size) : theo_alloc(room, size);
    if (!data)
        return theo_fail(err, THEO_MEMORY, NULL, "point selection", "no memory for %zu elements of %zu bytes", room, size);
    if (!used)
        theo_free(block->data);
    block->data = data;
    block->bytes = room * size;
    return THEO_OK;
}

void theo_selector_free(theo_selector *s) {
    theo_growing *all[] = {&s->keys, &s->sorted,       &s->plane,      &s->row_max, &s->scratch, &s->columns,
                           &s->kept, &s->column_start, &s->kept_start, &s->mask,    &s->result};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        theo_free(all[i]->data);
    *s = (theo_selector){0};
}

/* ---------------------------------------------------------------- keys */

static uint64_t key_of(float score, uint64_t index) {
    float positive = score + 0.0f; /* -0 becomes +0 */
    uint32_t bits;
    memcpy(&bits, &positive, sizeof bits);
    return (uint64_t)~bits << 32 | index;
}

static theo_selected point_of(uint64_t key, uint32_t width) {
    uint32_t bits = ~(uint32_t)(key >> 32), index = (uint32_t)key;
    theo_selected point = {.x = (int32_t)(index % width), .y = (int32_t)(index / width)};
    memcpy(&point.score, &bits, sizeof bits);
    return point;
}

/* Stable radix sort by the bits [from, to). The sorted keys end up in s->keys. */
static theo_status sort_keys(theo_selector *s, int from, int to, theo_error *err) {
    size_t n = s->key_count;
    if (n < 2)
        return THEO_OK;
    THEO_TRY(grow(&s->sorted, n, sizeof(uint64_t), 0, err));
    for (int shift = from; shift < to; shift += DIGIT_BITS) {
        const uint64_t *in = s->keys.data;
        uint64_t *out = s->sorted.data;
        uint64_t digit_mask = to - shift < DIGIT_BITS ? ((uint64_t)1 << (to - shift)) - 1 : DIGITS - 1;
        size_t place[DIGITS] = {0};
        for (size_t i = 0; i < n; i++)
            place[in[i] >> shift & digit_mask]++;
        if (place[in[0] >> shift & digit_mask] == n)
            continue; /* one digit only */
        size_t sum = 0;
        for (int d = 0; d < DIGITS; d++) {
            size_t count = place[d];
            place[d] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            out[place[in[i] >> shift & digit_mask]++] = in[i];
        theo_growing swap = s->keys;
        s->keys = s->sorted;
        s->sorted = swap;
    }
    return THEO_OK;
}

/* ---------------------------------------------------------------- one band, iterative and single */

typedef struct band {
    int width, rows, radius;
    size_t plane_pitch;                /* width + 2 radius */
    float *plane;                      /* [rows, plane_pitch], `radius` zeros on either side */
    float *row_max;                    /* [rows, width] */
    float *scratch[2];                 /* [plane_pitch] each */
    int32_t *columns, *kept;           /* [rows * width] */
    size_t *column_start, *kept_start; /* [rows + 1] */
} band;

static float *plane_row(const band *b, int y) {
    return b->plane + (size_t)y * b->plane_pitch + b->radius;
}

static theo_status open_band(band *b, theo_selector *s, int rows, theo_error *err) {
    size_t width = (size_t)s->width, n = (size_t)rows, pitch = width + 2 * (size_t)s->rule.radius;
    THEO_TRY(grow(&s->plane, n * pitch, sizeof(float), 0, err));
    THEO_TRY(grow(&s->row_max, n * width, sizeof(float), 0, err));
    THEO_TRY(grow(&s->scratch, 2 * pitch, sizeof(float), 0, err));
    THEO_TRY(grow(&s->columns, n * width, sizeof(int32_t), 0, err));
    THEO_TRY(grow(&s->kept, n * width, sizeof(int32_t), 0, err));
    THEO_TRY(grow(&s->column_start, n + 1, sizeof(size_t), 0, err));
    THEO_TRY(grow(&s->kept_start, n + 1, sizeof(size_t), 0, err));
    *b = (band){.width = s->width,
                .rows = rows,
                .radius = s->rule.radius,
                .plane_pitch = pitch,
                .plane = s->plane.data,
                .row_max = s->row_max.data,
                .scratch = {s->scratch.data, (float *)s->scratch.data + pitch},
                .columns = s->columns.data,
                .kept = s->kept.data,
                .column_start = s->column_start.data,
                .kept_start = s->kept_start.data};
    return THEO_OK;
}

/* Copies the rows, zeroing what is not above the threshold, and lists the candidates. */
static void load_band(band *b, const float *map, size_t pitch, float threshold) {
    size_t n = 0;
    for (int y = 0; y < b->rows; y++) {
        const float *restrict in = map + (size_t)y * pitch;
        float *restrict out = plane_row(b, y);
        int32_t *columns = b->columns;
        memset(out - b->radius, 0, (size_t)b->radius * sizeof(float));
        memset(out + b->width, 0, (size_t)b->radius * sizeof(float));
        for (int x = 0; x < b->width; x++)
            out[x] = in[x] > threshold ? in[x] : 0.0f;
        b->column_start[y] = n;
        for (int x = 0; x < b->width; x++) {
            columns[n] = x;
            n += out[x] > 0.0f;
        }
    }
    b->column_start[b->rows] = n;
}

static void pairwise_max(float *restrict out, const float *restrict in, size_t count, size_t step) {
    for (size_t i = 0; i < count; i++)
        out[i] = in[i] > in[i + step] ? in[i] : in[i + step];
}

/* row_max of every row that has candidates, by windows of 1, 2, 4, ... and last 2r + 1 elements. */
static void find_row_maxima(const band *b) {
    size_t width = (size_t)b->width, window = 2 * (size_t)b->radius + 1;
    for (int y = 0; y < b->rows; y++) {
        float *out = b->row_max + (size_t)y * width;
        if (b->column_start[y] == b->column_start[y + 1]) {
            memset(out, 0, width * sizeof(float));
            continue;
        }
        const float *in = plane_row(b, y) - b->radius;
        size_t reach = 1; /* in[i] is the maximum over i .. i + reach - 1 */
        for (int turn = 0; 2 * reach <= window; turn ^= 1, reach *= 2) {
            pairwise_max(b->scratch[turn], in, b->plane_pitch + 1 - 2 * reach, reach);
            in = b->scratch[turn];
        }
        pairwise_max(out, in, width, window - reach);
    }
}

/* Moves the candidates that are the maximum of their window to `kept`. */
static void keep_maxima(band *b) {
    size_t width = (size_t)b->width, n = 0;
    for (int y = 0; y < b->rows; y++) {
        int top = y > b->radius ? y - b->radius : 0, bottom = y < b->rows - 1 - b->radius ? y + b->radius : b->rows - 1;
        const float *scores = plane_row(b, y);
        b->kept_start[y] = n;
        for (size_t i = b->column_start[y]; i < b->column_start[y + 1]; i++) {
            size_t x = (size_t)b->columns[i];
            float score = scores[x];
            if (b->row_max[(size_t)y * width + x] > score)
                continue;
            const float *column = b->row_max + (size_t)top * width + x;
            int rest = bottom - top + 1;
            while (rest && *column <= score) {
                column += width;
                rest--;
            }
            if (!rest)
                b->kept[n++] = (int32_t)x;
        }
    }
    b->kept_start[b->rows] = n;
}

/* Zeroes the windows of the kept points and drops the candidates in them. */
static void suppress(band *b) {
    int r = b->radius;
    for (int y = 0; y < b->rows; y++) {
        int top = y > r ? y - r : 0, bottom = y < b->rows - 1 - r ? y + r : b->rows - 1;
        for (size_t i = b->kept_start[y], end = b->kept_start[y + 1]; i < end;) {
            int from = b->kept[i] > r ? b->kept[i] - r : 0, to = b->kept[i] + r;
            for (i++; i < end && b->kept[i] - r <= to; i++) /* overlapping windows are written once */
                to = b->kept[i] + r;
            if (to >= b->width)
                to = b->width - 1;
            for (int row = top; row <= bottom; row++)
                memset(plane_row(b, row) + from, 0, (size_t)(to - from + 1) * sizeof(float));
        }
    }
    size_t n = 0, begin = 0;
    for (int y = 0; y < b->rows; y++) {
        const float *scores = plane_row(b, y);
        size_t end = b->column_start[y + 1];
        b->column_start[y] = n;
        for (size_t i = begin; i < end; i++) {
            b->columns[n] = b->columns[i];
            n += scores[b->columns[i]] > 0.0f;
        }
        begin = end;
    }
    b->column_start[b->rows] = n;
}

/* Inside the border? */
static bool is_inside(const theo_selector *s, int x, int y) {
    int border = s->rule.border;
    return x >= border && y >= border &&
           (s->rule.border_mode == THEO_BORDER_HF || (x < s->width - border && y < s->height - border));
}

/* Adds the kept points of the band's rows [first, first + count) to the result. Band row 0 is map row `offset`. */
static theo_status take_kept(theo_selector *s, const band *b, const float *map, size_t pitch, int offset, int first, int count,
                             theo_error *err) {
    size_t room = b->kept_start[first + count] - b->kept_start[first];
    THEO_TRY(grow(&s->keys, s->key_count + room, sizeof(uint64_t), s->key_count * sizeof(uint64_t), err));
    uint64_t *keys = s->keys.data;
    for (int y = first; y < first + count; y++)
        for (size_t i = b->kept_start[y]; i < b->kept_start[y + 1]; i++) {
            int x = b->kept[i];
            if (is_inside(s, x, y + offset))
                keys[s->key_count++] =
                    key_of(map[(size_t)y * pitch + (size_t)x], (uint64_t)(y + offset) * (uint64_t)s->width + (uint64_t)x);
        }
    return THEO_OK;
}

/* ---------------------------------------------------------------- greedy */

/* Every candidate of the rows, in raster order; the suppression follows when all are known. */
static theo_status take_candidates(theo_selector *s, const float *map, size_t pitch, int first, int count, theo_error *err) {
    size_t width = (size_t)s->width;
    for (int y = 0; y < count; y++) {
        const float *row = map + (size_t)y * pitch;
        size_t n = s->key_count;
        if (s->keys.bytes / sizeof(uint64_t) < n + width)
            THEO_TRY(grow(&s->keys, 2 * n + width, sizeof(uint64_t), n * sizeof(uint64_t), err));
        uint64_t *keys = s->keys.data, index = (uint64_t)(first + y) * width;
        for (size_t x = 0; x < width; x++) {
            keys[n] = key_of(row[x], index + x);
            n += row[x] >= s->rule.threshold;
        }
        s->key_count = n;
    }
    return THEO_OK;
}

/* Sets the bits [from, to] of a row of words. */
static void set_bits(uint64_t *row, int from, int to) {
    int first = from / 64, last = to / 64;
    uint64_t low = ~(uint64_t)0 << from % 64, high = ~(uint64_t)0 >> (63 - to % 64);
    if (first == last) {
        row[first] |= low & high;
        return;
    }
    row[first] |= low;
    for (int word = first + 1; word < last; word++)
        row[word] = ~(uint64_t)0;
    row[last] |= high;
}

/* Visits the candidates from the best down; each one that is still free is kept and takes its window (nms_fast of the demo). */
static theo_status suppress_greedily(theo_selector *s, theo_error *err) {
    int r = s->rule.radius, width = s->width, height = s->height;
    size_t words = ((size_t)width + 63) / 64;
    THEO_TRY(sort_keys(s, 32, 64, err)); /* stable, and the keys are in raster order */
    THEO_TRY(grow(&s->mask, words * (size_t)height, sizeof(uint64_t), 0, err));
    uint64_t *keys = s->keys.data, *mask = s->mask.data;
    memset(mask, 0, words * (size_t)height * sizeof(uint64_t));
    size_t kept = 0;
    for (size_t i = 0; i < s->key_count; i++) {
        theo_selected p = point_of(keys[i], (uint32_t)width);
        if (mask[(size_t)p.y * words + (size_t)p.x / 64] >> p.x % 64 & 1)
            continue;
        int left = p.x > r ? p.x - r : 0, right = p.x < width - r ? p.x + r : width - 1;
        int top = p.y > r ? p.y - r : 0, bottom = p.y < height - r ? p.y + r : height - 1;
        if (right >= width)
            right = width - 1;
        if (bottom >= height)
            bottom = height - 1;
        for (int y = top; y <= bottom; y++)
            set_bits(mask + (size_t)y * words, left, right);
        if (is_inside(s, p.x, p.y))
            keys[kept++] = keys[i];
    }
    s->key_count = kept;
    return THEO_OK;
}

/* ---------------------------------------------------------------- the calls */

int theo_select_halo(const theo_select_rule *rule) {
    return rule->nms == THEO_NMS_ITERATIVE ? 5 * rule->radius : rule->nms == THEO_NMS_SINGLE ? rule->radius : 0;
}

theo_status theo_select_begin(theo_selector *s, const theo_select_rule *rule, int width, int height, theo_error *err) {
    s->rule = *rule;
    s->width = width;
    s->height = height;
    s->key_count = 0;
    s->count = 0;
    s->points = NULL;
    if ((uint64_t)width * (uint64_t)height > UINT32_MAX)
        return theo_fail(err, THEO_BOUNDS, NULL, "point selection", "a score map of %d x %d has more than 2^32 - 1 pixels", width,
                         height);
    return THEO_OK;
}

theo_status theo_select_rows(theo_selector *s, const float *map, size_t pitch, int map_first, int map_count, int first, int count,
                             theo_error *err) {
    const theo_select_rule *rule = &s->rule;
    if (rule->nms == THEO_NMS_GREEDY)
        return take_candidates(s, map + (size_t)(first - map_first) * pitch, pitch, first, count, err);

    /* No more rows than the decision about [first, first + count) needs. */
    int halo = theo_select_halo(rule), top = first - halo > map_first ? first - halo : map_first, bottom = map_first + map_count;
    if (bottom - halo > first + count)
        bottom = first + count + halo;
    map += (size_t)(top - map_first) * pitch;

    band b;
    THEO_TRY(open_band(&b, s, bottom - top, err));
    load_band(&b, map, pitch, rule->threshold);
    for (int round = 0, rounds = rule->nms == THEO_NMS_ITERATIVE ? 3 : 1; round < rounds; round++) {
        if (round)
            suppress(&b);
        if (!b.column_start[b.rows])
            break;
        find_row_maxima(&b);
        keep_maxima(&b);
        THEO_TRY(take_kept(s, &b, map, pitch, top, first - top, count, err));
    }
    return THEO_OK;
}

theo_status theo_select_end(theo_selector *s, theo_error *err) {
    const theo_select_rule *rule = &s->rule;
    if (rule->nms == THEO_NMS_GREEDY)
        THEO_TRY(suppress_greedily(s, err));
    size_t n = s->key_count;
    bool is_cut = rule->max_points >= 0 && (size_t)rule->max_points < n;
    if (rule->order == THEO_ORDER_RASTER && !is_cut)
        THEO_TRY(sort_keys(s, 0, 32, err));
    else
        THEO_TRY(sort_keys(s, 0, 64, err));
    if (is_cut)
        n = (size_t)rule->max_points;
    if (n > INT32_MAX)
        return theo_fail(err, THEO_BOUNDS, NULL, "point selection", "%zu points: at most 2^31 - 1 are supported", n);
    THEO_TRY(grow(&s->result, n, sizeof(theo_selected), 0, err));
    const uint64_t *keys = s->keys.data;
    theo_selected *points = s->result.data;
    for (size_t i = 0; i < n; i++)
        points[i] = point_of(keys[i], (uint32_t)s->width);
    s->points = points;
    s->count = (int)n;
    return THEO_OK;
}

/* Rows decided at once: planes that stay in the second-level cache, but enough rows that the halo does not dominate. */
static int band_rows(const theo_select_rule *rule, int width) {
    int64_t cached = ((int64_t)2 << 20) / (2 * (int64_t)sizeof(float) * (width + 1)),
            wanted = 2 * (int64_t)theo_select_halo(rule);
    int64_t rows = cached > wanted ? cached : wanted;
    return rows < 128 ? 128 : rows > INT32_MAX ? INT32_MAX : (int)rows;
}

theo_status theo_select(theo_selector *s, const theo_select_rule *rule, const float *map, int width, int height, size_t pitch,
                        theo_error *err) {
    THEO_TRY(theo_select_begin(s, rule, width, height, err));
    int step = band_rows(rule, width);
    for (int first = 0; first < height; first += step < height - first ? step : height - first) {
        int count = step < height - first ? step : height - first;
        THEO_TRY(theo_select_rows(s, map, pitch, 0, height, first, count, err));
    }
    return theo_select_end(s, err);
}
