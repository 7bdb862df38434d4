/* jpeg_write.c - JPEG by libjpeg-turbo, into memory. */
#include "base/error.h"
#include "imageio/image.h"
#include "imageio/rows.h"
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

typedef struct writer {
    struct jpeg_compress_struct lib;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr sink;
    jmp_buf escape;
    const theo_image *image;
    theo_error *err;
    theo_status status;
    uint8_t *row;  /* as 8-bit gray or RGB */
    uint8_t *data; /* the file so far */
    size_t bytes, capacity;
} writer;

/* The library casts its own structs the same way. */
static writer *writer_of(j_common_ptr lib) {
    return (writer *)(void *)lib;
}

static void give_up(writer *w, theo_status status) {
    w->status = status;
    longjmp(w->escape, 1);
}

static void on_error(j_common_ptr lib) {
    writer *w = writer_of(lib);
    char text[JMSG_LENGTH_MAX];
    lib->err->format_message(lib, text);
    give_up(w, theo_fail(w->err, lib->err->msg_code == JERR_OUT_OF_MEMORY ? THEO_MEMORY : THEO_INTERNAL, NULL, "JPEG",
                         "the encoder failed: %s", text));
}

static void on_output(j_common_ptr lib) {
    (void)lib;
}

/* ---------------------------------------------------------------- a buffer that grows */

static void grow(writer *w) {
    const size_t capacity = w->capacity ? w->capacity + w->capacity / 2 : (size_t)1 << 18;
    uint8_t *data = theo_realloc(w->data, capacity, 1);
    if (!data)
        give_up(w, theo_fail(w->err, THEO_MEMORY, NULL, "JPEG", "no memory for %zu bytes of the encoded image", capacity));
    w->data = data;
    w->sink.next_output_byte = data + w->capacity;
    w->sink.free_in_buffer = capacity - w->capacity;
    w->capacity = capacity;
}

static void sink_begin(j_compress_ptr lib) {
    grow(writer_of((j_common_ptr)lib));
}

static boolean sink_full(j_compress_ptr lib) {
    grow(writer_of((j_common_ptr)lib));
    return TRUE;
}

static void sink_end(j_compress_ptr lib) {
    writer *w = writer_of((j_common_ptr)lib);
    w->bytes = w->capacity - w->sink.free_in_buffer;
}

/* ---------------------------------------------------------------- encoding */

static void write_rows(writer *w) {
    const theo_row_rule rule = {.channels = w->image->channels, .type = w->image->type, .pick = THEO_PICK_COLOR};
    const bool as_it_is = theo_row_is_copy(&rule);
    w->row = theo_alloc((size_t)w->image->width, 3);
    if (!w->row)
        give_up(w, theo_fail(w->err, THEO_MEMORY, NULL, "JPEG", "no memory for a row of %d pixels", w->image->width));
    for (int y = 0; y < w->image->height; y++) {
        const uint8_t *from = (const uint8_t *)w->image->pixels + (size_t)y * theo_image_row_bytes(w->image);
        if (!as_it_is && !theo_row_u8(w->row, from, w->image->width, &rule))
            give_up(w, theo_fail(w->err, THEO_ARGUMENT, NULL, "image", "a float image holds NaN or infinity"));
        JSAMPROW row = as_it_is ? (JSAMPROW)(uintptr_t)from : w->row; /* read only */
        jpeg_write_scanlines(&w->lib, &row, 1);
    }
}

/* Apart from its caller, since locals that change after setjmp would be lost. */
static void encode(writer *w, int quality) {
    if (setjmp(w->escape))
        return;
    jpeg_create_compress(&w->lib);
    w->lib.dest = &w->sink;
    w->lib.image_width = (JDIMENSION)w->image->width;
    w->lib.image_height = (JDIMENSION)w->image->height;
    w->lib.input_components = w->image->channels >= 3 ? 3 : 1;
    w->lib.in_color_space = w->image->channels >= 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg_set_defaults(&w->lib);
    jpeg_set_quality(&w->lib, quality, TRUE);
    for (int c = 0; c < w->lib.num_components; c++) /* colours at full resolution */
        w->lib.comp_info[c].h_samp_factor = w->lib.comp_info[c].v_samp_factor = 1;
    jpeg_start_compress(&w->lib, TRUE);
    write_rows(w);
    jpeg_finish_compress(&w->lib);
}

theo_status theo_image_encode_jpeg(const theo_image *image, int quality, void **data, size_t *bytes, theo_error *err) {
    *data = NULL;
    *bytes = 0;
    THEO_TRY(theo_image_check(image, "image", err));
    if (quality < 1 || quality > 100)
        return theo_fail(err, THEO_ARGUMENT, NULL, "quality", "%d is out of range: allowed is 1 to 100", quality);
    if (image->width > JPEG_MAX_DIMENSION || image->height > JPEG_MAX_DIMENSION)
        return theo_fail(err, THEO_BOUNDS, NULL, "image", "%d x %d pixels: a JPEG has at most %d a side", image->width,
                         image->height, (int)JPEG_MAX_DIMENSION);
    writer w = {.image = image, .err = err};
    w.sink = (struct jpeg_destination_mgr){
        .init_destination = sink_begin, .empty_output_buffer = sink_full, .term_destination = sink_end};
    w.lib.err = jpeg_std_error(&w.errors);
    w.errors.error_exit = on_error;
    w.errors.output_message = on_output;
    encode(&w, quality);
    jpeg_destroy_compress(&w.lib);
    theo_free(w.row);
    if (w.status) {
        theo_free(w.data);
        return w.status;
    }
    *data = w.data;
    *bytes = w.bytes;
    return THEO_OK;
}
