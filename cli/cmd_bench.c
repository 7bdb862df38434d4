/* theo bench: times of the stages from file to result, and how near the network comes to the machine's peak. */
#include "bench_model.h"
#include "bench_run.h"
#include "clock.h"
#include "command.h"
#include "common.h"
#include "interrupt.h"
#include "machine.h"
#include "message.h"
#include "outputs.h"
#include "plan_table.h"
#include "progress.h"
#include "temporary.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const option_spec bench_options[] = {
    {"runs", 0, OPTION_COUNT, "N", 1, 100000, "20", "measured runs for each image"},
    {"warmup", 0, OPTION_COUNT, "N", 0, 100000, "3", "runs before, not measured"},
    {"synthetic", 0, OPTION_FLAG, NULL, 0, 0, NULL, "formula weights in the layout of MODEL, whose file is then not needed"},
    {"ops", 0, OPTION_FLAG, NULL, 0, 0, NULL, "the operations of the network with their least times"},
    {"size", 0, OPTION_SIZE, "HxW|native|long:N", 0, 0, "what the model is usually given",
     "size of the network's input; for depth, without IMAGE, of the formula picture"},
    {"tokens", 0, OPTION_COUNT, "N", 16, 16384, "1800", "depth: patches that the network cuts the photo into"},
    {"pose", 0, OPTION_FLAG, NULL, 0, 0, NULL,
     "pairs: with the pose of the second camera, for which the network runs in both orders"},
    {"symmetric", 0, OPTION_FLAG, NULL, 0, 0, NULL, "pairs: run in both orders as for a pose, but do not solve it"},
    {"json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "print one JSON object instead of words"},
    {"quiet", 'q', OPTION_FLAG, NULL, 0, 0, NULL, "show no progress"},
    {0},
};

static const option_group groups[] = {{"Options", bench_options},  {"Images", image_options}, {NULL, limit_options},
                                      {"Machine", engine_options}, {"Help", help_option},     {0}};

static const char *const stage_names[STAGE_COUNT] = {"load",       "decode", "preprocess",  "forward", "forward_sym",
                                                     "activation", "pose",   "postprocess", "encode",  "total"};

typedef struct samples {
    double *values;
    int count;
} samples;

static void add_sample(samples *set, double value) {
    set->values = memory_grow(set->values, (size_t)set->count + 1, sizeof *set->values);
    set->values[set->count++] = value;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(samples *set) {
    if (set->count)
        qsort(set->values, (size_t)set->count, sizeof *set->values, by_value);
}

/* Quantile q of sorted samples, interpolated. */
static double quantile(const samples *set, double q) {
    if (set->count == 0)
        return NAN;
    double place = q * (set->count - 1);
    int below = (int)place;
    int above = below + 1 < set->count ? below + 1 : below;
    return set->values[below] + (place - below) * (set->values[above] - set->values[below]);
}

typedef struct job {
    const arguments *args;
    engine engine;
    bench_work work;
    theo_decode_options decode;
    struct {
        void *data;
        size_t bytes;
    } pictures[2];                      /* PNG files of formula pictures, where no image is given */
    samples stages[STAGE_COUNT], rates; /* rates: GFLOP/s of the forward stage */
    int net_width, net_height;
    double flops; /* of an input of that size */
    double peak_gflops;
    const char *model; /* as the user calls it */
    char *folder;      /* depth: for its files */
} job;

/* ---- preparation */

/* A picture with structure at all scales that a formula makes: (7x + 13y + 50c + 3((xy) mod 31)) mod 256; the second one of a
 * pair with 29 for 31. */
static theo_status make_picture(job *all, int number, int width, int height, theo_error *err) {
    theo_image *image;
    theo_status status = theo_image_new(&image, width, height, 3, THEO_U8, err);
    if (status)
        return status;
    uint8_t *pixels = theo_image_pixels(image);
    size_t stride = image->row_bytes ? image->row_bytes : 3 * (size_t)width;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++)
                pixels[(size_t)y * stride + 3 * (size_t)x + (size_t)c] =
                    (uint8_t)(7 * x + 13 * y + 50 * c + 3 * (int)((int64_t)x * y % (31 - 2 * number)));
    status = theo_image_encode_png(image, NULL, 0, NULL, &all->pictures[number].data, &all->pictures[number].bytes, err);
    theo_image_free(image);
    return status;
}

static theo_status make_pictures(job *all, theo_error *err) {
    const setting *size = option_find(all->args, "size");
    const bool exact = size && size->size.fit == THEO_FIT_EXACT;
    const int width = exact ? size->size.width : all->engine.info.input_width;
    const int height = exact ? size->size.height : all->engine.info.input_height;
    theo_status status = THEO_OK;
    for (int i = 0; i < (all->work.task == THEO_TASK_PAIR ? 2 : 1) && !status; i++)
        status = make_picture(all, i, width, height, err);
    return status;
}

