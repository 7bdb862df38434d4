/* theo bench: times of the stages from file to result, and how near the network comes to the machine's peak. */
#include "clock.h"
#include "command.h"
#include "common.h"
#include "depth_result.h"
#include "interrupt.h"
#include "machine.h"
#include "message.h"
#include "outputs.h"
#include "plan_table.h"
#include "progress.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const option_spec bench_options[] = {
    {"runs", 0, OPTION_COUNT, "N", 1, 100000, "20", "measured runs for each image"},
    {"warmup", 0, OPTION_COUNT, "N", 0, 100000, "3", "runs before, not measured"},
    {"synthetic", 0, OPTION_FLAG, NULL, 0, 0, NULL, "formula weights in the layout of MODEL, whose file is then not needed"},
    {"ops", 0, OPTION_FLAG, NULL, 0, 0, NULL, "the operations of the network with their least times"},
    {"size", 0, OPTION_SIZE, "HxW|native|long:N", 0, 0, "480x640", "size of the network's input"},
    {"tokens", 0, OPTION_LATER, NULL, 0, 0, NULL, "belongs to depth models, which come with a later version"},
    {"pose", 0, OPTION_LATER, NULL, 0, 0, NULL, "belongs to pair models, which come with a later version"},
    {"symmetric", 0, OPTION_LATER, NULL, 0, 0, NULL, "belongs to pair models, which come with a later version"},
    {"json", 0, OPTION_FLAG, NULL, 0, 0, NULL, "print one JSON object instead of words"},
    {"quiet", 'q', OPTION_FLAG, NULL, 0, 0, NULL, "show no progress"},
    {0},
};

static const option_group groups[] = {{"Options", bench_options},  {"Images", image_options}, {NULL, limit_options},
                                      {"Machine", engine_options}, {"Help", help_option},     {0}};

enum { LOADS = 5, LOAD_BUDGET_MS = 1000 }; /* loads that are measured, as long as they take no longer than that together */

/* ENCODE is the result's JSON text. TOTAL runs from the file to that text, without LOAD. */
typedef enum stage {
    STAGE_LOAD,
    STAGE_DECODE,
    STAGE_PREPROCESS,
    STAGE_FORWARD,
    STAGE_POSTPROCESS,
    STAGE_ENCODE,
    STAGE_TOTAL,
    STAGE_COUNT
} stage;
static const char *const stage_names[STAGE_COUNT] = {"load", "decode", "preprocess", "forward", "postprocess", "encode", "total"};

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
    theo_session *session;
    theo_decode_options decode;
    theo_detect_options detect;
    void *picture; /* PNG file of the formula picture, where no image is given */
    size_t picture_bytes;
    samples stages[STAGE_COUNT], rates; /* rates: GFLOP/s of the forward stage */
    int net_width, net_height;
    double peak_gflops;
    const char *model; /* as the user calls it */
} job;

/* ---- preparation */

static bool is_depth(const job *all) {
    return all->engine.info.task == THEO_TASK_DEPTH;
}

/* A picture with structure at all scales that a formula makes: (7x + 13y + 50c + 3((xy) mod 31)) mod 256. */
static theo_status make_picture(job *all, theo_error *err) {
    int width = all->detect.fit == THEO_FIT_EXACT ? all->detect.net_width : 640,
        height = all->detect.fit == THEO_FIT_EXACT ? all->detect.net_height : 480;
    if (is_depth(all) && !option_given(all->args, "size")) {
        width = 1920;
        height = 1080;
    }
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
                    (uint8_t)(7 * x + 13 * y + 50 * c + 3 * (int)((int64_t)x * y % 31));
    status = theo_image_encode_png(image, NULL, 0, NULL, &all->picture, &all->picture_bytes, err);
    theo_image_free(image);
    return status;
}

/* Opens the model some times to measure the load; the last one stays. */
static int open_model(job *all, const char *name) {
    double spent = 0;
    for (int i = 0; i < LOADS && spent < LOAD_BUDGET_MS; i++) {
        engine_close(&all->engine);
        int code = engine_open(&all->engine, all->args, name);
        if (code)
            return code;
        add_sample(&all->stages[STAGE_LOAD], all->engine.info.load_ms);
        spent += all->engine.info.load_ms;
    }
    return EXIT_DONE;
}

