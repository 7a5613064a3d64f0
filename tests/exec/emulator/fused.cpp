/* cuDNN's fused attention, computed in a simple way in double: it does what fused.h promises, so that the code around
 * it can be tested. A handle has a device and the stream that it was given. A plan runs on the device for which it
 * was built, and only while the handle exists with which it was built. */
#include "tests/exec/emulator/emulator.h"
#ifdef HAVE_CUDNN
#include <atomic>
#include <cudnn.h>

extern "C" {
#include "exec/cuda/fused.h"
}
#include "tests/exec/emulator/numbers.h"
#include "tests/exec/emulator/stream.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <set>
#include <vector>

struct cudnnContext {
    int device;
    cudaStream_t stream;
};

struct fused {
    fused_shape shape;
    cudnnHandle_t builder;
    int device;
    uint64_t unique_plan_number; /* no other plan has it */
};

namespace
{

typedef const uint16_t *Halves; /* numbers of 16 bits: f16 or bf16 */

/* The statistics of all rows and heads: log(sum of exp(score)). They are stored head by head, or row by row. */
struct Statistics {
    float *data;
    int64_t row_step, head_step;
    float &at(int64_t row, int64_t head) const
    {
        return data[row * row_step + head * head_step];
    }
};

/* Attention of one shape, or of one document in a plan for documents. Operands are [row][head][dim]. */
struct Tile {
    fused_shape s;

