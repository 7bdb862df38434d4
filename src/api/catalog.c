#include "api/catalog.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOGE_LICENCE   "MIT (weights and code), Apache-2.0 (DINOv2)"
#define DUST3R_LICENCE "CC BY-NC-SA 4.0: not for commercial use; terms of the training sets on top"

/* Revisions are pinned where one is known to give the expected numbers. Sizes are round where publishers give round ones. */
static const theo_catalog_entry catalog[] = {
    {"superpoint", "magic-leap-community/superpoint", "734450e9ffe229074f5998494ddc615475cdb20a", "model.safetensors",
     "Magic Leap: academic or non-profit, noncommercial research use only; no redistribution", THEO_TASK_KEYPOINTS, 5210000,
     true},
    {"superpoint-open", NULL, NULL, "superpoint-open.safetensors",
     "MIT (this project; encoder and detector from MagicPoint, MIT, Copyright (c) 2022 Shao-Feng Zeng)", THEO_TASK_KEYPOINTS,
     5205676, true},
    {"moge-2-vitl-normal", "Ruicheng/moge-2-vitl-normal", NULL, "model.pt", MOGE_LICENCE, THEO_TASK_DEPTH, 1323815904, true},
    {"moge-2-vitl", "Ruicheng/moge-2-vitl", NULL, "model.pt", MOGE_LICENCE, THEO_TASK_DEPTH, 1305000000, true},
    {"moge-2-vitb-normal", "Ruicheng/moge-2-vitb-normal", NULL, "model.pt", MOGE_LICENCE, THEO_TASK_DEPTH, 419110160, true},
    {"moge-2-vits-normal", "Ruicheng/moge-2-vits-normal", NULL, "model.pt", MOGE_LICENCE, THEO_TASK_DEPTH, 140550416, true},
    {"moge-vitl", "Ruicheng/moge-vitl", NULL, "model.pt", MOGE_LICENCE, THEO_TASK_DEPTH, 1257000000, true},
    {"dust3r", "naver/DUSt3R_ViTLarge_BaseDecoder_512_dpt", "61c57447d7b0adc8a1a30b2b0adec7a8935aa2a3", "model.safetensors",
     DUST3R_LICENCE, THEO_TASK_PAIR, 2284684832, true},
    {"dust3r-512-linear", "naver/DUSt3R_ViTLarge_BaseDecoder_512_linear", NULL, "model.safetensors", DUST3R_LICENCE,
     THEO_TASK_PAIR, 2129371136, true},
    {"dust3r-224-linear", "naver/DUSt3R_ViTLarge_BaseDecoder_224_linear", NULL, "model.safetensors", DUST3R_LICENCE,
     THEO_TASK_PAIR, 2129371136, true},
};
enum { ENTRIES = sizeof catalog / sizeof *catalog };

static const char *const extensions[] = {".safetensors", ".pt", ".pth"};
enum { EXTENSIONS = sizeof extensions / sizeof *extensions, PATH_BYTES = 4096 };

const theo_catalog_entry *theo_catalog(int index) {
    return index >= 0 && index < ENTRIES ? &catalog[index] : NULL;
}

const theo_catalog_entry *theo_catalog_find(const char *name) {
    for (int i = 0; i < ENTRIES; i++)
        if (!strcmp(catalog[i].name, name))
            return &catalog[i];
    return NULL;
}

/* ---------------------------------------------------------------- files */

static bool is_file(const char *path) {
    struct stat s;
    return !stat(path, &s) && S_ISREG(s.st_mode);
}

static bool is_folder(const char *path) {
    struct stat s;
    return !stat(path, &s) && S_ISDIR(s.st_mode);
}

/* False also for a path that was cut. */
static bool __attribute__((format(printf, 3, 4))) file_at(char *path, size_t capacity, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(path, capacity, format, arguments);
    va_end(arguments);
    return length >= 0 && (size_t)length < capacity && is_file(path);
}

bool theo_catalog_file_in(char *path, size_t capacity, const char *folder) {
    for (int i = 0; i < EXTENSIONS; i++)
        if (file_at(path, capacity, "%s/model%s", folder, extensions[i]))
            return true;
    return false;
}

bool theo_catalog_is_path(const char *text) {
    size_t length = strlen(text);
    for (int i = 0; i < EXTENSIONS; i++) {
        size_t n = strlen(extensions[i]);
        if (length > n && !strcmp(text + length - n, extensions[i]))
            return true;
    }
    return strchr(text, '/') || (!theo_catalog_find(text) && !access(text, F_OK));
}

/* ---------------------------------------------------------------- the places, in their order */

/* A folder of models holds NAME.safetensors, NAME.pt, NAME.pth or NAME/. */
static bool in_folder(char *path, size_t capacity, const char *folder, const theo_catalog_entry *e) {
    char inner[PATH_BYTES];
    for (int i = 0; i < EXTENSIONS; i++)
        if (file_at(path, capacity, "%s/%s%s", folder, e->name, extensions[i]))
            return true;
    int length = snprintf(inner, sizeof inner, "%s/%s", folder, e->name);
    return length > 0 && (size_t)length < sizeof inner && is_folder(inner) &&
           (theo_catalog_file_in(path, capacity, inner) || file_at(path, capacity, "%s/%s", inner, e->file));
}

