/* theo keypoints: SuperPoint on any number of images. */
#include "clock.h"
#include "command.h"
#include "common.h"
#include "dump.h"
#include "guard.h"
#include "hloc.h"
#include "inputs.h"
#include "interrupt.h"
#include "message.h"
#include "outputs.h"
#include "photo.h"
#include "progress.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <theo/draw.h>

static const option_spec keypoints_only_options[] = {
    {"no-descriptors", 0, OPTION_FLAG, NULL, 0, 0, NULL, "positions and scores only"},
    {0},
};

static const option_spec file_options[] = {
    {"h5", 0, OPTION_FILE, "FILE", 0, 0, NULL,
     "write all images into one HDF5 file in the layout of hloc, with coordinates as of --pixel-centers"},
    {"half", 0, OPTION_FLAG, NULL, 0, 0, NULL, "16-bit floats in the file of --h5"},
    {"dump", 0, OPTION_FILE, "FILE", 0, 0, NULL, "write the network's own outputs for one image as safetensors, for theo verify"},
    {0},
};

static const option_group groups[] = {
    {"Keypoints", detector_options},
    {NULL, keypoints_only_options},
    {"Model", model_options},
    {"Images", image_options},
    {NULL, limit_options},
    {NULL, folder_options},
    {"Results", result_options},
    {NULL, file_options},
    {"Machine", engine_options},
    {"Help", help_option},
    {0},
};

typedef struct job {
    const arguments *args;
    inputs list;
    photo *photos; /* one for each input, written by the decoding thread before the image is handed over */
    engine engine;
    theo_session *session;
    theo_decode_options decode;
    theo_detect_options detect;
    theo_h5 *h5;
    const char *folder, *dump;
    bool json, time, store, half;
    int failures;
} job;

/* What is known of one image once its keypoints are there. */
typedef struct answer {
    const input *item;
    const photo *facts;
    const theo_image *image;
    const theo_keypoints *points;
    output_files files;
    stage_times times;
    json_out json;
} answer;

static theo_status load_image(void *user, int index, theo_image **image, theo_error *err) {
    job *all = user;
    double start = clock_ms();
    theo_status status = input_decode(&all->list, index, &all->decode, image, err);
    if (!status)
        photo_remember(&all->photos[index], *image, clock_ms() - start);
    return status;
}

static bool report_failure(job *all, const input *item, const theo_error *err) {
    char text[1600];
    error_text(text, sizeof text, item->path, err);
    message_error("%s", text);
    all->failures++;
    if (!all->json)
        return true;
    json_out json = {0};
    json_open(&json, '{');
    json_member_string(&json, "image", item->path);
    json_member_string(&json, "error", text);
    json_close(&json, '}');
    bool ok = stdout_line(json.text);
    json_free(&json);
    return ok;
}

static void write_json(const job *all, answer *a) {
    json_out *json = &a->json;
    json_open(json, '{');
    json_member_string(json, "image", a->item->path);
    json_members_photo(json, a->facts);
    json_member_string(json, "model", all->engine.info.name);
    json_member_string(json, "precision", all->engine.info.precision);
    json_key(json, "warnings");
    json_open(json, '[');
    photo_warnings(json, a->facts, a->item->path, false);
    if (all->detect.descriptors && all->engine.info.descriptor_dim == 0)
        json_string(json, "the model has no descriptor head: descriptors are absent");
    json_close(json, ']');
    json_member_files(json, &a->files);
    if (all->time)
        json_member_timing(json, &a->times);
    json_key(json, "network_size");
    json_open(json, '[');
    json_int(json, a->points->net_height);
    json_int(json, a->points->net_width);
    json_close(json, ']');
    json_member_int(json, "num_keypoints", a->points->count);
    json_key(json, "keypoints");
    json_open(json, '[');
    for (int i = 0; i < a->points->count; i++) {
        json_open(json, '[');
        json_float(json, a->points->xy[2 * i]);
        json_float(json, a->points->xy[2 * i + 1]);
        json_close(json, ']');
    }
    json_close(json, ']');
    json_key(json, "scores");
    json_open(json, '[');
    for (int i = 0; i < a->points->count; i++)
        json_float(json, a->points->scores[i]);
    json_close(json, ']');
    json_close(json, '}');
}

