#include "api/model.h"
#include "api/catalog.h"
#include "api/options.h"
#include "base/clock.h"
#include "kernels/kernels.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096 };

static theo_status check(const theo_model_options *o, theo_error *err) {
    if (!o->pool && (o->threads < 0 || o->threads > 256))
        return theo_fail(err, THEO_ARGUMENT, NULL, "threads", "%d is out of range: allowed is 0 (all allowed cores) to 256",
                         o->threads);
    if (o->precision && strcmp(o->precision, "fp32"))
        return theo_fail(err, THEO_UNSUPPORTED, NULL, "precision", "\"%s\" is not supported by this version: allowed is fp32",
                         o->precision);
    return THEO_OK;
}

/* The file that a name, file or folder stands for. */
static theo_status locate(char path[PATH_BYTES], const char *text, theo_error *err) {
    struct stat s;
    if (!theo_catalog_is_path(text))
        return theo_model_find(text, path, PATH_BYTES, err);
    if (!stat(text, &s) && S_ISDIR(s.st_mode)) {
        if (theo_catalog_file_in(path, PATH_BYTES, text))
            return THEO_OK;
        return theo_fail(err, THEO_MISSING, text, NULL, "this folder holds no model.safetensors, model.pt or model.pth");
    }
    if (snprintf(path, PATH_BYTES, "%s", text) >= PATH_BYTES)
        return theo_fail(err, THEO_ARGUMENT, NULL, "model", "the path is longer than %d bytes", PATH_BYTES - 1);
    return THEO_OK;
}

/* "dir/net.pth" -> "net"; a file called model.* goes by its folder. */
static char *stem_of(const char *path) {
    char text[PATH_BYTES];
    snprintf(text, sizeof text, "%s", path);
    for (int turn = 0;; turn++) {
        char *slash = strrchr(text, '/'), *name = slash ? slash + 1 : text, *dot = strrchr(name, '.');
        if (dot && dot != name && !turn)
            *dot = 0;
        if (strcmp(name, "model") || !slash || slash == text || turn)
            return theo_strdup(name);
        *slash = 0;
    }
}

/* The rest of the model's info. known: what the file's numbers are known as, or NULL. */
static theo_status describe(theo_model *m, const char *text, const theo_weights *weights, const char *known, theo_error *err) {
    theo_model_info *info = &m->info;
    const char *name = theo_catalog_is_path(text) ? known : text;
    info->name = name ? theo_strdup(name) : stem_of(theo_weights_path(weights));
    info->path = theo_strdup(theo_weights_path(weights));
    info->source = theo_strdup(theo_weights_source(weights));
    if (!info->name || !info->path || !info->source)
        return theo_fail(err, THEO_MEMORY, NULL, "model", "out of memory");
    info->task = m->kind->task;
    info->precision = "fp32";
    info->isa = theo_cpu_name(theo_kernels_for(m->level)->level);
    info->threads = theo_pool_threads(m->pool);
    info->file_bytes = theo_weights_file_bytes(weights);
    return THEO_OK;
}

/* The kind whose names most of the file's tensors carry. */
static const theo_kind *kind_of(const theo_weights *weights) {
    static const theo_kind *const kinds[] = {&theo_kind_superpoint, &theo_kind_moge, &theo_kind_dust3r};
    const theo_kind *best = NULL;
    int most = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int count = kinds[i]->recognise(weights);
        if (count > most) {
            most = count;
            best = kinds[i];
        }
    }
    return best;
}

static theo_status load_network(theo_model *m, const char *text, const theo_weights *weights, const theo_model_options *o,
                                theo_error *err) {
    const char *known;
    const theo_kind *kind = kind_of(weights);
    if (!kind)
        return theo_fail(err, THEO_STRUCTURE, theo_weights_path(weights), NULL,
                         "its tensors carry no names of a network that this program knows: SuperPoint (such as conv1a.weight or "
                         "encoder.conv_blocks.0.conv_a.weight), MoGe (such as encoder.backbone.cls_token) or DUSt3R (such as "
                         "dec_blocks.0.cross_attn.projq.weight)");
    THEO_TRY(kind->load(m, weights, o, &known, err));
    m->kind = kind;
    return describe(m, text, weights, known, err);
}

static theo_status load(theo_model *m, const char *text, const theo_model_options *o, theo_error *err) {
    char path[PATH_BYTES];
    THEO_TRY(locate(path, text, err));
    if (o->pool)
        m->pool = theo_pool_retain(o->pool);
    else
        THEO_TRY(theo_pool_open(&m->pool, o->threads, err));
    m->level = theo_cpu_level_in_use();
    m->logger = (theo_logger){o->log, o->log_user};
    const char *cap = getenv("THEO_CPU");
    if (cap && *cap && !theo_cpu_is_level(cap))
        theo_log(m->logger, THEO_LOG_WARNING,
                 "THEO_CPU=%s caps nothing: it names no level (c, avx2, avx512, vnni, bf16, neon or dotprod)", cap);

    theo_weights *weights;
    theo_weights_options options = {.verify_checksums = o->verify_checksums, .pool = m->pool};
    THEO_TRY(theo_weights_open(&weights, path, &options, err));
    theo_status status = load_network(m, text, weights, o, err);
    theo_weights_close(weights);
    return status;
}

theo_status theo_model_open(theo_model **model, const char *name_or_path, const theo_model_options *options, theo_error *err) {
    if (!model)
        return theo_fail(err, THEO_ARGUMENT, NULL, "model", "is NULL");
    *model = NULL;
    if (!name_or_path || !*name_or_path)
        return theo_fail(err, THEO_ARGUMENT, NULL, "model", "no name or path is given");
    theo_model_options o;
    theo_model_options_init(&o);
    THEO_TRY(theo_options_take(&o, sizeof o, options, "theo_model_options", err));
    THEO_TRY(check(&o, err));

    double start = theo_clock_ms();
    theo_model *m = theo_alloc(1, sizeof *m);
    if (!m)
        return theo_fail(err, THEO_MEMORY, NULL, "model", "out of memory");
    atomic_init(&m->holders, 1);
    theo_status status = load(m, name_or_path, &o, err);
    if (status) {
        theo_model_close(m);
        return status;
    }
    m->info.load_ms = theo_clock_ms() - start;
    theo_log(m->logger, THEO_LOG_INFO, "%s: %s, %lld parameters, %s, loaded in %.1f ms", m->info.path, m->info.kind,
             (long long)m->info.parameters, m->info.isa, m->info.load_ms);
    *model = m;
    return THEO_OK;
}

theo_model *theo_model_retain(theo_model *m) {
    atomic_fetch_add_explicit(&m->holders, 1, memory_order_relaxed);
    return m;
}

void theo_model_close(theo_model *m) {
    if (!m || atomic_fetch_sub_explicit(&m->holders, 1, memory_order_acq_rel) != 1)
        return;
    if (m->kind)
        m->kind->unload(m);
    theo_pool_close(m->pool);
    theo_free((void *)(uintptr_t)m->info.name);
    theo_free((void *)(uintptr_t)m->info.path);
    theo_free((void *)(uintptr_t)m->info.source);
    theo_free(m);
}

void theo_model_get_info(const theo_model *model, theo_model_info *info) {
    *info = model->info;
}
