/* Checkpoints of MoGe down to the network: whatever a file claims to be, it is refused with words, or what is loaded can be
 * planned. Seeds are small files whose tensors are views of a few numbers. */
#include "models/moge.h"
#include "formats/weights_internal.h"
#include "fuzz.h"

static void check_plan(const theo_moge *network) {
    theo_plan *plan;
    theo_error err;
    theo_moge_grid grid = theo_moge_grid_of(network->generation, 40, 30, 6);
    MUST(theo_plan_new(&plan, THEO_CPU_C, NULL, &err) == THEO_OK);
    theo_moge_net net = theo_moge_record(plan, network, &grid, ~0u, NULL);
    theo_status status = theo_plan_finish(plan, &err);
    if (status)
        fprintf(stderr, "%s\n", err.message);
    MUST(status == THEO_OK);
    MUST(net.maps[THEO_MOGE_POINTS].tensor.id >= 0 && net.maps[THEO_MOGE_POINTS].channels == 3);
    theo_plan_free(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    theo_weights *weights;
    theo_moge *network = NULL;
    theo_error err = {.status = THEO_OK};
    if (theo_weights_open_memory(&weights, data, size, "fuzz", NULL, &err))
        return 0;
    theo_status status = theo_moge_load(&network, weights, THEO_CPU_C, NULL, &err);
    MUST(status ? !network && err.status == status && err.message[0] : network != NULL);
    theo_weights_close(weights);
    if (network)
        check_plan(network);
    theo_moge_free(network);
    return 0;
}