static theo_status write_npz(answer *a, bool deflate, theo_error *err) {
    const theo_keypoints *points = a->points;
    const int32_t size[2] = {points->image_height, points->image_width};
    const int64_t n = points->count, c = points->descriptor_dim;
    theo_array arrays[5] = {
        {.name = "keypoints", .dtype = THEO_DTYPE_F32, .rank = 2, .shape = {n, 2}, .data = points->xy},
        {.name = "scores", .dtype = THEO_DTYPE_F32, .rank = 1, .shape = {n}, .data = points->scores},
        {.name = "image_size", .dtype = THEO_DTYPE_I32, .rank = 1, .shape = {2}, .data = size},
        {.name = "model", .dtype = THEO_DTYPE_TEXT, .rank = 0, .data = points->model},
        {.name = "descriptors", .dtype = THEO_DTYPE_F32, .rank = 2, .shape = {n, c}, .data = points->descriptors},
    };
    return output_npz(&a->files, "keypoints.npz", arrays, c ? 5 : 4, deflate, err);
}

static theo_status write_picture(answer *a, theo_error *err) {
    theo_image *picture;
    theo_status status = theo_draw_keypoints(&picture, a->image, a->points, err);
    if (!status) {
        status = output_png(&a->files, "keypoints.png", picture, err);
        theo_image_free(picture);
    }
    return status;
}

/* All files of one image, and its JSON. */
static theo_status write_files(job *all, answer *a, theo_error *err) {
    theo_status status = THEO_OK;
    double start = clock_ms();
    if (all->folder) {
        status = write_npz(a, !all->store, err);
        if (!status)
            status = write_picture(a, err);
    }
    if (!status && all->h5)
        status = hloc_add_keypoints(all->h5, a->item->name, a->points, all->detect.pixel_centers, all->half, err);
    a->times.encode = clock_ms() - start;
    const char *path = NULL;
    if (!status && all->folder && !(path = output_path(&a->files, "keypoints.json", err)))
        status = err->status;
    if (!status && (all->json || all->folder))
        write_json(all, a);
    if (!status && path)
        status = theo_file_write(path, a->json.text, a->json.length, err);
    return status;
}

static bool print_words(const job *all, const answer *a) {
    bool lacks_descriptors = all->detect.descriptors && a->points->descriptor_dim == 0;
    char *written = output_summary(&a->files), *spent = all->time ? timing_summary(&a->times) : text_copy("");
    char *line = text_format("%s: %dx%d, %d keypoint%s%s%s%s", a->item->path, a->facts->width, a->facts->height, a->points->count,
                             a->points->count == 1 ? "" : "s",
                             lacks_descriptors ? ", no descriptors (the model has no head for them)" : "", spent, written);
    bool ok = stdout_line(line);
    free(written);
    free(spent);
    free(line);
    return ok;
}

/* Writes and prints. False when stdout takes no more. */
static bool give_answer(job *all, answer *a) {
    theo_error err;
    photo_warnings(NULL, a->facts, a->item->path, true);
    progress_wipe();
    if (write_files(all, a, &err))
        return report_failure(all, a->item, &err);
    return all->json ? stdout_line(a->json.text) : print_words(all, a);
}

/* theo_keypoints_sink */
static int take_result(void *user, int index, const theo_image *image, theo_keypoints *points, const theo_error *failure) {
    job *all = user;
    const input *item = &all->list.items[index];
    bool go_on;
    if (points) {
        answer a = {.item = item, .facts = &all->photos[index], .image = image, .points = points};
        a.files = (output_files){.folder = all->folder, .stem = item->stem, .pool = all->engine.pool};
        a.times = (stage_times){.decode = a.facts->decode_ms, .network = points->timing};
        go_on = give_answer(all, &a);
        json_free(&a.json);
        output_files_free(&a.files);
        theo_keypoints_free(points);
    } else if (failure->status == THEO_CANCELLED) {
        go_on = false;
    } else {
        go_on = report_failure(all, item, failure);
    }
    progress_done(index + 1);
    return !go_on || interrupted();
}

/* Two inputs that would write the same file are an error before any work. */
static int check_collisions(const job *all) {
    if (!all->folder && !option_given(all->args, "h5"))
        return EXIT_DONE;
    const char **keys = memory_new((size_t)all->list.count, sizeof *keys);
    int a, b, code = EXIT_DONE;
    for (int i = 0; i < all->list.count; i++)
        keys[i] = all->folder ? all->list.items[i].stem : all->list.items[i].name;
    if (find_duplicate(keys, all->list.count, &a, &b)) {
        const input *first = &all->list.items[a], *second = &all->list.items[b];
        code =
            all->folder
                ? usage_error("%s and %s would both write %s/%s.keypoints.npz", first->path, second->path, all->folder, keys[a])
                : usage_error("%s and %s would both be the group %s of the HDF5 file", first->path, second->path, keys[a]);
    }
    free(keys);
    return code;
}

