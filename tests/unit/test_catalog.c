/* Models by name: the places and their order, and what is said when nothing is found. */
#include "superpoint_fixture.h"
#include <errno.h>
#include <sys/stat.h>

static char root[64];

static void place(const char *relative, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", root, relative);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        if (mkdir(path, 0700) && errno != EEXIST)
            perror(path);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

static bool found_at(const char *name, const char *relative) {
    char path[4096], want[512];
    snprintf(want, sizeof want, "%s/%s", root, relative);
    bool found = theo_model_find(name, path, sizeof path, &test_error) == THEO_OK && !strcmp(path, want);
    if (!found)
        fprintf(stderr, "%s: %s (%s)\n", name, path, test_error.message);
    return found;
}

int main(void) {
    snprintf(root, sizeof root, "/tmp/theo-test-%ld-XXXXXX", (long)getpid());
    if (!mkdtemp(root))
        return t_skip("test_catalog", "no temporary folder");
    char value[600], path[4096];
    unsetenv("THEO_MODELS");
    setenv("HF_HUB_CACHE", root, 1);

    int entries = 0, supported = 0;
    for (const theo_catalog_entry *e; (e = theo_catalog(entries)); entries++) {
        supported += e->is_supported;
        CHECK(e->name && e->file && e->licence && e->bytes > 1000000);
    }
    CHECK(entries >= 10 && supported >= 2 && !theo_catalog(-1));

    CHECK(theo_model_find("superpoint", path, sizeof path, &test_error) == THEO_MISSING);
    CHECK(strstr(test_error.message, "magic-leap-community/superpoint") && strstr(test_error.message, "5.2 MB") &&
          strstr(test_error.message, "noncommercial") && strstr(test_error.message, "THEO_MODELS"));
    CHECK(theo_model_find("superpiont", path, sizeof path, &test_error) == THEO_MISSING &&
          strstr(test_error.message, "superpoint-open"));
    CHECK(theo_model_find("superpoint-open", path, sizeof path, &test_error) == THEO_OK); /* the tree's own */

    /* The cache: refs/main first, the pinned revision before it. */
    place("models--magic-leap-community--superpoint/refs/main", "abc123\n");
    place("models--magic-leap-community--superpoint/snapshots/abc123/model.safetensors", "x");
    CHECK(found_at("superpoint", "models--magic-leap-community--superpoint/snapshots/abc123/model.safetensors"));
    const char *pinned =
        "models--magic-leap-community--superpoint/snapshots/734450e9ffe229074f5998494ddc615475cdb20a/model.safetensors";
    place(pinned, "x");
    CHECK(found_at("superpoint", pinned));
    unsetenv("HF_HUB_CACHE");
    snprintf(value, sizeof value, "%s/home", root);
    setenv("HF_HOME", value, 1);
    CHECK(theo_model_find("superpoint", path, sizeof path, &test_error) == THEO_MISSING);
    place("home/hub/models--magic-leap-community--superpoint/refs/main", "../../../..");
    CHECK(theo_model_find("superpoint", path, sizeof path, &test_error) == THEO_MISSING); /* a revision is no path */

    /* THEO_MODELS wins over everything, its folders in their order. */
    snprintf(value, sizeof value, "/nonexistent::%s/b:%s/a", root, root);
    setenv("THEO_MODELS", value, 1);
    place("a/superpoint.safetensors", "x");
    place("a/superpoint-open.safetensors", "x");
    CHECK(found_at("superpoint", "a/superpoint.safetensors"));
    CHECK(found_at("superpoint-open", "a/superpoint-open.safetensors"));
    place("b/superpoint/model.pth", "x");
    CHECK(found_at("superpoint", "b/superpoint/model.pth"));
    place("b/superpoint.pt", "x");
    CHECK(found_at("superpoint", "b/superpoint.pt"));

    /* A path is what has a slash, a known ending, or exists. */
    theo_model *model;
    snprintf(path, sizeof path, "%s/a/superpoint.safetensors", root);
    CHECK(theo_model_open(&model, path, NULL, &test_error) == THEO_CONTAINER);
    CHECK(theo_model_open(&model, "absent.pth", NULL, &test_error) == THEO_MISSING && strstr(test_error.message, "absent.pth"));
    CHECK(theo_model_open(&model, "models", NULL, &test_error) == THEO_MISSING); /* a folder, without model.* in it */
    unsetenv("THEO_MODELS");
    REQUIRE(theo_model_open(&model, "superpoint-open", NULL, &test_error));
    theo_model_info info;
    theo_model_get_info(model, &info);
    CHECK_STR(info.name, "superpoint-open");
    CHECK(strstr(info.licence, "MIT") && info.descriptor_dim == 256 && info.load_ms > 0 && info.threads >= 1);
    theo_model_close(model);

    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command) || t_done("test_catalog");
}
