#include "exec/cuda/nccl_links.h"

#include "exec/assignment.h"

#ifdef HAVE_NCCL
static const ncclDataType_t types[DTYPE_COUNT] = {
    [DTYPE_BF16] = ncclBfloat16, [DTYPE_F16] = ncclFloat16, [DTYPE_F32] = ncclFloat32,
    [DTYPE_F64] = ncclFloat64,   [DTYPE_I32] = ncclInt32,   [DTYPE_U8] = ncclUint8,
};

struct nccl_member_op nccl_make_member_op(const struct nccl_links *links,
                                          const struct nccl_link *link, uint32_t size,
                                          uint32_t index, const struct call *call,
                                          cudaStream_t stream)
{
    enum dtype dtype =
        (enum dtype)(call->write_count > 0 ? &call->write[0] : &call->read[0])->dtype;
    return (struct nccl_member_op){.nccl = links->nccl,
                                   .comm = link->comm,
                                   .stream = stream,
                                   .call = call,
                                   .group_size = size,
                                   .member_index = index,
                                   .type = types[dtype],
                                   .element_bytes = dtype_bytes(dtype)};
}

static char *element_address(struct operand operand, uint64_t i)
{
    return (char *)operand.data + i * dtype_bytes((enum dtype)operand.dtype);
}

static ncclResult_t send_to(const struct nccl_member_op *p, const void *data, uint64_t count,
                            int64_t peer)
{
    return p->nccl->ncclSend(data, count, p->type, (int)peer, p->comm, p->stream);
}

static ncclResult_t recv_from(const struct nccl_member_op *p, void *data, uint64_t count,
                              int64_t peer)
{
    return p->nccl->ncclRecv(data, count, p->type, (int)peer, p->comm, p->stream);
}

static int64_t wrap_member_index(const struct nccl_member_op *p, int64_t index)
{
    int64_t size = (int64_t)p->group_size;
    return ((index % size) + size) % size;
}

/* Exchanges pieces between all members. In an all-to-all, piece k goes to member k, and piece k of the result comes
 * from member k. In a relative all-gather, all members get the same piece, and piece k of the result comes from the
 * member k ranks before this one. */
static ncclResult_t exchange_pieces(const struct nccl_member_op *p, bool relative)
{
    struct operand y = p->call->write[0], x = p->call->read[0];
    uint64_t each = y.element_count / p->group_size;
    ncclResult_t result = ncclSuccess;
    for (int64_t k = 0; k < (int64_t)p->group_size && result == ncclSuccess; k++) {
        int64_t to = relative ? wrap_member_index(p, p->member_index + k) : k;
        int64_t from = relative ? wrap_member_index(p, p->member_index - k) : k;
        result = send_to(p, relative ? x.data : element_address(x, (uint64_t)k * each), each, to);
        if (result == ncclSuccess)
            result = recv_from(p, element_address(y, (uint64_t)k * each), each, from);
    }
    return result;
}

/* Exchanges rows of an EXCHANGE. This rank sends each member the rows that the member needs, and receives the rows that
 * it needs itself. With exchange.back it sends back what it has made of each member's rows, and receives what the
 * members have made of its own rows. Two members without rows for each other exchange nothing. The rest of the result
 * becomes zero. */
static ncclResult_t exchange_rows(const struct nccl_member_op *p)
{
    struct operand y = p->call->write[0], x = p->call->read[0];
    const struct work *w = p->call->work;
    const struct assignment_exchanged_rows *rows = p->call->exchanged_rows;
    const int64_t *out =
        w->exchange.back ? rows->received.first_row_by_peer : rows->sent.first_row_by_peer;
    const int64_t *in =
        w->exchange.back ? rows->sent.first_row_by_peer : rows->received.first_row_by_peer;
    const int64_t width = w->exchange.width;
    ncclResult_t result =
        cudaMemsetAsync(y.data, 0, y.element_count * p->element_bytes, p->stream) == cudaSuccess
            ? ncclSuccess
            : ncclUnhandledCudaError;
    for (int64_t k = 0; k < (int64_t)p->group_size; k++)
        for (int64_t part = 0; part < w->exchange.parts && result == ncclSuccess; part++) {
            if (out[k + 1] > out[k])
                result = send_to(
                    p, element_address(x, (uint64_t)((part * w->exchange.rows + out[k]) * width)),
                    (uint64_t)((out[k + 1] - out[k]) * width), k);
            if (in[k + 1] > in[k] && result == ncclSuccess)
                result = recv_from(
                    p, element_address(y, (uint64_t)((part * w->exchange.to + in[k]) * width)),
                    (uint64_t)((in[k + 1] - in[k]) * width), k);
        }
    return result;
}

/* Exchanges rows of experts. With all_to_all.ahead, this rank sends each member the rows for that member's experts;
 * else it sends each member the results for the rows that came from there. Two members without rows for each other
 * exchange nothing. */
