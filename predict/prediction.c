#include "predict/prediction.h"

void prediction_release(struct prediction *p)
{
    ir_release(&p->ir);
    schedule_recordings_release(&p->recorded);
    sim_result_release(&p->sim);
    stages_release(&p->stages);
    text_release(&p->extrapolation_reason);
    resolved_release(&p->resolved);
    *p = (struct prediction){0};
}

bool prediction_is_recorded(const struct prediction *p)
{
    return p->recorded.count > 0;
}

bool prediction_has_attention(const struct prediction *p)
{
    for (uint32_t i = 0; i < p->ir.shape_count; i++) {
        const struct work work = work_cost_equivalent(&p->ir.shape[i]);
        if (work.kind == WORK_ATTENTION || work.kind == WORK_ATTENTION_BACKWARD)
            return true;
    }
    return false;
}

/* ---- figures ---- */

uint32_t prediction_fullest_rank(const struct prediction *p)
{
    uint32_t fullest = 0;
    for (uint32_t rank = 1; rank < p->sim.rank_count; rank++)
        if (p->sim.peak[p->sim.class_of_rank[rank]][MEMORY_HBM].bytes >
            p->sim.peak[p->sim.class_of_rank[fullest]][MEMORY_HBM].bytes)
            fullest = rank;
    return fullest;
}

const struct sim_peak *prediction_device_memory_peak(const struct prediction *p)
{
    return &p->sim.peak[p->sim.class_of_rank[prediction_fullest_rank(p)]][MEMORY_HBM];
}

struct prediction_short_list prediction_short_list(const struct prediction *p)
{
    const struct repeats *r = &p->ir.repeats;
    if (r->copies_per_gap == 0)
        return (struct prediction_short_list){0};
    int64_t all = r->iterations_are_units ? p->choices.accumulation : p->choices.model->layers;
    return (struct prediction_short_list){
        .name_of_shortened_loop = r->iterations_are_units ? "micro-batches" : "layers",
        .simulated_iterations = all - (int64_t)r->copies_per_gap * r->layers_per_period,
        .all_iterations = all};
}

struct whole_list_op_id_and_layer prediction_find_op_in_whole_list(const struct prediction *p,
                                                                   uint32_t op)
{
    const struct repeats *r = &p->ir.repeats;
    uint16_t layer = p->ir.op.layer[op];
    bool later = r->copies_per_gap > 0 && !r->iterations_are_units && layer != IR_NONE16 &&
                 layer / r->layers_per_period >= r->iteration_value_of_first_copy;
    return (struct whole_list_op_id_and_layer){
        .id = repeats_op_id_in_whole_list(r, op),
        .layer =
            later ? (uint16_t)(layer + r->copies_per_gap * (uint32_t)r->layers_per_period) : layer};
}

int64_t prediction_sequences(const struct prediction *p)
{
    return p->ir.global_batch;
}

double prediction_gpus(const struct prediction *p)
{
    return p->setup->cluster.fabric.kind == FABRIC_LOOPBACK ? 1
                                                            : (double)mesh_rank_count(&p->ir.mesh);
}

double prediction_tokens(const struct prediction *p)
{
    return (double)p->ir.global_batch * (double)p->ir.layout.sequence_tokens -
           (double)p->setup->padding_tokens;
}

bool prediction_recomputes(const struct prediction *p)
{
    return p->choices.activations != CHOICE_ACTIVATIONS_KEEP &&
           p->choices.activations != CHOICE_ACTIVATIONS_RATIO;
}

double prediction_mfu(const struct prediction *p, enum mfu_convention convention)
{
    const struct transformer *model = p->choices.model;
    double seen = document_visible_flops(&p->ir.documents, model, p->choices.seq) /
                  transformer_layer_attention_flops(model, p->choices.seq, true);
    double flops = mfu_model_flops_of_visible_share(
        convention, model, p->choices.seq, prediction_sequences(p), prediction_recomputes(p), seen);
    return flops /
           (p->sim.step_s * prediction_gpus(p) * p->setup->cluster.device.peak_bf16_flop_per_s);
}

double prediction_hfu(const struct prediction *p)
{
    double peak_flops =
        p->setup->cluster.device.peak_bf16_flop_per_s * p->sim.step_s * prediction_gpus(p);
    return peak_flops > 0 ? sim_flops(&p->ir, &p->sim) / peak_flops : 0;
}
