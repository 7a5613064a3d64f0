/* predict/prediction_time.c: simulates the step of a prediction, and computes bounds of its time. */
#include "base/units.h"
#include "predict/prediction_build.h"
#include "predict/shape_costs.h"
#include "schedule/choices/strategies.h"
#include "schedule/ir/visible.h"
#include "schedule/pipeline/pipeline.h"
#include "sim/jitter.h"
#include "sim/uniform/uniform.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REASONS_SHOWN = 1 };

/* Fills p's members about extrapolated costs: those of shapes on which rank 0 spends time and which lie outside the
 * calibrated range. */
static void find_extrapolated_shapes(struct prediction *p, const struct shape_costs *costs)
{
    const struct sim_class *class = &p->sim.classes[p->sim.class_of_rank[0]];
    double *spent = heap_zalloc((size_t)p->ir.shape_count + 1, sizeof *spent), all = 0, outside = 0;
    for (uint32_t op = class->op_begin; op < class->op_begin + class->op_count; op++) {
        if (p->ir.stream_count == 0 ||
            p->ir.stream[p->ir.op.stream[op]].stream_class != STREAM_COMPUTE)
            continue;
        double seconds =
            costs->work_s[p->ir.op.shape[op]] * repeats_occurrence_count(&p->ir.repeats, op);
        spent[p->ir.op.shape[op]] += seconds;
        all += seconds;
    }
    bool *outside_range = heap_zalloc((size_t)p->ir.shape_count + 1, sizeof *outside_range);
    struct text reason = {0};
    for (uint32_t i = 0; i < p->ir.shape_count; i++)
        if (spent[i] > 0 &&
            cost_is_extrapolated(&p->setup->cost, (enum attention_impl)p->choices.attention_impl,
                                 &p->ir.shape[i], NULL)) {
            p->extrapolated_shape_count++;
            outside += spent[i];
            outside_range[i] = true;
        }
    p->extrapolated_share = all > 0 ? outside / all : 0;
    for (int shown = 0; shown < REASONS_SHOWN; shown++) {
        uint32_t most = UINT32_MAX;
        for (uint32_t i = 0; i < p->ir.shape_count; i++)
            if (outside_range[i] && (most == UINT32_MAX || spent[i] > spent[most]))
                most = i;
        if (most == UINT32_MAX)
            break;
        outside_range[most] = false;
        reason.size = 0;
        cost_is_extrapolated(&p->setup->cost, (enum attention_impl)p->choices.attention_impl,
                             &p->ir.shape[most], &reason);
        if (reason.size > 0)
            text_printf(&p->extrapolation_reason, "%s%s",
                        p->extrapolation_reason.size > 0 ? "; " : "", reason.data);
    }
    text_release(&reason);
    free(spent);
    free(outside_range);
}

/* Sums rank 0's seconds of products in 8 or 4 bits, of the same products in the dtype of the step, and of the casts. */
static void sum_narrow_product_seconds(struct prediction *p, const struct shape_costs *costs)
{
    const struct sim_class *class = &p->sim.classes[p->sim.class_of_rank[0]];
    p->products = (struct prediction_products){.dtype = p->ir.dtype};
    for (uint32_t op = class->op_begin; op < class->op_begin + class->op_count; op++) {
        const uint32_t shape = p->ir.op.shape[op];
        struct work wide = work_cost_equivalent(&p->ir.shape[shape]);
        const double times = repeats_occurrence_count(&p->ir.repeats, op);
        if (wide.kind == WORK_QUANTISE)
            p->products.casts_s += times * costs->work_s[shape];
        const bool core = wide.kind == WORK_ATTENTION || wide.kind == WORK_ATTENTION_BACKWARD;
        int64_t *scaling = core ? &wide.attention.scaling : &wide.matmul.scaling;
        if ((!core && wide.kind != WORK_MATMUL) || *scaling == SCALING_NONE)
            continue;
        p->products.narrow_s += times * costs->work_s[shape];
        *scaling = SCALING_NONE;
        wide.in = p->ir.dtype;
        p->products.wide_s +=
            times *
            cost_work_s(&p->setup->cost, (enum attention_impl)p->choices.attention_impl, &wide);
    }
}

