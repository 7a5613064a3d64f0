/* cli/measure/run_json.c: prints the results of `longhaul run` as JSON. */
#include "cli/measure/run_report.h"

static void put_series(struct json_out *json, const char *key, const double *value, uint32_t count)
{
    json_begin_array(json, key);
    for (uint32_t i = 0; i < count; i++)
        json_put_number(json, NULL, value[i]);
    json_end_array(json);
}

/* Writes the result of the check against the reference. The error of a tensor is null if the schedule does not bind the
 * tensor, or if the error is not a number. */
void run_json_put_check(struct json_out *json, const struct reference_check *a)
{
    json_begin_object(json, "check");
    json_put_bool(json, "right", a->agrees);
    json_put_text(json, "verdict", reference_check_verdict_names[a->verdict]);
    json_put_number(json, "tolerance", a->rule.tolerance);
    json_put_number(json, "moment2_tolerance",
                    reference_check_tolerance(&a->rule, REFERENCE_CHECK_MOMENT2));
    /* the step whose loss has the larger error */
    int step = a->loss_error[1].difference > a->loss_error[0].difference;
    json_put_number(json, "loss", a->loss[step]);
    json_put_number(json, "reference_loss", a->reference_loss);
    json_put_number(json, "loss_error", a->loss_error[step].difference);
    json_put_number(json, "loss_tolerance", a->rule.loss_tolerance);
    json_put_number(json, "norm", a->gradient_norm);
    json_put_number(json, "reference_norm", a->reference_gradient_norm);
    json_put_number(json, "norm_error", a->norm_error.difference);
    json_put_number(json, "norm_tolerance", a->rule.norm_tolerance);
    json_put_bool(json, "clips", a->clips);
    json_put_count(json, "replicas_differ", a->differing_replica_elements);
    struct rows rows = {.json = json};
    run_report_put_tensors(&rows, a);
    json_end_object(json);
}

void run_json_put_loss_curve(struct json_out *json, const struct loss_curve *curve)
{
    json_begin_object(json, "training");
    put_series(json, "loss", curve->loss, curve->step_count);
    if (curve->reference != NULL) {
        double error = run_loss_curve_worst_error(curve);
        put_series(json, "reference_loss", curve->reference, curve->step_count);
        json_put_bool(json, "right", error <= curve->tolerance);
        json_put_number(json, "loss_error", error);
        json_put_number(json, "loss_tolerance", curve->tolerance);
    }
    json_end_object(json);
}

void run_json_put_step_times(struct json_out *json, const char *what, const char *backend,
                             const struct ir *ir, const struct exec_result *result)
{
    double tokens = (double)ir->global_batch * (double)ir->layout.sequence_tokens;
    json_begin_object(json, "configuration");
    json_put_text(json, "what", what);
    json_put_text(json, "backend", backend);
    json_put_count(json, "ranks", result->ranks);
    json_put_count(json, "sequence_tokens", (uint64_t)ir->layout.sequence_tokens);
    json_put_count(json, "sequences", (uint64_t)ir->global_batch);
    json_put_text(json, "dtype", dtype_name((enum dtype)ir->dtype));
    json_end_object(json);
    json_put_number(json, "step_s", result->median_s);
    put_series(json, "steps_s", result->step_s, result->steps);
    json_put_number(json, "tokens_per_s", tokens / result->median_s);
    json_begin_object(json, "memory");
    json_put_count(json, "arena_bytes", result->planned_bytes[MEMORY_HBM]);
    json_put_count(json, "pinned_arena_bytes", result->planned_bytes[MEMORY_PINNED]);
    json_put_count(json, "pageable_arena_bytes", result->planned_bytes[MEMORY_PAGEABLE]);
    if (result->trace.memory.count > 0) {
        json_put_count(json, "peak_bytes", result->peak_bytes[MEMORY_HBM]);
        json_put_count(json, "pinned_peak_bytes", result->peak_bytes[MEMORY_PINNED]);
        json_put_count(json, "pageable_peak_bytes", result->peak_bytes[MEMORY_PAGEABLE]);
    }
    json_end_object(json);
}
