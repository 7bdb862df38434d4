#include "models/packing.h"
#include "base/finite.h"
#include "models/scratch.h"
#include <math.h>
#include <pthread.h>
#include <string.h>

typedef struct work {
    const theo_packing *packing;
    const theo_weights *weights;
    theo_cpu level;
    theo_scratch *scratch; /* of each worker */

    pthread_mutex_t mutex;
    int failed_job; /* the first one in the list, whatever the threads' order; INT_MAX: none */
    theo_status status;
    theo_error error;
} work;

void theo_packing_add(theo_packing *p, theo_packing_job job) {
    if (p->count == p->capacity) {
        int capacity = p->capacity ? 2 * p->capacity : 256;
        theo_packing_job *jobs = theo_realloc(p->jobs, (size_t)capacity, sizeof *jobs);
        if (!jobs) {
            p->is_out_of_memory = true;
            return;
        }
        p->jobs = jobs;
        p->capacity = capacity;
    }
    p->jobs[p->count++] = job;
}

void theo_packing_free(theo_packing *p) {
    theo_free(p->jobs);
    *p = (theo_packing){0};
}

/* ---- numbers */

static theo_status check_finite(const float *values, const theo_weights *weights, const theo_weight *w, theo_error *err) {
    if (theo_all_finite(values, (size_t)w->elements))
        return THEO_OK;
    int64_t at = 0;
    while (isfinite(values[at]))
        at++;
    return theo_fail(err, THEO_STRUCTURE, theo_weights_path(weights), w->name, "element %lld is not a finite number",
                     (long long)at);
}

theo_status theo_packing_read(float *out, const theo_weights *weights, const theo_weight *w, theo_error *err) {
    THEO_TRY(theo_weight_to_f32(weights, w, out, err));
    THEO_TRY(check_finite(out, weights, w, err));
    theo_weights_release(weights, w);
    return THEO_OK;
}

static bool is_floats_already(const theo_weight *w) {
    int64_t stride = 1;
    for (int i = w->rank - 1; i >= 0; i--) {
        if (w->shape[i] > 1 && w->stride[i] != stride)
            return false;
        stride *= w->shape[i];
    }
    return w->dtype == THEO_DTYPE_F32 && (uintptr_t)w->data % sizeof(float) == 0;
}

/* ---- one job */

static theo_status no_memory(const theo_weight *w, theo_error *err) {
    return theo_fail(err, THEO_MEMORY, NULL, w->name, "out of memory while the weights are read");
}

static theo_status make_floats(const work *w, const theo_packing_job *job, theo_error *err) {
    *job->floats = theo_alloc_aligned((size_t)job->weight->elements * sizeof(float));
    if (!*job->floats)
        return no_memory(job->weight, err);
    return theo_packing_read(*job->floats, w->weights, job->weight, err);
}

/* Rows of `in` numbers: those from `from` on, times the row's scale. values may be `to` itself: what is read lies at or behind
 * what is written. */
static void fold(float *to, const float *values, int out, size_t in, const theo_packing_job *job, const float *scale) {
    size_t from = job->count ? (size_t)job->from : 0, count = job->count ? (size_t)job->count : in;
    for (size_t o = 0; o < (size_t)out; o++)
        for (size_t i = 0; i < count; i++)
            to[o * count + i] = values[o * in + from + i] * (scale ? scale[o] : 1.0f);
}

int theo_turned_row(int row, int head) {
    static const int quarters[4] = {0, 2, 1, 3};
    int quarter = head / 4, within = row % head;
    return row - within + quarters[within / quarter] * quarter + within % quarter;
}

/* Rows of `in` numbers, the first ones in the order of turned weights. */
static void turn_rows(const float *from, float *to, int rows, size_t in, const theo_packing_job *job) {
    for (int o = 0; o < rows; o++) {
        int row = o < job->turned ? theo_turned_row(o, job->head) : o;
        memcpy(to + (size_t)o * in, from + (size_t)row * in, in * sizeof *to);
    }
}

/* A weight on its way: numbers in the file where they can be used there, else in scratch. */
typedef struct layer {
    const float *weight, *bias; /* bias: NULL without one */
    int out, in;                /* in: of LINEAR, numbers of a row; of TRANSPOSED, of an input */
} layer;

/* Scratch of a job, in this order. */
typedef struct room {
    float *values;       /* [elements] unless the numbers of the file do */
    float *bias, *scale; /* [out] each */
    float *turned_bias;  /* [out] */
    float *turned;       /* [elements], of turned weights */
} room;

static bool make_room(room *r, theo_scratch *scratch, const theo_packing_job *job, int out, bool needs_values) {
    size_t elements = (size_t)job->weight->elements, n = (size_t)out;
    size_t floats = (needs_values ? elements : 0) + 3 * n + (job->turned ? elements : 0);
    float *next = theo_scratch_fit(scratch, floats * sizeof(float));
    if (!next)
        return false;
    r->values = next;
    r->bias = next + (needs_values ? elements : 0);
    r->scale = r->bias + n;
    r->turned_bias = r->scale + n;
    r->turned = r->turned_bias + n;
    return true;
}

