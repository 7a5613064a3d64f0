/* AdamW on several threads. The elements are cut into parts, one for each thread, and parts into blocks, whose
 * conversions to fp32 stay in a cache. */
#include "exec/cpu/kernels.h"
#include "exec/number.h"
#include "exec/parallel.h"

#include <string.h>

/* BLOCK: the elements that are converted together. GRAIN: the fewest elements for a thread. */
enum { BLOCK = 2048, GRAIN = 16 * BLOCK };

/* Returns the address of element i of an operand or, if the operand has a single element (a sum), the address of
 * that. */
static void *element_address(const struct operand *operand, uint64_t i)
{
    return (char *)operand->data +
           (operand->element_count > 1 ? i : 0) * dtype_bytes(operand->dtype);
}

/* Computes elements [begin, begin + count) of an op that works element by element. */
static void compute_element_range(const struct call *call, uint64_t begin, uint64_t count)
{
    _Alignas(64) float staged[2 * CALL_OPERANDS_MAX][BLOCK];
    struct work work = *call->work;
    struct call block = *call;
    uint32_t operands = (uint32_t)call->read_count + call->write_count;
    work.elements.count = (int64_t)count;
    block.work = &work;
    for (uint32_t k = 0; k < operands; k++) {
        bool read = k < call->read_count;
        struct operand *o = read ? &block.read[k] : &block.write[k - call->read_count];
        void *data = element_address(o, begin);
        o->element_count = o->element_count > 1 ? count : o->element_count;
        o->data = o->dtype == DTYPE_F32 ? data : staged[k];
        if (read && o->dtype != DTYPE_F32)
            number_to_f32(staged[k], data, o->dtype, o->element_count);
    }
    /* the result is NULL, since AdamW finds no fault in data */
    (void)cpu_math_rows[work.kind].run(&block, NULL);
    for (uint32_t k = 0; k < call->write_count; k++)
        if (call->write[k].dtype != DTYPE_F32)
            number_from_f32(element_address(&call->write[k], begin), call->write[k].dtype,
                            block.write[k].data, count);
}

static void compute_elements_of_thread(void *context, uint64_t begin, uint64_t end)
{
    for (uint64_t at = begin; at < end; at += BLOCK)
        compute_element_range(context, at, end - at < BLOCK ? end - at : BLOCK);
}

const char *cpu_compute_call_threaded(const struct call *call, float *scratch, uint32_t threads)
{
    if (call->work->kind != WORK_ADAMW)
        return cpu_compute_call(call, scratch);
    struct call shared = *call;
    parallel_for(threads, (uint64_t)call->work->elements.count, GRAIN, compute_elements_of_thread,
                 &shared);
    return NULL;
}
