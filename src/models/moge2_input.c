#include "models/moge2_input.h"
#include "imageio/antialias.h"
#include <math.h>
#include <string.h>

enum { PATCH = THEO_MOGE_PATCH, CHANNEL = PATCH * PATCH };

/* ---------------------------------------------------------------- geometry */

static int at_least(int value, int low) {
    return value > low ? value : low;
}

void theo_moge_grid(int width, int height, int tokens, int *rows, int *columns) {
    double aspect = (double)width / height;
    *rows = at_least((int)nearbyint(sqrt(tokens / aspect)), 1);
    *columns = at_least((int)nearbyint(sqrt(tokens * aspect)), 1);
}

static int scaled(int side, double scale, int limit) {
    int pixels = (int)nearbyint(side * scale);
    return pixels < 1 ? 1 : pixels > limit ? limit : pixels;
}

theo_moge_frame theo_moge_frame_of(int width, int height, theo_moge_fit fit, int tokens) {
    const int W = THEO_MOGE_CANVAS_WIDTH, H = THEO_MOGE_CANVAS_HEIGHT;
    theo_moge_frame f = {.width = width, .height = height, .fit = fit, .canvas_width = W, .canvas_height = H, .w = W, .h = H};
    f.camera_aspect = (double)width / height;
    if (fit == THEO_MOGE_NATIVE) {
        f.canvas_width = f.w = width;
        f.canvas_height = f.h = height;
    } else if (fit == THEO_MOGE_PAD) {
        double scale = fmin((double)W / width, (double)H / height);
        f.w = scaled(width, scale, W);
        f.h = scaled(height, scale, H);
        f.x = (W - f.w) / 2;
        f.y = (H - f.h) / 2;
    } else {
        f.camera_aspect = (double)W / H;
    }
    f.net_aspect = (double)f.canvas_width / f.canvas_height;
    theo_moge_grid(f.canvas_width, f.canvas_height, fit == THEO_MOGE_NATIVE ? tokens : THEO_MOGE_CANVAS_TOKENS, &f.rows,
                   &f.columns);
    return f;
}

/* ---------------------------------------------------------------- rows on the pool */

typedef struct rows_job {
    const theo_antialias *from;
    float *workspace;
    size_t floats; /* of one worker */
    float *canvas; /* the place of row 0; NULL: patches are made */
    const float *mean, *deviation;
    float *patches; /* patch 0 */
    size_t pitch;
} rows_job;

static void canvas_row(void *context, int y, int worker) {
    const rows_job *j = context;
    theo_antialias_row(j->from, y, j->workspace + (size_t)worker * j->floats, j->canvas + (size_t)y * 3 * THEO_MOGE_CANVAS_WIDTH);
}

static void patch_row(void *context, int y, int worker) {
    const rows_job *j = context;
    float *row = j->workspace + (size_t)worker * j->floats, *workspace = row + 3 * (size_t)j->from->width;
    theo_antialias_row(j->from, y, workspace, row);
    int columns = j->from->width / PATCH;
    float *out = j->patches + (size_t)(y / PATCH * columns) * j->pitch + (size_t)(y % PATCH * PATCH);
    for (int column = 0; column < columns; column++, out += j->pitch, row += 3 * PATCH)
        for (int c = 0; c < 3; c++)
            for (int x = 0; x < PATCH; x++)
                out[c * CHANNEL + x] = (row[3 * x + c] - j->mean[c]) / j->deviation[c];
}

static theo_status run_rows(theo_moge_input *input, rows_job *j, const theo_antialias *from, theo_pool *pool, theo_error *err) {
    int threads = theo_pool_threads(pool);
    j->from = from;
    j->floats = (theo_antialias_floats(from) + 3 * (size_t)from->width + 15) / 16 * 16;
    j->workspace = theo_scratch_fit(&input->workspace, (size_t)threads * j->floats * sizeof(float));
    if (!j->workspace)
        return theo_fail(err, THEO_MEMORY, NULL, "image", "out of memory for resizing");
    theo_pool_run(pool, from->height, j->canvas ? canvas_row : patch_row, j);
    return THEO_OK;
}

