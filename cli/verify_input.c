#include "verify_input.h"
#include "dump.h"
#include "message.h"
#include <limits.h>
#include <string.h>

enum { FIRST_PHOTO = 2 }; /* operands: model, reference, photos */

const char *verify_metadata(const theo_arrays *reference, const char *key) {
    for (int i = 0; i < reference->metadata_count; i++)
        if (strcmp(reference->metadata_keys[i], key) == 0)
            return reference->metadata_values[i];
    return NULL;
}

static int report(const char *path, const theo_error *err) {
    char text[1600];
    error_text(text, sizeof text, path, err);
    message_error("%s", text);
    return EXIT_FAILED;
}

/* A word of the metadata as the option of that name would be read, where the command line has none. */
static int choice_of(int *choice, const verify_source *s, const char *name, const char *words) {
    const char *word = verify_metadata(s->reference, name);
    if (option_given(s->args, name)) {
        *choice = option_choice(s->args, name, 0);
    } else if (word) {
        *choice = choice_index(words, word);
        if (*choice < 0)
            return usage_error("the reference was made with %s %s, which this version does not know", name, word);
    }
    return EXIT_DONE;
}

static int read_decode_options(theo_decode_options *decode, const verify_source *s, theo_orientation otherwise) {
    int orientation = (int)otherwise;
    decode_options(decode, s->args, otherwise);
    int code = choice_of(&orientation, s, "orientation", "ignore|apply");
    decode->orientation = (theo_orientation)orientation;
    return code;
}

/* Options that shape a photo, given where there is none. */
static int refuse_photo_options(const verify_source *s) {
    static const char *const names[] = {
        "gray",      "size", "preprocess", "square-ok", "fit", "tokens", "resolution-level", "orientation", "allow-truncated",
        "max-pixels"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (option_given(s->args, names[i]))
            return usage_error("--%s has no effect without an IMAGE", names[i]);
    return EXIT_DONE;
}

/* Options of other tasks. */
static int refuse_options(const verify_source *s) {
    static const struct {
        const char *name;
        theo_task task;
    } options[] = {{"gray", THEO_TASK_KEYPOINTS},        {"size", THEO_TASK_KEYPOINTS}, {"preprocess", THEO_TASK_PAIR},
                   {"square-ok", THEO_TASK_PAIR},        {"fit", THEO_TASK_DEPTH},      {"tokens", THEO_TASK_DEPTH},
                   {"resolution-level", THEO_TASK_DEPTH}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].task != s->opened->info.task && option_given(s->args, options[i].name))
            return usage_error("--%s has no effect on the model %s (%s)", options[i].name, s->opened->info.name,
                               s->opened->info.kind);
    return EXIT_DONE;
}

/* A number of the metadata; *number stays as it is where there is none. */
static int number_of(double *number, const verify_source *s, const char *name, double low, double high) {
    const char *text = verify_metadata(s->reference, name);
    double value;
    if (!text)
        return EXIT_DONE;
    if (!parse_real(text, &value) || value < low || value > high)
        return usage_error("the reference was made with %s %s: %g to %g is allowed", name, text, low, high);
    *number = value;
    return EXIT_DONE;
}

/* ---- keypoints */

static int read_detect_options(theo_detect_options *detect, const verify_source *s) {
    const char *size = verify_metadata(s->reference, "size");
    network_size parsed;
    int gray, code;
    detect_options(detect, s->args, s->opened);
    gray = (int)detect->gray;
    if ((code = choice_of(&gray, s, "gray", "red|rgb601|luma")))
        return code;
    detect->gray = (theo_gray)gray;
    if (size && !option_given(s->args, "size")) {
        if (!parse_size(size, &parsed) || parsed.fit != THEO_FIT_EXACT)
            return usage_error("the reference was made with size %s, which this version does not know", size);
        detect->fit = THEO_FIT_EXACT;
        detect->net_width = parsed.width;
        detect->net_height = parsed.height;
    }
    return EXIT_DONE;
}

