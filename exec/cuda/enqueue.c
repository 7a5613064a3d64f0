/* The functions that put the work of ops on CUDA streams, and the table of them by kind of work. */
#include "exec/cuda/cuda.h"

#include "exec/cpu/kernels.h"
#include "exec/cuda/epilogues.h"

#include <assert.h>

static struct cuda_launch_context launch_context_of(const struct cuda_stream *stream, uint32_t op)
{
    return (struct cuda_launch_context){
        .stream = stream->handle,
        .scratch = stream->scratch,
        .fault_op_plus_1_address = stream->rank->fault_op_plus_1_address,
        .fault_op_plus_1 = (int32_t)op + 1,
        .moved_row_pair_lists = cuda_moved_row_pairs_of_op(stream->rank, op),
        .expert_begins = cuda_expert_begins_of_op(stream->rank, op)};
}

static bool run_attention(void *context, struct call *call)
{
    struct cuda_stream *stream = context;
    const struct cuda *cuda = cuda_of_run(stream->rank->run);
    struct cuda_launch_context place = launch_context_of(stream, call->op);
    place.visible_keys = cuda_visible_keys_of_op(stream->rank, call->op);
    place.documents = cuda_documents_of_op(stream->rank, call->op);
    const char *words =
        attention_run(cuda->prepared_ops[call->op].attention, call, &place, stream->cudnn_handle);
    return words == NULL || cuda_record_library_failure(stream, call->op, words);
}

/* Runs an op of a host stream, such as AdamW, by the CPU backend's kernels on the rank's share of the processor
 * threads. CUDA calls this function in the order of the stream. With options->times_by_cupti it stores when the op
 * started and ended. */
static void CUDART_CB run_on_processor(void *argument)
{
    const struct cuda_host_work *work = argument;
    struct exec_run *run = work->run;
    double start_s = run_now_s() - run->step_release_time_s;
    (void)cpu_compute_call_threaded(&work->call, work->scratch, run->threads_per_rank);
    if (run->options->times_by_cupti)
        *run_op_time(run, work->call.rank, work->call.op) =
            (struct op_time){start_s, run_now_s() - run->step_release_time_s};
}

/* Runs an addition and the norm after it as one kernel. Returns a cudaError_t. The kernel writes the norm's statistics
 * to scratch memory, from where they are copied: their planned bytes may lie over an operand of the addition that other
 * blocks of threads still read. */
static int run_add_and_norm(const struct cuda_stream *stream, const struct call *call)
{
    struct call next;
    run_fill_call(stream->rank->run, stream->rank->rank, call->op + 1, &next);
    const bool subtracts_mean = next.work->kind == WORK_LAYERNORM;
    const struct cuda_add_norm n = {
        .y = cuda_array_of(next.write[0]),
        .sum = cuda_array_of(call->write[0]),
        .a = cuda_array_of(call->read[0]),
        .b = cuda_array_of(call->read[1]),
        .weight = cuda_array_of(next.read[1]),
        .bias = cuda_array_of(next.read[subtracts_mean ? 2 : 1]),
        .stats = stream->scratch,
        .rows = next.work->rows.rows,
        .cols = next.work->rows.cols,
        .eps = next.model.norm_eps,
        .subtracts_mean = subtracts_mean,
    };
    const int error = cuda_add_norm(&n, stream->handle);
    return error != 0 ? error
                      : (int)cudaMemcpyAsync(next.write[1].data, n.stats,
                                             next.write[1].element_count * sizeof(float),
                                             cudaMemcpyDeviceToDevice, stream->handle);
}

/* Returns the operand by which a rope is connected to ops other than the pack: what it reads if is_read, else what it
 * writes. */
static const struct operand *rope_operand_away_from_pack(const struct call *rope, bool is_read)
{
    return is_read ? &rope->read[0] : &rope->write[0];
}

