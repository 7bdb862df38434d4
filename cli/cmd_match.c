/* theo match: keypoints of two photos, or of many pairs, mutual nearest neighbours, and the geometry between them. */
#include "clock.h"
#include "command.h"
#include "common.h"
#include "guard.h"
#include "interrupt.h"
#include "intrinsics.h"
#include "keystore.h"
#include "match_result.h"
#include "message.h"
#include "outputs.h"
#include "pairs.h"
#include "photo.h"
#include "progress.h"
#include <stdlib.h>
#include <string.h>

enum { KEYPOINT_BUDGET = 256 << 20 }; /* bytes of keypoints in memory; about 250 images of 1024 points */

static const option_spec match_options[] = {
    {"ratio", 0, OPTION_NUMBER, "R", 0, 1, "off",
     "keep matches whose distance is below R times that of the second best; 0 is off"},
    {"min-similarity", 0, OPTION_NUMBER, "S", -1, 1, "off", "keep matches whose similarity, a dot product, is above S"},
    {"model-fit", 0, OPTION_CHOICE, "none|homography|essential", 0, 0, "homography", "geometry to fit to the matches by RANSAC"},
    {"ransac-threshold", 0, OPTION_NUMBER, "PX", 0.001, 10000, "3", "error up to which a match is an inlier, in pixels"},
    {"intrinsics", 0, OPTION_TEXT, "fx,fy,cx,cy|FILE", 0, 0, NULL,
     "camera of both photos, in pixels of the originals, for the essential matrix"},
    {"intrinsics2", 0, OPTION_TEXT, "fx,fy,cx,cy|FILE", 0, 0, NULL, "camera of the second photo, where it differs"},
    {0},
};

static const option_spec pair_options[] = {
    {"pairs", 0, OPTION_FILE, "FILE", 0, 0, NULL, "match the pairs of a file: two paths a line, # begins a comment"},
    {"images", 0, OPTION_FOLDER, "DIR", 0, 0, "the folder of FILE", "where the paths in --pairs start"},
    {"h5", 0, OPTION_FILE, "FILE", 0, 0, NULL, "write all matches of --pairs into one HDF5 file in the layout of hloc"},
    {0},
};

static const option_group groups[] = {
    {"Matches", match_options},      {"Many pairs", pair_options},
    {"Keypoints", detector_options}, {"Model", model_options},
    {"Images", image_options},       {NULL, limit_options},
    {"Results", result_options},     {"Machine", engine_options},
    {"Help", help_option},           {0},
};

typedef enum image_state { IMAGE_PENDING = 0, IMAGE_READY, IMAGE_FAILED } image_state;

typedef struct image_record {
    photo photo; /* written by the decoding thread before the image is handed over */
    image_state state;
    char *error;        /* of a failed one */
    theo_timing timing; /* of the detector */
} image_record;

typedef struct job {
    const arguments *args;
    pair_list pairs;
    int next_pair; /* pairs are answered in their order, each as soon as both images are there */
    image_record *images;
    keystore *store;
    engine engine;
    theo_session *session;
    theo_decode_options decode;
    theo_detect_options detect;
    theo_match_options match;
    fit_options fit;
    theo_h5 *h5;
    const char *folder;
    bool json, time, deflate;
    int failures;
} job;

/* What is known of one pair once it is matched. */
typedef struct answer {
    const pair *pair;
    const input *inputs[2];
    const photo *photos[2];
    match_result result;
    output_files files;
    stage_times times;
    json_out json;
} answer;

/* ---- one pair */

static bool report_failure(job *all, const pair *item, const char *reason) {
    const char *a = all->pairs.images.items[item->a].path, *b = all->pairs.images.items[item->b].path;
    message_error("%s %s: %s", a, b, reason);
    all->failures++;
    if (!all->json)
        return true;
    json_out json = {0};
    json_open(&json, '{');
    json_member_string(&json, "image0", a);
    json_member_string(&json, "image1", b);
    json_member_string(&json, "error", reason);
    json_close(&json, '}');
    bool ok = stdout_line(json.text);
    json_free(&json);
    return ok;
}