/* ---------------------------------------------------------------- the canvas */

static void fill_border(float *canvas, const theo_moge_frame *f, const float *mean) {
    for (int y = 0; y < THEO_MOGE_CANVAS_HEIGHT; y++)
        for (int x = 0; x < THEO_MOGE_CANVAS_WIDTH; x++) {
            if (x == f->x && y >= f->y && y < f->y + f->h)
                x += f->w;
            if (x < THEO_MOGE_CANVAS_WIDTH)
                memcpy(canvas + 3 * ((size_t)y * THEO_MOGE_CANVAS_WIDTH + (size_t)x), mean, 3 * sizeof(float));
        }
}

static theo_status draw_canvas(theo_moge_input *input, const theo_image *image, bool bgr, const theo_moge_frame *f,
                               const float *mean, theo_pool *pool, theo_image *canvas, theo_error *err) {
    const int W = THEO_MOGE_CANVAS_WIDTH, H = THEO_MOGE_CANVAS_HEIGHT;
    float *pixels = theo_scratch_fit(&input->canvas, (size_t)W * (size_t)H * 3 * sizeof(float));
    if (!pixels)
        return theo_fail(err, THEO_MEMORY, NULL, "image", "out of memory for a canvas of %dx%d", W, H);
    fill_border(pixels, f, mean);
    theo_antialias antialias;
    THEO_TRY(theo_antialias_open(&antialias, image, bgr, f->w, f->h, THEO_ANTIALIAS_BILINEAR, err));
    rows_job j = {.canvas = pixels + 3 * ((size_t)f->y * (size_t)W + (size_t)f->x)};
    theo_status status = run_rows(input, &j, &antialias, pool, err);
    theo_antialias_close(&antialias);
    *canvas = (theo_image){.width = W, .height = H, .channels = 3, .type = THEO_F32, .pixels = pixels};
    return status;
}

/* ---------------------------------------------------------------- all of it */

theo_status theo_moge_input_fill(theo_moge_input *input, const theo_image *image, bool bgr, const theo_moge_frame *f,
                                 const float *mean, const float *deviation, theo_pool *pool, float *out, size_t pitch,
                                 theo_error *err) {
    theo_image canvas;
    if (f->canvas_width != f->width || f->canvas_height != f->height) { /* else resizing would change nothing */
        THEO_TRY(draw_canvas(input, image, bgr, f, mean, pool, &canvas, err));
        image = &canvas;
        bgr = false;
    }
    theo_antialias antialias;
    THEO_TRY(theo_antialias_open(&antialias, image, bgr, PATCH * f->columns, PATCH * f->rows, THEO_ANTIALIAS_BILINEAR, err));
    memset(out, 0, pitch * sizeof(float));
    rows_job j = {.mean = mean, .deviation = deviation, .patches = out + pitch, .pitch = pitch};
    theo_status status = run_rows(input, &j, &antialias, pool, err);
    theo_antialias_close(&antialias);
    return status;
}

void theo_moge_input_planes(const float *planes, int rows, int columns, float *out, size_t pitch) {
    size_t width = (size_t)(PATCH * columns), plane = width * (size_t)(PATCH * rows);
    memset(out, 0, pitch * sizeof(float));
    out += pitch;
    for (int n = 0; n < rows * columns; n++, out += pitch)
        for (int c = 0; c < 3; c++)
            for (int y = 0; y < PATCH; y++)
                memcpy(out + c * CHANNEL + y * PATCH,
                       planes + (size_t)c * plane + (size_t)(n / columns * PATCH + y) * width + (size_t)(n % columns * PATCH),
                       PATCH * sizeof(float));
}

void theo_moge_input_free(theo_moge_input *input) {
    theo_scratch_free(&input->canvas);
    theo_scratch_free(&input->workspace);
    *input = (theo_moge_input){0};
}