/* Adds the delay of jitter. If more ranks synchronise than in any measured step of the strategy, the slowest of them
 * is later than in those steps. Up to that many ranks, the calibrated numbers already contain the effect of jitter,
 * so nothing is added. */
static void add_jitter(struct prediction *p)
{
    size_t count;
    if (!p->has_choices || p->choices.scope != SCOPE_WHOLE_STEP || p->setup->cost.is_ideal)
        return;
    int64_t compared = strategies_list(&count)[p->choices.strategy].max_compared_ranks;
    if (p->sim.rank_count <= compared || p->sim.rank_count == 1)
        return;
    p->exceeds_compared_ranks = true;
    p->max_compared_ranks = compared;
    p->jitter_s = jitter_s(&p->ir, &p->sim, 0, p->setup->cost.device_jitter);
    p->sim.step_s += p->jitter_s;
    p->waterfall.step_s += p->jitter_s;
    p->waterfall.cause_s[CAUSE_OTHER] += p->jitter_s;
}

/* Attributes waits to documents in p's waterfall and stages. For this it simulates the step again as if every rank took
 * the mean time: waits beyond those of this second simulation are caused by documents. Waits in the second simulation,
 * for example of ranks whose windows differ, belong to the ring. If every rank takes the mean time already, no waits
 * are caused by documents, and nothing is simulated. Sets p->even_step_s. *stands: as in simulate_list(). */
static enum status attribute_document_waits(struct prediction *p, const struct shape_costs *costs,
                                            const struct sim_options *options,
                                            struct waterfall_peak peak, bool *stands,
                                            struct diag *diag)
{
    struct sim_costs sim_costs = costs->sim_costs;
    struct sim_result even = {0};
    struct waterfall waterfall;
    struct stages stages = {0};
    double **seconds = document_costs_with_equal_pairs(&p->ir, costs->sim_costs.work_s_by_place);
    p->even_step_s = p->sim.step_s - p->waterfall.cause_s[CAUSE_RING];
    if (seconds == NULL)
        return STATUS_OK;
    sim_costs.work_s_by_place = (const double *const *)seconds;
    enum status status =
        sim_run(&p->ir, &p->setup->cluster, &sim_costs, options, "schedule", &even, diag);
    *stands = status == STATUS_OK && !even.has_unsteady_repeats;
    if (*stands) {
        waterfall_make(&waterfall, &p->ir, &even, peak, 0);
        *stands = p->ir.repeats.copies_per_gap == 0 || waterfall_adds_up(&waterfall);
        waterfall_attribute_documents(&p->waterfall, &waterfall);
        p->even_step_s = even.step_s - waterfall.cause_s[CAUSE_RING];
    }
    if (*stands && p->ir.role_count > 1) {
        stages_make(&stages, &p->ir, &even, peak);
        *stands = p->ir.repeats.copies_per_gap == 0 || stages_parts_sum_to_step(&stages);
        stages_attribute_documents(&p->stages, &stages, &p->sim);
    }
    stages_release(&stages);
    sim_result_release(&even);
    document_costs_free(seconds, p->ir.shape_count);
    return status;
}

static struct sim_options sim_options_of(const struct prediction *p)
{
    const struct prediction_question *question = &p->question;
    assert(question->is_exact || question->slow_factor == 0);
    return (struct sim_options){.simulates_every_rank_and_op = question->is_exact,
                                .uniform_above_ranks = p->setup->uniform_above_ranks,
                                .slow_factor = question->slow_factor,
                                .slow_rank = question->slow_rank};
}

/* Simulates the current list of ops. Sets *stands to whether the result holds for the whole list, too; that of a short
 * list may not. */