static ncclResult_t exchange_routed_rows(const struct nccl_member_op *p)
{
    struct operand y = p->call->write[0], x = p->call->read[0];
    const struct routed_rows *routed = p->call->routed_rows;
    const uint64_t cols = (uint64_t)p->call->work->all_to_all.cols;
    const bool ahead = p->call->work->all_to_all.ahead > 0;
    const uint64_t mine =
        (uint64_t)assignment_rows_per_rank_of_member(routed, p->member_index) * cols;
    uint64_t before = 0;
    ncclResult_t result = ncclSuccess;
    for (uint32_t k = 0; k < p->group_size && result == ncclSuccess; k++) {
        const uint64_t theirs = (uint64_t)assignment_rows_per_rank_of_member(routed, k) * cols;
        const uint64_t out = ahead ? theirs : mine, in = ahead ? mine : theirs;
        if (out > 0)
            result = send_to(p, element_address(x, ahead ? before : k * mine), out, k);
        if (in > 0 && result == ncclSuccess)
            result = recv_from(p, element_address(y, ahead ? k * mine : before), in, k);
        before += theirs;
    }
    return result;
}

/* Sends piece k of the root's operand to member k, also to the root itself, and receives this member's piece. */
static ncclResult_t scatter(const struct nccl_member_op *p)
{
    struct operand y = p->call->write[0], x = p->call->read[0];
    int64_t root = p->call->work->broadcast.root;
    ncclResult_t result = ncclSuccess;
    for (int64_t k = 0;
         p->member_index == root && k < (int64_t)p->group_size && result == ncclSuccess; k++)
        result = send_to(p, element_address(x, (uint64_t)k * y.element_count), y.element_count, k);
    return result == ncclSuccess ? recv_from(p, y.data, y.element_count, root) : result;
}

/* Copies the pieces of a relative reduce-scatter to scratch, where piece m is for member m. In the operand, piece j is
 * for the member j ranks before this one. Sets *error, and returns scratch. */
static const void *reorder_sent_pieces_by_member(const struct nccl_member_op *p, void *scratch,
                                                 cudaError_t *error)
{
    struct operand x = p->call->read[0];
    uint64_t each = x.element_count / p->group_size;
    for (int64_t m = 0; m < (int64_t)p->group_size && *error == cudaSuccess; m++)
        *error = cudaMemcpyAsync(
            (char *)scratch + (uint64_t)m * each * p->element_bytes,
            element_address(x, (uint64_t)wrap_member_index(p, p->member_index - m) * each),
            each * p->element_bytes, cudaMemcpyDeviceToDevice, p->stream);
    return scratch;
}

static ncclResult_t reduce_scatter(const struct nccl_member_op *p, void *scratch)
{
    struct operand y = p->call->write[0];
    const void *x = p->call->read[0].data;
    cudaError_t error = cudaSuccess;
    if (p->call->work->collective.relative)
        x = reorder_sent_pieces_by_member(p, scratch, &error);
    return error != cudaSuccess ? ncclUnhandledCudaError
                                : p->nccl->ncclReduceScatter(x, y.data, y.element_count, p->type,
                                                             ncclSum, p->comm, p->stream);
}

ncclResult_t nccl_enqueue_member_op(const struct nccl_member_op *p, void *scratch)
{
    const struct call *c = p->call;
    const struct work *w = c->work;
    const struct operand *x = &c->read[0], *y = &c->write[0];
    switch ((enum work_kind)w->kind) {
    case WORK_ALL_TO_ALL:
        return c->routed_rows != NULL ? exchange_routed_rows(p) : exchange_pieces(p, false);
    case WORK_EXCHANGE:
        return exchange_rows(p);
    case WORK_ALL_GATHER:
        return w->collective.relative ? exchange_pieces(p, true)
                                      : p->nccl->ncclAllGather(x->data, y->data, x->element_count,
                                                               p->type, p->comm, p->stream);
    case WORK_REDUCE_SCATTER:
        return reduce_scatter(p, scratch);
    case WORK_ALL_REDUCE:
        return p->nccl->ncclAllReduce(x->data, y->data, y->element_count, p->type,
                                      w->all_reduce.op == REDUCE_MAX ? ncclMax : ncclSum, p->comm,
                                      p->stream);
    case WORK_REDUCE:
        return p->nccl->ncclReduce(x->data, c->write_count > 0 ? y->data : NULL, x->element_count,
                                   p->type, ncclSum, (int)w->broadcast.root, p->comm, p->stream);
    case WORK_BROADCAST:
        return p->nccl->ncclBroadcast(c->read_count > 0 ? x->data : y->data, y->data,
                                      y->element_count, p->type, (int)w->broadcast.root, p->comm,
                                      p->stream);
    case WORK_SCATTER:
        return scatter(p);
    case WORK_SHIFT: {
        ncclResult_t result = send_to(p, x->data, x->element_count,
                                      wrap_member_index(p, p->member_index + w->p2p.by));
        return result == ncclSuccess ? recv_from(p, y->data, y->element_count,
                                                 wrap_member_index(p, p->member_index - w->p2p.by))
                                     : result;
    }
    case WORK_SEND:
        return send_to(p, x->data, x->element_count, (int64_t)p->member_index + w->p2p.by);
    default: /* WORK_RECV */
        return recv_from(p, y->data, y->element_count, (int64_t)p->member_index + w->p2p.by);
    }
}

size_t nccl_scratch_bytes(const struct call *call)
{
    bool turns = call->work->kind == WORK_REDUCE_SCATTER && call->work->collective.relative;
    return turns ? call->read[0].element_count * dtype_bytes((enum dtype)call->read[0].dtype) : 0;
}
#endif
