/* png_write.c - PNG by libspng, row by row: into a file without ever holding it, or into memory. */
#include "base/error.h"
#include "base/file.h"
#include "imageio/image.h"
#include <stdio.h>
#include <string.h>

#include <spng.h>
#include <zlib.h>

/* Where the bytes go. A failure keeps its status here, since the library only passes a number on. */
typedef struct sink {
    theo_file *file; /* NULL: memory */
    uint8_t *data;
    size_t bytes, capacity;
    theo_status status;
    theo_error *err;
} sink;

static theo_status grow(sink *s, size_t bytes) {
    if (bytes <= s->capacity - s->bytes)
        return THEO_OK;
    size_t capacity = s->capacity ? s->capacity : (size_t)1 << 16;
    while (capacity - s->bytes < bytes)
        capacity += capacity / 2;
    uint8_t *data = theo_realloc(s->data, capacity, 1);
    if (!data)
        return theo_fail(s->err, THEO_MEMORY, NULL, "PNG", "no memory for %zu bytes of the encoded image", capacity);
    s->data = data;
    s->capacity = capacity;
    return THEO_OK;
}

static int sink_write(spng_ctx *spng, void *user, void *from, size_t bytes) {
    sink *s = user;
    (void)spng;
    if (s->file) {
        s->status = theo_file_append(s->file, from, bytes, s->err);
    } else {
        s->status = grow(s, bytes);
        if (s->status == THEO_OK) {
            memcpy(s->data + s->bytes, from, bytes);
            s->bytes += bytes;
        }
    }
    return s->status == THEO_OK ? 0 : SPNG_IO_ERROR;
}

static theo_status fail(const sink *s, int code) {
    if (s->status != THEO_OK)
        return s->status;
    if (code == SPNG_EMEM)
        return theo_fail(s->err, THEO_MEMORY, NULL, "PNG", "no memory to encode an image");
    return theo_fail(s->err, THEO_INTERNAL, NULL, "PNG", "the encoder failed: %s", spng_strerror(code));
}

/* Keywords are 1 to 79 printable Latin-1 characters without leading, trailing or double spaces (PNG 1.2, 11.3.4.2). */
static bool is_keyword(const char *keyword) {
    const size_t length = strlen(keyword);
    if (length < 1 || length > 79 || keyword[0] == ' ' || keyword[length - 1] == ' ' || strstr(keyword, "  "))
        return false;
    for (const uint8_t *c = (const uint8_t *)keyword; *c; c++)
        if (*c < 32 || (*c > 126 && *c < 161))
            return false;
    return true;
}

static theo_status set_texts(spng_ctx *spng, const theo_png_text *texts, int count, const sink *s) {
    if (count == 0)
        return THEO_OK;
    struct spng_text *copies = theo_alloc((size_t)count, sizeof *copies);
    if (!copies)
        return fail(s, SPNG_EMEM);
    for (int i = 0; i < count; i++) {
        if (!texts[i].keyword || !texts[i].text || !texts[i].text[0] || !is_keyword(texts[i].keyword)) {
            theo_free(copies);
            return theo_fail(
                s->err, THEO_ARGUMENT, NULL, "texts",
                "text %d needs a keyword of 1 to 79 printable characters without spaces at its ends, and a text of 1 at least",
                i);
        }
        copies[i].type = SPNG_TEXT;
        snprintf(copies[i].keyword, sizeof copies[i].keyword, "%s", texts[i].keyword);
        copies[i].text = (char *)(uintptr_t)texts[i].text; /* read only: the struct serves reading files too */
        copies[i].length = strlen(texts[i].text);
    }
    const int code = spng_set_text(spng, copies, (uint32_t)count); /* keeps its own copy of the array, the texts stay ours */
    theo_free(copies);
    return code ? fail(s, code) : THEO_OK;
}

static theo_status encode(spng_ctx *spng, const theo_image *image, const theo_png_text *texts, int text_count, sink *s) {
    static const uint8_t color_types[] = {0, SPNG_COLOR_TYPE_GRAYSCALE, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA,
                                          SPNG_COLOR_TYPE_TRUECOLOR, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
    struct spng_ihdr head = {.width = (uint32_t)image->width,
                             .height = (uint32_t)image->height,
                             .bit_depth = image->type == THEO_U16 ? 16 : 8,
                             .color_type = color_types[image->channels]};
    const size_t row_bytes = (size_t)image->width * (size_t)image->channels * theo_pixel_bytes(image->type);

    /* Photos hold few repetitions beyond flat areas: run lengths after the average filter take a third of the time of the
     * library's defaults at level 1, for files of 0.95 to 1.2 times the size. */
    spng_set_option(spng, SPNG_IMG_COMPRESSION_LEVEL, 1);
    spng_set_option(spng, SPNG_IMG_COMPRESSION_STRATEGY, Z_RLE);
    spng_set_option(spng, SPNG_FILTER_CHOICE, SPNG_FILTER_CHOICE_AVG);
    spng_set_png_stream(spng, sink_write, s);
    int code = spng_set_ihdr(spng, &head);
    if (code)
        return fail(s, code);
    THEO_TRY(set_texts(spng, texts, text_count, s));
    code = spng_encode_image(spng, NULL, 0, SPNG_FMT_PNG, SPNG_ENCODE_PROGRESSIVE | SPNG_ENCODE_FINALIZE);
    for (int y = 0; !code && y < image->height; y++)
        code = spng_encode_row(spng, (const uint8_t *)image->pixels + (size_t)y * theo_image_row_bytes(image), row_bytes);
    return code == SPNG_EOI ? THEO_OK : fail(s, code);
}

static theo_status check(const theo_image *image, const theo_png_text *texts, int text_count, theo_error *err) {
    THEO_TRY(theo_image_check(image, "image", err));
    if (image->type == THEO_F32)
        return theo_fail(err, THEO_ARGUMENT, NULL, "image", "a float image has no PNG form; 8 and 16 bits have");
    if (text_count < 0 || (text_count > 0 && !texts))
        return theo_fail(err, THEO_ARGUMENT, NULL, "texts", "%d texts were announced and none given", text_count);
    return THEO_OK;
}

static theo_status write_to(sink *s, const theo_image *image, const theo_png_text *texts, int text_count) {
    spng_ctx *spng = spng_ctx_new(SPNG_CTX_ENCODER);
    const theo_status status = spng ? encode(spng, image, texts, text_count, s) : fail(s, SPNG_EMEM);
    spng_ctx_free(spng);
    return status;
}

theo_status theo_image_save_png(const theo_image *image, const char *path, const theo_png_text *texts, int text_count,
                                theo_error *err) {
    theo_file file;
    sink s = {.file = &file, .err = err};
    THEO_TRY(check(image, texts, text_count, err));
    THEO_TRY(theo_file_open(&file, path, err));
    const theo_status status = write_to(&s, image, texts, text_count);
    if (status == THEO_OK)
        return theo_file_commit(&file, err);
    theo_file_abandon(&file);
    return status;
}

theo_status theo_image_encode_png(const theo_image *image, const theo_png_text *texts, int text_count, void **data, size_t *bytes,
                                  theo_error *err) {
    sink s = {.err = err};
    *data = NULL;
    *bytes = 0;
    THEO_TRY(check(image, texts, text_count, err));
    const theo_status status = write_to(&s, image, texts, text_count);
    if (status != THEO_OK) {
        theo_free(s.data);
        return status;
    }
    *data = s.data;
    *bytes = s.bytes;
    return THEO_OK;
}

void theo_buffer_free(void *data) {
    theo_free(data);
}
