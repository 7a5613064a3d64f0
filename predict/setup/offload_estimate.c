#include "predict/setup/offload_estimate.h"

#include "models/cost.h"
#include "schedule/config/resolve_config.h"
#include "schedule/ir/ir.h"
#include "schedule/pipeline/pipeline.h"
#include "schedule/step/build.h"

#include <math.h>

/* Adds to seconds[s] the seconds of the first role's forward kernels in layers, for each subsequence s. */
static void add_forward_s_of_subsequences(double *seconds, const struct ir *ir,
                                          const struct setup *setup, const struct choices *choices)
{
    const struct device_cost *cost = &setup->cost;
    for (uint32_t k = 0; ir->role_count > 0 && k < ir->role[0].op_count; k++) {
        uint32_t op = ir->role[0].op_begin + k;
        const struct work *work = ir_work(ir, op);
        bool kernel = ir->stream[ir->op.stream[op]].stream_class == STREAM_COMPUTE &&
                      work_kind_info(work->kind)->stream == STREAM_COMPUTE;
        if (!kernel || ir->op.phase[op] != PHASE_FORWARD || ir->op.layer[op] == IR_NONE16)
            continue;
        double kernel_s =
            cost->is_ideal ? cost_ideal_s(setup->cluster.device.peak_bf16_flop_per_s, work)
                           : cost_work_s(cost, (enum attention_impl)choices->attention_impl, work);
        if (work->kind == WORK_ATTENTION)
            kernel_s *= step_attention_slowdown(choices);
        seconds[ir->op.micro[op] % choices->subsequences] += kernel_s;
    }
}

/* The rate is the lowest of three: that of the GPU's PCIe lanes, of its share of the node's uplinks of PCIe switches,
 * and of its share of the bandwidth of the node's memory. */
double offload_copy_bytes_per_s(const struct cluster *c)
{
    double gpus = (double)(c->gpus < c->gpus_per_node ? c->gpus : c->gpus_per_node);
    double uplinks =
        c->pcie.pcie_switch_uplink_bytes_per_s * (double)c->pcie.pcie_switches_per_node;
    double memory = c->host.memory_bytes_per_s * (double)c->host.sockets;
    return fmin(c->pcie.d2h_bytes_per_s, fmin(uplinks / gpus, memory / gpus));
}

/* Reduces the request to a smaller step: only the forward, one layer in each chunk of layers, and one micro-batch
 * (unless the pipeline needs more). Returns how many layers of the model one layer of the first stage represents, on
 * average. */
static double reduce_to_few_layers(struct request *request, struct transformer *small_model,
                                   const struct choices *choices)
{
    *small_model = *request->model;
    request->model = small_model;
    request->scope = SCOPE_ALL_LAYERS_FORWARD;
    request->activations = CHOICE_ACTIVATIONS_KEEP;
    request->optimizer = -1;
    request->host_layers = 0;
    request->weights = CHOICE_WEIGHTS_REPLICATED;
    request->shard = 0;
    /* an interleaved pipeline needs a multiple of pp units */
    bool groups = choices->pipeline == CHOICE_PIPELINE_INTERLEAVED;
    if (!groups || choices->subsequences % choices->pp == 0)
        request->global_batch = (int64_t)choices->dp * choices->micro_batch;
    small_model->layers = pipeline_chunk_count(choices);
    double layers = 0;
    for (uint32_t v = 0; v < pipeline_count_chunks_of_stage(choices); v++) {
        struct layer_range range =
            pipeline_layers_of_chunk(choices, pipeline_chunk_of_stage(choices, 0, v));
        layers += range.end - range.first;
    }
    return layers / pipeline_count_chunks_of_stage(choices);
}

enum status offload_find_hidden_bytes(double **bytes, struct request *asked,
                                      const struct choices *degrees, const struct setup *setup,
                                      struct diag *diag)
{
    struct request request = *asked;
    struct transformer small_model;
    struct choices choices;
    struct ir ir = {0};
    *bytes = NULL;
    /* The ratio is the same for all steps, whatever their documents are, so it is found for sequences of one
     * document. */
    request.documents = NULL;
    /* Stages that share a unit divide both its kernels and its copies, so the estimate for whole units holds for them,
     * too. */
    if (pipeline_of_choice((enum pipeline_choice)request.pipeline)->is_multiplexed)
        request.pipeline = CHOICE_PIPELINE_TERAPIPE;
    double layers = reduce_to_few_layers(&request, &small_model, degrees);
    request.tp = degrees->tp;
    request.pp = degrees->pp;
    request.subsequences = degrees->subsequences;
    enum status status = resolve_choices(&choices, &request, NULL, diag);
    if (status == STATUS_OK)
        status = step_build_with_planned_memories(&ir, &choices, 0, diag);
    if (status == STATUS_OK) {
        double *of = *bytes = heap_zalloc(choices.subsequences, sizeof *of);
        double units = (double)pipeline_unit_count(&choices) / choices.subsequences, sum = 0;
        add_forward_s_of_subsequences(of, &ir, setup, &choices);
        for (uint32_t i = 0; i < choices.subsequences; i++) {
            of[i] *= layers / units * offload_copy_bytes_per_s(&setup->cluster);
            sum += of[i];
        }
        asked->offload_hidden_bytes_by_subsequence = of;
        asked->offload_hidden_bytes = sum / choices.subsequences;
    }
    ir_release(&ir);
    return status;
}
