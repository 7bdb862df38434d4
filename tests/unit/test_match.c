/* test_match.c - mutual nearest neighbours against a plain loop, ties, ratio, threads, bad arguments. */
#include <theo/geometry.h>

#include "t.h"

static uint64_t state = 5;

static float next_random(void) { /* -1..1 */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(state >> 40) / 8388608.0f - 1;
}

static float *random_rows(int count, int dim) {
    float *rows = calloc((size_t)(count * dim) + 1, sizeof *rows);
    for (int i = 0; i < count; i++) {
        double norm = 0;
        for (int c = 0; c < dim; c++) {
            rows[i * dim + c] = next_random();
            norm += (double)(rows[i * dim + c] * rows[i * dim + c]);
        }
        for (int c = 0; c < dim; c++)
            rows[i * dim + c] /= (float)sqrt(norm);
    }
    return rows;
}

static theo_keypoints set(const float *rows, int count, int dim) {
    return (theo_keypoints){.count = count, .descriptor_dim = dim, .descriptors = rows, .model = "test"};
}

static double dot(const float *p, const float *q, int dim) {
    double sum = 0;
    for (int c = 0; c < dim; c++)
        sum += (double)p[c] * (double)q[c];
    return sum;
}

/* Best (lowest index on ties) and second best of the rows of `in` for `row`. */
static int nearest(const float *row, const float *in, int count, int dim, double *best, double *second) {
    int index = -1;
    *best = *second = -INFINITY;
    for (int j = 0; j < count; j++) {
        double s = dot(row, in + j * dim, dim);
        if (s > *best) {
            *second = *best;
            *best = s;
            index = j;
        } else if (s > *second) {
            *second = s;
        }
    }
    return index;
}

static void check_sizes(int na, int nb, int dim, theo_pool *pool) {
    float *ra = random_rows(na, dim), *rb = random_rows(nb, dim);
    for (int i = 0; i < na && i < nb; i += 2) /* half of A reappears in B, a little changed, the other way round */
        for (int c = 0; c < dim; c++)
            rb[(nb - 1 - i) * dim + c] = ra[i * dim + c] + 0.1f * next_random() / sqrtf((float)dim);
    theo_keypoints a = set(ra, na, dim), b = set(rb, nb, dim);
    theo_match_options options;
    theo_match_options_init(&options);
    options.pool = pool;
    options.ratio = na % 2 ? 0.8f : 0;
    options.min_similarity = nb % 2 ? 0.2f : -2;
    theo_matches *matches;
    CHECK(theo_match(&a, &b, &options, &matches, NULL) == THEO_OK);
    int n = 0;
    for (int i = 0; i < na; i++) {
        double best, second, unused[2];
        int j = nearest(ra + i * dim, rb, nb, dim, &best, &second);
        double d1 = sqrt(fmax(0, 2 - 2 * best)), d2 = second == -INFINITY ? INFINITY : sqrt(fmax(0, 2 - 2 * second));
        if (nearest(rb + j * dim, ra, na, dim, &unused[0], &unused[1]) != i ||
            (options.ratio > 0 && d1 >= (double)options.ratio * d2) || best <= (double)options.min_similarity)
            continue;
        CHECK_MSG(n < matches->count && matches->pairs[2 * n] == i && matches->pairs[2 * n + 1] == j,
                  "%d x %d x %d: pair %d (%d, %d) is missing", na, nb, dim, n, i, j);
        if (n < matches->count)
            CHECK_NEAR((double)matches->similarity[n], best, 1e-5);
        n++;
    }
    CHECK_MSG(n == matches->count, "%d x %d x %d: %d pairs, expected %d", na, nb, dim, matches->count, n);
    theo_matches_free(matches);
    free(ra);
    free(rb);
}

/* Equal descriptors all over: the lowest indices win on both sides, whatever the threads. */
static void check_ties(theo_pool *pool) {
    enum { DIM = 64, COUNT = 700 };
    float *rows = random_rows(COUNT, DIM);
    for (int i = 5; i < COUNT; i++)
        memcpy(rows + i * DIM, rows + i % 5 * DIM, DIM * sizeof *rows);
    theo_keypoints a = set(rows, COUNT, DIM);
    theo_match_options options;
    theo_match_options_init(&options);
    options.pool = pool;
    theo_matches *matches;
    CHECK(theo_match(&a, &a, &options, &matches, NULL) == THEO_OK);
    CHECK(matches->count == 5);
    for (int i = 0; i < matches->count; i++)
        CHECK(matches->pairs[2 * i] == i && matches->pairs[2 * i + 1] == i);
    theo_matches_free(matches);
    options.ratio = 0.99f; /* best and second best are the same */
    CHECK(theo_match(&a, &a, &options, &matches, NULL) == THEO_OK && matches->count == 0);
    theo_matches_free(matches);
    free(rows);
}

static void check_bounds(void) {
    float *rows = random_rows(9, 32);
    theo_keypoints a = set(rows, 9, 32), none = set(NULL, 0, 32), one = set(rows, 1, 32), bad;
    theo_matches *matches;
    theo_error err;
    CHECK(theo_match(&a, &none, NULL, &matches, NULL) == THEO_OK && matches && matches->count == 0);
    theo_matches_free(matches);
    CHECK(theo_match(&none, &a, NULL, &matches, NULL) == THEO_OK && matches && matches->count == 0);
    theo_matches_free(matches);
    theo_match_options options;
    theo_match_options_init(&options);
    options.ratio = 0.5f; /* without a second best the ratio says nothing */
    CHECK(theo_match(&one, &one, &options, &matches, NULL) == THEO_OK && matches->count == 1);
    theo_matches_free(matches);

    rows[0] = NAN; /* matches nothing, harms nothing */
    CHECK(theo_match(&a, &a, NULL, &matches, NULL) == THEO_OK && matches->count == 8 && matches->pairs[0] == 1);
    theo_matches_free(matches);
    theo_matches_free(NULL);

    bad = a;
    bad.descriptor_dim = 16;
    CHECK(theo_match(&a, &bad, NULL, &matches, &err) == THEO_ARGUMENT && !matches && strstr(err.message, "lengths (32 and 16)"));
    bad = a;
    bad.model = "other";
    CHECK(theo_match(&a, &bad, NULL, &matches, &err) == THEO_ARGUMENT && strstr(err.message, "test and other"));
    bad = a;
    bad.descriptors = NULL;
    CHECK(theo_match(&bad, &a, NULL, &matches, &err) == THEO_ARGUMENT && strstr(err.message, "without descriptors"));
    CHECK(theo_match(NULL, &a, NULL, &matches, &err) == THEO_ARGUMENT);
    options.ratio = 1.5f;
    CHECK(theo_match(&a, &a, &options, &matches, &err) == THEO_ARGUMENT && strstr(err.message, "ratio"));
    theo_match_options_init(&options);
    options.min_similarity = NAN;
    CHECK(theo_match(&a, &a, &options, &matches, &err) == THEO_ARGUMENT);
    free(rows);
}

int main(void) {
    theo_pool *pool = NULL;
    CHECK(theo_pool_open(&pool, 3, NULL) == THEO_OK);
    static const int counts[] = {1, 2, 7, 33, 130, 517};
    static const int dims[] = {1, 16, 33, 256};
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            for (int d = 1; d < 4; d++)
                check_sizes(counts[i], counts[j], dims[d], (i + j) % 2 ? pool : NULL);
    check_sizes(1500, 900, 256, pool);
    check_sizes(900, 1501, 256, NULL);
    check_ties(NULL);
    check_ties(pool);
    check_bounds();
    theo_pool_close(pool);
    return t_done("match");
}
