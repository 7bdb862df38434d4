/* Checkpoint files of every container: the damaged and hostile ones of golden/moge2/loader against their expected.json, and real
 * ones against the facts known of them. What only the network can find out (missing tensors, wrong shapes) opens here. */
#include "base/map.h"
#include "formats/json.h"
#include "formats/weights.h"
#include "t.h"

static const char *folder(const char *variable, const char *fallback) {
    const char *value = getenv(variable);
    return value && *value ? value : fallback;
}

/* Parses a JSON file; NULL when it is not there. */
static const theo_json *read_json(theo_bump *memory, const char *path) {
    theo_map map;
    theo_error err;
    const theo_json *root = NULL;
    if (theo_map_open(&map, path, &err))
        return NULL;
    theo_json_options options = {.file = path, .allow_nonfinite = true};
    CHECK_MSG(theo_json_parse(&root, memory, (const char *)map.data, map.bytes, &options, &err) == THEO_OK, "%s", err.message);
    theo_map_close(&map);
    return root;
}

/* Names of error kinds in the golden files. */
static bool is_kind(theo_status status, const char *kind) {
    static const struct {
        const char *name;
        theo_status status;
    } kinds[] = {
        {"crc", THEO_CHECKSUM},           {"container", THEO_CONTAINER},
        {"bounds", THEO_BOUNDS},          {"unsupported", THEO_UNSUPPORTED},
        {"pickle", THEO_PICKLE},          {"security", THEO_SECURITY},
        {"structure", THEO_STRUCTURE},    {"shape", THEO_SHAPE},
        {"missing_tensor", THEO_MISSING}, {"missing_storage", THEO_MISSING},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, kind) == 0)
            return kinds[i].status == status;
    return false;
}

static bool is_expected(theo_status status, const theo_json *expected) {
    if (is_kind(status, theo_json_get(expected, "kind")->string))
        return true;
    for (const theo_json *other = theo_json_get(expected, "also_acceptable")->first; other; other = other->next)
        if (is_kind(status, other->string))
            return true;
    return false;
}