static int plane_from_photo(verify_plane *plane, const verify_source *s) {
    const char *path = s->args->operands[FIRST_PHOTO];
    theo_decode_options decode;
    theo_detect_options detect;
    theo_image *image = NULL;
    theo_error err;
    int code;
    if ((code = read_decode_options(&decode, s, THEO_ORIENTATION_IGNORE)) || (code = read_detect_options(&detect, s)))
        return code;
    if (theo_image_load(&image, path, &decode, &err) ||
        theo_detect_plane(image, &detect, &plane->made, &plane->width, &plane->height, &err))
        code = report(path, &err);
    plane->data = plane->made;
    theo_image_free(image);
    return code;
}

static int plane_from_reference(verify_plane *plane, const verify_source *s) {
    const theo_array *found = theo_arrays_find(s->reference, "plane");
    if (!found || found->rank != 2 || found->dtype != THEO_DTYPE_F32 || found->shape[0] > INT_MAX || found->shape[1] > INT_MAX)
        return usage_error("%s has no tensor plane [H, W] of float32: an IMAGE is needed", s->args->operands[1]);
    plane->data = found->data;
    plane->height = (int)found->shape[0];
    plane->width = (int)found->shape[1];
    return EXIT_DONE;
}

int verify_plane_get(verify_plane *plane, const verify_source *s) {
    const int photos = s->args->operand_count - FIRST_PHOTO;
    int code;
    memset(plane, 0, sizeof *plane);
    if (photos > 1)
        return usage_error("keypoint models are compared on one image, not %d", photos);
    if ((code = refuse_options(s)) || (photos == 0 && (code = refuse_photo_options(s))))
        return code;
    return photos ? plane_from_photo(plane, s) : plane_from_reference(plane, s);
}

void verify_plane_free(verify_plane *plane) {
    theo_buffer_free(plane->made);
}

/* ---- depth */

static int read_geometry_options(theo_geometry_options *o, const verify_source *s) {
    int fit = THEO_DEPTH_NATIVE, code;
    theo_geometry_options_init(o);
    double tokens = o->tokens;
    if ((code = choice_of(&fit, s, "fit", "native|pad|stretch")))
        return code;
    o->fit = (theo_depth_fit)fit;
    bool is_sized = option_given(s->args, "tokens") || option_given(s->args, "resolution-level");
    if (!is_sized && ((code = number_of(&tokens, s, "tokens", 16, 16384)) ||
                      (code = number_of(&o->resolution_level, s, "resolution-level", -1, 30))))
        return code;
    o->tokens = (int)option_count(s->args, "tokens", (int)tokens);
    o->resolution_level = option_number(s->args, "resolution-level", o->resolution_level);
    return option_excludes(s->args, "tokens", "resolution-level");
}

static int picture_from_photo(verify_picture *picture, const verify_source *s) {
    const char *path = s->args->operands[FIRST_PHOTO];
    theo_decode_options decode;
    theo_geometry_options options;
    theo_image *image = NULL;
    theo_error err;
    int code;
    if ((code = read_decode_options(&decode, s, THEO_ORIENTATION_IGNORE)) || (code = read_geometry_options(&options, s)))
        return code;
    decode.keep_16_bit = true;
    if (theo_image_load(&image, path, &decode, &err) ||
        theo_geometry_planes(s->opened->model, image, &options, &picture->input, &err))
        code = report(path, &err);
    picture->is_made = code == EXIT_DONE;
    theo_image_free(image);
    return code;
}

static int picture_from_reference(verify_picture *picture, const verify_source *s) {
    enum { PATCH = 14 };
    const theo_array *found = theo_arrays_find(s->reference, "picture");
    if (!found || found->rank != 3 || found->dtype != THEO_DTYPE_F32 || found->shape[0] != 3 || found->shape[1] % PATCH ||
        found->shape[2] % PATCH || found->shape[1] > INT_MAX || found->shape[2] > INT_MAX)
        return usage_error("%s has no tensor picture [3, 14 rows, 14 columns] of float32: an IMAGE is needed",
                           s->args->operands[1]);
    picture->input.rows = (int)(found->shape[1] / PATCH);
    picture->input.columns = (int)(found->shape[2] / PATCH);
    picture->input.aspect = (double)found->shape[2] / (double)found->shape[1];
    picture->input.planes = (float *)(uintptr_t)found->data; /* which is only read */
    return number_of(&picture->input.aspect, s, "aspect", 1e-4, 1e4);
}

