/* model.h - what is behind theo_model and theo_session. */
#ifndef THEO_API_MODEL_H
#define THEO_API_MODEL_H

#include "api/results.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/pool.h"
#include "formats/weights.h"
#include "models/dust3r_run.h"
#include "models/moge_run.h"
#include "models/superpoint_run.h"
#include <pthread.h>
#include <stdatomic.h>

enum { THEO_KIND_PLANS = 2 }; /* of one result, at most */

/* What the library must know of a kind of network to open models and sessions: one table each, beside the calls of its own. */
typedef struct theo_kind {
    theo_task task;
    /* How many tensors of the file carry names of this kind. */
    int (*recognise)(const theo_weights *weights);
    /* Fills the model's network, and of its info: kind, licence, config_json, parameters, weight_bytes, descriptor_dim, input
     * size. Returns in *name (static, or NULL) what the numbers in the file are known as. */
    theo_status (*load)(theo_model *model, const theo_weights *weights, const theo_model_options *options, const char **name,
                        theo_error *err);
    void (*unload)(theo_model *model);
    theo_status (*open)(theo_session *session, const theo_session_options *options, theo_error *err);
    void (*close)(theo_session *session);
    /* The plans, *count of them, for a photo, or network input, of that size. */
    theo_status (*prepare)(theo_session *session, int width, int height, int tokens, theo_plan_part parts[THEO_KIND_PLANS],
                           int *count, theo_error *err);
    theo_status (*memory)(theo_session *session, int width, int height, int tokens, size_t *bytes, theo_error *err);
} theo_kind;

extern const theo_kind theo_kind_superpoint, theo_kind_moge, theo_kind_dust3r;

/* Immutable from the end of theo_model_open. */
struct theo_model {
    atomic_int holders;
    theo_pool *pool;
    theo_cpu level;
    theo_logger logger;
    const theo_kind *kind;
    union { /* of `kind` */
        theo_superpoint *superpoint;
        theo_moge *moge;
        theo_dust3r *dust3r;
    };
    theo_model_info info; /* its name, path and source are this model's own */
};

theo_model *theo_model_retain(theo_model *model); /* one more holder; theo_model_close gives it up */

struct theo_session {
    theo_model *model;
    atomic_bool is_busy;
    theo_progress_fn progress; /* MoGe: the caller's; may be NULL */
    void *progress_user;
    pthread_mutex_t callers; /* held while a function of the caller's runs */
    union {                  /* of the model's kind */
        theo_superpoint_runner *superpoint;
        theo_moge_runner *moge;
        struct theo_pair_state *pair; /* api/pair.h */
    };
    theo_results *results;
};

/* Begins a call: THEO_BUSY if another one is under way. The second form also wants a model for that task. */
theo_status theo_session_enter(theo_session *session, theo_error *err);
theo_status theo_session_enter_for(theo_session *session, theo_task task, theo_error *err);
void theo_session_leave(theo_session *session);

#endif