/* Errors that need the network to be seen. */
static bool is_for_the_network(const theo_json *expected) {
    static const char *const files[] = {"wrong_shape_qkv.pt", "missing_tensor.pt", "only_one_tensor.pt",
                                        "register_tokens.pt", "refiner_keys.pt",   "int64_weights.pt"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (strcmp(theo_json_get(expected, "file")->string, files[i]) == 0)
            return true;
    return false;
}

static int test_golden_loader(const char *golden) {
    char path[4096];
    theo_bump memory = {0};
    snprintf(path, sizeof path, "%s/moge2/loader/expected.json", golden);
    const theo_json *list = read_json(&memory, path);
    int count = list ? list->count : 0;
    for (const theo_json *expected = list ? list->first : NULL; expected; expected = expected->next) {
        theo_weights *w;
        theo_error err = {0};
        bool is_ok = strcmp(theo_json_get(expected, "expect")->string, "ok") == 0 || is_for_the_network(expected);
        snprintf(path, sizeof path, "%s/moge2/loader/%s", golden, theo_json_get(expected, "file")->string);
        theo_status status = theo_weights_open(&w, path, &(theo_weights_options){.verify_checksums = true}, &err);
        CHECK_MSG(is_ok ? status == THEO_OK : status != THEO_OK && is_expected(status, expected), "%s: status %d (%s) %s", path,
                  status, theo_status_name(status), err.message);
        CHECK(status == THEO_OK ? w != NULL : !w && strstr(err.message, path));
        if (getenv("T_VERBOSE"))
            printf("%s: %s\n", theo_status_name(status), err.message);
        if (w && is_ok && strstr(path, ".pt"))
            CHECK(theo_weights_config_json(w) && strstr(theo_weights_config_json(w), "\"model_config\":{"));
        theo_weights_close(w);
    }
    theo_bump_free(&memory);
    return count;
}

/* golden/superpoint/bn/pth_facts.json: every tensor of a torch zip file. */
static int test_facts(const char *golden, const char *weights) {
    char path[4096];
    theo_bump memory = {0};
    theo_weights *w = NULL;
    theo_error err = {0};
    snprintf(path, sizeof path, "%s/superpoint/bn/pth_facts.json", golden);
    const theo_json *facts = read_json(&memory, path);
    int count = 0;
    if (facts) {
        snprintf(path, sizeof path, "%s/%s", weights, theo_json_get(facts, "file")->string);
        theo_status status = theo_weights_open(&w, path, &(theo_weights_options){.verify_checksums = true}, &err);
        if (status == THEO_MISSING)
            facts = NULL;
        else
            CHECK_MSG(status == THEO_OK, "%s", err.message);
    }
    if (w) {
        CHECK_STR(theo_weights_source(w), "torch-zip");
        CHECK(theo_weights_count(w) == theo_json_get(facts, "tensors_total")->integer);
        CHECK(theo_weights_file_bytes(w) == theo_json_get(facts, "size")->integer && !theo_weights_config_json(w));
    }
    for (const theo_json *fact = w ? theo_json_get(facts, "tensors")->first : NULL; fact; fact = fact->next, count++) {
        const theo_weight *t = theo_weights_find(w, theo_json_get(fact, "name")->string);
        CHECK_MSG(t, "%s", theo_json_get(fact, "name")->string);
        if (!t)
            continue;
        CHECK(t->rank == theo_json_get(fact, "shape")->count && t->elements == theo_json_get(fact, "numel")->integer);
        for (int i = 0; i < t->rank; i++)
            CHECK(t->shape[i] == theo_json_at(theo_json_get(fact, "shape"), i)->integer &&
                  t->stride[i] == theo_json_at(theo_json_get(fact, "stride"), i)->integer);
        bool is_float = strcmp(theo_json_get(fact, "dtype")->string, "float32") == 0;
        CHECK(t->dtype == (is_float ? THEO_DTYPE_F32 : THEO_DTYPE_I64));
        float *values = calloc((size_t)t->elements, sizeof *values);
        CHECK(theo_weight_to_f32(w, t, values, &err) == (is_float ? THEO_OK : THEO_SHAPE));
        double sum = 0, expected = theo_json_get(fact, "sum")->number;
        for (int64_t i = 0; i < t->elements; i++)
            sum += (double)values[i];
        if (is_float) {
            CHECK_NEAR(values[0], theo_json_get(fact, "first")->number, 1e-8 * fabs(expected) + 1e-6);
            CHECK_NEAR(sum, expected, 1e-5 * fabs(expected) + 1e-6);
        }
        free(values);
        theo_weights_release(w, t);
    }
    theo_weights_close(w);
    theo_bump_free(&memory);
    return count;
}

/* The same tensors in the legacy layout and as safetensors. */
static int test_legacy(const char *weights) {
    char path[4096];
    theo_weights *legacy, *other;
    theo_error err;
    snprintf(path, sizeof path, "%s/magicpoint_mit_legacy.pth", weights);
    theo_status status = theo_weights_open(&legacy, path, NULL, &err);
    if (status == THEO_MISSING)
        return 0;
    CHECK_MSG(status == THEO_OK, "%s", err.message);
    snprintf(path, sizeof path, "%s/magicpoint_mit.safetensors", weights);
    CHECK_MSG(theo_weights_open(&other, path, NULL, &err) == THEO_OK, "%s", err.message);
    if (!legacy || !other)
        return 0;
    CHECK_STR(theo_weights_source(legacy), "torch-legacy");
    int count = theo_weights_count(legacy);
    CHECK(count == theo_weights_count(other) && count > 0);
    for (int i = 0; i < count; i++) {
        const theo_weight *a = theo_weights_at(legacy, i), *b = theo_weights_find(other, a->name);
        CHECK(b && a->elements == b->elements && memcmp(a->shape, b->shape, sizeof a->shape) == 0 &&
              memcmp(a->data, b->data, 4 * (size_t)a->elements) == 0);
    }
    theo_weights_close(legacy);
    theo_weights_close(other);
    return count;
}

/* A training checkpoint with an argparse.Namespace. */
static int test_namespace(const char *golden) {
    char path[4096];
    theo_weights *w;
    theo_error err;
    snprintf(path, sizeof path, "%s/dust3r/tiny/ckpt_dpt_train.pth", golden);
    theo_status status = theo_weights_open(&w, path, &(theo_weights_options){.verify_checksums = true}, &err);
    if (status == THEO_MISSING)
        return 0;
    CHECK_MSG(status == THEO_OK, "%s", err.message);
    if (!w)
        return 0;
    theo_bump memory = {0};
    const theo_json *config;
    const char *text = theo_weights_config_json(w);
    CHECK(text &&
          theo_json_parse(&config, &memory, text, strlen(text), &(theo_json_options){.allow_nonfinite = true}, &err) == THEO_OK);
    const theo_json *model = theo_json_get(theo_json_get(config, "args"), "model");
    CHECK(model && model->type == THEO_JSON_STRING && strstr(model->string, "head_type='dpt'"));
    CHECK(theo_weights_find(w, "patch_embed.proj.weight") != NULL);
    theo_bump_free(&memory);
    theo_weights_close(w);
    return 1;
}

int main(void) {
    const char *golden = folder("THEO_GOLDEN", "../shared/golden"), *weights = folder("THEO_WEIGHTS", "../shared/weights");
    int found = test_golden_loader(golden) + test_facts(golden, weights) + test_legacy(weights) + test_namespace(golden);
    return found ? t_done("loader") : t_skip("loader", "no files in THEO_GOLDEN and THEO_WEIGHTS");
}