static bool in_environment(char *path, size_t capacity, const theo_catalog_entry *e) {
    const char *list = getenv("THEO_MODELS");
    char folder[PATH_BYTES];
    while (list && *list) {
        size_t length = strcspn(list, ":");
        if (length && length < sizeof folder) {
            memcpy(folder, list, length);
            folder[length] = 0;
            if (in_folder(path, capacity, folder, e))
                return true;
        }
        list += length + (list[length] == ':');
    }
    return false;
}

/* Beside the library that runs: PREFIX/lib/libtheo.so (or one folder deeper, as Debian has it) with
 * PREFIX/share/theodolite/models. A library in the build folder of a source tree finds the tree's models/; the tree is known by
 * its public header. */
static bool beside_library(char *path, size_t capacity, const theo_catalog_entry *e) {
    enum { LEVELS = 5 };
    Dl_info self;
    char folder[PATH_BYTES], candidate[PATH_BYTES + 64];
    if (!dladdr((const void *)&catalog, &self) || !self.dli_fname || !realpath(self.dli_fname, folder))
        return false;
    for (int level = 0; level < LEVELS; level++) {
        char *slash = strrchr(folder, '/');
        if (!slash || slash == folder)
            return false;
        *slash = 0;
        snprintf(candidate, sizeof candidate, "%s/share/theodolite/models", folder);
        if (in_folder(path, capacity, candidate, e))
            return true;
        snprintf(candidate, sizeof candidate, "%s/models", folder);
        char header[PATH_BYTES];
        if (file_at(header, sizeof header, "%s/include/theo/theo.h", folder) && in_folder(path, capacity, candidate, e))
            return true;
    }
    return false;
}

/* The cache of huggingface_hub: models--OWNER--NAME/snapshots/REVISION/FILE, with refs/main naming the newest revision fetched.
 */
static bool in_hub(char *path, size_t capacity, const char *hub, const theo_catalog_entry *e) {
    char repo[PATH_BYTES], revision[128] = "";
    const char *slash = e->repo ? strchr(e->repo, '/') : NULL;
    if (!slash)
        return false;
    int length = snprintf(repo, sizeof repo, "%s/models--%.*s--%s", hub, (int)(slash - e->repo), e->repo, slash + 1);
    if (length < 0 || (size_t)length >= sizeof repo)
        return false;
    if (e->revision && file_at(path, capacity, "%s/snapshots/%s/%s", repo, e->revision, e->file))
        return true;
    if (!file_at(path, capacity, "%s/refs/main", repo))
        return false;
    FILE *f = fopen(path, "re");
    bool read = f && fgets(revision, sizeof revision, f);
    if (f)
        fclose(f);
    revision[strcspn(revision, "\r\n")] = 0;
    return read && *revision && !strchr(revision, '/') && file_at(path, capacity, "%s/snapshots/%s/%s", repo, revision, e->file);
}

static bool in_hub_cache(char *path, size_t capacity, const theo_catalog_entry *e) {
    const char *cache = getenv("HF_HUB_CACHE"), *home = getenv("HF_HOME"), *user = getenv("HOME");
    char hub[PATH_BYTES];
    if (cache && *cache)
        return in_hub(path, capacity, cache, e);
    if (home && *home)
        snprintf(hub, sizeof hub, "%s/hub", home);
    else if (user && *user)
        snprintf(hub, sizeof hub, "%s/.cache/huggingface/hub", user);
    else
        return false;
    return in_hub(path, capacity, hub, e);
}

static theo_status unknown_name(const char *name, theo_error *err) {
    char names[512];
    size_t at = 0;
    for (int i = 0; i < ENTRIES; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", catalog[i].name);
    return theo_fail(err, THEO_MISSING, NULL, name, "is neither a file nor a model that is known by name (known: %s)", names);
}

theo_status theo_model_find(const char *name, char *path, size_t capacity, theo_error *err) {
    if (!name || !path || !capacity)
        return theo_fail(err, THEO_ARGUMENT, NULL, "name", "name and path must be given");
    *path = 0;
    const theo_catalog_entry *e = theo_catalog_find(name);
    if (!e)
        return unknown_name(name, err);
    if (in_environment(path, capacity, e) || beside_library(path, capacity, e) ||
        in_folder(path, capacity, THEO_MODEL_FOLDER, e) || in_hub_cache(path, capacity, e))
        return THEO_OK;
    *path = 0;
    if (!e->repo)
        return theo_fail(err, THEO_MISSING, NULL, name,
                         "this model comes with the program and was not found: name its folder in THEO_MODELS, or install again");
    return theo_fail(err, THEO_MISSING, NULL, name,
                     "is not on this machine. Get it (%.1f MB) with: huggingface-cli download %s %s; or put the file as %s%s "
                     "into a folder named in "
                     "THEO_MODELS. Licence: %s",
                     (double)e->bytes / 1e6, e->repo, e->file, name, strrchr(e->file, '.'), e->licence);
}
