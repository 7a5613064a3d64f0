#include "sim/result/sim_result.h"

#include "sim/uniform/uniform.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>

void sim_result_release(struct sim_result *result)
{
    if (result->times_mapping)
        munmap(result->times_mapping, result->times_mapping_bytes);
    free(result->uniform_rank_plus_1_by_guard);
    arena_release(&result->arena);
    *result = (struct sim_result){0};
}

bool sim_rank_runs_op(const struct ir *ir, const struct sim_result *result, uint32_t rank,
                      uint32_t op)
{
    uint16_t guard = ir->op.guard[op];
    return guard == IR_NONE16 ||
           uniform_does_guard_pass(ir, result->uniform_rank_plus_1_by_guard, guard, rank);
}

const double *sim_op_starts_of_rank_s(const struct sim_result *result, uint32_t rank)
{
    assert(rank < result->rank_count);
    return result->start_s + result->classes[result->class_of_rank[rank]].first_row;
}

const double *sim_op_ends_of_rank_s(const struct sim_result *result, uint32_t rank)
{
    assert(rank < result->rank_count);
    return result->end_s + result->classes[result->class_of_rank[rank]].first_row;
}
