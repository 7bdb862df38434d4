/* Checkpoints of DUSt3R: three containers of one network, second names of tensors, configurations that are written and read
 * again, and the activation where raw values are extreme. */
#include "models/dust3r.h"
#include "models/dust3r_synth.h"
#include "pair_fixture.h"

/* ---------------------------------------------------------------- containers */

typedef struct loaded {
    theo_weights *weights;
    theo_dust3r *network;
} loaded;

static loaded load(const char *path) {
    loaded l;
    REQUIRE(theo_weights_open(&l.weights, path, NULL, &test_error));
    REQUIRE(theo_dust3r_load(&l.network, l.weights, THEO_CPU_C, NULL, &test_error));
    return l;
}

static void unload(loaded *l) {
    theo_dust3r_free(l->network);
    theo_weights_close(l->weights);
}

static void test_containers(const char *config, int aliases) {
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", scratch("hub"));
    REQUIRE(theo_synthesize("dust3r", config, scratch("a.pth"), &test_error));
    REQUIRE(theo_synthesize("dust3r", config, folder, &test_error));
    loaded torch = load(scratch("a.pth")), hub = load(scratch("hub/model.safetensors"));
    CHECK(theo_weights_count(torch.weights) == theo_weights_count(hub.weights) + aliases);
    CHECK(torch.network->unused == 0 && hub.network->unused == 0);
    CHECK(torch.network->parameters == hub.network->parameters && torch.network->weight_bytes == hub.network->weight_bytes);
    CHECK(!strcmp(torch.network->config_json, hub.network->config_json));
    for (int i = 0; i < aliases; i++) {
        theo_tensor_name scratch_of = theo_name("downstream_head%d.dpt.scratch", 1 + i / 4);
        theo_tensor_name name = theo_name("%s.layer%d_rn.weight", scratch_of.text, 1 + i % 4);
        const theo_weight *first = theo_weights_find(torch.weights, name.text);
        const theo_weight *second =
            theo_weights_find(torch.weights, theo_name("%s.layer_rn.%d.weight", scratch_of.text, i % 4).text);
        CHECK(first && second && first->data == second->data);
        CHECK(theo_weights_find(hub.weights, name.text) != NULL);
    }
    unload(&torch);
    unload(&hub);
    unlink(scratch("hub/model.safetensors"));
    unlink(scratch("hub/config.json"));
    rmdir(folder);
}

/* ---------------------------------------------------------------- configurations */

static bool same_config(const theo_dust3r_config *a, const theo_dust3r_config *b) {
    return a->enc_width == b->enc_width && a->enc_depth == b->enc_depth && a->enc_heads == b->enc_heads &&
           a->dec_width == b->dec_width && a->dec_depth == b->dec_depth && a->dec_heads == b->dec_heads &&
           a->image_size == b->image_size && a->rope_base == b->rope_base && a->head == b->head &&
           a->is_head_told == b->is_head_told && a->output.depth == b->output.depth && a->output.conf == b->output.conf &&
           a->output.conf_min == b->output.conf_min && a->output.conf_max == b->output.conf_max;
}

static void check_written(const theo_dust3r_config *config) {
    theo_dust3r_config back;
    theo_text json = {0}, call = {0};
    theo_dust3r_add_config(&json, config);
    theo_dust3r_add_call(&call, config);
    theo_dust3r_config_init(&back);
    REQUIRE(theo_dust3r_config_parse(&back, json.data, "written", &test_error));
    CHECK_MSG(same_config(config, &back), "%s", json.data);
    theo_dust3r_config_init(&back);
    REQUIRE(theo_dust3r_config_from_call(&back, call.data, "written", &test_error));
    CHECK_MSG(same_config(config, &back), "%s", call.data);
    theo_text_free(&json);
    theo_text_free(&call);
}

static void test_configs(void) {
    theo_dust3r_config c;
    theo_dust3r_config_init(&c);
    REQUIRE(theo_dust3r_config_parse(&c, TINY_DUST3R("dpt"), "tiny", &test_error));
    check_written(&c);
    const theo_dust3r_output outputs[] = {
        {THEO_DEPTH_EXP, THEO_CONF_EXP, 0, 1.0 / 3},
        {THEO_DEPTH_LINEAR, THEO_CONF_SIGMOID, 1e-300, 1e300},
        {THEO_DEPTH_SQUARE, THEO_CONF_EXP, -1.0 / 7, INFINITY},
    };
    const double bases[] = {100, 100.0 / 3, 12345678.5};
    c.head = THEO_DUST3R_LINEAR;
    c.image_size = 224;
    for (int i = 0; i < 3; i++) {
        c.output = outputs[i];
        c.rope_base = bases[i];
        check_written(&c);
    }
}

typedef struct refusal {
    const char *text;
    theo_status status;
    const char *place, *words;
} refusal;

