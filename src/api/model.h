/* model.h - what is behind theo_model and theo_session. */
#ifndef THEO_API_MODEL_H
#define THEO_API_MODEL_H

#include "api/results.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/pool.h"
#include "models/superpoint_run.h"
#include <stdatomic.h>

/* Immutable from the end of theo_model_open. */
struct theo_model {
    atomic_int holders;
    theo_pool *pool;
    theo_cpu level;
    theo_logger logger;
    theo_superpoint *superpoint;
    theo_model_info info; /* its name, path and source are this model's own */
};

theo_model *theo_model_retain(theo_model *model); /* one more holder; theo_model_close gives it up */

struct theo_session {
    theo_model *model;
    atomic_bool is_busy;
    theo_superpoint_runner *runner;
    theo_results *results;
};

/* Begins a call: THEO_BUSY if another one is under way. */
theo_status theo_session_enter(theo_session *session, theo_error *err);
void theo_session_leave(theo_session *session);

#endif
