/* forward.c - our side of the peer comparison: one network in one process, loaded and warm, timed run by run.
 *
 *     bench_forward NET MODEL THREADS RUNS [OUTPUT.npz]
 *
 * The boundary is the peers': a float tensor of the network's size in, its raw outputs as contiguous float32 arrays out.
 * Prints one JSON line: the milliseconds of every run, load time, peak RSS, CPU level and the FMA peak measured around the runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <theo/depth.h>
#include <theo/files.h>
#include <theo/inspect.h>
#include <theo/pair.h>
#include <theo/theo.h>
#include <time.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Not getrusage: its figure is inherited from the process that started this one. */
static double peak_rss_mib(void) {
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    double kib = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lf", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib / 1024;
}

static int fail(const theo_error *err) {
    fprintf(stderr, "bench_forward: %s\n", err->message);
    return 1;
}

static theo_status save_maps(const char *path, const theo_superpoint_maps *maps, theo_error *err) {
    const theo_array arrays[2] = {
        {.name = "scores",
         .dtype = THEO_DTYPE_F32,
         .rank = 3,
         .shape = {1, 8 * maps->cells_y, 8 * maps->cells_x},
         .data = maps->scores},
        {.name = "descriptors",
         .dtype = THEO_DTYPE_F32,
         .rank = 4,
         .shape = {1, maps->descriptor_dim, maps->cells_y, maps->cells_x},
         .data = maps->descriptors},
    };
    return theo_npz_write(path, arrays, 2, false, NULL, err);
}

/* Runs SuperPoint at 480x640 `runs` times after three warm-up runs; times[runs] in milliseconds. */
static int bench_superpoint(theo_session *session, int runs, double *times, const char *output, theo_error *err) {
    enum { HEIGHT = 480, WIDTH = 640, WARMUP = 3 };
    float *plane = malloc(sizeof(float) * HEIGHT * WIDTH);
    if (!plane)
        return 1;
    for (int i = 0; i < HEIGHT * WIDTH; i++) { /* the peers' example_input */
        float v = (float)i * 0.37F;
        plane[i] = v - (float)(int)v;
    }
    theo_status status = THEO_OK;
    for (int run = -WARMUP; run < runs && status == THEO_OK; run++) {
        theo_superpoint_maps *maps = NULL;
        double start = now_ms();
        status = theo_detect_raw(session, plane, WIDTH, HEIGHT, THEO_MAP_SCORES | THEO_MAP_DESCRIPTORS, &maps, err);
        if (run >= 0)
            times[run] = now_ms() - start;
        if (status == THEO_OK && output && run == runs - 1)
            status = save_maps(output, maps, err);
        theo_superpoint_maps_free(maps);
    }
    free(plane);
    return status != THEO_OK;
}

static theo_status save_geometry(const char *path, const theo_geometry_maps *maps, theo_error *err) {
    const int64_t h = maps->height, w = maps->width;
    const theo_array arrays[4] = {
        {.name = "points", .dtype = THEO_DTYPE_F32, .rank = 4, .shape = {1, 3, h, w}, .data = maps->points},
        {.name = "normal", .dtype = THEO_DTYPE_F32, .rank = 4, .shape = {1, 3, h, w}, .data = maps->normal},
        {.name = "mask", .dtype = THEO_DTYPE_F32, .rank = 4, .shape = {1, 1, h, w}, .data = maps->mask},
        {.name = "metric_scale", .dtype = THEO_DTYPE_F32, .rank = 1, .shape = {1}, .data = &maps->metric_scale},
    };
    return theo_npz_write(path, arrays, 4, false, NULL, err);
}

/* Runs MoGe-2 at the grid of a 1920x1080 photo; as bench_superpoint. */
static int bench_moge2(theo_session *session, int runs, double *times, const char *output, theo_error *err) {
    enum { ROWS = 32, COLUMNS = 57, COUNT = 3 * 14 * ROWS * 14 * COLUMNS, WARMUP = 1 };
    float *planes = malloc(sizeof(float) * COUNT);
    if (!planes)
        return 1;
    for (int i = 0; i < COUNT; i++) { /* the peers' example_input */
        float v = (float)i * 0.37F;
        planes[i] = (v - (float)(int)v) * 4 - 2;
    }
    theo_status status = THEO_OK;
    for (int run = -WARMUP; run < runs && status == THEO_OK; run++) {
        theo_geometry_maps *maps = NULL;
        double start = now_ms();
        status = theo_geometry_raw(session, planes, ROWS, COLUMNS, 1920.0 / 1080, &maps, err);
        if (run >= 0)
            times[run] = now_ms() - start;
        if (status == THEO_OK && output && run == runs - 1)
            status = save_geometry(output, maps, err);
        theo_geometry_maps_free(maps);
    }
    free(planes);
    return status != THEO_OK;
}