static enum status simulate_list(struct prediction *p, struct shape_costs *costs, bool *stands,
                                 struct diag *diag)
{
    struct sim_options options = sim_options_of(p);
    options.skip_memory = p->question.wants_step_time_only;
    shape_costs_make(costs, p);
    enum status status =
        sim_run(&p->ir, &p->setup->cluster, &costs->sim_costs, &options, "schedule", &p->sim, diag);
    *stands = status == STATUS_OK && !p->sim.has_unsteady_repeats;
    if (!*stands)
        return status;
    p->is_simulated = true;
    p->fullest_pairs_over_mean = costs->fullest_pairs_over_mean;
    if (costs->work_s_by_place != NULL)
        p->lateness = document_lateness_of_ranks(&p->ir, costs->sim_costs.work_s_by_place);
    if (p->question.wants_step_time_only)
        return status;
    p->times_have_checkpoint_costs = costs->has_checkpoint_costs;
    struct waterfall_peak peak = {.flop_per_s = p->setup->cluster.device.peak_bf16_flop_per_s};
    if (p->has_choices) /* repeated products count here as they do in MFU and HFU */
        step_redundant_product_shares(&p->choices, &peak.layers_repeated_share,
                                      &peak.head_repeated_share);
    waterfall_make(&p->waterfall, &p->ir, &p->sim, peak, 0);
    if (p->ir.role_count > 1)
        stages_make(&p->stages, &p->ir, &p->sim, peak);
    if (p->ir.repeats.copies_per_gap > 0)
        *stands = waterfall_adds_up(&p->waterfall) && stages_parts_sum_to_step(&p->stages);
    if (*stands && !p->question.skips_cause_of_documents && costs->work_s_by_place != NULL &&
        p->ir.documents.sequence_count > 0)
        status = attribute_document_waits(p, costs, &options, peak, stands, diag);
    return status;
}

enum status prediction_time(struct prediction *p, struct diag *diag)
{
    struct shape_costs costs = {0};
    bool stands = prediction_simulates_built_list(p);
    enum status status = stands ? STATUS_OK : prediction_build_longer_list(p, true, diag);
    for (stands = false; status == STATUS_OK && !stands;) {
        shape_costs_release(&costs);
        costs = (struct shape_costs){0};
        status = simulate_list(p, &costs, &stands, diag);
        if (status == STATUS_OK && !stands)
            status = prediction_build_longer_list(p, false, diag);
    }
    if (status == STATUS_OK) {
        add_jitter(p);
        if (p->sim.step_s > 0)
            p->tokens_per_s_gpu = prediction_tokens(p) / p->sim.step_s / prediction_gpus(p);
        if (!p->setup->cost.is_ideal && !p->question.wants_step_time_only)
            find_extrapolated_shapes(p, &costs);
        if (!p->question.wants_step_time_only)
            sum_narrow_product_seconds(p, &costs);
    }
    shape_costs_release(&costs);
    return status;
}

enum status prediction_simulate_without_kernels(struct sim_result *sim, const struct prediction *p,
                                                struct diag *diag)
{
    struct shape_costs costs = {0};
    struct sim_options options = sim_options_of(p);
    shape_costs_make(&costs, p);
    for (uint32_t i = 0; i < p->ir.shape_count; i++)
        if (work_kind_info((enum work_kind)p->ir.shape[i].kind)->stream == STREAM_COMPUTE)
            costs.work_s[i] = 0;
    costs.sim_costs.work_s_by_place = NULL;
    enum status status =
        sim_run(&p->ir, &p->setup->cluster, &costs.sim_costs, &options, "schedule", sim, diag);
    shape_costs_release(&costs);
    if (status != STATUS_OK || !sim->has_unsteady_repeats)
        return status;
    struct prediction whole = *p;
    whole.ir = (struct ir){0};
    sim_result_release(sim);
    status = step_build_with_planned_memories(&whole.ir, &p->choices, 0, diag);
    if (status == STATUS_OK)
        status = prediction_simulate_without_kernels(sim, &whole, diag);
    ir_release(&whole.ir);
    return status;
}

/* Returns the lowest of the ranks that have the role. */
static uint32_t first_rank_of_role(const struct ir *ir, uint32_t role)
{
    uint32_t rank = 0;
    while (!role_has_rank(&ir->mesh, &ir->role[role], rank))
        rank++;
    return rank;
}

/* Seconds of one rank. kernels_s: all its kernels. unit_kernels_s: the kernels of layers, which belong to a unit.
 * first_s: those of them in the forward of the first unit. last_s: those of them in the backward of the unit whose
 * backward comes last, from the first op that needs its gradient on: what is recomputed before that op can run while
 * the rank waits for the gradient. issue_s: the time for which its host issues ops. */
