#include "exec/microbench_operands.h"

#include "models/work_operands.h"
#include "schedule/ir/ir.h"

/* True if each member of a collective has the same whole number of elements, at least 1. */
static bool divides_over_members(const struct work *work, enum dtype dtype, uint32_t members)
{
    uint64_t elements = (uint64_t)work_payload_bytes(work) / dtype_bytes(dtype);
    return elements > 0 && elements % members == 0;
}

/* Lists the reads or the writes of an op up to the first that microbenchmarks leave out, and at most `most` of them (0:
 * no limit). Returns false if a size is not allowed, as bench_list_operands() does. */
static bool list_operands_of_side(const struct work *work, enum work_side side, enum dtype dtype,
                                  uint32_t most, struct bench_operand *operand, uint32_t *operands)
{
    struct work_operand all[WORK_OPERANDS_MAX];
    int64_t group = work_comm_group(work);
    uint32_t members = group > 0 ? (uint32_t)group : 1;
    uint32_t count = work_operands(work, side, members, all);
    for (*operands = 0; *operands < count && (most == 0 || *operands < most); ++*operands) {
        const struct work_operand *o = &all[*operands];
        if (o->is_absent_in_microbench)
            break;
        uint64_t elements = o->count_is_bytes ? o->count / dtype_bytes(dtype) : o->count;
        if (elements == 0 || elements > (uint64_t)IR_ELEMENTS_MAX ||
            (o->count_is_bytes && !divides_over_members(work, dtype, members)))
            return false;
        operand[*operands] =
            (struct bench_operand){elements, (uint8_t)(o->dtype == DTYPE_COUNT ? dtype : o->dtype),
                                   o->in_place_write_index};
    }
    return true;
}

bool bench_list_operands(const struct work *work, enum dtype dtype, struct bench_operands *operands)
{
    return list_operands_of_side(work, WORK_READS, dtype, work->reads, operands->read,
                                 &operands->read_count) &&
           list_operands_of_side(work, WORK_WRITES, dtype, work->writes, operands->write,
                                 &operands->write_count);
}

int64_t bench_index_operand_limit(const struct work *work)
{
    switch ((enum work_kind)work->kind) {
    case WORK_EMBEDDING:
    case WORK_EMBEDDING_BACKWARD:
        return work->embedding.vocab;
    case WORK_CROSS_ENTROPY:
    case WORK_CROSS_ENTROPY_BACKWARD:
    case WORK_CROSS_ENTROPY_PARTIAL:
    case WORK_CROSS_ENTROPY_FINISH:
    case WORK_CROSS_ENTROPY_PARTIAL_BACKWARD:
        return work->cross_entropy.vocab;
    default:
        return INT32_MAX;
    }
}
