#include "models/moge_input.h"
#include "imageio/antialias.h"
#include <string.h>

enum { PATCH = THEO_MOGE_PATCH, CHANNEL = PATCH * PATCH };

/* ---------------------------------------------------------------- rows on the pool */

typedef struct rows_job {
    const theo_antialias *from;
    float *workspace;
    size_t floats;  /* of one worker */
    float *picture; /* the place of row 0; NULL: patches are made */
    size_t picture_row;
    const float *mean, *deviation;
    float *patches; /* patch 0 */
    size_t pitch;
} rows_job;

static void picture_row(void *context, int y, int worker) {
    const rows_job *j = context;
    theo_antialias_row(j->from, y, j->workspace + (size_t)worker * j->floats, j->picture + (size_t)y * j->picture_row);
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
    theo_pool_run(pool, from->height, j->picture ? picture_row : patch_row, j);
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

/* Resizes the image to width x height pixels, of 3 floats, whose rows are so many floats apart. */
static theo_status resize(theo_moge_input *input, const theo_image *image, bool bgr, int width, int height,
                          theo_antialias_kernel kernel, rows_job j, theo_pool *pool, theo_error *err) {
    theo_antialias antialias;
    THEO_TRY(theo_antialias_open(&antialias, image, bgr, width, height, kernel, err));
    theo_status status = run_rows(input, &j, &antialias, pool, err);
    theo_antialias_close(&antialias);
    return status;
}

static theo_status draw_canvas(theo_moge_input *input, const theo_image *image, bool bgr, const theo_moge_frame *f,
                               const float *mean, theo_pool *pool, theo_image *canvas, theo_error *err) {
    const int W = THEO_MOGE_CANVAS_WIDTH, H = THEO_MOGE_CANVAS_HEIGHT;
    float *pixels = theo_scratch_fit(&input->canvas, (size_t)W * (size_t)H * 3 * sizeof(float));
    if (!pixels)
        return theo_fail(err, THEO_MEMORY, NULL, "image", "out of memory for a canvas of %dx%d", W, H);
    fill_border(pixels, f, mean);
    rows_job j = {.picture = pixels + 3 * ((size_t)f->y * (size_t)W + (size_t)f->x), .picture_row = 3 * (size_t)W};
    *canvas = (theo_image){.width = W, .height = H, .channels = 3, .type = THEO_F32, .pixels = pixels};
    return resize(input, image, bgr, f->w, f->h, THEO_ANTIALIAS_BILINEAR, j, pool, err);
}

/* MoGe-1: the picture that the patches are cut from is resized twice. */
static theo_status bring_to_map_size(theo_moge_input *input, const theo_image *image, bool bgr, const theo_moge_grid *grid,
                                     theo_pool *pool, theo_image *resized, theo_error *err) {
    size_t row = 3 * (size_t)grid->map_w;
    float *pixels = theo_scratch_fit(&input->resized, (size_t)grid->map_h * row * sizeof(float));
    if (!pixels)
        return theo_fail(err, THEO_MEMORY, NULL, "image", "out of memory for a picture of %dx%d", grid->map_w, grid->map_h);
    *resized = (theo_image){.width = grid->map_w, .height = grid->map_h, .channels = 3, .type = THEO_F32, .pixels = pixels};
    rows_job j = {.picture = pixels, .picture_row = row};
    return resize(input, image, bgr, grid->map_w, grid->map_h, THEO_ANTIALIAS_BICUBIC, j, pool, err);
}

/* ---------------------------------------------------------------- all of it */

theo_status theo_moge_input_fill(theo_moge_input *input, const theo_image *image, bool bgr, const theo_moge_frame *f,
                                 const float *mean, const float *deviation, theo_pool *pool, float *out, size_t pitch,
                                 theo_error *err) {
    theo_image canvas, resized;
    if (f->canvas_width != f->width || f->canvas_height != f->height) { /* else resizing would change nothing */
        THEO_TRY(draw_canvas(input, image, bgr, f, mean, pool, &canvas, err));
        image = &canvas;
        bgr = false;
    }
    if (f->generation == THEO_MOGE_1) {
        THEO_TRY(bring_to_map_size(input, image, bgr, &f->grid, pool, &resized, err));
        image = &resized;
        bgr = false;
    }
    memset(out, 0, pitch * sizeof(float));
    rows_job j = {.mean = mean, .deviation = deviation, .patches = out + pitch, .pitch = pitch};
    return resize(input, image, bgr, PATCH * f->grid.columns, PATCH * f->grid.rows, THEO_ANTIALIAS_BILINEAR, j, pool, err);
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
    theo_scratch_free(&input->resized);
    theo_scratch_free(&input->workspace);
    *input = (theo_moge_input){0};
}
