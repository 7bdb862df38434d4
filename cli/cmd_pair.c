/* theo pair: DUSt3R on two photos, or on one. */
#include "clock.h"
#include "command.h"
#include "common.h"
#include "dump.h"
#include "guard.h"
#include "inputs.h"
#include "interrupt.h"
#include "intrinsics.h"
#include "message.h"
#include "outputs.h"
#include "pair_result.h"
#include "photo.h"
#include "progress.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MODEL "dust3r"

static const option_spec pair_model_options[] = {
    {"model", 0, OPTION_TEXT, "NAME|FILE|DIR", 0, 0, DEFAULT_MODEL,
     "the network: a name that `theo models` lists, a checkpoint, or a folder with one"},
    {0},
};

static const option_spec pair_orientation_option[] = {
    {"orientation", 0, OPTION_CHOICE, "ignore|apply", 0, 0, "apply", "what to do about the EXIF orientation of a photo"},
    {0},
};

static const option_spec reconstruction_options[] = {
    {"preprocess", 0, OPTION_CHOICE, "pad|crop|native", 0, 0, "pad",
     "what the network sees: the photo in a gray square, the square in its middle, or the photo cut to whole patches"},
    {"square-ok", 0, OPTION_FLAG, NULL, 0, 0, NULL, "with native: leave a square photo square instead of cutting it to 4:3"},
    {"min-conf", 0, OPTION_NUMBER, "C", 0, 1e30, "3", "point files hold the points of at least this confidence"},
    {0},
};

static const option_spec pose_options[] = {
    {"pose", 0, OPTION_FLAG, NULL, 0, 0, NULL,
     "find the pose of the second camera as well; the network then runs in both orders"},
    {"pose-method", 0, OPTION_CHOICE, "port|pairviewer", 0, 0, "port",
     "recipe of the public port, or that of the published PairViewer; implies --pose"},
    {"intrinsics", 0, OPTION_TEXT, "fx,fy,cx,cy|FILE", 0, 0, NULL, "camera of both photos, in pixels of the originals"},
    {"intrinsics2", 0, OPTION_TEXT, "fx,fy,cx,cy|FILE", 0, 0, NULL, "camera of the second photo, where it differs"},
    {"conf-pct", 0, OPTION_NUMBER, "P", 0, 100, "50",
     "port: the pose is of the P per cent most confident points of the second photo"},
    {0},
};

static const option_spec file_options[] = {
    {"glb", 0, OPTION_FLAG, NULL, 0, 0, NULL, "write pair.glb, both surfaces as meshes and the cameras, y up"},
    {"dump", 0, OPTION_FILE, "FILE", 0, 0, NULL, "write the network's own outputs as safetensors, for theo verify"},
    {0},
};

static const option_group groups[] = {
    {"Reconstruction", reconstruction_options},
    {"Pose", pose_options},
    {"Model", pair_model_options},
    {"Images", pair_orientation_option},
    {NULL, limit_options},
    {"Results", result_options},
    {NULL, file_options},
    {"Machine", engine_options},
    {"Help", help_option},
    {0},
};

typedef struct job {
    const arguments *args;
    inputs list;
    photo photos[2];
    theo_image *images[2];
    engine engine;
    theo_session *session;
    theo_decode_options decode;
    theo_pair_options options;
    theo_pair *pair;
    pair_facts facts;
    output_files files;
    double decode_ms, encode_ms;
    bool json;
    json_out text;
} job;

static const char no_points[] = "no point is confident enough for the point files: a lower --min-conf keeps more";
static const char no_surface[] = "no three neighbouring points are confident enough: pair.glb shows no surface";
static const char no_camera[] = "a camera lies too far away, or its focal length is too long, to be shown in pair.glb";

/* ---- what is said */

static int report_failure(const job *all, int image, const theo_error *err) {
    const input *items = all->list.items;
    char text[1600];
    if (image >= 0)
        error_text(text, sizeof text, items[image].path, err);
    else
        snprintf(text, sizeof text, "%s", err->message);
    message_error("%s", text);
    if (!all->json)
        return EXIT_FAILED;
    json_out json = {0};
    json_open(&json, '{');
    json_member_string(&json, all->list.count == 2 ? "image0" : "image", items[0].path);
    if (all->list.count == 2)
        json_member_string(&json, "image1", items[1].path);
    json_member_string(&json, "error", text);
    json_close(&json, '}');
    stdout_line(json.text);
    json_free(&json);
    return EXIT_FAILED;
}

static void warnings(const job *all, json_out *json, bool aloud) {
    const char *const found[] = {all->facts.cloud->count ? NULL : no_points, all->facts.no_surface ? no_surface : NULL,
                                 all->facts.camera_left_out ? no_camera : NULL};
    for (int i = 0; i < all->list.count; i++)
        photo_warnings(json, &all->photos[i], all->list.items[i].path, aloud);
    for (size_t i = 0; i < sizeof found / sizeof *found; i++) {
        if (found[i] && json)
            json_string(json, found[i]);
        if (found[i] && aloud)
            message_warning("%s", found[i]);
    }
}