/* A network input of just that size needs a picture of that aspect, not cut. */
static void pair_options(job *all) {
    const setting *size = option_find(all->args, "size");
    theo_pair_options *o = &all->work.pair;
    theo_pair_options_init(o);
    if (size) {
        const network_size *s = &size->size;
        o->preprocess = THEO_PAIR_NATIVE;
        o->square_ok = true;
        o->long_side = s->fit == THEO_FIT_LONG     ? s->long_side
                       : s->fit == THEO_FIT_NATIVE ? 0
                       : s->width > s->height      ? s->width
                                                   : s->height;
    }
    o->pose = option_given(all->args, "pose") ? THEO_POSE_PORT : THEO_POSE_NONE;
    o->swapped = option_given(all->args, "symmetric") ? THEO_VIEW_2 : 0;
}

static int open_model(job *all, const char *name) {
    double loads[BENCH_LOADS];
    int count = 0, code = bench_model_open(&all->engine, all->args, name, option_given(all->args, "synthetic"), loads, &count);
    for (int i = 0; i < count && !code; i++)
        add_sample(&all->stages[STAGE_LOAD], loads[i]);
    return code;
}

/* ---- runs */

/* Photos of one run: all of the command line make pairs, else each is a run of its own. */
static int photos_of_run(const job *all) {
    const int given = all->args->operand_count - 1;
    return all->work.task != THEO_TASK_PAIR ? 1 : given ? given : 2;
}

static int plan_tokens(const job *all) {
    return all->work.task == THEO_TASK_DEPTH ? all->work.geometry.tokens : 0;
}

/* FLOPs of one result, in the direct form; of the pairs of many photos on average. Keypoint inputs of more than a tile are not
 * planned in one piece; that network's cost is linear in the pixels. */
static double network_flops(const job *all, int width, int height) {
    const int64_t largest = 1 << 21;
    const bool whole = (int64_t)width * height <= largest || all->work.task != THEO_TASK_KEYPOINTS;
    const int photos = photos_of_run(all), pairs = bench_pairs(photos);
    theo_plan_report *plan;
    if (theo_session_plan(all->work.session, whole ? width : 640, whole ? height : 480, plan_tokens(all), &plan, NULL))
        return 0;
    double flops = 0;
    for (int i = 0; i < plan->count; i++)
        flops += plan->ops[i].flops * (plan->ops[i].runs > 1 ? photos / (double)pairs : 1);
    theo_plan_report_free(plan);
    return whole ? flops : flops * width * height / (640 * 480);
}

/* The photos of a run: files, or (paths NULL) the formula pictures. */
static theo_status decode(const job *all, const char *const *paths, theo_image **images, int count, theo_error *err) {
    theo_status status = THEO_OK;
    for (int i = 0; i < count && !status; i++)
        status = paths ? theo_image_load(&images[i], paths[i], &all->decode, err)
                       : theo_image_decode(&images[i], all->pictures[i].data, all->pictures[i].bytes, "formula picture",
                                           &all->decode, err);
    return status;
}

static void add_times(job *all, const bench_times *times) {
    for (int i = STAGE_DECODE; i < STAGE_COUNT; i++)
        if (!isnan(times->ms[i]))
            add_sample(&all->stages[i], times->ms[i]);
    if (times->width != all->net_width || times->height != all->net_height)
        all->flops = network_flops(all, times->width, times->height);
    all->net_width = times->width;
    all->net_height = times->height;
    add_sample(&all->rates, all->flops / times->ms[STAGE_FORWARD] / 1e6);
}

/* From file to text; measured, or to warm up. */
static theo_status run_once(job *all, const char *const *paths, bool measured, theo_error *err) {
    const int count = photos_of_run(all), pairs = bench_pairs(count);
    theo_image **images = memory_new((size_t)count, sizeof *images);
    bench_times times;
    double start = clock_ms(), decoded = 0;
    theo_status status = decode(all, paths, images, count, err);
    if (!status) {
        decoded = clock_ms();
        status = bench_run(&times, &all->work, images, count, err);
    }
    if (!status && measured) {
        times.ms[STAGE_DECODE] = (decoded - start) / pairs;
        times.ms[STAGE_TOTAL] = (clock_ms() - start) / pairs;
        add_times(all, &times);
    }
    for (int i = 0; i < count; i++)
        theo_image_free(images[i]);
    free(images);
    return status;
}