    double get(Halves data, int64_t row, int64_t heads, int64_t head, int64_t d, int64_t dim) const
    {
        uint16_t bits = data[(row * heads + head) * dim + d];
        return s.is_f16 ? from_f16(bits) : from_bf16(bits);
    }
    void put(void *data, int64_t row, int64_t heads, int64_t head, int64_t d, int64_t dim,
             double x) const
    {
        static_cast<uint16_t *>(data)[(row * heads + head) * dim + d] =
            s.is_f16 ? to_f16((float)x) : to_bf16((float)x);
    }
    /* A row sees the keys from first_key_of() to keys_of() - 1. */
    int64_t keys_of(int64_t row) const
    {
        int64_t end = s.mask == FUSED_MASK_NONE                ? s.kv
                      : s.mask == FUSED_MASK_CAUSAL_FROM_START ? row + 1
                                                               : row + 1 + s.kv - s.q;
        return end < s.kv ? end : s.kv;
    }
    int64_t first_key_of(int64_t row) const
    {
        int64_t end = row + 1 + (s.mask == FUSED_MASK_CAUSAL_TO_END ? s.kv - s.q : 0);
        return s.window > 0 && s.window < end ? end - s.window : 0;
    }
    /* Returns the head of K and V that a head of Q uses. */
    int64_t kv_head(int64_t head) const
    {
        return head / (s.heads / s.kv_heads);
    }
    /* Returns the product of row i of a, in `head`, with row j of b, in `head_b` of heads_b. */
    double dot(Halves a, int64_t i, Halves b, int64_t j, int64_t heads_b, int64_t head,
               int64_t head_b, int64_t dim) const
    {
        double sum = 0;
        for (int64_t d = 0; d < dim; d++)
            sum += get(a, i, s.heads, head, d, dim) * get(b, j, heads_b, head_b, d, dim);
        return sum;
    }
};

void forward(Tile t, Halves q, Halves k, Halves v, void *o, Statistics stats)
{
    const fused_shape &s = t.s;
    for (int64_t h = 0; h < s.heads; h++)
        for (int64_t i = 0; i < s.q; i++) {
            int64_t keys = t.keys_of(i), g = t.kv_head(h);
            std::vector<double> p(static_cast<size_t>(s.kv));
            double sum = 0;
            const int64_t first = t.first_key_of(i);
            for (int64_t j = first; j < keys; j++)
                sum += p[(size_t)j] =
                    exp(t.dot(q, i, k, j, s.kv_heads, h, g, s.dim) / sqrt((double)s.dim));
            stats.at(i, h) = (float)log(sum);
            for (int64_t d = 0; d < s.vdim; d++) {
                double x = 0;
                for (int64_t j = first; j < keys; j++)
                    x += p[(size_t)j] / sum * t.get(v, j, s.kv_heads, g, d, s.vdim);
                t.put(o, i, s.heads, h, d, s.vdim, x);
            }
        }
}

struct Gradients {
    void *dq, *dk, *dv;
};

void backward(Tile t, Halves q, Halves k, Halves v, Halves o, Halves d_o, Statistics stats,
              Gradients to)
{
    const fused_shape &s = t.s;
    const double scale = 1 / sqrt((double)s.dim);
    size_t keys_all = static_cast<size_t>(s.kv * s.kv_heads);
    std::vector<double> dk(keys_all * static_cast<size_t>(s.dim)),
        dv(keys_all * static_cast<size_t>(s.vdim)), dq(static_cast<size_t>(s.dim));
    for (int64_t h = 0; h < s.heads; h++)
        for (int64_t i = 0; i < s.q; i++) {
            int64_t g = t.kv_head(h);
            double delta = t.dot(o, i, d_o, i, s.heads, h, h, s.vdim);
            dq.assign(dq.size(), 0);
            for (int64_t j = t.first_key_of(i); j < t.keys_of(i); j++) {
                double p = exp(t.dot(q, i, k, j, s.kv_heads, h, g, s.dim) * scale - stats.at(i, h));
                double ds = p * (t.dot(d_o, i, v, j, s.kv_heads, h, g, s.vdim) - delta) * scale;
                size_t row = static_cast<size_t>(j * s.kv_heads + g);
                for (int64_t d = 0; d < s.vdim; d++)
                    dv[row * (size_t)s.vdim + (size_t)d] +=
                        p * t.get(d_o, i, s.heads, h, d, s.vdim);
                for (int64_t d = 0; d < s.dim; d++) {
                    dk[row * (size_t)s.dim + (size_t)d] += ds * t.get(q, i, s.heads, h, d, s.dim);
                    dq[(size_t)d] += ds * t.get(k, j, s.kv_heads, g, d, s.dim);
                }
            }
            for (int64_t d = 0; d < s.dim; d++)
                t.put(to.dq, i, s.heads, h, d, s.dim, dq[(size_t)d]);
        }
    for (int64_t j = 0; j < s.kv; j++)
        for (int64_t g = 0; g < s.kv_heads; g++) {
            size_t row = static_cast<size_t>(j * s.kv_heads + g);
            for (int64_t d = 0; d < s.dim; d++)
                t.put(to.dk, j, s.kv_heads, g, d, s.dim, dk[row * (size_t)s.dim + (size_t)d]);
            for (int64_t d = 0; d < s.vdim; d++)
                t.put(to.dv, j, s.kv_heads, g, d, s.vdim, dv[row * (size_t)s.vdim + (size_t)d]);
        }
}

/* The offset in each operand, in elements, at which the rows of a document begin. */
struct Offsets {
    int64_t q, k, v, o, stats;
};
/* Calls work(tile, offsets) for each document; for a shape without documents, once. */
template <class WORK>
void for_each_document(const fused_shape &s, const fused_documents &d, WORK work)
{
    if (s.documents == 0) {
        work(Tile{s}, Offsets{0, 0, 0, 0, 0});
        return;
    }
    for (int64_t i = 0; i < s.documents; i++) {
        Tile tile = {s};
        tile.s.q = d.q_rows[i];
        tile.s.kv = d.kv_rows[i];
        if (tile.s.q > s.q || tile.s.kv > s.kv) {
            fprintf(stderr, "a document has more rows than the plan's longest\n");
            abort();
        }
        work(tile, Offsets{d.q_offset[i], d.k_offset[i], d.v_offset[i], d.o_offset[i],
                           d.stats_offset[i]});
    }
}

Statistics statistics_of(const fused_shape &s, const float *stats)
{
    float *data = const_cast<float *>(stats);
    return s.documents > 0 ? Statistics{data, s.heads, 1} : Statistics{data, 1, s.q};
}

/* These functions return the address of an element of two bytes. */
Halves from(const void *data, int64_t element)
{
    return static_cast<Halves>(data) + element;
}
void *from(void *data, int64_t element)
{
    return static_cast<uint16_t *>(data) + element;
}

std::mutex lock;
std::set<cudnnHandle_t> handles; /* those that exist */

cudnnStatus_t cudnn_handle_create(cudnnHandle_t *handle)
{
    emulator::touch();
    *handle = new cudnnContext{emulator::current_device(), nullptr};
    std::lock_guard<std::mutex> guard(lock);
    handles.insert(*handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_handle_destroy(cudnnHandle_t handle)
{
    std::lock_guard<std::mutex> guard(lock);
    handles.erase(handle);
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnn_handle_set_stream(cudnnHandle_t handle, cudaStream_t stream)
{
    if (handle->device != emulator::device_of(stream))
        return CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

size_t version()
{
    return static_cast<size_t>(emulator_versions.cudnn);
}

const char *cudnn_error_string(cudnnStatus_t)
{
    return "the stream is of another device than the handle";
}

/* Returns why a plan cannot run with a handle on these addresses; NULL: it can. */
const char *refusal(const fused *plan, cudnnHandle_t handle,
                    std::initializer_list<const void *> used)
{
    if (handle->device != plan->device)
        return "the plan was built for another device than the handle's";
    for (const void *address : used)
        if (!emulator::can_device_access(plan->device, address))
            return "memory is of another device than the plan";
    std::lock_guard<std::mutex> guard(lock);
    return handles.count(plan->builder) == 0 ? "the handle that the plan was built with is gone"
                                             : nullptr;
}

/* Puts the work of a plan on the stream of the handle. Returns why that is not possible; NULL: it is done. */
const char *launch(const fused *plan, cudnnHandle_t handle, std::function<void()> work)
{
    emulator::load(reinterpret_cast<const void *>(&fused_new), plan->unique_plan_number);
    return emulator::submit(handle->stream, std::move(work)) == 0
               ? nullptr
               : "the stream is of another device than the current one";
}

} // namespace

extern "C" {

struct fused *fused_new(const struct cudnn *, const struct fused_shape *shape)
{
    static std::atomic<uint64_t> plans;
    return new fused{*shape, nullptr, 0, plans++};
}

void fused_free(struct fused *fused)
{
    delete fused;
}

bool fused_build(struct fused *fused, cudnnHandle_t handle, cudnnBackendDescriptor_t, char *words,
                 size_t size)
{
    fused->builder = handle;
    fused->device = handle->device;
    const fused_shape &s = fused->shape;
    const char *why = handle->device != emulator::current_device()
                          ? "the handle is of another device than the current one"
                      : s.q == 1 && s.mask != FUSED_MASK_NONE ? "a causal mask of one query"
                      : s.q == 1 && s.kv == 1 && s.is_backward
                          ? "a backward of one query and one key"
                          : nullptr;
    snprintf(words, size, "%s", why != nullptr ? why : "");
    return why == nullptr;
}

size_t fused_scratch_bytes(const struct fused *)
{
    return 0;
}

const char *fused_forward(const struct fused *fused, cudnnHandle_t handle, const void *q,
                          const void *k, const void *v, void *o, float *stats, void *,
                          const struct fused_documents *documents)
{
    const fused_shape s = fused->shape;
    const fused_documents all = documents != nullptr ? *documents : fused_documents{};
    const char *words = refusal(fused, handle, {q, k, v, o, stats});
    return words != nullptr ? words : launch(fused, handle, [=] {
        for_each_document(s, all, [=](Tile t, Offsets at) {
            forward(t, from(q, at.q), from(k, at.k), from(v, at.v), from(o, at.o),
                    statistics_of(s, stats + at.stats));
        });
    });
}

const char *fused_backward(const struct fused *fused, cudnnHandle_t handle, const void *q,
                           const void *k, const void *v, const void *o, const void *d_o,
                           const float *stats, void *dq, void *dk, void *dv, void *,
                           const struct fused_documents *documents)
{
    const fused_shape s = fused->shape;
    const fused_documents all = documents != nullptr ? *documents : fused_documents{};
    const char *words = refusal(fused, handle, {q, k, v, o, d_o, stats, dq, dk, dv});
    return words != nullptr ? words : launch(fused, handle, [=] {
        for_each_document(s, all, [=](Tile t, Offsets at) {
            backward(t, from(q, at.q), from(k, at.k), from(v, at.v), from(o, at.o), from(d_o, at.o),
                     statistics_of(s, stats + at.stats),
                     {from(dq, at.q), from(dk, at.k), from(dv, at.v)});
        });
    });
}

void emulator_use_cudnn(void)
{
    static struct cudnn table;
    table.cudnnCreate = cudnn_handle_create;
    table.cudnnDestroy = cudnn_handle_destroy;
    table.cudnnSetStream = cudnn_handle_set_stream;
    table.cudnnGetVersion = version;
    table.cudnnGetErrorString = cudnn_error_string;
    cudnn_use_table(&table);
}
}
#endif