/* Runs RoPE and the pack or unpack beside it as one kernel, from op `op` on. Returns a cudaError_t. */
static int run_rotated_pack(const struct cuda_stream *stream, uint32_t op)
{
    struct exec_run *run = stream->rank->run;
    struct epilogue_rotated_pack rotated_pack;
    struct call pack, rope[2];
    const bool is_found = epilogue_find_rotated_pack(run->ir, op, &rotated_pack);
    assert(is_found);
    run_fill_call(run, stream->rank->rank, rotated_pack.pack, &pack);
    for (uint32_t i = 0; i < rotated_pack.rope_count; i++)
        run_fill_call(run, stream->rank->rank, rotated_pack.rope[i], &rope[i]);
    const struct work *w = pack.work, *turn = rope[0].work;
    const bool reads = rotated_pack.is_forward;
    const struct operand *whole = rotated_pack.rope_count == 1
                                      ? rope_operand_away_from_pack(&rope[0], reads)
                                  : reads ? &pack.read[0]
                                          : &pack.write[0];
    struct cuda_rotated_pack r = {
        .pack = {.whole = whole->data,
                 .rows = w->pack.rows,
                 .parts = w->pack.parts,
                 .block_cols = {w->pack.w[0], w->pack.w[1], w->pack.w[2]},
                 .element_bytes = (int)dtype_bytes((enum dtype)whole->dtype)},
        .dtype = whole->dtype,
        .position = rope[0].read[1].data,
        .rope_shape = {.rows = turn->rope.rows,
                       .heads = turn->rope.heads +
                                (rotated_pack.rope_count == 2 ? rope[1].work->rope.heads : 0),
                       .dim = turn->rope.dim,
                       .rotated = turn->rope.rotated ? turn->rope.rotated : turn->rope.dim,
                       .theta = rope[0].model.rope_theta,
                       .rotation_sign = rotated_pack.is_forward ? 1 : -1},
    };
    for (uint32_t k = 0; k < (reads ? pack.write_count : pack.read_count); k++)
        r.pack.block[k] = rotated_pack.rope_count == 2 && k < 2
                              ? rope_operand_away_from_pack(&rope[k], !reads)->data
                          : reads ? pack.write[k].data
                                  : pack.read[k].data;
    return cuda_rotated_pack(&r, rotated_pack.is_forward, stream->handle);
}

static bool run_compute(void *context, struct call *call)
{
    struct cuda_stream *stream = context;
    struct cuda_rank *rank = stream->rank;
    cudaError_t error;
    if (cuda_of_run(rank->run)->prepared_ops[call->op].is_computed_by_previous_op)
        return true;
    if (cuda_runs_on_host(rank->run->ir, call->op)) {
        struct cuda_host_work *work = &rank->host_work[cuda_op_index_in_role(rank, call->op)];
        *work = (struct cuda_host_work){rank->run, *call, stream->host_scratch};
        error = cudaLaunchHostFunc(stream->handle, run_on_processor, work);
        return error == cudaSuccess ||
               cuda_record_failure(rank, call->op, "cudaLaunchHostFunc", error);
    }
    struct cuda_launch_context place = launch_context_of(stream, call->op);
    const struct cuda_prepared_op *prepared = &cuda_of_run(rank->run)->prepared_ops[call->op];
    error = (cudaError_t)(prepared->computes_next_norm ? run_add_and_norm(stream, call)
                          : prepared->rotates_and_packs
                              ? run_rotated_pack(stream, call->op)
                              : cuda_compute_rows[call->work->kind].run(call, &place));
    return error == cudaSuccess ||
           cuda_record_failure(rank, call->op, "launching its kernels", error);
}

static bool enqueue_fill_zeros(void *context, struct call *call)
{
    struct cuda_stream *stream = context;
    const struct operand *y = &call->write[0];
    cudaError_t error = cudaMemsetAsync(
        y->data, 0, y->element_count * dtype_bytes((enum dtype)y->dtype), stream->handle);
    return error == cudaSuccess ||
           cuda_record_failure(stream->rank, call->op, "cudaMemsetAsync", error);
}

static bool run_copy(void *context, struct call *call)
{
    struct cuda_stream *stream = context;
    const struct operand *y = &call->write[0];
    cudaError_t error = cudaMemcpyAsync(
        y->data, call->read[0].data, y->element_count * dtype_bytes((enum dtype)y->dtype),
        call->work->kind == WORK_H2D ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
        stream->handle);
    return error == cudaSuccess ||
           cuda_record_failure(stream->rank, call->op, "cudaMemcpyAsync", error);
}

bool cuda_op_moves_no_bytes(const struct assignment *assignment, const struct call *call)
{
    bool in_place = call->read_count == 0 || call->write_count == 0 ||
                    call->read[0].data == call->write[0].data;
    return in_place && assignment->member_count_by_group[work_comm_group(call->work)] == 1;
}

/* Runs communication in a run of one rank, whose groups have one member. In a run of several ranks all communication is
 * launched by loopback.c or by NCCL. */