static double total_ms(const job *all) {
    const theo_pair_timing *t = &all->pair->timing;
    return all->decode_ms + t->preprocess + t->forward + t->forward_swapped + t->activation + t->pose + all->encode_ms;
}

static void member_timing(json_out *json, const job *all) {
    const theo_pair_timing *t = &all->pair->timing;
    json_key(json, "timing_ms");
    json_open(json, '{');
    json_member_double(json, "decode", all->decode_ms);
    json_member_double(json, "preprocess", t->preprocess);
    json_member_double(json, "forward", t->forward);
    if (t->forward_swapped > 0)
        json_member_double(json, "forward_sym", t->forward_swapped);
    json_member_double(json, "activation", t->activation);
    json_member_double(json, "pose", t->pose);
    json_member_double(json, "postprocess", t->activation + t->pose);
    json_member_double(json, "encode", all->encode_ms);
    json_member_double(json, "total", total_ms(all));
    json_close(json, '}');
}

static void write_json(job *all) {
    json_out *json = &all->text;
    json_open(json, '{');
    json_key(json, "images");
    json_open(json, '[');
    for (int i = 0; i < all->list.count; i++) {
        json_open(json, '{');
        json_member_string(json, "path", all->list.items[i].path);
        json_members_photo(json, &all->photos[i]);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_member_string(json, "model", all->engine.info.name);
    json_member_string(json, "precision", all->engine.info.precision);
    json_key(json, "warnings");
    json_open(json, '[');
    warnings(all, json, false);
    json_close(json, ']');
    json_member_files(json, &all->files);
    if (option_given(all->args, "time"))
        member_timing(json, all);
    pair_json_members(json, &all->facts);
    json_close(json, '}');
}

static void print_words(const job *all) {
    const theo_pair_timing *t = &all->pair->timing;
    char *found = pair_words(&all->facts), *written = output_summary(&all->files);
    char *spent =
        option_given(all->args, "time")
            ? text_format(" (decode %.1f, preprocess %.1f, forward %.1f, in the other order %.1f, activation %.1f, pose "
                          "%.1f, encode %.1f, total %.1f ms)",
                          all->decode_ms, t->preprocess, t->forward, t->forward_swapped, t->activation, t->pose, all->encode_ms,
                          total_ms(all))
            : text_copy("");
    char *line = text_format("%s%s%s: %s%s%s", all->list.items[0].path, all->list.count == 2 ? " " : "",
                             all->list.count == 2 ? all->list.items[1].path : "", found, spent, written);
    stdout_line(line);
    free(line);
    free(spent);
    free(written);
    free(found);
}

/* ---- the work */

static theo_status write_files(job *all, theo_error *err) {
    const double start = clock_ms();
    theo_status status = pair_measure(&all->facts, all->pair, option_number(all->args, "min-conf", 3), err);
    if (!status && all->files.folder)
        status =
            pair_write_files(&all->files, &all->facts, !option_given(all->args, "store"), option_given(all->args, "glb"), err);
    all->encode_ms = clock_ms() - start;
    const char *path = NULL;
    if (!status && all->files.folder && !(path = output_path(&all->files, "json", err)))
        status = err->status;
    if (!status)
        write_json(all);
    return status || !path ? status : theo_file_write(path, all->text.text, all->text.length, err);
}

static int decode(job *all) {
    theo_error err;
    const double start = clock_ms();
    for (int i = 0; i < all->list.count; i++) {
        const double own = clock_ms();
        if (input_decode(&all->list, i, &all->decode, &all->images[i], &err))
            return report_failure(all, i, &err);
        photo_remember(&all->photos[i], all->images[i], clock_ms() - own);
    }
    all->decode_ms = clock_ms() - start;
    return EXIT_DONE;
}

/* The image that an error of the library is about, or -1. */
static int image_of(const job *all, const theo_error *err) {
    return strcmp(err->place, "second") == 0 ? 1 : strcmp(err->place, "first") == 0 || all->list.count == 1 ? 0 : -1;
}

static int reconstruct(job *all) {
    theo_error err;
    const char *dump = option_text(all->args, "dump", NULL);
    const int second = all->list.count - 1; /* 0: the photo again */
    const dump_photo photos[] = {{all->list.items[0].path, all->images[0]}, {all->list.items[second].path, all->images[second]}};
    theo_status status = THEO_OK;
    progress_start("pairs", 1, option_given(all->args, "quiet"));
    if (dump)
        status = dump_write_pair(dump, photos, &all->options, all->session, &all->engine, &err);
    if (!status)
        status = theo_reconstruct(all->session, all->images[0], all->images[1], &all->options, &all->pair, &err);
    progress_end();
    if (interrupted())
        return interrupt_exit_code();
    return status ? report_failure(all, image_of(all, &err), &err) : EXIT_DONE;
}

static int give_answer(job *all) {
    theo_error err;
    if (write_files(all, &err))
        return report_failure(all, -1, &err);
    warnings(all, NULL, true);
    if (all->json)
        stdout_line(all->text.text);
    else
        print_words(all);
    return stdout_failed() ? EXIT_FAILED : EXIT_DONE;
}

/* Opens all that is needed and runs; the caller closes. */
static int run_job(job *all) {
    int code;
    if ((code = engine_open_default(&all->engine, all->args, DEFAULT_MODEL)) ||
        (code = engine_needs(&all->engine, THEO_TASK_PAIR)) ||
        (code = guard_option("dump", option_text(all->args, "dump", NULL))))
        return code;
    all->files.pool = all->engine.pool;
    if (all->files.folder && (code = output_folder_make(all->files.folder)))
        return code;
    if ((code = inputs_read_stdin(&all->list)))
        return code;
    if ((code = engine_session(&all->engine, &all->session)))
        return code;
    if ((code = decode(all)) || (code = reconstruct(all)))
        return code;
    return give_answer(all);
}

/* ---- options */

static int read_cameras(job *all) {
    const arguments *args = all->args;
    const char *both = option_text(args, "intrinsics", NULL), *second = option_text(args, "intrinsics2", NULL);
    int code;
    for (int i = 0; i < 2; i++) {
        static const char *const names[] = {"intrinsics", "intrinsics2"};
        if (option_given(args, names[i]) && all->options.pose == THEO_POSE_NONE)
            return usage_error("--%s has no effect without --pose", names[i]);
    }
    if (both && (code = intrinsics_read(&all->options.intrinsics[0], "intrinsics", both)))
        return code;
    all->options.intrinsics[1] = all->options.intrinsics[0];
    return second ? intrinsics_read(&all->options.intrinsics[1], "intrinsics2", second) : EXIT_DONE;
}

static int check_usage(job *all) {
    const arguments *args = all->args;
    const theo_pair_options *o = &all->options;
    int code;
    static const char *const with_files[] = {"store", "glb"};
    for (int i = 0; i < 2; i++)
        if ((code = option_needs(args, with_files[i], "output")))
            return code;
    if (o->square_ok && o->preprocess != THEO_PAIR_NATIVE)
        return usage_error("--square-ok has no effect without --preprocess native");
    if (args->operand_count == 0 || args->operand_count > 2)
        return usage_error("two images are needed (or one, paired with itself), not %d", args->operand_count);
    if (o->pose && args->operand_count == 1)
        return usage_error("--%s needs two images: a photo paired with itself has no pose",
                           option_given(args, "pose") ? "pose" : "pose-method");
    if (option_given(args, "conf-pct") && o->pose != THEO_POSE_PORT)
        return o->pose ? usage_error("--conf-pct has no effect with --pose-method pairviewer")
                       : usage_error("--conf-pct has no effect without --pose");
    if ((code = read_cameras(all)) || (code = inputs_collect(&all->list, args->operands, args->operand_count, false, false)))
        return code;
    return inputs_spare(&all->list, "dump", option_text(args, "dump", NULL));
}

static void read_options(job *all) {
    const arguments *args = all->args;
    theo_pair_options *o = &all->options;
    theo_pair_options_init(o);
    o->preprocess = (theo_pair_preprocess)option_choice(args, "preprocess", THEO_PAIR_PAD);
    o->square_ok = option_given(args, "square-ok");
    o->conf_pct = option_number(args, "conf-pct", o->conf_pct);
    if (option_given(args, "pose") || option_given(args, "pose-method"))
        o->pose = option_choice(args, "pose-method", 0) ? THEO_POSE_PAIRVIEWER : THEO_POSE_PORT;
}

static int run(const arguments *args) {
    job all = {
        .args = args,
        .files = {.folder = option_text(args, "output", NULL), .stem = "pair"},
        .json = option_given(args, "json"),
    };
    decode_options(&all.decode, args, THEO_ORIENTATION_APPLY);
    read_options(&all);
    int code = check_usage(&all);
    if (code == EXIT_DONE)
        code = run_job(&all);
    pair_facts_free(&all.facts);
    theo_pair_free(all.pair);
    theo_image_free(all.images[0]);
    theo_image_free(all.images[1]);
    json_free(&all.text);
    output_files_free(&all.files);
    theo_session_close(all.session);
    engine_close(&all.engine);
    inputs_free(&all.list);
    return code;
}

const command command_pair = {
    .name = "pair",
    .operands = "A [B]",
    .summary = "points, confidence and pose of two photos (DUSt3R)",
    .description =
        "Gives a 3-D point and a confidence for each pixel that the network sees of two photos, all in the axes of the first "
        "camera: "
        "x to the right, y down, z forward. The unit is the network's own, not metres. One photo alone is paired with itself. "
        "Prints a line; with -o DIR it writes points.ply (points of both photos), pair.npz (points, confidences, what the "
        "network "
        "saw, masks, and the pose), pair.json, depth1.png, depth2.png (16 bit, z between the two numbers in the JSON) and "
        "conf1.png, "
        "conf2.png (round(255 (1 - 1/confidence))).",
    .groups = groups,
    .run = run,
};
