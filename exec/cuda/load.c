/* Launches each distinct operation, apart from NCCL's, once before the first step. CUDA loads a kernel at its first
 * launch, and may then wait until the device is idle (CUDA C++ Programming Guide, "Lazy Loading"). In a step this could
 * deadlock: the device may wait, in a collective or for an event, for work that this host has yet to launch. */
#include "exec/cuda/cuda.h"

#include "base/arena.h"
#include "schedule/ir/id_map.h"

#include <stdlib.h>

/* The operations that were launched so far. Each has a key: a hash of everything on which the choice of its kernels
 * depends, such as its shape and the types and alignments of all operands. */
struct launched_kernel_choice_keys {
    struct id_map map;
    uint64_t *keys;
    uint32_t count, capacity;
};

static uint64_t kernel_choice_key(const struct exec_run *run, const struct call *call)
{
    const struct cuda_prepared_op *prepared = &cuda_of_run(run)->prepared_ops[call->op];
    uint64_t key = hash_word(call->reads_softmax, run->ir->op.shape[call->op]);
    key = hash_word(key, (uint64_t)prepared->epilogue << 3 |
                             (uint64_t)prepared->rotates_and_packs << 2 |
                             (uint64_t)prepared->computes_next_norm << 1 |
                             prepared->is_computed_by_previous_op);
    if (call->routed_rows != NULL) /* the groups of rows have other sizes on other ranks */
        key = hash_word(key, call->rank);
    for (uint32_t k = 0; k < (uint32_t)call->read_count + call->write_count; k++) {
        const struct operand *o =
            k < call->read_count ? &call->read[k] : &call->write[k - call->read_count];
        key = hash_word(key, (uint64_t)o->dtype << 4 | ((uintptr_t)o->data & 15));
    }
    return key;
}

/* Adds a key to the map. Returns false if it was there already. */
static bool insert_if_new(struct launched_kernel_choice_keys *loaded, uint64_t key)
{
    for (struct id_probe p = id_map_begin_probe(&loaded->map, key);
         id_map_next_row_with_hash(&loaded->map, &p);)
        if (loaded->keys[p.row] == key)
            return false;
    if (loaded->count == loaded->capacity) {
        loaded->capacity = (uint32_t)heap_next_capacity(loaded->capacity, loaded->count + 1);
        loaded->keys = heap_realloc(loaded->keys, loaded->capacity, sizeof *loaded->keys);
    }
    id_map_add(&loaded->map, key, loaded->count);
    loaded->keys[loaded->count++] = key;
    return true;
}

/* Zeroes operands that hold indices (tokens, labels, positions), since earlier launches may have left invalid indices
 * in their memory. */
static bool zero_index_operands(struct cuda_stream *stream, const struct call *call)
{
    cudaError_t error = cudaSuccess;
    for (uint32_t k = 0; k < call->read_count && error == cudaSuccess; k++)
        if (call->read[k].dtype == DTYPE_I32)
            error = cudaMemsetAsync(call->read[k].data, 0,
                                    call->read[k].element_count * dtype_bytes(DTYPE_I32),
                                    stream->handle);
    return error == cudaSuccess ||
           cuda_record_failure(stream->rank, call->op, "cudaMemsetAsync", error);
}

/* Launches the kernel with which ranks that share a GPU reduce. Does nothing for other communication, nor if NCCL is
 * used, whose kernels are loaded when it connects the ranks. */
static bool launch_reduction(struct cuda_stream *stream, const struct call *call)
{
    const void *from[CUDA_REDUCE_MEMBERS_MAX];
    struct exec_run *run = stream->rank->run;
    uint32_t size = run->assignment.member_count_by_group[work_comm_group(call->work)];
    bool sums = call->work->kind == WORK_ALL_REDUCE || call->work->kind == WORK_REDUCE_SCATTER ||
                call->work->kind == WORK_REDUCE;
    if (!sums || call->read_count == 0 || call->write_count == 0 || run->world != NULL)
        return true;
    for (uint32_t k = 0; k < size; k++)
        from[k] = call->read[0].data;
    cudaError_t error = (cudaError_t)cuda_reduce(
        (struct cuda_array){call->write[0].data, call->write[0].dtype}, from, (int)size, false,
        (int64_t)call->write[0].element_count / size, stream->handle);
    return error == cudaSuccess ||
           cuda_record_failure(stream->rank, call->op, "launching a reduction", error);
}

