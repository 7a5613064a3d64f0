/* How a stage's actions repeat. */
#include "schedule/pipeline/pipeline.h"

#include "base/arena.h"

#include <stdlib.h>

uint32_t pipeline_period(const struct choices *c)
{
    if (pipeline_of(c)->chunks != 0 || c->pp == 1)
        return 1;
    uint32_t batches = 1; /* as many as are whole groups of P units */
    while (batches * c->subsequences % c->pp != 0)
        batches++;
    return batches;
}

uint32_t pipeline_in_flight(const struct choices *c, uint32_t stage)
{
    struct actions actions = {0};
    uint32_t units = pipeline_units(c), now = 0, most = 0;
    uint32_t *done =
        heap_zalloc(units, sizeof *done); /* actions done of each unit; all units have as many */
    pipeline_of(c)->order(&actions, c, stage);
    for (uint32_t i = 0; i < actions.count; i++) {
        uint32_t of_unit = ++done[actions.action[i].unit];
        now += of_unit == 1;
        most = now > most ? now : most;
        now -= of_unit == actions.count / units;
    }
    actions_release(&actions);
    free(done);
    return most;
}
