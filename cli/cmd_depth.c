/* theo depth: MoGe-2 on any number of images. */
#include "clock.h"
#include "command.h"
#include "common.h"
#include "depth_files.h"
#include "dump.h"
#include "guard.h"
#include "inputs.h"
#include "interrupt.h"
#include "message.h"
#include "outputs.h"
#include "photo.h"
#include "progress.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MODEL "moge-2-vitl-normal"
#define FITS          "native|pad|stretch"

static const option_spec depth_model_options[] = {
    {"model", 0, OPTION_TEXT, "NAME|FILE|DIR", 0, 0, DEFAULT_MODEL,
     "the network: a name that `theo models` lists, a checkpoint, or a folder with one"},
    {0},
};

static const option_spec geometry_options[] = {
    {"fit", 0, OPTION_CHOICE, FITS, 0, 0, "native",
     "what the network sees: the photo as it is, or on a canvas of 1920x1080, padded or stretched"},
    {"tokens", 0, OPTION_COUNT, "N", 16, 16384, "1800",
     "patches that the network cuts the photo into: more are finer and slower"},
    {"resolution-level", 0, OPTION_NUMBER, "L", 0, 9, NULL, "the same, from the model's fewest (0) to its most (9)"},
    {"fov-x", 0, OPTION_NUMBER, "DEG", 0.01, 179.99, NULL, "horizontal field of view in degrees, where it is known"},
    {"focal-px", 0, OPTION_NUMBER, "F", 0.01, 1e9, NULL, "focal length in pixels of the photo, where it is known"},
    {"fov-from-exif", 0, OPTION_FLAG, NULL, 0, 0, NULL, "take the field of view from the EXIF data, where the photo has it"},
    {"no-mask", 0, OPTION_FLAG, NULL, 0, 0, NULL, "keep the pixels that the network thinks invalid (sky, reflections)"},
    {"mask-threshold", 0, OPTION_NUMBER, "P", 0, 1, "0.5", "a pixel is valid where the network's mask is above P"},
    {"no-projection", 0, OPTION_FLAG, NULL, 0, 0, NULL,
     "take x and y of the points from the network, not from depth and intrinsics"},
    {"invalid", 0, OPTION_CHOICE, "inf|nan|0", 0, 0, "inf", "what invalid points and depths hold"},
    {"metric-scale", 0, OPTION_NUMBER, "M", 1e-9, 1e9, NULL, "metres of the network's unit, instead of what it says itself"},
    {"scale", 0, OPTION_NUMBER, "S", 1e-9, 1e9, "1", "multiply points and depths by S"},
    {"sequence", 0, OPTION_CHOICE, "off|first|ema", 0, 0, "off",
     "the images are frames of a video, in this order: one field of view and scale for all, the first frame's or a running mean"},
    {0},
};

static const option_spec file_options[] = {
    {"ply", 0, OPTION_FLAG, NULL, 0, 0, NULL,
     "write STEM.ply, the surface's points with normals and colours, in the camera's axes"},
    {"ply-faces", 0, OPTION_FLAG, NULL, 0, 0, NULL, "with the triangles between them"},
    {"glb", 0, OPTION_FLAG, NULL, 0, 0, NULL, "write STEM.glb, the surface as a mesh with the photo on it, in glTF's axes"},
    {"exr", 0, OPTION_FLAG, NULL, 0, 0, NULL, "write STEM.depth.exr and STEM.points.exr, 32-bit floats"},
    {"dump", 0, OPTION_FILE, "FILE", 0, 0, NULL, "write the network's own outputs for one image as safetensors, for theo verify"},
    {"edge-threshold", 0, OPTION_NUMBER, "T", 0, 1e9, "0.04",
     "surfaces and point files leave out pixels around which depth changes by more than T times itself"},
    {0},
};

static const option_group groups[] = {
    {"Geometry", geometry_options}, {"Files", file_options},
    {"Model", depth_model_options}, {"Images", image_options},
    {NULL, limit_options},          {NULL, folder_options},
    {"Results", result_options},    {"Machine", engine_options},
    {"Help", help_option},          {0},
};

typedef struct job {
    const arguments *args;
    inputs list;
    engine engine;
    theo_session *session;
    theo_sequence *sequence; /* NULL: off */
    theo_decode_options decode;
    theo_geometry_options options;
    const char *folder, *fit, *dump;
    depth_wishes wishes;
    photo *photos; /* of each input, filled when it was decoded */
    bool json, time;
    int failures;
} job;

