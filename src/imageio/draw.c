/* draw.c - pictures of keypoints and of matches. Sizes grow with the picture, so that they look alike at every resolution. */
#include "base/error.h"
#include "imageio/canvas.h"
#include "imageio/image.h"
#include "imageio/rows.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <theo/draw.h>

/* Line widths and radii below are for a picture of this size. */
static float unit_of(int width, int height) {
    const float longer = (float)(width > height ? width : height);
    return fmaxf(longer / 720.0f, 0.75f);
}

/* Copies a photo, with part of its colour and light taken away, to (left, 0) of the canvas. */
static theo_status place_photo(const theo_canvas *canvas, int left, const theo_image *photo, float light, float color,
                               const char *what, theo_error *err) {
    const theo_row_rule rule = {.channels = photo->channels, .type = photo->type, .pick = THEO_PICK_COLOR};
    const size_t channels = (size_t)theo_row_channels(&rule);
    uint8_t *row = theo_alloc((size_t)photo->width, channels);
    if (!row)
        return theo_fail(err, THEO_MEMORY, NULL, what, "no memory for a row of %d pixels", photo->width);
    theo_status status = THEO_OK;
    for (int y = 0; y < photo->height && status == THEO_OK; y++) {
        const uint8_t *from = (const uint8_t *)photo->pixels + (size_t)y * theo_image_row_bytes(photo);
        uint8_t *to = canvas->pixels + ((size_t)y * (size_t)canvas->width + (size_t)left) * 3;
        if (!theo_row_u8(row, from, photo->width, &rule))
            status = theo_fail(err, THEO_ARGUMENT, NULL, what, "a float image holds NaN or infinity");
        for (size_t x = 0; status == THEO_OK && x < (size_t)photo->width; x++, to += 3) {
            const float r = row[x * channels], g = row[x * channels + (channels == 3)],
                        b = row[x * channels + (channels == 3 ? 2 : 0)];
            const float gray = 0.299f * r + 0.587f * g + 0.114f * b;
            to[0] = (uint8_t)lrintf(light * (gray + color * (r - gray)));
            to[1] = (uint8_t)lrintf(light * (gray + color * (g - gray)));
            to[2] = (uint8_t)lrintf(light * (gray + color * (b - gray)));
        }
    }
    theo_free(row);
    return status;
}

static theo_canvas canvas_of(theo_image *image) {
    return (theo_canvas){image->owner, image->width, image->height};
}

/* ---------------------------------------------------------------- keypoints */

typedef struct ranked {
    float score;
    int index;
} ranked;

static int by_score(const void *a, const void *b) {
    const ranked *l = a, *r = b;
    if (l->score != r->score)
        return l->score < r->score ? -1 : 1;
    return l->index > r->index ? -1 : l->index < r->index;
}

/* The strongest come last and so on top. */
static void draw_ranked(const theo_canvas *canvas, const theo_keypoints *points, ranked *order) {
    const float unit = unit_of(canvas->width, canvas->height);
    const theo_ink shadow = {0, 0, 0, 0.45f};
    for (int i = 0; i < points->count; i++)
        order[i] = (ranked){points->scores ? points->scores[i] : 0.0f, i};
    qsort(order, (size_t)points->count, sizeof *order, by_score);
    for (int i = 0; i < points->count; i++) {
        const float rank = points->count > 1 ? (float)i / (float)(points->count - 1) : 1.0f;
        const float x = points->xy[2 * order[i].index], y = points->xy[2 * order[i].index + 1];
        const float radius = unit * (2.2f + 3.0f * rank * rank), width = unit * (1.1f + 0.5f * rank);
        theo_ink ink = theo_ink_scale(rank);
        ink.alpha = 0.8f + 0.2f * rank;
        theo_canvas_ring(canvas, x, y, radius, width + 1.2f * unit, shadow);
        theo_canvas_ring(canvas, x, y, radius, width, ink);
    }
}

theo_status theo_draw_keypoints(theo_image **out, const theo_image *image, const theo_keypoints *keypoints, theo_error *err) {
    *out = NULL;
    THEO_TRY(theo_image_check(image, "image", err));
    if (!keypoints || keypoints->count < 0 || (keypoints->count > 0 && !keypoints->xy))
        return theo_fail(err, THEO_ARGUMENT, NULL, "keypoints", "no keypoints were given");
    theo_image *made;
    THEO_TRY(theo_image_make(&made, image->width, image->height, 3, THEO_U8, NULL, err));
    ranked *order = theo_alloc((size_t)keypoints->count + 1, sizeof *order);
    const theo_canvas canvas = canvas_of(made);
    theo_status status = order ? place_photo(&canvas, 0, image, 0.7f, 0.5f, "image", err)
                               : theo_fail(err, THEO_MEMORY, NULL, "keypoints", "no memory to sort %d points", keypoints->count);
    if (status == THEO_OK)
        draw_ranked(&canvas, keypoints, order);
    theo_free(order);
    if (status != THEO_OK) {
        theo_image_free(made);
        return status;
    }
    *out = made;
    return THEO_OK;
}