/* The same with formula weights, which only live in a temporary file. */
static int open_synthetic(job *all, const char *name) {
    static const char ending[] = ".safetensors";
    int unknown = catalog_check(name);
    if (unknown)
        return unknown;
    const char *folder = getenv("TMPDIR");
    char *path = text_format("%s/theo-bench-XXXXXX%s", folder && *folder ? folder : "/tmp", ending);
    int file = mkstemps(path, (int)sizeof ending - 1), code = EXIT_NOTHING;
    theo_error err;
    if (file < 0)
        message_error("cannot make the temporary file %s", path);
    else if (close(file) || theo_synthesize(name, NULL, path, &err))
        message_error("%s", err.message);
    else
        code = open_model(all, path);
    if (file >= 0)
        unlink(path);
    free(path);
    return code;
}

/* ---- runs */

/* FLOPs of the direct form. Inputs of more than a tile are not planned in one piece; the network's cost is linear in the pixels.
 */
static double network_flops(job *all, int width, int height) {
    const int64_t largest = 1 << 21;
    bool whole = (int64_t)width * height <= largest || is_depth(all);
    theo_plan_report *plan;
    if (theo_session_plan(all->session, whole ? width : 640, whole ? height : 480, &plan, NULL))
        return 0;
    double flops = plan->flops;
    theo_plan_report_free(plan);
    return whole ? flops : flops * width * height / (640 * 480);
}

static size_t result_text_length(const theo_keypoints *points) {
    json_out json = {0};
    json_open(&json, '[');
    for (int i = 0; i < points->count; i++) {
        json_float(&json, points->xy[2 * i]);
        json_float(&json, points->xy[2 * i + 1]);
        json_float(&json, points->scores[i]);
    }
    json_close(&json, ']');
    size_t length = json.length;
    json_free(&json);
    return length;
}

/* What one run of the network on a photo gives to the report. */
typedef struct run_facts {
    theo_timing timing;
    int width, height; /* of the network's input; of the photo for depth, whose grid follows from it */
    double encode;
    bool encoded;
} run_facts;

static theo_status run_keypoints(job *all, const theo_image *image, run_facts *facts, theo_error *err) {
    theo_keypoints *points;
    theo_status status = theo_detect(all->session, image, &all->detect, &points, err);
    if (status)
        return status;
    double start = clock_ms();
    facts->encoded = result_text_length(points) > 0;
    facts->encode = clock_ms() - start;
    facts->timing = points->timing;
    facts->width = points->net_width;
    facts->height = points->net_height;
    theo_keypoints_free(points);
    return THEO_OK;
}

static theo_status run_depth(job *all, const theo_image *image, run_facts *facts, theo_error *err) {
    theo_geometry *geometry;
    theo_status status = theo_geometry_run(all->session, image, NULL, &geometry, err);
    if (status)
        return status;
    double start = clock_ms();
    depth_facts depth;
    json_out json = {0};
    if ((status = depth_measure(&depth, geometry, false, all->engine.pool, err))) {
        theo_geometry_free(geometry);
        return status;
    }
    json_open(&json, '{');
    depth_json_members(&json, geometry, &depth, "native");
    json_close(&json, '}');
    facts->encoded = json.length > 0;
    json_free(&json);
    facts->encode = clock_ms() - start;
    facts->timing = geometry->timing;
    facts->width = geometry->width;
    facts->height = geometry->height;
    theo_geometry_free(geometry);
    return THEO_OK;
}