/* Both photos again: they are not kept, since many pairs may need one. */
static theo_status write_picture(const job *all, answer *a, theo_error *err) {
    theo_image *photos[2] = {NULL, NULL};
    theo_status status = input_decode(&all->pairs.images, a->pair->a, &all->decode, &photos[0], err);
    if (!status)
        status = input_decode(&all->pairs.images, a->pair->b, &all->decode, &photos[1], err);
    if (!status)
        status = match_result_draw(&a->result, photos[0], photos[1], &a->files, err);
    theo_image_free(photos[0]);
    theo_image_free(photos[1]);
    return status;
}

static void write_json(const job *all, answer *a) {
    json_out *json = &a->json;
    json_open(json, '{');
    json_member_string(json, "image0", a->inputs[0]->path);
    json_member_string(json, "image1", a->inputs[1]->path);
    json_key(json, "images");
    json_open(json, '[');
    for (int i = 0; i < 2; i++) {
        json_open(json, '{');
        json_member_string(json, "path", a->inputs[i]->path);
        json_members_photo(json, a->photos[i]);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_member_string(json, "network", all->engine.info.name); /* "model" is the geometry */
    json_member_string(json, "precision", all->engine.info.precision);
    json_key(json, "warnings");
    json_open(json, '[');
    for (int i = 0; i < 2; i++)
        photo_warnings(json, a->photos[i], a->inputs[i]->path, false);
    json_close(json, ']');
    json_member_files(json, &a->files);
    if (all->time)
        json_member_timing(json, &a->times);
    json_members_match(json, &a->result);
    json_close(json, '}');
}

static theo_status write_files(job *all, answer *a, theo_error *err) {
    const theo_matches *matches = a->result.matches;
    theo_status status = THEO_OK;
    double start = clock_ms();
    if (all->folder) {
        status = match_result_npz(&a->result, &a->files, all->deflate, err);
        if (!status)
            status = write_picture(all, a, err);
    }
    if (!status && all->h5)
        status = theo_h5_add_matches(all->h5, a->inputs[0]->name, a->inputs[1]->name, a->result.a.count, matches->pairs,
                                     matches->similarity, matches->count, err);
    a->times.encode = clock_ms() - start;
    const char *path = NULL;
    if (!status && all->folder && !(path = output_path(&a->files, "matches.json", err)))
        status = err->status;
    if (!status && (all->json || all->folder))
        write_json(all, a);
    if (!status && path)
        status = theo_file_write(path, a->json.text, a->json.length, err);
    return status;
}

static bool print_words(const job *all, const answer *a) {
    char *found = match_result_words(&a->result), *written = output_summary(&a->files);
    char *spent = all->time ? timing_summary(&a->times) : text_copy("");
    char *line = text_format("%s %s: %s%s%s", a->inputs[0]->path, a->inputs[1]->path, found, spent, written);
    bool ok = stdout_line(line);
    free(found);
    free(written);
    free(spent);
    free(line);
    return ok;
}

/* Fetches the keypoints of both images and matches them. */
static theo_status match_pair(job *all, answer *a, theo_error *err) {
    theo_status status = keystore_get(all->store, a->pair->a, &a->result.a, err);
    if (!status)
        status = keystore_get(all->store, a->pair->b, &a->result.b, err);
    if (status)
        return status;
    double start = clock_ms();
    status = match_result_make(&a->result, &all->match, &all->fit, err);
    a->times.match = clock_ms() - start;
    return status;
}

/* Matches, writes and prints. False when stdout takes no more. */
static bool give_answer(job *all, const pair *item) {
    const int index[2] = {item->a, item->b};
    answer a = {.pair = item, .files = {.folder = all->folder, .stem = item->stem, .pool = all->engine.pool}};
    for (int i = 0; i < 2; i++) {
        a.inputs[i] = &all->pairs.images.items[index[i]];
        a.photos[i] = &all->images[index[i]].photo;
        stage_times_add(&a.times, a.photos[i]->decode_ms, &all->images[index[i]].timing);
    }
    theo_error err;
    bool go_on;
    if (match_pair(all, &a, &err) || write_files(all, &a, &err))
        go_on = report_failure(all, item, err.message);
    else
        go_on = all->json ? stdout_line(a.json.text) : print_words(all, &a);
    match_result_free(&a.result);
    json_free(&a.json);
    output_files_free(&a.files);
    return go_on;
}

/* Answers the pairs whose images are known by now. */
static bool answer_pairs(job *all) {
    bool go_on = true;
    for (; all->next_pair < all->pairs.count && go_on && !interrupted(); all->next_pair++) {
        const pair *item = &all->pairs.items[all->next_pair];
        const image_record *a = &all->images[item->a], *b = &all->images[item->b];
        if (a->state == IMAGE_PENDING || b->state == IMAGE_PENDING)
            break;
        progress_wipe();
        if (a->state == IMAGE_FAILED || b->state == IMAGE_FAILED)
            go_on = report_failure(all, item, a->state == IMAGE_FAILED ? a->error : b->error);
        else
            go_on = give_answer(all, item);
        keystore_release(all->store, item->a);
        keystore_release(all->store, item->b);
    }
    return go_on;
}

/* ---- the images */

static theo_status load_image(void *user, int index, theo_image **image, theo_error *err) {
    job *all = user;
    double start = clock_ms();
    theo_status status = input_decode(&all->pairs.images, index, &all->decode, image, err);
    if (!status)
        photo_remember(&all->images[index].photo, *image, clock_ms() - start);
    return status;
}

/* theo_keypoints_sink */
static int take_keypoints(void *user, int index, const theo_image *image, theo_keypoints *points, const theo_error *failure) {
    job *all = user;
    image_record *record = &all->images[index];
    const char *path = all->pairs.images.items[index].path;
    theo_error err;
    (void)image;
    if (!points && failure->status == THEO_CANCELLED)
        return 1;
    theo_status status = THEO_OK;
    if (points) {
        photo_warnings(NULL, &record->photo, path, true);
        record->timing = points->timing;
        status = keystore_put(all->store, index, points, &err);
        theo_keypoints_free(points);
        failure = &err;
    } else {
        status = failure->status;
    }
    record->state = status ? IMAGE_FAILED : IMAGE_READY;
    if (status) {
        char text[1600];
        error_text(text, sizeof text, path, failure);
        record->error = text_copy(text);
    }
    bool go_on = answer_pairs(all);
    progress_done(index + 1);
    return !go_on || interrupted();
}

/* ---- the job */

static int read_fit(job *all) {
    const arguments *args = all->args;
    const char *both = option_text(args, "intrinsics", NULL), *second = option_text(args, "intrinsics2", NULL);
    int code;
    all->fit.kind = (fit_kind)option_choice(args, "model-fit", FIT_HOMOGRAPHY);
    theo_ransac_options_init(&all->fit.ransac);
    all->fit.ransac.threshold = option_number(args, "ransac-threshold", all->fit.ransac.threshold);
    if (all->fit.kind == FIT_NONE && option_given(args, "ransac-threshold"))
        return usage_error("--ransac-threshold has no effect with --model-fit none");
    if (all->fit.kind != FIT_ESSENTIAL && (both || second))
        return usage_error("--%s has no effect without --model-fit essential", both ? "intrinsics" : "intrinsics2");
    if (all->fit.kind != FIT_ESSENTIAL)
        return EXIT_DONE;
    if (!both)
        return usage_error("--model-fit essential needs the cameras: --intrinsics fx,fy,cx,cy%s",
                           second ? " (--intrinsics2 is for B only)" : "");
    if ((code = intrinsics_read(&all->fit.cameras[0], "intrinsics", both)))
        return code;
    all->fit.cameras[1] = all->fit.cameras[0];
    return second ? intrinsics_read(&all->fit.cameras[1], "intrinsics2", second) : EXIT_DONE;
}

static int check_collisions(const job *all) {
    if (!all->folder && !option_given(all->args, "h5"))
        return EXIT_DONE;
    const char **keys = memory_new((size_t)all->pairs.count, sizeof *keys);
    int a, b, code = EXIT_DONE;
    for (int i = 0; i < all->pairs.count; i++)
        keys[i] = all->pairs.items[i].stem;
    if (find_duplicate(keys, all->pairs.count, &a, &b)) {
        const input *images = all->pairs.images.items;
        const pair *p = &all->pairs.items[a], *q = &all->pairs.items[b];
        code = usage_error("the pairs %s %s and %s %s would both write %s", images[p->a].name, images[p->b].name,
                           images[q->a].name, images[q->b].name, keys[a]);
    }
    free(keys);
    return code;
}

static int check_usage(job *all) {
    const arguments *args = all->args;
    const char *file = option_text(args, "pairs", NULL), *h5 = option_text(args, "h5", NULL);
    int code;
    if ((code = option_needs(args, "store", "output")) || (code = option_needs(args, "images", "pairs")) ||
        (code = option_needs(args, "h5", "pairs")) || (code = read_fit(all)))
        return code;
    if (h5 && !theo_h5_available())
        return usage_error("--h5: this build has no HDF5");
    if (file && args->operand_count)
        return usage_error("images on the command line and --pairs contradict each other");
    if (!file && args->operand_count != 2)
        return usage_error("two images are needed, not %d", args->operand_count);
    code = file ? pairs_from_file(&all->pairs, file, option_text(args, "images", NULL))
                : pairs_from_operands(&all->pairs, args->operands);
    if (code || (code = inputs_spare(&all->pairs.images, "h5", h5)))
        return code;
    return check_collisions(all);
}

static int run_job(job *all) {
    const char *h5 = option_text(all->args, "h5", NULL);
    int code;
    if ((code = engine_open_default(&all->engine, all->args, "superpoint-open")) ||
        (code = engine_needs(&all->engine, THEO_TASK_KEYPOINTS)) || (code = guard_option("h5", h5)))
        return code;
    detect_options(&all->detect, all->args, &all->engine);
    if (all->engine.info.descriptor_dim == 0) {
        message_error("the model %s has no descriptor head (it only detects): match needs descriptors", all->engine.info.name);
        return EXIT_NOTHING;
    }
    all->match.pool = all->engine.pool;
    if (all->folder && (code = output_folder_make(all->folder)))
        return code;
    if ((code = inputs_read_stdin(&all->pairs.images)))
        return code;

    theo_error err;
    if ((code = engine_session(&all->engine, &all->session)))
        return code;
    if (h5 && theo_h5_create(&all->h5, h5, &err)) {
        message_error("%s", err.message);
        return EXIT_FAILED;
    }
    int count = all->pairs.images.count;
    all->images = memory_new((size_t)count, sizeof *all->images);
    all->store = keystore_new(count, all->pairs.uses, KEYPOINT_BUDGET);
    progress_start("images", count, option_given(all->args, "quiet"));
    theo_status status = theo_detect_batch(all->session, count, load_image, take_keypoints, all, &all->detect, &err);
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
        .json = option_given(args, "json"),
        .time = option_given(args, "time"),
        .deflate = !option_given(args, "store"),
    };
    decode_options(&all.decode, args, THEO_ORIENTATION_IGNORE);
    theo_match_options_init(&all.match);
    all.match.ratio = (float)option_number(args, "ratio", (double)all.match.ratio);
    all.match.min_similarity = (float)option_number(args, "min-similarity", (double)all.match.min_similarity);
    int code = check_usage(&all);
    if (code == EXIT_DONE)
        code = run_job(&all);
    theo_error err;
    bool complete = code < 128 && !stdout_failed() && all.failures < all.pairs.count;
    if (all.h5 && theo_h5_close(all.h5, complete, &err)) {
        message_error("%s", err.message);
        code = code ? code : EXIT_FAILED;
    }
    for (int i = 0; all.images && i < all.pairs.images.count; i++)
        free(all.images[i].error);
    free(all.images);
    keystore_free(all.store);
    theo_session_close(all.session);
    engine_close(&all.engine);
    pairs_free(&all.pairs);
    return code;
}

const command command_match = {
    .name = "match",
    .operands = "A B | --pairs FILE [--images DIR]",
    .summary = "matches of two photos, and the geometry between them",
    .description = "Finds keypoints in both photos, keeps mutual nearest neighbours of their descriptors, and fits a homography "
                   "or an essential matrix by RANSAC. "
                   "Prints a line per pair; with -o DIR it writes A_B.matches.npz, A_B.matches.json and A_B.matches.png (side by "
                   "side, with lines). "
                   "With --pairs each image's keypoints are computed once.",
    .groups = groups,
    .run = run,
};
