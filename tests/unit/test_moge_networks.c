/* Networks of MoGe besides the published second generation: MoGe-1, and decoders with norms and other activations. The same bits
 * on any number of threads, no allocation in a steady session; and what cannot be done is refused with the name of the setting.
 */
#include "models/moge1_config.h"
#include "models/moge2_config.h"
#include "require.h"
#include "t.h"
#include <string.h>
#include <theo/depth.h>
#include <theo/image.h>
#include <theo/inspect.h>
#include <unistd.h>

/* ---- small networks */

#define BACKBONE "\"dim\": 64, \"depth\": 2, \"mlp\": 128, \"table\": 7"

static const char one[] =
    "{" BACKBONE
    ", \"model_config\": {\"encoder\": \"test\", \"intermediate_layers\": 2, \"dim_proj\": 32, \"dim_upsample\": [32, "
    "16], \"dim_times_res_block_hidden\": 2, \"num_res_blocks\": 1, \"remap_output\": \"exp\"}}";

#define STACK(in_norm, hidden_norm, activation)                                                                                  \
    "\"dim_res_blocks\": [32, 32, 16, 16, 16], \"num_res_blocks\": [1, 1, 0, 1, 0], \"dim_times_res_block_hidden\": 2, "         \
    "\"resamplers\": [\"conv_transpose\", \"bilinear\", \"conv_transpose\", \"bilinear\"], \"res_block_in_norm\": \"" in_norm    \
    "\", \"res_block_hidden_norm\": \"" hidden_norm "\", \"activation\": \"" activation "\""
#define HEAD(stack, channels) "{" stack ", \"dim_in\": [32, 32, 16, 16, 16], \"dim_out\": [null, null, null, null, " channels "]}"

static const char two[] =
    "{" BACKBONE ", \"model_config\": {\"encoder\": {\"backbone\": \"test\", \"intermediate_layers\": 1, \"dim_out\": 32}, "
    "\"neck\": {" STACK("layer_norm", "group_norm",
                        "silu") ", \"dim_in\": [34, 2, 2, 2, 2]}, "
                                "\"points_head\": " HEAD(STACK("instance_norm", "none", "elu"), "3") ", \"mask_head\": " HEAD(
                                    STACK("none", "layer_norm", "leaky_relu"), "1") ", \"remap_output\": \"sinh_exp\"}}";

static theo_geometry *run(const char *checkpoint, int threads, theo_depth_fit fit) {
    theo_model *model;
    theo_session *session;
    theo_image *image;
    theo_geometry *geometry;
    theo_model_options m;
    theo_model_options_init(&m);
    m.threads = threads;
    REQUIRE(theo_model_open(&model, checkpoint, &m, &test_error));
    REQUIRE(theo_session_open(&session, model, NULL, &test_error));
    REQUIRE(theo_image_new(&image, 71, 50, 3, THEO_U8, &test_error));
    for (int i = 0; i < 71 * 50 * 3; i++)
        ((uint8_t *)theo_image_pixels(image))[i] = (uint8_t)((uint32_t)i * 2654435761u >> 24);
    theo_geometry_options o;
    theo_geometry_options_init(&o);
    o.tokens = 24;
    o.fit = fit;
    o.apply_mask = false;
    REQUIRE(theo_geometry_run(session, image, &o, &geometry, &test_error));
    theo_geometry *again;
    uint64_t before = theo_allocation_count();
    REQUIRE(theo_geometry_run(session, image, &o, &again, &test_error));
    uint64_t second = theo_allocation_count() - before;
    theo_geometry_free(again);
    before = theo_allocation_count();
    REQUIRE(theo_geometry_run(session, image, &o, &again, &test_error));
    CHECK_MSG(theo_allocation_count() - before < second, "a third call allocates as much as the second");
    theo_geometry_free(again);
    theo_image_free(image);
    theo_session_close(session);
    theo_model_close(model);
    return geometry;
}

static void test_network(const char *name, const char *config, bool is_metric, bool has_normal) {
    char checkpoint[64];
    snprintf(checkpoint, sizeof checkpoint, "/tmp/theo-moge-%d.pt", (int)getpid());
    REQUIRE(theo_synthesize(name, config, checkpoint, &test_error));
    for (theo_depth_fit fit = THEO_DEPTH_NATIVE; fit <= THEO_DEPTH_PAD; fit++) {
        theo_geometry *first = run(checkpoint, 1, fit);
        size_t pixels = (size_t)first->width * (size_t)first->height;
        CHECK(first->is_metric == is_metric && first->network_is_metric == is_metric && !first->normal == !has_normal);
        for (size_t i = 0; i < 3 * pixels; i++)
            CHECK(isfinite(first->points[i]));
        for (int threads = 2; threads <= 3; threads++) {
            theo_geometry *other = run(checkpoint, threads, fit);
            CHECK(!memcmp(first->points, other->points, 3 * pixels * sizeof(float)));
            CHECK(!memcmp(first->mask, other->mask, pixels) && first->focal == other->focal && first->shift == other->shift);
            theo_geometry_free(other);
        }
        theo_geometry_free(first);
    }
    unlink(checkpoint);
}

/* ---- configurations that are refused */

typedef struct refusal {
    const char *text;
    theo_status status;
    const char *place, *words;
} refusal;

#define TWO(neck) "{\"encoder\": {\"intermediate_layers\": [0], \"dim_out\": 64}, \"neck\": {" neck "}}"
#define IN        "\"dim_in\": [66, 2, 2, 2, 2], \"dim_res_blocks\": 32"