/* Waits until an op has ended. Ops share the arena and their waits do not apply here, so the next op, on another
 * stream, could else write what this one reads. */
static bool wait_until_ended(struct cuda_stream *stream, const struct call *call)
{
    cudaError_t error = cudaDeviceSynchronize();
    return error == cudaSuccess ||
           cuda_record_failure(stream->rank, call->op,
                               "cudaDeviceSynchronize (after its first launch)", error);
}

static bool launch_op_once(struct launched_kernel_choice_keys *loaded, struct cuda_rank *rank,
                           uint32_t op)
{
    struct exec_run *run = rank->run;
    struct cuda_stream *stream = &rank->streams[run->ir->op.stream[op]];
    struct call call;
    switch (work_kind_info((enum work_kind)run->ir->op.kind[op])->stream) {
    case STREAM_COMPUTE:
        if (run->ir->stream[stream->stream_index_in_ir].stream_class == STREAM_HOST)
            return true;
        run_fill_call(run, rank->rank, op, &call);
        return !insert_if_new(loaded, kernel_choice_key(run, &call)) ||
               (zero_index_operands(stream, &call) &&
                cuda_kernels[run->ir->op.kind[op]](stream, &call) &&
                wait_until_ended(stream, &call));
    case STREAM_COMM:
        run_fill_call(run, rank->rank, op, &call);
        return !insert_if_new(loaded, kernel_choice_key(run, &call)) ||
               (launch_reduction(stream, &call) && wait_until_ended(stream, &call));
    default: /* copies have no kernels */
        return true;
    }
}

/* Makes the arenas in device memory of this process's ranks zero, and waits until they are. The ranks' streams do not
 * wait for the legacy stream, on which cudaMemset() runs. */
static enum status clear_device_memory(struct cuda *cuda, struct diag *diag)
{
    const struct exec_run *run = cuda->run;
    cudaError_t error = cudaSuccess;
    for (uint32_t r = run->first_rank;
         r < run->first_rank + run->rank_count && error == cudaSuccess; r++)
        error = cudaMemset(cuda->rank_states[r].memory[MEMORY_HBM], 0,
                           run->ir->planned_bytes[MEMORY_HBM]);
    if (error != cudaSuccess)
        return cuda_report_error(diag, "cudaMemset", error);
    error = cudaDeviceSynchronize();
    return error == cudaSuccess ? STATUS_OK
                                : cuda_report_error(diag, "cudaDeviceSynchronize", error);
}

enum status cuda_load_kernels(struct cuda *cuda, struct diag *diag)
{
    struct exec_run *run = cuda->run;
    struct launched_kernel_choice_keys loaded = {.count = 0};
    enum status status = clear_device_memory(cuda, diag);
    bool succeeded = status == STATUS_OK;
    for (uint32_t r = run->first_rank; r < run->first_rank + run->rank_count && succeeded; r++)
        for (uint32_t k = 0; k < assignment_op_count(&run->assignment, r) && succeeded; k++)
            if (assignment_op_works_on_rank(&run->assignment, r,
                                            assignment_first_op(&run->assignment, r) + k))
                succeeded = launch_op_once(&loaded, &cuda->rank_states[r],
                                           assignment_first_op(&run->assignment, r) + k);
    id_map_release(&loaded.map);
    free(loaded.keys);
    if (status != STATUS_OK)
        return status;
    if (!succeeded)
        return diag_error(diag, (struct loc){run->schedule_name, 0, 0}, run->failure_status, "%s",
                          run->failure_text);
    return clear_device_memory(cuda, diag);
}