static int check_usage(job *all) {
    const arguments *args = all->args;
    int code;
    if ((code = option_needs(args, "half", "h5")) || (code = option_needs(args, "store", "output")) ||
        (code = option_excludes(args, "sampling", "no-descriptors")))
        return code;
    if (option_given(args, "h5") && !theo_h5_available())
        return usage_error("--h5: this build has no HDF5");
    if (args->operand_count == 0)
        return usage_error("no image is given");
    if ((code = inputs_collect(&all->list, args->operands, args->operand_count, true, option_given(args, "recursive"))))
        return code;
    if (all->dump && all->list.count != 1)
        return usage_error("--dump takes one image, not %d", all->list.count);
    if ((code = inputs_spare(&all->list, "h5", option_text(args, "h5", NULL))) ||
        (code = inputs_spare(&all->list, "dump", all->dump)))
        return code;
    return check_collisions(all);
}

/* The outputs for --dump, before the batch keeps the session busy. False when they could not be written. */
static bool write_dump(job *all) {
    theo_image *image;
    theo_error err;
    if (input_decode(&all->list, 0, &all->decode, &image, &err))
        return true; /* the batch meets the same error and reports it */
    theo_status status =
        dump_write(all->dump, all->list.items[0].path, image, &all->detect, all->session, &all->engine.info, &err);
    theo_image_free(image);
    if (status && status != THEO_CANCELLED)
        report_failure(all, &all->list.items[0], &err);
    return status == THEO_OK;
}

/* Opens all that is needed and runs the batch; the caller closes. */
static int run_job(job *all) {
    int code;
    if ((code = engine_open_default(&all->engine, all->args, "superpoint-open")) ||
        (code = engine_needs(&all->engine, THEO_TASK_KEYPOINTS)) || (code = guard_option("dump", all->dump)) ||
        (code = guard_option("h5", option_text(all->args, "h5", NULL))))
        return code;
    detect_options(&all->detect, all->args, &all->engine);
    /* Without a picture to draw, only what the network reads need be kept of a large photo. */
    if (!all->folder && all->detect.gray != THEO_GRAY_RGB601)
        all->decode.channels = all->detect.gray == THEO_GRAY_RED ? THEO_CHANNELS_RED : THEO_CHANNELS_LUMA;
    if (all->folder && (code = output_folder_make(all->folder)))
        return code;
    if ((code = inputs_read_stdin(&all->list)))
        return code;

    theo_error err;
    if ((code = engine_session(&all->engine, &all->session)))
        return code;
    const char *h5 = option_text(all->args, "h5", NULL);
    if (h5 && theo_h5_create(&all->h5, h5, &err)) {
        message_error("%s", err.message);
        return EXIT_FAILED;
    }
    all->photos = memory_new((size_t)all->list.count, sizeof *all->photos);
    progress_start("images", all->list.count, option_given(all->args, "quiet"));
    theo_status status = THEO_OK;
    if (!all->dump || write_dump(all))
        status = theo_detect_batch(all->session, all->list.count, load_image, take_result, all, &all->detect, &err);
    progress_end();
    if (interrupted())
        return interrupt_exit_code();
    if (status && status != THEO_CANCELLED) {
        message_error("%s", err.message);
        return EXIT_FAILED;
    }
    return all->failures || stdout_failed() ? EXIT_FAILED : EXIT_DONE;
}

static int run(const arguments *args) {
    job all = {
        .args = args,
        .folder = option_text(args, "output", NULL),
        .dump = option_text(args, "dump", NULL),
        .json = option_given(args, "json"),
        .time = option_given(args, "time"),
        .store = option_given(args, "store"),
        .half = option_given(args, "half"),
    };
    decode_options(&all.decode, args, THEO_ORIENTATION_IGNORE);
    int code = check_usage(&all);
    if (code == EXIT_DONE)
        code = run_job(&all);
    theo_error err;
    bool complete = code < 128 && !stdout_failed() && all.failures < all.list.count;
    if (all.h5 && theo_h5_close(all.h5, complete, &err)) {
        message_error("%s", err.message);
        code = code ? code : EXIT_FAILED;
    }
    theo_session_close(all.session);
    engine_close(&all.engine);
    free(all.photos);
    inputs_free(&all.list);
    return code;
}

const command command_keypoints = {
    .name = "keypoints",
    .operands = "IMAGE...",
    .summary = "keypoints and descriptors of photos (SuperPoint)",
    .description =
        "Finds keypoints in JPEG and PNG images. A folder stands for its images, - for an image on stdin. Prints a line per "
        "image; with -o DIR it writes "
        "STEM.keypoints.npz (keypoints, scores, descriptors), STEM.keypoints.json and STEM.keypoints.png (drawn) for each. "
        "Coordinates are pixels of the original image.",
    .groups = groups,
    .run = run,
};