static void test_refusals_of_two(void) {
    static const refusal refusals[] = {
        {TWO(IN ", \"resamplers\": \"nearest\""), THEO_UNSUPPORTED, "neck.resamplers", "nearest"},
        {TWO(IN ", \"resamplers\": \"bilinear\", \"activation\": \"gelu\""), THEO_UNSUPPORTED, "neck.activation", "gelu"},
        {TWO(IN ", \"resamplers\": \"bilinear\", \"res_block_in_norm\": \"batch_norm\""), THEO_UNSUPPORTED,
         "neck.res_block_in_norm", "batch_norm"},
        {TWO("\"dim_in\": [66, null, 2, 2, 2], \"dim_res_blocks\": 32"), THEO_UNSUPPORTED, "neck.dim_in", "null"},
        {TWO("\"dim_in\": [66, 2, 2, 2], \"dim_res_blocks\": 32"), THEO_STRUCTURE, "neck.dim_in", "list of five"},
        {TWO(IN), THEO_STRUCTURE, "neck.resamplers", "list of four"},
        {"{\"encoder\": {\"intermediate_layers\": [3], \"dim_out\": 64}}", THEO_STRUCTURE, "encoder.intermediate_layers",
         "0 to 1"},
        {"{\"encoder\": {\"intermediate_layers\": 3, \"dim_out\": 64}}", THEO_STRUCTURE, "encoder.intermediate_layers", "1 to 2"},
        {"{}", THEO_STRUCTURE, "encoder.intermediate_layers", "list"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        theo_moge2_config config;
        theo_moge_config common;
        theo_error err = {0};
        theo_status status = theo_moge2_config_parse(&config, &common, refusals[i].text, 2, "file", &err);
        CHECK_MSG(status == refusals[i].status && strstr(err.place, refusals[i].place) && strstr(err.message, refusals[i].words),
                  "%s: %s", refusals[i].text, err.message);
    }
}

#define ONE(more) "{\"intermediate_layers\": 1, \"dim_upsample\": [64, 32]" more "}"

static void test_refusals_of_one(void) {
    static const refusal refusals[] = {
        {ONE(", \"last_res_blocks\": 1"), THEO_UNSUPPORTED, "last_res_blocks", "allowed is 0"},
        {ONE(", \"last_conv_size\": 3"), THEO_UNSUPPORTED, "last_conv_size", "allowed is 1"},
        {ONE(", \"res_block_norm\": \"none\""), THEO_UNSUPPORTED, "res_block_norm", "none"},
        {ONE(", \"remap_output\": \"tanh\""), THEO_UNSUPPORTED, "remap_output", "tanh"},
        {ONE(", \"trained_area_range\": [250000]"), THEO_STRUCTURE, "trained_area_range", "two"},
        {ONE(", \"num_tokens_range\": [2500, 1200]"), THEO_STRUCTURE, "num_tokens_range", "2500 to"},
        {"{\"intermediate_layers\": 1, \"dim_upsample\": []}", THEO_STRUCTURE, "dim_upsample", "one to six"},
        {"{\"intermediate_layers\": 1}", THEO_STRUCTURE, "dim_upsample", "one to six"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        theo_moge1_config config;
        theo_moge_config common;
        theo_error err = {0};
        theo_status status = theo_moge1_config_parse(&config, &common, refusals[i].text, 2, "file", &err);
        CHECK_MSG(status == refusals[i].status && strstr(err.place, refusals[i].place) && strstr(err.message, refusals[i].words),
                  "%s: %s", refusals[i].text, err.message);
    }
}

/* What the older form of a configuration, and its defaults, mean. */
static void test_defaults_of_one(void) {
    theo_moge1_config config;
    theo_moge_config common;
    static const char text[] = ONE(", \"trained_area_range\": [250000, 500000], \"split_head\": true, \"output_mask\": true");
    REQUIRE(theo_moge1_config_parse(&config, &common, text, 4, "file", &test_error));
    CHECK(common.min_tokens == 1275 && common.max_tokens == 2551 && common.features == 512 && common.tap_count == 1 &&
          common.taps[0] == 3 && common.remap == THEO_MOGE_REMAP_LINEAR);
    CHECK(config.stages == 2 && config.width[0] == 64 && config.width[1] == 32 && config.hidden == 1 && config.blocks == 1 &&
          config.is_hidden_grouped && config.last_channels == 32);
}

/* ---- checkpoints that are refused */

static void refuse(const char *name, const char *config, theo_status wanted, const char *words) {
    char checkpoint[64];
    theo_model *model;
    theo_error err = {0};
    snprintf(checkpoint, sizeof checkpoint, "/tmp/theo-moge-%d.safetensors", (int)getpid());
    REQUIRE(theo_synthesize(name, config, checkpoint, &test_error));
    theo_status status = theo_model_open(&model, checkpoint, NULL, &err);
    CHECK_MSG(status == wanted && strstr(err.message, words), "%s", err.message);
    unlink(checkpoint);
}

static void test_refused_networks(void) {
    refuse("moge-vitl",
           "{" BACKBONE ", \"model_config\": {\"intermediate_layers\": 1, \"dim_proj\": 16, \"dim_upsample\": [16], "
           "\"num_res_blocks\": 1}}",
           THEO_STRUCTURE, "stage 0: 16 channels cannot be cut");
    refuse("moge-vitl",
           "{" BACKBONE ", \"model_config\": {\"intermediate_layers\": 1, \"dim_proj\": 16, \"dim_upsample\": [4], "
           "\"num_res_blocks\": 0}}",
           THEO_STRUCTURE, "at least 8 are needed");
}

int main(void) {
    test_network("moge-vitl", one, false, false);
    test_network("moge-2-vits-normal", two, false, false);
    test_refusals_of_two();
    test_refusals_of_one();
    test_defaults_of_one();
    test_refused_networks();
    return t_done("test_moge_networks");
}
