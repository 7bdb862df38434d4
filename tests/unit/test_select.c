/* test_select.c - point selection against a dense transcription of its definition. */
#include "t.h"
#include "base/error.h"
#include "geometry/select.h"
#include <theo/inspect.h>

static uint64_t state = 1;

static uint32_t next_random(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* ---------------------------------------------------------------- the definition, literally */

/* Maximum over the window around (x, y), within the map. */
static float window_max(const float *map, int width, int height, int x, int y, int r) {
    float most = -INFINITY;
    for (int j = y - r; j <= y + r; j++)
        for (int i = x - r; i <= x + r; i++)
            if (i >= 0 && j >= 0 && i < width && j < height && map[j * width + i] > most)
                most = map[j * width + i];
    return most;
}

static void dense_iterative(float *keep, const float *map, int width, int height, int r, int rounds) {
    size_t n = (size_t)(width * height);
    float *rest = calloc(n, sizeof *rest), *suppressed = calloc(n, sizeof *suppressed), *fresh = calloc(n, sizeof *fresh);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            keep[y * width + x] = map[y * width + x] == window_max(map, width, height, x, y, r);
    for (int round = 1; round < rounds; round++) {
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                int i = y * width + x;
                suppressed[i] = window_max(keep, width, height, x, y, r);
                rest[i] = suppressed[i] > 0 ? 0 : map[i];
            }
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                int i = y * width + x;
                fresh[i] = rest[i] == window_max(rest, width, height, x, y, r) && suppressed[i] == 0;
            }
        for (size_t i = 0; i < n; i++)
            keep[i] = keep[i] > 0 || fresh[i] > 0;
    }
    free(rest);
    free(suppressed);
    free(fresh);
}

/* Best first; in ties the first in raster order. */
static void dense_greedy(float *keep, const float *map, int width, int height, int r, float threshold) {
    int n = width * height;
    uint8_t *taken = calloc((size_t)n, 1);
    for (;;) {
        int best = -1;
        for (int i = 0; i < n; i++)
            if (!taken[i] && map[i] >= threshold && (best < 0 || map[i] > map[best]))
                best = i;
        if (best < 0)
            break;
        keep[best] = 1;
        for (int i = 0; i < n; i++)
            if (abs(i % width - best % width) <= r && abs(i / width - best / width) <= r)
                taken[i] = 1;
    }
    free(taken);
}

static int by_score(const void *a, const void *b) {
    const theo_selected *p = a, *q = b;
    if (p->score != q->score)
        return p->score > q->score ? -1 : 1;
    return p->y != q->y ? (p->y < q->y ? -1 : 1) : (p->x > q->x) - (p->x < q->x);
}

static int dense_select(theo_selected *out, const theo_select_rule *rule, const float *map, int width, int height) {
    float *keep = calloc((size_t)(width * height), sizeof *keep);
    if (rule->nms == THEO_NMS_GREEDY)
        dense_greedy(keep, map, width, height, rule->radius, rule->threshold);
    else
        dense_iterative(keep, map, width, height, rule->radius, rule->nms == THEO_NMS_ITERATIVE ? 3 : 1);
    int n = 0, b = rule->border;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            float s = map[y * width + x];
            bool passes = rule->nms == THEO_NMS_GREEDY ? s >= rule->threshold : s > rule->threshold;
            bool inside = x >= b && y >= b && (rule->border_mode == THEO_BORDER_HF || (x < width - b && y < height - b));
            if (keep[y * width + x] > 0 && passes && inside)
                out[n++] = (theo_selected){x, y, s};
        }
    free(keep);
    bool is_cut = rule->max_points >= 0 && rule->max_points < n;
    if (rule->order == THEO_ORDER_SCORE || is_cut)
        qsort(out, (size_t)n, sizeof *out, by_score);
    return is_cut ? rule->max_points : n;
}

/* ---------------------------------------------------------------- checks */

static bool equal_points(const theo_selector *s, const theo_selected *want, int count) {
    if (s->count != count)
        return false;
    for (int i = 0; i < count; i++)
        if (s->points[i].x != want[i].x || s->points[i].y != want[i].y || s->points[i].score != want[i].score)
            return false;
    return true;
}

/* Bands of random heights, each seen only through a buffer that holds no more than the halo it may ask for. */
static theo_status select_in_bands(theo_selector *s, const theo_select_rule *rule, const float *map, int width, int height) {
    theo_error err;
    THEO_TRY(theo_select_begin(s, rule, width, height, &err));
    int halo = theo_select_halo(rule);
    for (int first = 0, count; first < height; first += count) {
        count = 1 + (int)(next_random() % 9);
        if (count > height - first)
            count = height - first;
        int top = first > halo ? first - halo : 0, bottom = first + count + halo < height ? first + count + halo : height;
        size_t bytes = (size_t)(bottom - top) * (size_t)width * sizeof(float);
        float *part = malloc(bytes);
        memcpy(part, map + top * width, bytes);
        theo_status status = theo_select_rows(s, part, (size_t)width, top, bottom - top, first, count, &err);
        free(part);
        THEO_TRY(status);
    }
    return theo_select_end(s, &err);
}

