#include "sim/plan/depth.h"

#include "base/arena.h"
#include "schedule/analysis/iterations.h"

#include <stdlib.h>

enum {
    BLOCKS_MAX = 8,  /* of a period */
    PERIODS_MIN = 9, /* that are worth leaving some out */
};

struct depth_run *depth_find_runs(const struct ir *ir, uint32_t *count)
{
    uint32_t found;
    *count = 0;
    if (ir->role_count != 1 || ir->op.count == 0 || ir->role[0].op_begin != 0)
        return NULL;
    struct iterations *of = find_iterations(
        ir, 0, &(struct iterations_wanted){.least = PERIODS_MIN, .blocks_max = BLOCKS_MAX}, &found);
    struct depth_run *runs = heap_alloc((size_t)found + 1, sizeof *runs);
    for (uint32_t i = 0; i < found; i++)
        if (!of[i].optimizer)
            runs[(*count)++] = (struct depth_run){.begin = of[i].begin,
                                                  .ops = of[i].ops,
                                                  .periods = of[i].count,
                                                  .kept = of[i].count,
                                                  .blocks = of[i].blocks};
    free(of);
    return runs;
}