static int measure(job *all) {
    const arguments *args = all->args;
    const char *const *paths = args->operand_count > 1 ? args->operands + 1 : NULL;
    const int inputs = paths ? (args->operand_count - 1) / photos_of_run(all) : 1;
    int runs = (int)option_count(args, "runs", 20), warmup = (int)option_count(args, "warmup", 3);
    theo_error err;
    all->peak_gflops = theo_measure_peak_gflops(all->engine.info.threads);
    progress_start("runs", inputs * (runs + warmup), option_given(args, "quiet"));
    for (int i = 0, done = 0; i < inputs; i++) {
        for (int run = 0; run < warmup + runs; run++) {
            theo_status status = run_once(all, paths ? paths + i : NULL, run >= warmup, &err);
            progress_done(++done);
            if (interrupted()) {
                progress_end();
                return interrupt_exit_code();
            }
            if (status) {
                char text[1600];
                error_text(text, sizeof text, paths ? paths[i] : "formula picture", &err);
                message_error("%s", text);
                progress_end();
                return EXIT_FAILED;
            }
        }
    }
    progress_end();
    /* A noisy machine may have been slow at the first time. */
    all->peak_gflops = fmax(all->peak_gflops, theo_measure_peak_gflops(all->engine.info.threads));
    for (int i = 0; i < STAGE_COUNT; i++)
        sort(&all->stages[i]);
    sort(&all->rates);
    return EXIT_DONE;
}

/* ---- report */

static bool print_json(const job *all, const char *cpu, const theo_plan_report *plan) {
    json_out json = {0};
    json_open(&json, '{');
    json_member_string(&json, "model", all->model);
    json_member_bool(&json, "synthetic", option_given(all->args, "synthetic"));
    json_member_string(&json, "precision", all->engine.info.precision);
    json_key(&json, "size");
    json_open(&json, '[');
    json_int(&json, all->net_height);
    json_int(&json, all->net_width);
    json_close(&json, ']');
    json_member_int(&json, "runs", all->stages[STAGE_TOTAL].count);
    if (photos_of_run(all) > 2)
        json_member_int(&json, "pairs", bench_pairs(photos_of_run(all)));
    json_key(&json, "stages");
    json_open(&json, '{');
    for (int i = 0; i < STAGE_COUNT; i++) {
        if (!all->stages[i].count)
            continue;
        json_key(&json, stage_names[i]);
        json_open(&json, '{');
        json_member_double(&json, "median", quantile(&all->stages[i], 0.5));
        json_member_double(&json, "min", quantile(&all->stages[i], 0));
        json_member_double(&json, "p90", quantile(&all->stages[i], 0.9));
        json_close(&json, '}');
    }
    json_close(&json, '}');
    json_member_double(&json, "gflops", quantile(&all->rates, 0.5));
    json_member_double(&json, "peak_gflops", all->peak_gflops);
    json_member_double(&json, "rss_mib", machine_peak_rss_mib());
    json_member_int(&json, "threads", all->engine.info.threads);
    json_member_string(&json, "isa", all->engine.info.isa);
    json_member_string(&json, "cpu", cpu);
    if (plan)
        json_member_plan(&json, plan);
    json_close(&json, '}');
    bool ok = stdout_line(json.text);
    json_free(&json);
    return ok;
}

static bool print_words(const job *all, const char *cpu, const theo_plan_report *plan) {
    double rate = quantile(&all->rates, 0.5);
    printf("%s%s, %s, network input %dx%d (height x width), %d run%s\n", all->model,
           option_given(all->args, "synthetic") ? " (formula weights)" : "", all->engine.info.precision, all->net_height,
           all->net_width, all->stages[STAGE_TOTAL].count, all->stages[STAGE_TOTAL].count == 1 ? "" : "s");
    if (photos_of_run(all) > 2)
        printf("all %d pairs of %d images, each encoded once; times of one pair on average\n", bench_pairs(photos_of_run(all)),
               photos_of_run(all));
    printf("%s, level %s, %d thread%s\n\n", cpu, all->engine.info.isa, all->engine.info.threads,
           all->engine.info.threads == 1 ? "" : "s");
    printf("%-12s %10s %10s %10s\n", "ms", "median", "min", "p90");
    for (int i = 0; i < STAGE_COUNT; i++)
        if (all->stages[i].count)
            printf("%-12s %10.2f %10.2f %10.2f\n", stage_names[i], quantile(&all->stages[i], 0.5), quantile(&all->stages[i], 0),
                   quantile(&all->stages[i], 0.9));
    printf("\nforward: %.1f GFLOP/s, %.0f %% of the FMA peak of %.1f GFLOP/s measured in this run (FLOPs of the direct form)\n",
           rate, all->peak_gflops > 0 ? 100 * rate / all->peak_gflops : 0.0, all->peak_gflops);
    if (plan) {
        printf("\n");
        plan_print(plan, true);
        printf("\n");
    }
    printf("peak memory: %.1f MiB resident\n", machine_peak_rss_mib());
    return stdout_flush();
}