/* ---------------------------------------------------------------- matches */

typedef struct match_set {
    const float *xy_a, *xy_b;
    const int32_t *pairs;
    const uint8_t *inliers;
    int count;
    float shift; /* added to x of b */
} match_set;

static bool is_inlier(const match_set *m, int i) {
    return !m->inliers || m->inliers[i];
}

/* Hue by the place in photo a: it turns once from top to bottom, since the lines run across, and a third of a turn from left to
 * right. */
static theo_ink ink_at(float x, float y, const theo_image *photo) {
    const float u = x / (float)photo->width, v = y / (float)photo->height;
    return theo_ink_oklch(0.78f, 0.17f, 0.05f + 0.35f * u + v);
}

static void draw_lines(const theo_canvas *canvas, const match_set *m, const theo_image *a, bool inliers, float unit) {
    /* The more lines, the more each lets through. */
    const float alpha = inliers ? fminf(0.85f, fmaxf(0.30f, 8.5f / sqrtf((float)m->count + 1.0f)))
                                : fminf(0.35f, fmaxf(0.15f, 4.5f / sqrtf((float)m->count + 1.0f)));
    for (int i = 0; i < m->count; i++) {
        if (is_inlier(m, i) != inliers)
            continue;
        const float *p = m->xy_a + 2 * (ptrdiff_t)m->pairs[2 * i], *q = m->xy_b + 2 * (ptrdiff_t)m->pairs[2 * i + 1];
        theo_ink ink = inliers ? ink_at(p[0], p[1], a) : (theo_ink){235, 90, 80, 1.0f};
        ink.alpha = alpha;
        theo_canvas_line(canvas, p[0], p[1], q[0] + m->shift, q[1], unit * (inliers ? 1.2f : 0.8f), ink);
    }
}

static void draw_ends(const theo_canvas *canvas, const match_set *m, const theo_image *a, bool inliers, float unit) {
    const float radius = unit * (inliers ? 2.4f : 1.4f);
    const theo_ink shadow = {0, 0, 0, inliers ? 0.55f : 0.3f};
    for (int i = 0; i < m->count; i++) {
        if (is_inlier(m, i) != inliers)
            continue;
        const float *p = m->xy_a + 2 * (ptrdiff_t)m->pairs[2 * i], *q = m->xy_b + 2 * (ptrdiff_t)m->pairs[2 * i + 1];
        theo_ink ink = inliers ? ink_at(p[0], p[1], a) : (theo_ink){235, 90, 80, 0.5f};
        const float ends[2][2] = {{p[0], p[1]}, {q[0] + m->shift, q[1]}};
        for (int e = 0; e < 2; e++) {
            theo_canvas_disc(canvas, ends[e][0], ends[e][1], radius + 0.7f * unit, shadow);
            theo_canvas_disc(canvas, ends[e][0], ends[e][1], radius, ink);
        }
    }
}

theo_status theo_draw_matches(theo_image **out, const theo_image *a, const theo_image *b, const float *xy_a, const float *xy_b,
                              const int32_t *pairs, const uint8_t *inliers, int count, theo_error *err) {
    *out = NULL;
    THEO_TRY(theo_image_check(a, "first image", err));
    THEO_TRY(theo_image_check(b, "second image", err));
    if (count < 0 || (count > 0 && (!xy_a || !xy_b || !pairs)))
        return theo_fail(err, THEO_ARGUMENT, NULL, "pairs", "%d pairs were announced and none given", count);
    for (int i = 0; i < 2 * count; i++)
        if (pairs[i] < 0)
            return theo_fail(err, THEO_ARGUMENT, NULL, "pairs", "pair %d holds the index %d", i / 2, (int)pairs[i]);

    const int height = a->height > b->height ? a->height : b->height;
    const float unit = unit_of(a->width > b->width ? a->width : b->width, height);
    const int gap = (int)lrintf(8.0f * unit);
    if (a->width > INT32_MAX - b->width - gap)
        return theo_fail(err, THEO_ARGUMENT, NULL, "images", "%d and %d pixels are too wide for one picture", a->width, b->width);
    theo_image *made;
    THEO_TRY(theo_image_make(&made, a->width + gap + b->width, height, 3, THEO_U8, NULL, err));
    memset(made->owner, 24, made->row_bytes * (size_t)height);

    const theo_canvas canvas = canvas_of(made);
    theo_status status = place_photo(&canvas, 0, a, 0.72f, 0.3f, "first image", err);
    if (status == THEO_OK)
        status = place_photo(&canvas, a->width + gap, b, 0.72f, 0.3f, "second image", err);
    if (status != THEO_OK) {
        theo_image_free(made);
        return status;
    }
    const match_set m = {xy_a, xy_b, pairs, inliers, count, (float)(a->width + gap)};
    draw_lines(&canvas, &m, a, false, unit);
    draw_ends(&canvas, &m, a, false, unit);
    draw_lines(&canvas, &m, a, true, unit);
    draw_ends(&canvas, &m, a, true, unit);
    *out = made;
    return THEO_OK;
}
