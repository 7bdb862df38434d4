#include "common.h"
#include "guard.h"
#include "message.h"
#include "progress.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables */

const option_spec model_options[] = {
    {"model", 0, OPTION_TEXT, "NAME|FILE|DIR", 0, 0, "superpoint-open",
     "the network: a name that `theo models` lists, a checkpoint, or a folder with one"},
    {0},
};

const option_spec engine_options[] = {
    {"device", 0, OPTION_CHOICE, "cpu", 0, 0, "cpu", "where to compute"},
    {"threads", 0, OPTION_COUNT, "N", 1, 256, "the cores that this process may use", "number of threads"},
    {"precision", 0, OPTION_TEXT, "fp32", 0, 0, "fp32", "arithmetic of the network; bf16 and int8 come with later versions"},
    {"no-checksum", 0, OPTION_FLAG, NULL, 0, 0, NULL, "do not check the CRCs of a zip checkpoint"},
    {0},
};

const option_spec folder_options[] = {
    {"recursive", 0, OPTION_FLAG, NULL, 0, 0, NULL, "take the subfolders of a folder as well"},
    {0},
};

const option_spec image_options[] = {
    {"orientation", 0, OPTION_CHOICE, "ignore|apply", 0, 0, "ignore", "what to do about the EXIF orientation of a photo"},
    {0},
};

const option_spec limit_options[] = {
    {"allow-truncated", 0, OPTION_FLAG, NULL, 0, 0, NULL, "decode what there is of a JPEG that ends early, with a warning"},
    {"max-pixels", 0, OPTION_COUNT, "N", 1, 1e12, "100M", "refuse images with more pixels, before decoding them"},
    {0},
};