static bool run_single_member_collective(void *context, struct call *call)
{
    struct cuda_stream *stream = context;
    if (cuda_op_moves_no_bytes(&stream->rank->run->assignment, call))
        return true;
    if (call->work->kind == WORK_EXCHANGE) /* no row arrives */
        return enqueue_fill_zeros(context, call);
    cudaError_t error = cudaMemcpyAsync(call->write[0].data, call->read[0].data,
                                        call->write[0].element_count *
                                            dtype_bytes((enum dtype)call->write[0].dtype),
                                        cudaMemcpyDeviceToDevice, stream->handle);
    return error == cudaSuccess ||
           cuda_record_failure(stream->rank, call->op, "cudaMemcpyAsync", error);
}

backend_kernel *const cuda_kernels[WORK_KIND_COUNT] = {
    [WORK_MATMUL] = cuda_run_product,
    [WORK_ATTENTION] = run_attention,
    [WORK_ATTENTION_BACKWARD] = run_attention,
    [WORK_MERGE] = run_compute,
    [WORK_SINK] = run_compute,
    [WORK_SINK_BACKWARD] = run_compute,
    [WORK_RMSNORM] = run_compute,
    [WORK_RMSNORM_BACKWARD] = run_compute,
    [WORK_LAYERNORM] = run_compute,
    [WORK_LAYERNORM_BACKWARD] = run_compute,
    [WORK_ROPE] = run_compute,
    [WORK_ROPE_BACKWARD] = run_compute,
    [WORK_LATENT_KEYS] = run_compute,
    [WORK_LATENT_KEYS_BACKWARD] = run_compute,
    [WORK_SWIGLU] = run_compute,
    [WORK_SWIGLU_BACKWARD] = run_compute,
    [WORK_GELU] = run_compute,
    [WORK_GELU_BACKWARD] = run_compute,
    [WORK_ROUTE] = run_compute,
    [WORK_ROUTE_BACKWARD] = run_compute,
    [WORK_PERMUTE] = run_compute,
    [WORK_UNPERMUTE] = run_compute,
    [WORK_UNPERMUTE_BACKWARD] = run_compute,
    [WORK_PERMUTE_WEIGHTS] = run_compute,
    [WORK_PERMUTE_WEIGHTS_BACKWARD] = run_compute,
    [WORK_EMBEDDING] = run_compute,
    [WORK_EMBEDDING_BACKWARD] = run_compute,
    [WORK_CROSS_ENTROPY] = run_compute,
    [WORK_CROSS_ENTROPY_BACKWARD] = run_compute,
    [WORK_CROSS_ENTROPY_PARTIAL] = run_compute,
    [WORK_CROSS_ENTROPY_PARTIAL_BACKWARD] = run_compute,
    [WORK_CROSS_ENTROPY_FINISH] = run_compute,
    [WORK_ADD] = run_compute,
    [WORK_QUANTISE] =
        run_compute, /* check_types() allows scales of a tensor, and of blocks of 128 */
    [WORK_DEQUANTISE] = run_compute,
    [WORK_CAST] = run_compute,
    [WORK_FILL] = enqueue_fill_zeros,
    [WORK_PACK] = run_compute,
    [WORK_UNPACK] = run_compute,
    [WORK_HEAD_EXPAND] = run_compute,
    [WORK_HEAD_REDUCE] = run_compute,
    [WORK_TAKE_ROWS] = run_compute,
    [WORK_ADD_ROWS] = run_compute,
    [WORK_MERGE_ROWS] = run_compute,
    [WORK_ROW_DOT] = run_compute,
    [WORK_COLUMN_SUM] = run_compute,
    [WORK_ADAMW] = run_compute,
    [WORK_SQUARE_SUM] = run_compute,
    [WORK_CLIP] = run_compute,
    [WORK_ALL_TO_ALL] = run_single_member_collective,
    [WORK_ALL_GATHER] = run_single_member_collective,
    [WORK_REDUCE_SCATTER] = run_single_member_collective,
    [WORK_ALL_REDUCE] = run_single_member_collective,
    [WORK_REDUCE] = run_single_member_collective,
    [WORK_BROADCAST] = run_single_member_collective,
    [WORK_SCATTER] = run_single_member_collective,
    [WORK_EXCHANGE] = run_single_member_collective,
    [WORK_SHIFT] = run_single_member_collective,
    [WORK_SEND] = run_single_member_collective,
    [WORK_RECV] = run_single_member_collective,
    [WORK_H2D] = run_copy,
    [WORK_D2H] = run_copy,
};