static void test_refused_configs(void) {
    static const refusal refusals[] = {
        {"{\"depth_mode\": [\"exp\", Infinity, -Infinity]}", THEO_UNSUPPORTED, "depth_mode", "needed are -inf and inf"},
        {"{\"depth_mode\": [\"exp\", 0, Infinity]}", THEO_UNSUPPORTED, "depth_mode", "needed are -inf and inf"},
        {"{\"conf_mode\": [\"exp\", NaN, Infinity]}", THEO_STRUCTURE, "conf_mode", "finite lowest"},
        {"{\"conf_mode\": [\"exp\", 1, NaN]}", THEO_STRUCTURE, "conf_mode", "larger highest"},
        {"{\"conf_mode\": [\"sigmoid\", 1, Infinity]}", THEO_STRUCTURE, "conf_mode", "larger highest"},
        {"{\"conf_mode\": [\"tanh\", 1, 2]}", THEO_STRUCTURE, "conf_mode", "exp or sigmoid"},
        {"{\"pos_embed\": \"cosine\"}", THEO_UNSUPPORTED, "pos_embed", "RoPE100"},
        {"{\"pos_embed\": \"RoPE100x\"}", THEO_UNSUPPORTED, "pos_embed", "RoPE100x"},
        {"{\"img_size\": [512, 8]}", THEO_STRUCTURE, "img_size", "multiples of 16"},
        {"{\"img_size\": [72, 72]}", THEO_STRUCTURE, "img_size", "multiples of 16"},
        {"{\"img_size\": 8192}", THEO_STRUCTURE, "img_size", "up to 4096"},
        {"{\"enc_depth\": 0}", THEO_STRUCTURE, "enc_depth", "from 1 to"},
        {"{\"head_type\": \"catmlp+dpt\"}", THEO_UNSUPPORTED, "head_type", "dpt, linear"},
        {"{\"output_mode\": \"pts3d+desc24\"}", THEO_UNSUPPORTED, "output_mode", "pts3d"},
        {"{\"patch_size\": 14}", THEO_UNSUPPORTED, "patch_size", "allowed is 16"},
        {"[]", THEO_STRUCTURE, "config", "an object"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        theo_dust3r_config config;
        theo_error err = {0};
        theo_dust3r_config_init(&config);
        theo_status status = theo_dust3r_config_parse(&config, refusals[i].text, "file", &err);
        CHECK_MSG(status == refusals[i].status && strstr(err.place, refusals[i].place) && strstr(err.message, refusals[i].words),
                  "%s: %d %s", refusals[i].text, status, err.message);
    }
}

static void test_refused_calls(void) {
    static const refusal refusals[] = {
        {"AsymmetricMASt3R(enc_depth=24)", THEO_UNSUPPORTED, "args.model", "AsymmetricMASt3R"},
        {"AsymmetricCroCo3DStereo(enc_depth=24", THEO_STRUCTURE, "args.model", "name=value"},
        {"AsymmetricCroCo3DStereo(enc_depth=min(24, 12))", THEO_STRUCTURE, "args.model", "plain values"},
        {"AsymmetricCroCo3DStereo(24)", THEO_STRUCTURE, "args.model", "name=value"},
        {"AsymmetricCroCo3DStereo(enc_depth=24) or 1", THEO_STRUCTURE, "args.model", "name=value"},
        {"AsymmetricCroCo3DStereo(a=[[[[[[[[[[1]]]]]]]]]])", THEO_STRUCTURE, "args.model", "plain values"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        theo_dust3r_config config;
        theo_error err = {0};
        theo_dust3r_config_init(&config);
        theo_status status = theo_dust3r_config_from_call(&config, refusals[i].text, "file", &err);
        CHECK_MSG(status == refusals[i].status && strstr(err.place, refusals[i].place) && strstr(err.message, refusals[i].words),
                  "%s: %d %s", refusals[i].text, status, err.message);
    }
}

/* ---------------------------------------------------------------- activation */

/* What is not a number stays so, and touches nothing else; what overflows is infinite or not a number. */
static void test_activation(void) {
    theo_dust3r_output rules[] = {{THEO_DEPTH_EXP, THEO_CONF_EXP, 1, INFINITY},
                                  {THEO_DEPTH_LINEAR, THEO_CONF_EXP, 1, 5},
                                  {THEO_DEPTH_SQUARE, THEO_CONF_SIGMOID, 0, 1}};
    const float lowest[] = {1, 1, 0}, highest[] = {INFINITY, 5, 1};
    for (int i = 0; i < 3; i++) {
        float point[3], conf;
        theo_dust3r_activate(&rules[i], (float[]){1, 2, 2, NAN}, point, &conf);
        CHECK(isnan(conf) && isfinite(point[0]) && isfinite(point[1]) && isfinite(point[2]));
        theo_dust3r_activate(&rules[i], (float[]){1, NAN, 2, 0}, point, &conf);
        CHECK(isfinite(conf) && isnan(point[1]));
        theo_dust3r_activate(&rules[i], (float[]){0, 0, 0, -INFINITY}, point, &conf);
        CHECK(conf == lowest[i] && point[0] == 0 && point[1] == 0 && point[2] == 0);
        theo_dust3r_activate(&rules[i], (float[]){0, 0, 0, INFINITY}, point, &conf);
        CHECK(conf == highest[i]);
    }
    float point[3], conf;
    theo_dust3r_activate(&rules[0], (float[]){0, 0, 1000, 1000}, point, &conf);
    CHECK(!isfinite(point[0]) && isinf(point[2]) && isinf(conf));
}

int main(void) {
    test_containers(TINY_DUST3R("dpt"), 8);
    test_containers(TINY_DUST3R("linear"), 0);
    test_configs();
    test_refused_configs();
    test_refused_calls();
    test_activation();
    scratch_remove();
    return t_done("test_dust3r_load");
}