/* What is known of one image once its geometry is there. */
typedef struct answer {
    const input *item;
    const photo *facts;
    const theo_image *image;
    const theo_geometry *geometry;
    depth_facts depth;
    output_files files;
    stage_times times;
    const char *doubts[4]; /* warnings of the geometry */
    int doubt_count;
    bool no_surface;
    json_out json;
} answer;

static const char no_exif[] = "no focal length in the EXIF data: the network's own is used";
static const char too_few[] = "too few valid pixels for a focal length and shift: both are guesses";
static const char no_surface[] = "no four neighbouring pixels are valid and free of depth edges: PLY and GLB are empty";
static const char behind[] = "the focal length found is negative: the network saw no scene, or one from behind";
static const char no_scale[] = "the network's metric scale is zero or beyond single precision: --metric-scale M replaces it";

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

static theo_status load_image(void *user, int index, theo_image **image, theo_error *err) {
    job *all = user;
    double start = clock_ms();
    theo_status status = input_decode(&all->list, index, &all->decode, image, err);
    if (!status)
        photo_remember(&all->photos[index], *image, clock_ms() - start);
    return status;
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
    for (int i = 0; i < a->doubt_count; i++)
        json_string(json, a->doubts[i]);
    if (a->no_surface)
        json_string(json, no_surface);
    json_close(json, ']');
    json_member_files(json, &a->files);
    if (all->time)
        json_member_timing(json, &a->times);
    depth_json_members(json, a->geometry, &a->depth, all->fit);
    json_close(json, '}');
}

/* All files of one image, and its JSON. */
static theo_status write_files(job *all, answer *a, theo_error *err) {
    double start = clock_ms();
    theo_status status = depth_measure(&a->depth, a->geometry, !all->options.apply_mask, all->engine.pool, err);
    if (!status && all->folder)
        status = depth_write_files(&a->files, a->geometry, a->image, &a->depth, &all->wishes, &a->no_surface, err);
    a->times.encode = clock_ms() - start;
    const char *path = NULL;
    if (!status && all->folder && !(path = output_path(&a->files, "json", err)))
        status = err->status;
    if (!status && (all->json || all->folder))
        write_json(all, a);
    if (!status && path)
        status = theo_file_write(path, a->json.text, a->json.length, err);
    return status;
}

static bool print_words(const job *all, const answer *a) {
    const theo_geometry *g = a->geometry;
    char *written = output_summary(&a->files), *spent = all->time ? timing_summary(&a->times) : text_copy("");
    const char *unit = g->is_metric ? " m" : "", *kind = g->is_metric ? "" : "relative ";
    char *depth = a->depth.count ? text_format("%sdepth %.3g to %.3g%s, median %.3g%s", kind, (double)a->depth.min,
                                               (double)a->depth.max, unit, (double)a->depth.median, unit)
                                 : text_copy("no valid pixel");
    char *line = text_format("%s: %dx%d, valid %.1f%%, %s, fov_x %.1f deg%s%s", a->item->path, g->width, g->height,
                             100 * (double)g->mask_coverage, depth, (double)g->fov_x, spent, written);
    bool ok = stdout_line(line);
    free(written);
    free(spent);
    free(depth);
    free(line);
    return ok;
}

/* Writes and prints. False when stdout takes no more. */
static bool give_answer(job *all, answer *a) {
    theo_error err;
    progress_wipe();
    photo_warnings(NULL, a->facts, a->item->path, true);
    for (int i = 0; i < a->doubt_count; i++)
        message_warning("%s: %s", a->item->path, a->doubts[i]);
    if (write_files(all, a, &err))
        return report_failure(all, a->item, &err);
    if (a->no_surface)
        message_warning("%s: %s", a->item->path, no_surface);
    return all->json ? stdout_line(a->json.text) : print_words(all, a);
}

static void find_doubts(answer *a, const theo_geometry_options *o) {
    const theo_geometry *g = a->geometry;
    if (o->fov_from_exif && a->image->exif_focal_35mm == 0)
        a->doubts[a->doubt_count++] = no_exif;
    if (g->is_degenerate)
        a->doubts[a->doubt_count++] = too_few;
    if (g->focal < 0)
        a->doubts[a->doubt_count++] = behind;
    if (!(g->metric_scale > 0) || !isfinite(g->metric_scale))
        a->doubts[a->doubt_count++] = no_scale;
}