/* Maps of `levels` values: few levels mean many ties. sparse: most pixels are 0. */
static void fill(float *map, int count, uint32_t levels, bool sparse) {
    for (int i = 0; i < count; i++)
        map[i] = sparse && next_random() % 4 ? 0.0f : (float)(next_random() % levels) / (float)levels;
}

static void check_random_maps(theo_selector *s) {
    static const int sizes[][2] = {{1, 1}, {37, 1}, {1, 29}, {23, 17}, {40, 31}, {9, 60}};
    static const int radii[] = {0, 1, 3, 4, 9, 64};
    static const uint32_t levels[] = {2, 8, 1u << 20};
    for (int trial = 0; trial < 2000; trial++) {
        const int *size = sizes[trial % 6];
        int width = size[0], height = size[1], n = width * height;
        float *map = malloc((size_t)n * sizeof *map);
        theo_selected *want = malloc((size_t)n * sizeof *want);
        fill(map, n, levels[next_random() % 3], next_random() % 2);
        theo_select_rule rule = {.nms = (theo_nms)(next_random() % 3),
                                 .radius = radii[next_random() % 6],
                                 .threshold = next_random() % 2 ? 0.0f : 0.25f,
                                 .border = (int)(next_random() % 6),
                                 .border_mode = (theo_border)(next_random() % 2),
                                 .order = (theo_order)(next_random() % 2),
                                 .max_points = (int)(next_random() % 30) - 1};
        int count = dense_select(want, &rule, map, width, height);
        theo_error err;
        CHECK(theo_select(s, &rule, map, width, height, (size_t)width, &err) == THEO_OK);
        CHECK_MSG(equal_points(s, want, count), "whole: trial %d, nms %d, %d points, expected %d", trial, (int)rule.nms, s->count,
                  count);
        CHECK(select_in_bands(s, &rule, map, width, height) == THEO_OK);
        CHECK_MSG(equal_points(s, want, count), "bands: trial %d, nms %d, %d points, expected %d", trial, (int)rule.nms, s->count,
                  count);
        free(map);
        free(want);
    }
}

/* A map wider and higher than one internal band, with a pitch of its own: the bands of theo_select agree with one big band. */
static void check_large_map(theo_selector *s) {
    enum { WIDTH = 3000, HEIGHT = 700, PITCH = 3008 };
    float *map = malloc(sizeof(float) * PITCH * HEIGHT);
    for (int i = 0; i < PITCH * HEIGHT; i++)
        map[i] = (float)(next_random() % 4096) / 4096.0f;
    theo_select_rule rule = {.nms = THEO_NMS_ITERATIVE, .radius = 4, .threshold = 0.25f, .border = 4, .max_points = -1};
    theo_selector whole = {0};
    theo_error err;
    CHECK(theo_select_begin(&whole, &rule, WIDTH, HEIGHT, &err) == THEO_OK);
    CHECK(theo_select_rows(&whole, map, PITCH, 0, HEIGHT, 0, HEIGHT, &err) == THEO_OK);
    CHECK(theo_select_end(&whole, &err) == THEO_OK);
    CHECK(theo_select(s, &rule, map, WIDTH, HEIGHT, PITCH, &err) == THEO_OK);
    CHECK(whole.count > 10000);
    CHECK(equal_points(s, whole.points, whole.count));
    theo_selector_free(&whole);

    uint64_t allocations = theo_allocation_count();
    CHECK(theo_select(s, &rule, map, WIDTH, HEIGHT, PITCH, &err) == THEO_OK);
    rule.nms = THEO_NMS_SINGLE;
    CHECK(theo_select(s, &rule, map, WIDTH, HEIGHT, PITCH, &err) == THEO_OK);
    CHECK_MSG(theo_allocation_count() == allocations, "a used selector allocates");
    free(map);
}

static void check_odd_values(theo_selector *s) {
    float map[6] = {NAN, 0.5f, -0.0f, NAN, 0.25f, 0.0f};
    theo_select_rule rule = {.nms = THEO_NMS_ITERATIVE, .radius = 1, .max_points = -1};
    theo_error err;
    CHECK(theo_select(s, &rule, map, 6, 1, 6, &err) == THEO_OK);
    CHECK(s->count == 2 && s->points[0].x == 1 && s->points[1].x == 4);
    rule.nms = THEO_NMS_GREEDY;
    rule.radius = 0;
    CHECK(theo_select(s, &rule, map, 6, 1, 6, &err) == THEO_OK);
    CHECK(s->count == 4 && s->points[2].x == 2 && s->points[3].x == 5); /* -0 and 0 tie */
    rule.max_points = 0;
    CHECK(theo_select(s, &rule, map, 6, 1, 6, &err) == THEO_OK && s->count == 0);
    CHECK(theo_select_begin(s, &rule, 1 << 20, 1 << 12, &err) == THEO_BOUNDS);
}

int main(void) {
    theo_selector selector = {0};
    check_random_maps(&selector);
    check_large_map(&selector);
    check_odd_values(&selector);
    theo_selector_free(&selector);
    return t_done("select");
}