static int report(job *all) {
    theo_plan_report *plan = NULL;
    theo_error err;
    if (option_given(all->args, "ops") &&
        theo_session_plan(all->work.session, all->net_width, all->net_height, plan_tokens(all), &plan, &err)) {
        message_error("%s", err.message);
        return EXIT_FAILED;
    }
    char cpu[256];
    machine_cpu_name(cpu, sizeof cpu);
    bool ok = option_given(all->args, "json") ? print_json(all, cpu, plan) : print_words(all, cpu, plan);
    theo_plan_report_free(plan);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

static int check_usage(const job *all) {
    static const struct {
        const char *option;
        theo_task task;
    } of_tasks[] = {{"pose", THEO_TASK_PAIR}, {"symmetric", THEO_TASK_PAIR}, {"tokens", THEO_TASK_DEPTH}};
    const arguments *args = all->args;
    const theo_task task = all->engine.info.task;
    for (size_t i = 0; i < sizeof of_tasks / sizeof *of_tasks; i++)
        if (of_tasks[i].task != task && option_given(args, of_tasks[i].option))
            return usage_error("--%s has no effect on the model %s (%s)", of_tasks[i].option, all->model, all->engine.info.kind);
    const setting *size = option_find(args, "size");
    if (task == THEO_TASK_DEPTH && size && args->operand_count > 1)
        return usage_error("--size has no effect on a depth model with images: it takes each as it is (see --tokens)");
    if (task == THEO_TASK_DEPTH && size && size->size.fit != THEO_FIT_EXACT)
        return usage_error("--size %s: the size of a formula picture is HxW", size->text);
    if (task != THEO_TASK_PAIR)
        return EXIT_DONE;
    if (option_given(args, "pose") && option_given(args, "symmetric"))
        return usage_error("--symmetric has no effect with --pose, which needs both orders");
    enum { MOST = 100 };
    if (args->operand_count - 1 > MOST)
        return usage_error("a pair model is measured on at most %d images, not on %d", MOST, args->operand_count - 1);
    if (args->operand_count == 2 && option_given(args, "pose"))
        return usage_error("--pose needs two images: a photo paired with itself has no pose");
    return EXIT_DONE;
}

static int run_job(job *all) {
    const char *name = all->args->operands[0];
    theo_error err;
    int code = open_model(all, name);
    if (code)
        return code;
    all->model = option_given(all->args, "synthetic") ? name : all->engine.info.name;
    if ((code = check_usage(all)))
        return code;
    all->work.task = all->engine.info.task;
    all->work.pool = all->engine.pool;
    decode_options(&all->decode, all->args, all->work.task == THEO_TASK_PAIR ? THEO_ORIENTATION_APPLY : THEO_ORIENTATION_IGNORE);
    all->decode.keep_16_bit = all->work.task == THEO_TASK_DEPTH;
    detect_options(&all->work.detect, all->args, &all->engine);
    pair_options(all);
    theo_geometry_options_init(&all->work.geometry);
    all->work.geometry.tokens = (int)option_count(all->args, "tokens", all->work.geometry.tokens);
    if (all->work.task == THEO_TASK_DEPTH && !(all->work.folder = all->folder = temporary_folder_make()))
        return EXIT_NOTHING;
    if ((code = engine_session(&all->engine, &all->work.session)))
        return code;
    if (all->args->operand_count == 1 && make_pictures(all, &err)) {
        message_error("%s", err.message);
        return EXIT_NOTHING;
    }
    code = measure(all);
    return code ? code : report(all);
}

static int run(const arguments *args) {
    if (args->operand_count < 1)
        return usage_error("a model is needed, such as superpoint-open; theo models lists those that are known");
    job all = {.args = args};
    int code = run_job(&all);
    for (int i = 0; i < STAGE_COUNT; i++)
        free(all.stages[i].values);
    free(all.rates.values);
    theo_buffer_free(all.pictures[0].data);
    theo_buffer_free(all.pictures[1].data);
    temporary_folder_remove(all.folder);
    theo_session_close(all.work.session);
    engine_close(&all.engine);
    return code;
}

const command command_bench = {
    .name = "bench",
    .operands = "MODEL [IMAGE...]",
    .summary = "time a model on this machine",
    .description = "Measures the stages from the image file to the result: load (of the model), decode, preprocess, forward (the "
                   "network), postprocess, encode (the result as text) and "
                   "total; of a pair (MODEL A B) also forward_sym (the network in the other order), activation and pose, and "
                   "encode makes the npz archive; of depth encode writes all files that theo depth can, into a temporary folder. "
                   "With more images a pair model makes all their pairs, each image encoded once; the "
                   "times are then those of one pair on average. Without IMAGE formula pictures of the network's size are used.",
    .groups = groups,
    .run = run,
};