static theo_status save_pair(const char *path, const theo_pair_raw *raw, theo_error *err) {
    theo_array arrays[4];
    static const char *const names[4] = {"pts1", "conf1", "pts2", "conf2"};
    for (int i = 0; i < 4; i++) {
        const int64_t h = raw->views[i / 2].height, w = raw->views[i / 2].width;
        arrays[i] = (theo_array){.name = names[i], .dtype = THEO_DTYPE_F32, .rank = i % 2 ? 2 : 3, .shape = {h, w, 3}};
        arrays[i].data = i % 2 ? raw->views[i / 2].confidence : raw->views[i / 2].points;
    }
    return theo_npz_write(path, arrays, 4, false, NULL, err);
}

/* Runs DUSt3R on two images of 512x512; as bench_superpoint. */
static int bench_dust3r(theo_session *session, int runs, double *times, const char *output, theo_error *err) {
    enum { SIDE = 512, COUNT = 3 * SIDE * SIDE, WARMUP = 1 };
    float *planes = malloc(2 * sizeof(float) * COUNT);
    if (!planes)
        return 1;
    for (int i = 0; i < 2 * COUNT; i++) { /* the peers' example_inputs */
        float v = (float)(i % COUNT) * (i < COUNT ? 0.37F : 0.41F);
        planes[i] = (v - (float)(int)v) * 2 - 1;
    }
    const theo_pair_planes views[2] = {{SIDE, SIDE, planes}, {SIDE, SIDE, planes + COUNT}};
    theo_status status = THEO_OK;
    for (int run = -WARMUP; run < runs && status == THEO_OK; run++) {
        theo_pair_raw *raw = NULL;
        double start = now_ms();
        status = theo_reconstruct_raw(session, views, &raw, err);
        if (run >= 0)
            times[run] = now_ms() - start;
        if (status == THEO_OK && output && run == runs - 1)
            status = save_pair(output, raw, err);
        theo_pair_raw_free(raw);
    }
    free(planes);
    return status != THEO_OK;
}

typedef int (*bench_fn)(theo_session *session, int runs, double *times, const char *output, theo_error *err);

static bench_fn bench_of(const char *net) {
    static const struct {
        const char *name;
        bench_fn fn;
    } nets[] = {
        {"superpoint", bench_superpoint}, {"moge2-vitl", bench_moge2}, {"moge2-vits", bench_moge2}, {"dust3r", bench_dust3r}};
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
        if (strcmp(nets[i].name, net) == 0)
            return nets[i].fn;
    return NULL;
}

int main(int argc, char **argv) {
    bench_fn bench = argc < 5 ? NULL : bench_of(argv[1]);
    if (!bench) {
        fprintf(stderr, "usage: bench_forward superpoint|moge2-vitl|moge2-vits|dust3r MODEL THREADS RUNS [OUTPUT.npz]\n");
        return 2;
    }
    int threads = atoi(argv[3]), runs = atoi(argv[4]);
    if (threads < 1 || runs < 1) {
        fprintf(stderr, "bench_forward: THREADS and RUNS are positive numbers\n");
        return 2;
    }
    theo_error err = {0};
    theo_model *model = NULL;
    theo_session *session = NULL;
    theo_model_options options;
    theo_model_options_init(&options);
    options.threads = threads;
    double start = now_ms();
    if (theo_model_open(&model, argv[2], &options, &err) || theo_session_open(&session, model, NULL, &err))
        return fail(&err);
    double load = now_ms() - start;

    double *times = calloc((size_t)runs, sizeof *times);
    if (!times)
        return 1;
    double peak_before = theo_measure_peak_gflops(threads);
    if (bench(session, runs, times, argc > 5 ? argv[5] : NULL, &err))
        return fail(&err);
    double peak_after = theo_measure_peak_gflops(threads);

    printf("{\"engine\": \"theodolite\", \"version\": \"%s\", \"isa\": \"%s\", \"peak_gflops\": %.1f, \"load_ms\": %.1f, "
           "\"rss_mib\": %.1f, \"ms\": [",
           theo_version(), theo_cpu_level(), peak_before > peak_after ? peak_before : peak_after, load, peak_rss_mib());
    for (int i = 0; i < runs; i++)
        printf("%s%.3f", i ? ", " : "", times[i]);
    printf("]}\n");
    free(times);
    theo_session_close(session);
    theo_model_close(model);
    return 0;
}
