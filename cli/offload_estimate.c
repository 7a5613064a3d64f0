#include "cli/offload_estimate.h"

#include "models/cost.h"
#include "schedule/ir.h"
#include "schedule/pipeline/pipeline.h"

/* Seconds of the forward kernels in layers, of the first role. */
static double forward_s(const struct ir *ir, const struct setup *setup,
                        const struct choices *choices)
{
    const struct device_cost *cost = &setup->cost;
    double seconds = 0;
    for (uint32_t k = 0; ir->role_count > 0 && k < ir->role[0].op_count; k++) {
        uint32_t op = ir->role[0].op_begin + k;
        const struct work *work = ir_work(ir, op);
        bool kernel = ir->stream[ir->op.stream[op]].stream_class == STREAM_COMPUTE &&
                      work_kind_info(work->kind)->stream == STREAM_COMPUTE;
        if (!kernel || ir->op.phase[op] != PHASE_FORWARD || ir->op.layer[op] == IR_NONE16)
            continue;
        double s = cost->ideal
                       ? cost_ideal_s(setup->cluster.device.peak_flop_per_s, work)
                       : cost_work_s(cost, (enum attention_impl)choices->attention_impl, work);
        bool attention = work->kind == WORK_ATTENTION;
        seconds += attention ? s * choices->profile->attention_slowdown : s;
    }
    return seconds;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* A GPU's lanes, its share of its switch's uplink, and of the host's memory. */
double offload_bytes_per_s(const struct cluster *c)
{
    double gpus = (double)(c->gpus < c->gpus_per_node ? c->gpus : c->gpus_per_node);
    double uplinks = c->pcie.uplink_bytes_per_s * (double)c->pcie.switch_count;
    double memory = c->host.memory_bytes_per_s * (double)c->host.sockets;
    return least(c->pcie.d2h_bytes_per_s, least(uplinks / gpus, memory / gpus));
}

enum status offload_hidden_bytes(double *bytes, const struct setup *setup, struct diag *diag)
{
    struct request request = setup->request;
    struct choices choices;
    struct ir ir = {0};
    request.activations = CHOICE_ACTIVATIONS_KEEP;
    enum status status = compose_resolve(&choices, &request, NULL, diag);
    if (status == STATUS_OK)
        status = compose_build(&ir, &choices, diag);
    if (status == STATUS_OK)
        *bytes = forward_s(&ir, setup, &choices) / pipeline_units(&choices) *
                 offload_bytes_per_s(&setup->cluster);
    ir_release(&ir);
    return status;
}
