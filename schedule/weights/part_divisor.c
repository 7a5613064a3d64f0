/* Into how many parts remote weights divide. */
#include "schedule/emit/process_groups.h"
#include "schedule/pipeline/multiplex.h"
#include "schedule/weights/remote_weights.h"

uint64_t remote_part_divisor(const struct choices *c, uint32_t chunk, uint64_t parts)
{
    for (uint32_t s = 0; pipeline_shards_weights(c) && s < c->subsequences; s++) {
        uint64_t multiple = parts;
        while (multiple % multiplex_stages_of(c, chunk, s).count != 0)
            multiple += parts;
        parts = multiple;
    }
    return parts;
}
