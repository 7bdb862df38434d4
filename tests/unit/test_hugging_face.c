/* The point counts that Hugging Face publishes for two photos, with the original weights: 568 and 830. */
#include "superpoint_fixture.h"

static const char *from_environment(const char *name, const char *fallback) {
    const char *value = getenv(name);
    return value && *value ? value : fallback;
}

int main(void) {
    char weights[1024], path[1024];
    snprintf(weights, sizeof weights, "%s/superpoint_v1.safetensors", from_environment("THEO_WEIGHTS", "../shared/weights"));
    const char *images = from_environment("THEO_IMAGES", "../shared/images");
    snprintf(path, sizeof path, "%s/coco/000000039769.png", images);
    if (access(weights, R_OK) || access(path, R_OK))
        return t_skip("test_hugging_face",
                      "superpoint_v1.safetensors (THEO_WEIGHTS) or coco/000000039769.png (THEO_IMAGES) is not there");

    theo_model *model = open_model(weights, 0);
    theo_session *session = open_session(model, 1 << 21, NULL, NULL);
    theo_model_info info;
    theo_model_get_info(model, &info);
    CHECK_STR(info.name, "superpoint");
    CHECK(strstr(info.licence, "noncommercial"));
    theo_detect_options o;
    theo_detect_options_for(&o, model);
    theo_detect_options_hf(&o);
    static const struct {
        const char *name;
        int count;
    } photos[] = {{"000000039769", 568}, {"000000004016", 830}};
    for (int i = 0; i < 2; i++) {
        theo_image *image;
        snprintf(path, sizeof path, "%s/coco/%s.png", images, photos[i].name);
        REQUIRE(theo_image_load(&image, path, NULL, &test_error));
        theo_keypoints *k = detect(session, image, &o);
        CHECK_MSG(abs(k->count - photos[i].count) <= 3, "%s: %d points, published %d", photos[i].name, k->count, photos[i].count);
        printf("%s: %d points\n", photos[i].name, k->count);
        if (!i) {
            static const float xy[] = {480, 9, 494, 9, 489, 16};
            static const float scores[] = {0.0064f, 0.0139f, 0.0591f, 0.0727f, 0.5170f, 0.0175f, 0.1526f, 0.2057f, 0.0335f};
            CHECK(!memcmp(k->xy, xy, sizeof xy));
            for (int s = 0; s < 9; s++)
                CHECK_NEAR(k->scores[s], scores[s],
                           5e-4); /* this copy of the weights has a detector head rounded to half precision */
            CHECK_NEAR(k->descriptors[0], -0.1095, 1e-4);
        }
        theo_keypoints_free(k);
        theo_image_free(image);
    }
    theo_session_close(session);
    theo_model_close(model);
    return t_done("test_hugging_face");
}
