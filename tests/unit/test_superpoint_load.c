/* Checkpoints of SuperPoint: every layout and container, and what is wrong with bad ones. */
#include "superpoint_fixture.h"
#include <theo/files.h>

enum { MOST = 80 };

static char path[64];

static theo_arrays *read_layout(const char *config) {
    theo_arrays *arrays;
    synthesize(path, config);
    REQUIRE(theo_safetensors_read(&arrays, path, &test_error));
    return arrays;
}

static theo_status open_arrays(theo_model **model, const theo_array *arrays, int count) {
    REQUIRE(theo_safetensors_write(path, arrays, count, NULL, NULL, 0, &test_error));
    return theo_model_open(model, path, NULL, &test_error);
}

static theo_model_info info_of(theo_model *model) {
    theo_model_info info;
    theo_model_get_info(model, &info);
    return info;
}

static void test_layouts(void) {
    static const struct {
        const char *config, *kind;
        int descriptor_dim;
        int64_t parameters;
    } layouts[] = {
        {"{\"names\": \"original\"}", "superpoint", 256, 1300865},
        {"{\"names\": \"hf\"}", "superpoint", 256, 1300865},
        {"{\"names\": \"hf-prefixed\"}", "superpoint", 256, 1300865},
        {"{\"names\": \"original\", \"descriptor_dim\": 0}", "superpoint", 0, 939905},
        {"{\"names\": \"rpautrat\"}", "superpoint-bn", 256, 1307269},
        {"{\"names\": \"magicpoint\"}", "magicpoint", 0, 944261},
        {"{\"names\": \"hf\", \"encoder\": [32, 32, 64, 64], \"decoder\": 128, \"descriptor_dim\": 128}", "superpoint", 128, 0},
        {"{\"names\": \"original\", \"encoder\": [3, 5, 7, 9], \"decoder\": 11, \"descriptor_dim\": 13}", "superpoint", 13, 0},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        synthesize(path, layouts[i].config);
        theo_model *model = open_model(path, 1);
        theo_model_info info = info_of(model);
        CHECK_MSG(!strcmp(info.kind, layouts[i].kind) && info.descriptor_dim == layouts[i].descriptor_dim, "%s: %s, %d",
                  layouts[i].config, info.kind, info.descriptor_dim);
        CHECK_MSG(!layouts[i].parameters || info.parameters == layouts[i].parameters, "%s: %lld parameters", layouts[i].config,
                  (long long)info.parameters);
        CHECK_STR(info.source, "safetensors");
        theo_session *session = open_session(model, 0, NULL, NULL);
        theo_image *image = picture(64, 48, 1);
        theo_detect_options o = native_options();
        o.threshold = 0;
        theo_keypoints *k = detect(session, image, &o);
        CHECK(k->count > 0 && k->descriptor_dim == layouts[i].descriptor_dim);
        theo_keypoints_free(k);
        theo_status described = theo_describe(session, image, NULL, 0, NULL, &k, &test_error);
        CHECK(described == (layouts[i].descriptor_dim ? THEO_OK : THEO_UNSUPPORTED));
        theo_keypoints_free(k);
        theo_image_free(image);
        theo_session_close(session);
        theo_model_close(model);
        unlink(path);
    }
}

/* The same numbers under three names and in two containers find the same points. */
static void test_same_numbers(void) {
    theo_arrays *original = read_layout(SMALL_NETWORK);
    theo_image *image = picture(96, 80, 1);
    theo_detect_options o = native_options();
    theo_keypoints *want = NULL;
    static char hf_names[MOST][96];
    static const char *const stems[] = {
        "encoder.conv_blocks.0.conv_a",  "encoder.conv_blocks.0.conv_b",         "encoder.conv_blocks.1.conv_a",
        "encoder.conv_blocks.1.conv_b",  "encoder.conv_blocks.2.conv_a",         "encoder.conv_blocks.2.conv_b",
        "encoder.conv_blocks.3.conv_a",  "encoder.conv_blocks.3.conv_b",         "keypoint_decoder.conv_score_a",
        "keypoint_decoder.conv_score_b", "descriptor_decoder.conv_descriptor_a", "descriptor_decoder.conv_descriptor_b"};
    static const char *const layers[] = {"conv1a", "conv1b", "conv2a", "conv2b", "conv3a", "conv3b",
                                         "conv4a", "conv4b", "convPa", "convPb", "convDa", "convDb"};
    for (int turn = 0; turn < 3; turn++) {
        theo_array arrays[MOST];
        for (int i = 0; i < original->count; i++) {
            arrays[i] = original->items[i];
            for (int l = 0; turn && l < 12; l++)
                if (!strncmp(arrays[i].name, layers[l], 6)) {
                    snprintf(hf_names[i], sizeof hf_names[i], "%s%s%s", turn == 2 ? "keypoint_detector." : "", stems[l],
                             arrays[i].name + 6);
                    arrays[i].name = hf_names[i];
                    break;
                }
        }
        theo_model *model;
        REQUIRE(open_arrays(&model, arrays, original->count));
        theo_session *session = open_session(model, 0, NULL, NULL);
        theo_keypoints *k = detect(session, image, &o);
        CHECK(k->count > 20);
        CHECK(!want || same_keypoints(want, k));
        if (want)
            theo_keypoints_free(k);
        else
            want = k;
        theo_session_close(session);
        theo_model_close(model);
    }
    unlink(path);
    char torch[80];
    snprintf(torch, sizeof torch, "%s.pth", path);
    REQUIRE(theo_synthesize("superpoint", SMALL_NETWORK, torch, &test_error));
    theo_model *model = open_model(torch, 1);
    theo_session *session = open_session(model, 0, NULL, NULL);
    theo_keypoints *k = detect(session, image, &o);
    CHECK(same_keypoints(want, k));
    CHECK_STR(info_of(model).source, "torch-zip");
    theo_keypoints_free(k);
    theo_keypoints_free(want);
    theo_session_close(session);
    theo_model_close(model);
    unlink(torch);
    theo_image_free(image);
    theo_arrays_free(original);
}

