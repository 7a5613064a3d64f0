#include "predict/longhaul.h"

#include "predict/operator_times.h"

#include <string.h>

static void read_times(struct prediction_result *result, const struct prediction *p)
{
    result->is_whole_step = p->choices.scope == SCOPE_WHOLE_STEP;
    result->has_causes = result->is_whole_step || p->choices.scope >= SCOPE_ALL_LAYERS;
    result->step_s = result->is_whole_step ? p->sim.step_s : operator_times_of(p).elapsed_s;
    if (result->step_s > 0)
        result->tokens_per_s_gpu = prediction_tokens(p) / result->step_s / prediction_gpus(p);
    if (result->has_causes)
        memcpy(result->cause_s, p->waterfall.cause_s, sizeof result->cause_s);
    if (!result->is_whole_step)
        return;
    result->products = p->products;
    result->hfu = prediction_hfu(p);
    result->intervals = intervals_of_prediction(p);
    for (int i = 0; p->has_choices && i < MFU_CONVENTION_COUNT; i++)
        result->mfu[i] = prediction_mfu(p, (enum mfu_convention)i);
}

void prediction_fill_result(struct prediction_result *result, const struct prediction *p)
{
    *result = (struct prediction_result){
        .verdict = p->verdict,
        .arena_bytes = p->ir.planned_bytes[MEMORY_HBM],
        .reserved_bytes = p->reserved.total_bytes,
        .has_times = p->is_simulated,
    };
    if (!p->is_simulated)
        return;
    const struct sim_peak *peak = prediction_device_memory_peak(p);
    result->peak_bytes = peak->bytes;
    memcpy(result->peak_category_bytes, peak->category_bytes, sizeof result->peak_category_bytes);
    read_times(result, p);
}