/* theo_geometry_sink */
static int take_result(void *user, int index, const theo_image *image, theo_geometry *geometry, const theo_error *failure) {
    job *all = user;
    const input *item = &all->list.items[index];
    bool go_on;
    if (geometry) {
        answer a = {.item = item, .facts = &all->photos[index], .image = image, .geometry = geometry};
        a.files = (output_files){.folder = all->folder, .stem = item->stem, .pool = all->engine.pool};
        a.times = (stage_times){.decode = a.facts->decode_ms, .network = geometry->timing};
        find_doubts(&a, &all->options);
        go_on = give_answer(all, &a);
        json_free(&a.json);
        output_files_free(&a.files);
        theo_geometry_free(geometry);
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
    if (!all->folder)
        return EXIT_DONE;
    const char **keys = memory_new((size_t)all->list.count, sizeof *keys);
    int a, b, code = EXIT_DONE;
    for (int i = 0; i < all->list.count; i++)
        keys[i] = all->list.items[i].stem;
    if (find_duplicate(keys, all->list.count, &a, &b))
        code = usage_error("%s and %s would both write %s/%s.npz", all->list.items[a].path, all->list.items[b].path, all->folder,
                           keys[a]);
    free(keys);
    return code;
}

/* The option that sets the field of view, or NULL. */
static const char *fov_given(const arguments *args) {
    return option_given(args, "fov-x") ? "fov-x" : option_given(args, "focal-px") ? "focal-px" : NULL;
}

static int check_usage(job *all) {
    const arguments *args = all->args;
    int code;
    static const char *const files[] = {"store", "ply", "glb", "exr", "edge-threshold"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if ((code = option_needs(args, files[i], "output")))
            return code;
    if (option_given(args, "edge-threshold") && !all->wishes.ply && !all->wishes.glb)
        return usage_error("--edge-threshold has no effect without --ply or --glb: depth itself keeps its edges");
    if (all->wishes.exr && !theo_exr_available())
        return usage_error("--exr: this build cannot write EXR files: it was made without OpenEXR's library");
    if ((code = option_needs(args, "ply-faces", "ply")) || (code = option_excludes(args, "tokens", "resolution-level")) ||
        (code = option_excludes(args, "fov-x", "focal-px")) || (code = option_excludes(args, "fov-x", "fov-from-exif")) ||
        (code = option_excludes(args, "focal-px", "fov-from-exif")) || (code = option_excludes(args, "no-mask", "invalid")))
        return code;
    if (option_choice(args, "sequence", 0) && fov_given(args) && option_given(args, "metric-scale"))
        return usage_error("--sequence has no effect with --metric-scale and --%s: nothing is left to share", fov_given(args));
    for (int i = 0; i < 2 && all->options.fit != THEO_DEPTH_NATIVE; i++) {
        static const char *const sizes[] = {"tokens", "resolution-level"};
        if (option_given(args, sizes[i]))
            return usage_error("--%s has no effect with --fit %s: the canvas is always cut into 1800 tokens", sizes[i], all->fit);
    }
    if (args->operand_count == 0)
        return usage_error("no image is given");
    if ((code = inputs_collect(&all->list, args->operands, args->operand_count, true, option_given(args, "recursive"))))
        return code;
    if (all->dump && all->list.count != 1)
        return usage_error("--dump takes one image, not %d", all->list.count);
    if ((code = inputs_spare(&all->list, "dump", all->dump)))
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
        dump_write_depth(all->dump, all->list.items[0].path, image, &all->options, all->session, &all->engine, &err);
    theo_image_free(image);
    if (status && status != THEO_CANCELLED)
        report_failure(all, &all->list.items[0], &err);
    return status == THEO_OK;
}

/* Opens all that is needed and runs; the caller closes. */
static int run_job(job *all) {
    int code;
    if ((code = engine_open_default(&all->engine, all->args, DEFAULT_MODEL)))
        return code;
    if ((code = engine_needs(&all->engine, THEO_TASK_DEPTH)) || (code = guard_option("dump", all->dump)))
        return code;
    if (all->folder && (code = output_folder_make(all->folder)))
        return code;
    if ((code = inputs_read_stdin(&all->list)))
        return code;
    theo_error err;
    if ((code = engine_session(&all->engine, &all->session)))
        return code;
    int mode = option_choice(all->args, "sequence", 0);
    if (mode && strcmp(all->engine.info.kind, "moge-1") == 0 && fov_given(all->args))
        return usage_error(
            "--sequence has no effect with --%s on the model %s (moge-1): frames of MoGe-1 share a field of view alone",
            fov_given(all->args), all->engine.info.name);
    if (mode && theo_sequence_open(&all->sequence, (theo_sequence_mode)mode, &err)) {
        message_error("%s", err.message);
        return EXIT_NOTHING;
    }
    all->options.sequence = all->sequence;
    all->photos = memory_new((size_t)all->list.count, sizeof *all->photos);
    progress_start("images", all->list.count, option_given(all->args, "quiet"));
    theo_status status = THEO_OK;
    if (!all->dump || write_dump(all))
        status = theo_geometry_batch(all->session, all->list.count, load_image, take_result, all, &all->options, &err);
    progress_end();
    if (interrupted())
        return interrupt_exit_code();
    if (status && status != THEO_CANCELLED) {
        message_error("%s", err.message);
        return EXIT_FAILED;
    }
    return all->failures || stdout_failed() ? EXIT_FAILED : EXIT_DONE;
}

static void read_options(job *all) {
    static const char *const fits[] = {"native", "pad", "stretch"};
    const arguments *args = all->args;
    theo_geometry_options *o = &all->options;
    theo_geometry_options_init(o);
    o->fit = (theo_depth_fit)option_choice(args, "fit", THEO_DEPTH_NATIVE);
    all->fit = fits[o->fit];
    o->tokens = (int)option_count(args, "tokens", o->tokens);
    o->resolution_level = option_number(args, "resolution-level", o->resolution_level);
    o->fov_x = option_number(args, "fov-x", 0);
    o->apply_mask = !option_given(args, "no-mask");
    o->mask_threshold = (float)option_number(args, "mask-threshold", (double)o->mask_threshold);
    o->force_projection = !option_given(args, "no-projection");
    o->invalid = (theo_invalid)option_choice(args, "invalid", THEO_INVALID_INF);
    o->metric_scale = (float)option_number(args, "metric-scale", 0);
    o->scale = (float)option_number(args, "scale", 1);
    o->focal_px = option_number(args, "focal-px", 0);
    o->fov_from_exif = option_given(args, "fov-from-exif");
    all->wishes = (depth_wishes){
        .deflate = !option_given(args, "store"),
        .ply = option_given(args, "ply"),
        .ply_faces = option_given(args, "ply-faces"),
        .glb = option_given(args, "glb"),
        .exr = option_given(args, "exr"),
        .edge_threshold = (float)option_number(args, "edge-threshold", 0.04),
    };
}

static int run(const arguments *args) {
    job all = {
        .args = args,
        .folder = option_text(args, "output", NULL),
        .dump = option_text(args, "dump", NULL),
        .json = option_given(args, "json"),
        .time = option_given(args, "time"),
    };
    decode_options(&all.decode, args, THEO_ORIENTATION_IGNORE);
    all.decode.keep_16_bit = true;
    read_options(&all);
    int code = check_usage(&all);
    if (code == EXIT_DONE)
        code = run_job(&all);
    theo_session_close(all.session);
    theo_sequence_close(all.sequence);
    engine_close(&all.engine);
    free(all.photos);
    inputs_free(&all.list);
    return code;
}

const command command_depth = {
    .name = "depth",
    .operands = "IMAGE...",
    .summary = "metric depth, points and normals of a photo (MoGe)",
    .description =
        "Measures the scene in JPEG and PNG photos, in metres (MoGe-1: in a unit of its own), in the camera's axes: x to the "
        "right, y down, z forward. A folder stands for its images, - for an image on stdin. Prints a line per image; with -o DIR "
        "it writes STEM.depth.png (16 "
        "bit, metres = value * "
        "scale, 0 invalid; the scale is in the JSON and in the picture), STEM.depth_vis.png (colours to look at, near red, "
        "far blue), STEM.normal.png, STEM.mask.png, STEM.npz (points, depth, normal, mask, intrinsics) and STEM.json for "
        "each.",
    .groups = groups,
    .run = run,
};