/* Half precision is widened: the same as the rounded numbers in float32. */
static void test_half(void) {
    theo_arrays *original = read_layout(SMALL_NETWORK);
    theo_array arrays[MOST];
    for (int i = 0; i < original->count; i++) {
        arrays[i] = original->items[i];
        size_t n = 1;
        for (int d = 0; d < arrays[i].rank; d++)
            n *= (size_t)arrays[i].shape[d];
        uint16_t *half = malloc(n * sizeof *half);
        theo_f32_to_f16(half, arrays[i].data, n);
        arrays[i].data = half;
        arrays[i].dtype = THEO_DTYPE_F16;
    }
    theo_model *model;
    REQUIRE(open_arrays(&model, arrays, original->count));
    CHECK(info_of(model).descriptor_dim == 64 && info_of(model).file_bytes < 200000);
    theo_model_close(model);
    for (int i = 0; i < original->count; i++)
        free((void *)(uintptr_t)arrays[i].data);
    unlink(path);
    theo_arrays_free(original);
}

static int find(const theo_array *arrays, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (!strcmp(arrays[i].name, name))
            return i;
    return -1;
}

/* Everything that is wrong is said at once. */
static void test_problems(void) {
    theo_arrays *original = read_layout(SMALL_NETWORK);
    int count = original->count;
    theo_array arrays[MOST];
    theo_model *model;

    memcpy(arrays, original->items, (size_t)count * sizeof *arrays);
    arrays[find(arrays, count, "conv2a.weight")].shape[1] = 8;
    arrays[find(arrays, count, "conv2a.weight")].shape[0] = 32;
    arrays[find(arrays, count, "conv3b.bias")].shape[0] = 16;
    arrays[find(arrays, count, "convPb.bias")] = arrays[count - 1];
    CHECK(open_arrays(&model, arrays, count - 1) == THEO_SHAPE && !model);
    CHECK(strstr(test_error.message, "conv2a.weight") && strstr(test_error.message, "conv3b.bias") &&
          strstr(test_error.message, "convPb.bias"));
    CHECK(strstr(test_error.message, "is missing") && strstr(test_error.message, "[32, 8, 3, 3]") &&
          strstr(test_error.message, path));

    /* Half a descriptor head is none of the known networks. */
    memcpy(arrays, original->items, (size_t)count * sizeof *arrays);
    arrays[find(arrays, count, "convDb.weight")].name = "else";
    CHECK(open_arrays(&model, arrays, count) == THEO_MISSING && strstr(test_error.message, "convDb.weight"));

    /* A name is not enough: too many problems for a sentence are counted. */
    memcpy(arrays, original->items, (size_t)count * sizeof *arrays);
    int one = find(arrays, count, "conv1a.bias");
    CHECK(open_arrays(&model, &arrays[one], 1) == THEO_MISSING && strstr(test_error.message, "problems"));

    memcpy(arrays, original->items, (size_t)count * sizeof *arrays);
    arrays[find(arrays, count, "conv1b.bias")].dtype = THEO_DTYPE_I32;
    CHECK(open_arrays(&model, arrays, count) == THEO_SHAPE && strstr(test_error.message, "floating-point"));

    memcpy(arrays, original->items, (size_t)count * sizeof *arrays);
    int bad = find(arrays, count, "conv4b.bias");
    float values[32];
    memcpy(values, arrays[bad].data, sizeof values);
    values[7] = NAN;
    arrays[bad].data = values;
    CHECK(open_arrays(&model, arrays, count) == THEO_STRUCTURE && strstr(test_error.message, "element 7"));

    arrays[0].name = "something";
    CHECK(open_arrays(&model, arrays, 1) == THEO_STRUCTURE && !model);
    unlink(path);
    theo_arrays_free(original);

    theo_model_options o;
    theo_model_options_init(&o);
    o.bn_eps = 1e-5;
    synthesize(path, SMALL_NETWORK);
    CHECK(theo_model_open(&model, path, &o, &test_error) == THEO_ARGUMENT && strstr(test_error.message, "no batch norm"));
    o.bn_eps = 0;
    o.threads = 257;
    CHECK(theo_model_open(&model, path, &o, &test_error) == THEO_ARGUMENT);
    o.threads = 1;
    o.precision = "int8";
    CHECK(theo_model_open(&model, path, &o, &test_error) == THEO_UNSUPPORTED);
    unlink(path);
    CHECK(theo_model_open(&model, path, NULL, &test_error) == THEO_MISSING);
    CHECK(theo_model_open(&model, "/", NULL, &test_error) == THEO_MISSING);
    CHECK(theo_model_open(&model, "", NULL, &test_error) == THEO_ARGUMENT);
    CHECK(theo_synthesize("superpoint", "{\"names\": \"klingon\"}", path, &test_error) == THEO_ARGUMENT);
    CHECK(theo_synthesize("superpoint", "{\"encoder\": [1, 2]}", path, &test_error) == THEO_ARGUMENT);
    CHECK(theo_synthesize("superpoint", "{\"keypoint_dim\": 64}", path, &test_error) == THEO_ARGUMENT);
    CHECK(theo_synthesize("superpoint", "{\"decodr\": 64}", path, &test_error) == THEO_ARGUMENT);
    CHECK_STR(test_error.place, "decodr");
    CHECK(theo_synthesize("superpoint", "[1]", path, &test_error) == THEO_ARGUMENT);
    CHECK(theo_synthesize("superpoint", "[", path, &test_error) != THEO_OK);
    CHECK(theo_synthesize("superpoint", NULL, "/tmp/x.onnx", &test_error) == THEO_ARGUMENT);
    CHECK(theo_synthesize("dust3r", "{\"patch_size\": 14}", path, &test_error) == THEO_UNSUPPORTED);
    CHECK(theo_synthesize("nothing", NULL, path, &test_error) == THEO_MISSING);
}

