/* Checkpoints of DUSt3R down to the network: whatever a file claims to be, it is refused with words, or what is loaded can be
 * planned for two views of different shape. Seeds are small files whose tensors are views of a few numbers. */
#include "models/dust3r.h"
#include "formats/weights_internal.h"
#include "fuzz.h"

static void finish(theo_plan *plan) {
    theo_error err;
    theo_status status = theo_plan_finish(plan, &err);
    if (status)
        fprintf(stderr, "%s\n", err.message);
    MUST(status == THEO_OK);
    theo_plan_free(plan);
}

static theo_plan *new_plan(void) {
    theo_plan *plan;
    theo_error err;
    MUST(theo_plan_new(&plan, THEO_CPU_C, NULL, &err) == THEO_OK);
    return plan;
}

static void check_plans(const theo_dust3r *network) {
    static const theo_dust3r_grid grids[THEO_DUST3R_VIEWS] = {{1, 3}, {2, 1}};
    theo_plan *plan = new_plan();
    theo_dust3r_encoding encoder = theo_dust3r_record_encoder(plan, network, grids[0].rows, grids[0].columns, NULL);
    MUST(encoder.out.h == 1 && encoder.out.w == 3 && encoder.out.c == network->config.enc_width);
    finish(plan);
    for (unsigned wanted = 1; wanted <= 3; wanted++) {
        plan = new_plan();
        theo_dust3r_decoding decoder = theo_dust3r_record_decoder(plan, network, grids, wanted, NULL);
        for (unsigned v = 0; v < THEO_DUST3R_VIEWS; v++)
            MUST((decoder.raw[v].id >= 0) == (wanted >> v & 1u));
        finish(plan);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    theo_weights *weights;
    theo_dust3r *network = NULL;
    theo_error err = {.status = THEO_OK};
    if (theo_weights_open_memory(&weights, data, size, "fuzz", NULL, &err))
        return 0;
    theo_status status = theo_dust3r_load(&network, weights, THEO_CPU_C, NULL, &err);
    MUST(status ? !network && err.status == status && err.message[0] : network != NULL);
    theo_weights_close(weights);
    if (network)
        check_plans(network);
    theo_dust3r_free(network);
    return 0;
}