int verify_picture_get(verify_picture *picture, const verify_source *s) {
    const int photos = s->args->operand_count - FIRST_PHOTO;
    int code;
    memset(picture, 0, sizeof *picture);
    if (photos > 1)
        return usage_error("depth models are compared on one image, not %d", photos);
    if ((code = refuse_options(s)) || (photos == 0 && (code = refuse_photo_options(s))))
        return code;
    return photos ? picture_from_photo(picture, s) : picture_from_reference(picture, s);
}

void verify_picture_free(verify_picture *picture) {
    if (picture->is_made)
        theo_buffer_free(picture->input.planes);
}

/* ---- pairs */

static int read_pair_options(theo_pair_options *o, const verify_source *s) {
    const char *square = verify_metadata(s->reference, "square-ok");
    int fit = THEO_PAIR_PAD, code;
    theo_pair_options_init(o);
    if ((code = choice_of(&fit, s, "preprocess", "pad|crop|native")))
        return code;
    o->preprocess = (theo_pair_preprocess)fit;
    if (option_given(s->args, "square-ok") && fit != THEO_PAIR_NATIVE)
        return usage_error("--square-ok has no effect without --preprocess native");
    o->square_ok = fit == THEO_PAIR_NATIVE && (option_given(s->args, "square-ok") || (square && strcmp(square, "true") == 0));
    return EXIT_DONE;
}

/* One photo stands for both views. */
static int views_from_photos(verify_views *views, const verify_source *s, int count) {
    theo_decode_options decode;
    theo_pair_options options;
    theo_image *images[2] = {NULL, NULL};
    theo_error err;
    int code;
    if ((code = read_decode_options(&decode, s, THEO_ORIENTATION_APPLY)) || (code = read_pair_options(&options, s)))
        return code;
    for (int i = 0; i < count && !code; i++)
        if (theo_image_load(&images[i], s->args->operands[FIRST_PHOTO + i], &decode, &err))
            code = report(s->args->operands[FIRST_PHOTO + i], &err);
    const dump_photo photos[] = {{s->args->operands[FIRST_PHOTO], images[0]},
                                 {s->args->operands[FIRST_PHOTO + count - 1], images[count - 1]}};
    if (!code) {
        views->is_made = true;
        if (dump_planes(views->views, photos, &options, s->opened, &err)) {
            message_error("%s", err.message);
            code = EXIT_FAILED;
        }
    }
    theo_image_free(images[0]);
    theo_image_free(images[1]);
    return code;
}

static int views_from_reference(verify_views *views, const verify_source *s) {
    static const char *const names[] = {"image1", "image2"};
    for (int v = 0; v < 2; v++) {
        const theo_array *found = theo_arrays_find(s->reference, names[v]);
        if (!found || found->rank != 3 || found->dtype != THEO_DTYPE_F32 || found->shape[0] != 3 || found->shape[1] > INT_MAX ||
            found->shape[2] > INT_MAX)
            return usage_error("%s has no tensor %s [3, H, W] of float32: two IMAGEs are needed", s->args->operands[1], names[v]);
        views->views[v] = (theo_pair_planes){(int)found->shape[2], (int)found->shape[1], found->data};
    }
    return EXIT_DONE;
}

int verify_views_get(verify_views *views, const verify_source *s) {
    const int photos = s->args->operand_count - FIRST_PHOTO;
    int code;
    memset(views, 0, sizeof *views);
    if (photos > 2)
        return usage_error("pair models are compared on one or two images, not %d", photos);
    if ((code = refuse_options(s)) || (photos == 0 && (code = refuse_photo_options(s))))
        return code;
    return photos ? views_from_photos(views, s, photos) : views_from_reference(views, s);
}

void verify_views_free(verify_views *views) {
    if (views->is_made)
        dump_planes_free(views->views);
}