/* The largest sizes that a header can hold are told, not run over. */
static void test_huge_shape(void) {
    static const char header[] =
        "{\"conv1a.weight\": {\"dtype\": \"F32\", \"shape\": [0, 9223372036854775807, 9223372036854775807, 9223372036854775807, "
        "9223372036854775807, 9223372036854775807, 9223372036854775807, 9223372036854775807], \"data_offsets\": [0, 0]}}";
    uint64_t length = sizeof header - 1;
    snprintf(path, sizeof path, "/tmp/theo-test-%ld-huge.safetensors", (long)getpid());
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(&length, 8, 1, f) == 1 && fwrite(header, length, 1, f) == 1 && !fclose(f));
    theo_model *model;
    CHECK(theo_model_open(&model, path, NULL, &test_error) != THEO_OK && !model && strstr(test_error.message, "conv1a.weight"));
    unlink(path);
}

/* The epsilon matters, and the defaults follow the kind of file. */
static void test_batch_norm(void) {
    synthesize(path, "{\"names\": \"rpautrat\", \"encoder\": [16, 16, 32, 32], \"decoder\": 64, \"descriptor_dim\": 64}");
    theo_model_options o;
    theo_model_options_init(&o);
    theo_model *models[2];
    theo_keypoints *k[2];
    theo_image *image = picture(96, 80, 3);
    for (int i = 0; i < 2; i++) {
        o.bn_eps = i ? 0.25 : 0;
        REQUIRE(theo_model_open(&models[i], path, &o, &test_error));
        theo_session *session = open_session(models[i], 0, NULL, NULL);
        k[i] = detect(session, image, NULL);
        theo_session_close(session);
    }
    CHECK(!same_keypoints(k[0], k[1]));
    CHECK(strstr(info_of(models[0]).config_json, "\"bn_eps\": 0.001") && strstr(info_of(models[1]).config_json, "0.25"));
    theo_detect_options options;
    theo_detect_options_for(&options, models[0]);
    CHECK(options.sampling == THEO_SAMPLING_C && options.gray == THEO_GRAY_LUMA);
    for (int i = 0; i < 2; i++) {
        theo_keypoints_free(k[i]);
        theo_model_close(models[i]);
    }
    theo_image_free(image);
    unlink(path);
}

int main(void) {
    test_layouts();
    test_same_numbers();
    test_half();
    test_problems();
    test_huge_shape();
    test_batch_norm();
    return t_done("test_superpoint_load");
}