static theo_status read_layer(layer *l, const work *w, const theo_packing_job *job, theo_scratch *scratch, theo_error *err) {
    const theo_weight *t = job->weight;
    bool is_transposed = job->kind == THEO_PACKING_TRANSPOSED, is_folded = job->scale || (job->count && !is_transposed);
    bool is_there = is_floats_already(t);
    room r;
    *l = (layer){.out = (int)t->shape[is_transposed], .in = (int)(t->elements / t->shape[0])};
    if (!make_room(&r, scratch, job, l->out, !is_there || is_folded))
        return no_memory(t, err);
    if (job->bias)
        THEO_TRY(theo_packing_read(r.bias, w->weights, job->bias, err));
    if (job->scale)
        THEO_TRY(theo_packing_read(r.scale, w->weights, job->scale, err));
    l->bias = job->bias ? r.bias : NULL;
    l->weight = is_there ? t->data : r.values;
    if (is_there)
        THEO_TRY(check_finite(l->weight, w->weights, t, err));
    else
        THEO_TRY(theo_packing_read(r.values, w->weights, t, err));
    if (is_folded) {
        fold(r.values, l->weight, l->out, (size_t)l->in, job, job->scale ? r.scale : NULL);
        l->weight = r.values;
        l->in = job->count ? job->count : l->in;
        for (int o = 0; job->scale && job->bias && o < l->out; o++)
            r.bias[o] *= r.scale[o];
    }
    if (job->turned) {
        turn_rows(l->weight, r.turned, l->out, (size_t)l->in, job);
        l->weight = r.turned;
        if (job->bias) {
            turn_rows(r.bias, r.turned_bias, l->out, 1, job);
            l->bias = r.turned_bias;
        }
    }
    return THEO_OK;
}

static theo_status make_packed(const work *w, const theo_packing_job *job, theo_scratch *scratch, theo_error *err) {
    const theo_weight *t = job->weight;
    layer l;
    THEO_TRY(read_layer(&l, w, job, scratch, err));
    int in = t->rank > 1 ? (int)t->shape[1] : 1; /* of convolutions */
    theo_status status = THEO_OK;
    switch (job->kind) {
    case THEO_PACKING_FLOATS:
        break;
    case THEO_PACKING_LINEAR:
        status = theo_packed_linear(job->packed, w->level, l.out, l.in, l.weight, l.bias, err);
        break;
    case THEO_PACKING_CONV:
        status = theo_packed_conv(job->packed, w->level, l.out, in, 3, l.weight, l.bias, err);
        break;
    case THEO_PACKING_UPSAMPLED:
        status = theo_packed_upsample2_conv(job->packed, w->level, l.out, in, l.weight, l.bias, err);
        break;
    case THEO_PACKING_GATHERED:
        status = theo_packed_conv_gathered(job->packed, w->level, l.out, in, l.weight, l.bias, err);
        break;
    case THEO_PACKING_TRANSPOSED: { /* inputs come first */
        int from = job->count ? job->from : 0, count = job->count ? job->count : (int)t->shape[0];
        status = theo_packed_conv_transpose(job->packed, w->level, count, l.out, (int)t->shape[2],
                                            l.weight + (size_t)from * (size_t)l.in, l.bias, err);
        break;
    }
    }
    theo_weights_release(w->weights, t);
    return status;
}

static void run_job(void *context, int task, int worker) {
    work *w = context;
    const theo_packing_job *job = &w->packing->jobs[task];
    theo_error error;
    theo_error_clear(&error);
    theo_status status =
        job->kind == THEO_PACKING_FLOATS ? make_floats(w, job, &error) : make_packed(w, job, &w->scratch[worker], &error);
    if (!status)
        return;
    pthread_mutex_lock(&w->mutex);
    if (task < w->failed_job) {
        w->failed_job = task;
        w->status = status;
        w->error = error;
    }
    pthread_mutex_unlock(&w->mutex);
}

/* Tensors may be views of little memory, each of any size: a small file must not ask for all of the machine's. */
static theo_status check_claims(const theo_packing *packing, const theo_weights *weights, theo_error *err) {
    enum { TIMES = 8 }; /* of the file's size */
    static const double least = 64 << 20;
    double claimed = 0, file = (double)theo_weights_file_bytes(weights);
    for (int i = 0; i < packing->count; i++)
        claimed += (double)packing->jobs[i].weight->elements * (double)sizeof(float);
    if (claimed <= least || claimed <= TIMES * file)
        return THEO_OK;
    return theo_fail(err, THEO_BOUNDS, theo_weights_path(weights), NULL,
                     "the tensors claim to be %.0f MB, the file has %.3f MB: more than %d times that is not believed",
                     claimed / 1e6, file / 1e6, TIMES);
}

theo_status theo_packing_run(const theo_packing *packing, const theo_weights *weights, theo_cpu level, theo_pool *pool,
                             theo_error *err) {
    THEO_TRY(check_claims(packing, weights, err));
    int threads = theo_pool_threads(pool);
    work w = {.packing = packing, .weights = weights, .level = level, .failed_job = packing->count};
    w.scratch = packing->is_out_of_memory ? NULL : theo_alloc((size_t)threads, sizeof *w.scratch);
    if (!w.scratch || pthread_mutex_init(&w.mutex, NULL)) {
        theo_free(w.scratch);
        return theo_fail(err, THEO_MEMORY, theo_weights_path(weights), NULL, "out of memory while the weights are read");
    }
    theo_pool_run(pool, packing->count, run_job, &w);
    for (int i = 0; i < threads; i++)
        theo_scratch_free(&w.scratch[i]);
    theo_free(w.scratch);
    pthread_mutex_destroy(&w.mutex);
    if (w.status && err)
        *err = w.error;
    return w.status;
}