/* One photo from file (NULL: the formula picture) to text; measured, or to warm up. */
static theo_status run_once(job *all, const char *path, bool measured, theo_error *err) {
    theo_image *image;
    run_facts facts = {.width = 0};
    double start = clock_ms();
    theo_status status = path ? theo_image_load(&image, path, &all->decode, err)
                              : theo_image_decode(&image, all->picture, all->picture_bytes, "formula picture", &all->decode, err);
    if (status)
        return status;
    double decoded = clock_ms();
    status = is_depth(all) ? run_depth(all, image, &facts, err) : run_keypoints(all, image, &facts, err);
    theo_image_free(image);
    if (status)
        return status;
    double end = clock_ms();
    if (measured && facts.encoded) {
        const theo_timing *timing = &facts.timing;
        const double values[STAGE_COUNT] = {
            0, decoded - start, timing->preprocess, timing->forward, timing->postprocess, facts.encode, end - start};
        for (int i = STAGE_DECODE; i < STAGE_COUNT; i++)
            add_sample(&all->stages[i], values[i]);
        all->net_width = facts.width;
        all->net_height = facts.height;
        add_sample(&all->rates, network_flops(all, facts.width, facts.height) / timing->forward / 1e6);
    }
    return THEO_OK;
}

static int measure(job *all) {
    const arguments *args = all->args;
    int images = args->operand_count > 1 ? args->operand_count - 1 : 1;
    int runs = (int)option_count(args, "runs", 20), warmup = (int)option_count(args, "warmup", 3);
    theo_error err;
    all->peak_gflops = theo_measure_peak_gflops(all->engine.info.threads);
    progress_start("runs", images * (runs + warmup), option_given(args, "quiet"));
    for (int i = 0, done = 0; i < images; i++) {
        const char *path = args->operand_count > 1 ? args->operands[i + 1] : NULL;
        for (int run = 0; run < warmup + runs; run++) {
            theo_status status = run_once(all, path, run >= warmup, &err);
            progress_done(++done);
            if (interrupted()) {
                progress_end();
                return interrupt_exit_code();
            }
            if (status) {
                char text[1600];
                error_text(text, sizeof text, path ? path : "formula picture", &err);
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
        qsort(all->stages[i].values, (size_t)all->stages[i].count, sizeof(double), by_value);
    qsort(all->rates.values, (size_t)all->rates.count, sizeof(double), by_value);
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
    json_key(&json, "stages");
    json_open(&json, '{');
    for (int i = 0; i < STAGE_COUNT; i++) {
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
    printf("%s, level %s, %d thread%s\n\n", cpu, all->engine.info.isa, all->engine.info.threads,
           all->engine.info.threads == 1 ? "" : "s");
    printf("%-12s %10s %10s %10s\n", "ms", "median", "min", "p90");
    for (int i = 0; i < STAGE_COUNT; i++)
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
    if (option_given(all->args, "ops") && theo_session_plan(all->session, all->net_width, all->net_height, &plan, &err)) {
        message_error("%s", err.message);
        return EXIT_FAILED;
    }
    char cpu[256];
    machine_cpu_name(cpu, sizeof cpu);
    bool ok = option_given(all->args, "json") ? print_json(all, cpu, plan) : print_words(all, cpu, plan);
    theo_plan_report_free(plan);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

static int run_job(job *all) {
    const char *name = all->args->operands[0];
    theo_error err;
    int code = option_given(all->args, "synthetic") ? open_synthetic(all, name) : open_model(all, name);
    if (code)
        return code;
    detect_options(&all->detect, all->args, &all->engine);
    all->model = option_given(all->args, "synthetic") ? name : all->engine.info.name;
    theo_session_options options;
    theo_session_options_init(&options);
    options.progress = progress_within;
    if (theo_session_open(&all->session, all->engine.model, &options, &err) ||
        (all->args->operand_count == 1 && make_picture(all, &err))) {
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
    decode_options(&all.decode, args, THEO_ORIENTATION_IGNORE);
    int code = run_job(&all);
    for (int i = 0; i < STAGE_COUNT; i++)
        free(all.stages[i].values);
    free(all.rates.values);
    theo_buffer_free(all.picture);
    theo_session_close(all.session);
    engine_close(&all.engine);
    return code;
}

const command command_bench = {
    .name = "bench",
    .operands = "MODEL [IMAGE...]",
    .summary = "time a model on this machine",
    .description = "Measures the stages from the image file to the result: load (of the model), decode, preprocess, forward (the "
                   "network), postprocess, encode (the result as text) and "
                   "total. Without IMAGE a formula picture of the network's size is used.",
    .groups = groups,
    .run = run,
};
