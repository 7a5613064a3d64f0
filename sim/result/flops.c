/* Counts the flops that all ranks execute. */
#include "sim/result/sim_result.h"

#include "schedule/ir/visible.h"

#include <stdlib.h>
#include <string.h>

/* Returns on the heap, for each class, how many of its ranks pass each guard: an element for each guard, then one with
 * the number of all its ranks. */
static uint32_t *count_ranks_passing_each_guard(const struct ir *ir,
                                                const struct sim_result *result)
{
    size_t row = (size_t)ir->guard_count + 1;
    uint32_t *members = heap_zalloc(result->class_count * row, sizeof *members);
    for (uint32_t rank = 0; rank < result->rank_count; rank++) {
        uint32_t *of = members + result->class_of_rank[rank] * row;
        for (uint32_t g = 0; g < ir->guard_count; g++)
            of[g] += guard_passes(&ir->mesh, ir->group, &ir->guard[g], rank);
        of[ir->guard_count]++;
    }
    return members;
}

/* Returns the flops of attention over documents, summed rank by rank: ranks of a class take equally long for it, but
 * may see different numbers of pairs. */
static double attention_flops_over_documents(const struct ir *ir, const struct sim_result *result)
{
    double sum = 0;
    uint32_t *times = heap_zalloc(ir->shape_count + 1u, sizeof *times);
    for (uint32_t rank = 0; rank < result->rank_count; rank++) {
        const struct sim_class *class = &result->classes[result->class_of_rank[rank]];
        memset(times, 0, ir->shape_count * sizeof *times);
        for (uint32_t op = class->op_begin; op < class->op_begin + class->op_count; op++)
            if (work_pairs_depend_on_rank(ir_work(ir, op)) &&
                sim_rank_runs_op(ir, result, rank, op))
                times[ir->op.shape[op]] += repeats_occurrence_count(&ir->repeats, op);
        for (uint32_t s = 0; s < ir->shape_count; s++)
            if (times[s] > 0)
                sum += times[s] * ir_work_flops_on_rank(ir, &ir->shape[s], rank);
    }
    free(times);
    return sum;
}

/* Returns the flops of all ranks. at_peak: flops in 8 or 4 bits are divided by the ratio of their peak to that of
 * bf16. */
static double sum_flops(const struct ir *ir, const struct sim_result *result, bool at_peak)
{
    double flops = 0, *each = heap_zalloc(ir->shape_count + 1u, sizeof *each);
    bool documents = false;
    for (uint32_t s = 0; s < ir->shape_count; s++)
        if (work_pairs_depend_on_rank(&ir->shape[s]))
            documents = true;
        else
            each[s] = work_flops(&ir->shape[s]) * work_used_row_share(&ir->shape[s]) /
                      (at_peak ? work_peak_rate_over_bf16_peak(&ir->shape[s]) : 1);
    uint32_t *members = count_ranks_passing_each_guard(ir, result);
    for (uint32_t c = 0; c < result->class_count; c++) {
        const struct sim_class *class = &result->classes[c];
        const uint32_t *of = members + (size_t)c * (ir->guard_count + 1u);
        for (uint32_t op = class->op_begin; op < class->op_begin + class->op_count; op++) {
            uint16_t guard = ir->op.guard[op];
            flops += each[ir->op.shape[op]] * repeats_occurrence_count(&ir->repeats, op) *
                     of[guard == IR_NONE16 ? ir->guard_count : guard];
        }
    }
    free(members);
    free(each);
    return documents ? flops + attention_flops_over_documents(ir, result) : flops;
}

double sim_flops(const struct ir *ir, const struct sim_result *result)
{
    return sum_flops(ir, result, false);
}

double sim_bf16_equivalent_flops(const struct ir *ir, const struct sim_result *result)
{
    return sum_flops(ir, result, true);
}