struct role_rank_seconds {
    double kernels_s, unit_kernels_s, first_s, last_s, issue_s;
};

static struct role_rank_seconds sum_seconds_of_role_rank(const struct prediction *p,
                                                         const struct shape_costs *costs,
                                                         const uint32_t *even, uint32_t r)
{
    const struct ir *ir = &p->ir;
    struct role_rank_seconds rank_seconds = {0};
    uint32_t rank = first_rank_of_role(ir, r);
    uint32_t place = costs->work_s_by_place != NULL ? ir_place_of_rank(ir, rank) : 0;
    uint32_t last = p->choices.subsequences > 0
                        ? pipeline_unit_count(&p->choices) - p->choices.subsequences
                        : 0;
    last -= ir->repeats.iterations_are_units ? ir->repeats.copies_per_gap : 0;
    bool has_gradient = false; /* the backward of unit `last` has begun */
    for (uint32_t op = ir->role[r].op_begin; op < ir->role[r].op_begin + ir->role[r].op_count;
         op++) {
        uint32_t shape = ir->op.shape[op];
        uint16_t guard = ir->op.guard[op], unit = ir->op.micro[op];
        uint8_t phase = ir->op.phase[op];
        uint32_t times = repeats_occurrence_count(&ir->repeats, op);
        double work_s =
            times * (costs->work_s_by_place != NULL && costs->work_s_by_place[shape] != NULL
                         ? costs->work_s_by_place[shape][place]
                         : costs->work_s[shape]);
        if (guard != IR_NONE16 && !uniform_does_guard_pass(ir, even, guard, rank))
            continue;
        rank_seconds.issue_s += times * costs->issue_s[shape];
        if (ir->stream[ir->op.stream[op]].stream_class != STREAM_COMPUTE ||
            work_kind_info((enum work_kind)ir->op.kind[op])->stream == STREAM_SYNC)
            continue;
        rank_seconds.kernels_s += work_s;
        if (unit == IR_NONE16 || phase == PHASE_OPTIMIZER || ir->op.layer[op] == IR_NONE16)
            continue;
        rank_seconds.unit_kernels_s += work_s;
        if (phase == PHASE_FORWARD && unit == 0)
            rank_seconds.first_s += work_s;
        if (unit != last)
            continue;
        has_gradient = has_gradient || (phase != PHASE_FORWARD && phase != PHASE_RECOMPUTE);
        if (phase != PHASE_FORWARD && has_gradient)
            rank_seconds.last_s += work_s;
    }
    return rank_seconds;
}

double prediction_step_lower_bound_s(const struct prediction *p)
{
    struct shape_costs costs = {0};
    double lower_bound_s = 0, before_s = 0, after_s = 0;
    bool waits =
        p->has_choices && pipeline_is_plain(&p->choices) && p->ir.role_count == p->choices.pp;
    /* The first rank of a long ring counts with the work of the ring's last rank (sim/uniform/uniform.h). This bounds
     * exact steps, too, since there the last rank does that work. */
    uint32_t *even = uniform_mark_guards(&p->ir, p->setup->uniform_above_ranks);
    shape_costs_make(&costs, p);
    for (uint32_t r = 0; r < p->ir.role_count; r++) {
        struct role_rank_seconds bound = sum_seconds_of_role_rank(p, &costs, even, r);
        lower_bound_s = fmax(lower_bound_s, fmax(bound.kernels_s, bound.issue_s));
        if (waits)
            lower_bound_s = fmax(lower_bound_s, before_s + bound.unit_kernels_s + after_s);
        before_s += bound.first_s;
        after_s += bound.last_s;
    }
    shape_costs_release(&costs);
    free(even);
    return lower_bound_s;
}

struct prediction_kernel_and_issue_s prediction_sum_kernel_and_issue_s(const struct prediction *p)
{
    struct shape_costs costs = {0};
    uint32_t *even = uniform_mark_guards(&p->ir, p->setup->uniform_above_ranks);
    shape_costs_make(&costs, p);
    struct role_rank_seconds bound = sum_seconds_of_role_rank(p, &costs, even, 0);
    shape_costs_release(&costs);
    free(even);
    return (struct prediction_kernel_and_issue_s){bound.kernels_s, bound.issue_s};
}