const option_spec result_options[] = {
    {"output", 'o', OPTION_FOLDER, "DIR", 0, 0, NULL,
     "write the files into this folder, which is made if need be; without it there is only stdout"},
    {"store", 0, OPTION_FLAG, NULL, 0, 0, NULL, "do not compress the npz files"},
    {"json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "print one JSON object per result, a line each, instead of words"},
    {"time", 0, OPTION_FLAG, NULL, 0, 0, NULL, "tell the times of the stages"},
    {"quiet", 'q', OPTION_FLAG, NULL, 0, 0, NULL, "show no progress"},
    {0},
};

const option_spec detector_options[] = {
    {"max-keypoints", 0, OPTION_COUNT, "N", -1, INT_MAX, "1024", "keep the N best points, -1 for all"},
    {"threshold", 0, OPTION_NUMBER, "S", 0, 1, "0.005", "keep points whose score is above S"},
    {"nms", 0, OPTION_CHOICE, "iterative|single|greedy", 0, 0, "iterative",
     "rule by which a strong point suppresses its neighbours"},
    {"nms-radius", 0, OPTION_COUNT, "R", 0, 64, "4", "how far it does so, in pixels of the network"},
    {"border", 0, OPTION_COUNT, "N", 0, INT_MAX, "4", "drop points nearer than N pixels to the border"},
    {"border-mode", 0, OPTION_CHOICE, "four|hf", 0, 0, "four", "on all four sides, or only left and top as Hugging Face does"},
    {"gray", 0, OPTION_CHOICE, "red|rgb601|luma", 0, 0, "red",
     "how a colour photo becomes gray; models with rpautrat's layers take luma by default"},
    {"size", 0, OPTION_SIZE, "HxW|native|long:N", 0, 0, "480x640",
     "size of the network's input: that size, that of the photo, or the longer side N"},
    {"order", 0, OPTION_CHOICE, "score|raster", 0, 0, "score", "order of the points: best first, or by y, then x"},
    {"sampling", 0, OPTION_CHOICE, "a|b|b-old|c", 0, 0, "a",
     "where descriptors are read: a as SuperGlue, b and b-old as Magic Leap's demo, c as rpautrat"},
    {"bn-eps", 0, OPTION_NUMBER, "E", 1e-12, 1, "by the kind of file", "epsilon of the batch norm"},
    {"pixel-centers", 0, OPTION_FLAG, NULL, 0, 0, NULL, "scale coordinates as (x + 0.5)*W0/W - 0.5 instead of x*W0/W"},
    {"hf", 0, OPTION_FLAG, NULL, 0, 0, NULL,
     "as Hugging Face: rgb601, border-mode hf, all points, order raster; options behind it override"},
    {0},
};

const option_spec help_option[] = {
    {"help", 'h', OPTION_FLAG, NULL, 0, 0, NULL, "show this help"},
    {0},
};

/* ---- model */

static void log_warning(void *user, theo_log_level level, const char *message) {
    (void)user;
    if (level == THEO_LOG_WARNING)
        message_warning("%s", message);
}

int engine_open(engine *opened, const arguments *args, const char *name) {
    memset(opened, 0, sizeof *opened);
    const char *precision = option_text(args, "precision", "fp32");
    if (strcmp(precision, "bf16") == 0 || strcmp(precision, "int8") == 0)
        return usage_error("--precision %s comes with a later version; this one computes in fp32", precision);
    if (strcmp(precision, "fp32") != 0)
        return usage_error("--precision %s: must be fp32", precision);
    theo_error err;
    if (theo_pool_open(&opened->pool, (int)option_count(args, "threads", 0), &err)) {
        message_error("%s", err.message);
        return EXIT_NOTHING;
    }
    theo_model_options options;
    theo_model_options_init(&options);
    options.pool = opened->pool;
    options.verify_checksums = !option_given(args, "no-checksum");
    options.log = log_warning;
    for (int i = 0; i < args->setting_count; i++)
        if (strcmp(args->settings[i].spec->name, "bn-eps") == 0)
            options.bn_eps = args->settings[i].number;
    if (theo_model_open(&opened->model, name, &options, &err)) {
        if (strcmp(err.place, "bn_eps") == 0)
            usage_error("--bn-eps has no effect on the model %s, which has no batch norm", name);
        else
            message_error("%s", err.message);
        engine_close(opened);
        return EXIT_NOTHING;
    }
    theo_model_get_info(opened->model, &opened->info);
    guard_file(opened->info.path);
    return EXIT_DONE;
}

int engine_open_default(engine *opened, const arguments *args, const char *otherwise) {
    return engine_open(opened, args, option_text(args, "model", otherwise));
}

int catalog_check(const char *name) {
    const char *names[64];
    int count = 0;
    for (const theo_catalog_entry *entry; count < 63 && (entry = theo_catalog(count)); count++) {
        if (strcmp(entry->name, name) == 0)
            return EXIT_DONE;
        names[count] = entry->name;
    }
    names[count] = NULL;
    const char *guess = closest_word(name, names);
    if (guess)
        return usage_error("%s is not the name of a known model; did you mean %s?", name, guess);
    return usage_error("%s is not the name of a known model; theo models lists them", name);
}

int engine_needs(const engine *opened, theo_task task) {
    static const char *const what[] = {
        [THEO_TASK_KEYPOINTS] = "keypoints", [THEO_TASK_DEPTH] = "depth", [THEO_TASK_PAIR] = "pairs"};
    if (opened->info.task == task)
        return EXIT_DONE;
    return usage_error("%s is a model for %s (%s), not for %s", opened->info.name, what[opened->info.task], opened->info.kind,
                       what[task]);
}

int engine_session(const engine *opened, theo_session **session) {
    theo_error err;
    theo_session_options options;
    theo_session_options_init(&options);
    options.progress = progress_within;
    if (theo_session_open(session, opened->model, &options, &err) == THEO_OK)
        return EXIT_DONE;
    message_error("%s", err.message);
    return EXIT_NOTHING;
}

void engine_close(engine *opened) {
    theo_model_close(opened->model);
    theo_pool_close(opened->pool);
    memset(opened, 0, sizeof *opened);
}

/* ---- images */

void decode_options(theo_decode_options *options, const arguments *args, theo_orientation otherwise) {
    theo_decode_options_init(options);
    options->orientation = (theo_orientation)option_choice(args, "orientation", (int)otherwise);
    options->allow_truncated = option_given(args, "allow-truncated");
    options->max_pixels = option_count(args, "max-pixels", options->max_pixels);
}

/* ---- detector */

static void apply(theo_detect_options *options, const setting *given) {
    const char *name = given->spec->name;
    if (strcmp(name, "hf") == 0)
        theo_detect_options_hf(options);
    else if (strcmp(name, "max-keypoints") == 0)
        options->max_keypoints = (int)given->number;
    else if (strcmp(name, "threshold") == 0)
        options->threshold = (float)given->number;
    else if (strcmp(name, "nms") == 0)
        options->nms = (theo_nms)given->choice;
    else if (strcmp(name, "nms-radius") == 0)
        options->nms_radius = (int)given->number;
    else if (strcmp(name, "border") == 0)
        options->border = (int)given->number;
    else if (strcmp(name, "border-mode") == 0)
        options->border_mode = (theo_border)given->choice;
    else if (strcmp(name, "gray") == 0)
        options->gray = (theo_gray)given->choice;
    else if (strcmp(name, "order") == 0)
        options->order = (theo_order)given->choice;
    else if (strcmp(name, "sampling") == 0)
        options->sampling = (theo_sampling)given->choice;
    else if (strcmp(name, "pixel-centers") == 0)
        options->pixel_centers = true;
    else if (strcmp(name, "no-descriptors") == 0)
        options->descriptors = false;
    else if (strcmp(name, "size") == 0) {
        options->fit = given->size.fit;
        if (given->size.fit == THEO_FIT_EXACT) {
            options->net_width = given->size.width;
            options->net_height = given->size.height;
        } else if (given->size.fit == THEO_FIT_LONG) {
            options->long_side = given->size.long_side;
        }
    }
}

void detect_options(theo_detect_options *options, const arguments *args, const engine *opened) {
    theo_detect_options_for(options, opened->model);
    for (int i = 0; i < args->setting_count; i++)
        apply(options, &args->settings[i]);
}

void error_text(char *text, size_t capacity, const char *path, const theo_error *err) {
    if (err->file[0] || strstr(err->message, path))
        snprintf(text, capacity, "%s", err->message);
    else
        snprintf(text, capacity, "%s: %s", path, err->message);
}
