#include "exec/cuda/compute.h"

#include "exec/assignment.h"
#include "exec/moved_rows.h"
#include "models/frozen_storage.h"

#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

_Static_assert((int)CUDA_BF16 == (int)DTYPE_BF16 && (int)CUDA_F16 == (int)DTYPE_F16 &&
                   (int)CUDA_F32 == (int)DTYPE_F32,
               "kernels count types as models/dtype.h does");
_Static_assert((int)CUDA_SOFTMAX == (int)ROUTE_SOFTMAX &&
                   (int)CUDA_SOFTMAX_OF_CHOSEN == (int)ROUTE_SOFTMAX_OF_CHOSEN &&
                   (int)CUDA_SIGMOID == (int)ROUTE_SIGMOID,
               "kernels count scores of routers as models/work.h does");

static const struct cuda_array NOTHING = {0};

static struct cuda_array cuda_array_of_read(const struct call *call, uint32_t k)
{
    return cuda_array_of(call->read[k]);
}

static struct cuda_array cuda_array_of_write(const struct call *call, uint32_t k)
{
    return cuda_array_of(call->write[k]);
}

/* Returns the k-th read, or an empty array if the op has fewer. */
static struct cuda_array cuda_array_of_read_or_none(const struct call *call, uint32_t k)
{
    return k < call->read_count ? cuda_array_of_read(call, k) : NOTHING;
}

/* ---- norms ---- */

static int rmsnorm(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_rmsnorm(cuda_array_of_write(call, 0), call->write[1].data,
                        cuda_array_of_read(call, 0), cuda_array_of_read(call, 1), w->rows.rows,
                        w->rows.cols, call->model.norm_eps, place->stream);
}

static int rmsnorm_backward(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_rmsnorm_backward(cuda_array_of_write(call, 0), cuda_array_of_write(call, 1),
                                 cuda_array_of_read(call, 0), cuda_array_of_read(call, 1),
                                 cuda_array_of_read(call, 2), call->read[3].data,
                                 cuda_array_of_read_or_none(call, 4), w->rows.rows, w->rows.cols,
                                 place->scratch, place->stream);
}

static int layernorm(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_layernorm(cuda_array_of_write(call, 0), call->write[1].data,
                          cuda_array_of_read(call, 0), cuda_array_of_read(call, 1),
                          cuda_array_of_read(call, 2), w->rows.rows, w->rows.cols,
                          call->model.norm_eps, place->stream);
}

static int layernorm_backward(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_layernorm_backward(cuda_array_of_write(call, 0), cuda_array_of_write(call, 1),
                                   cuda_array_of_write(call, 2), cuda_array_of_read(call, 0),
                                   cuda_array_of_read(call, 1), cuda_array_of_read(call, 2),
                                   call->read[3].data, cuda_array_of_read_or_none(call, 4),
                                   cuda_array_of_read_or_none(call, 5), w->rows.rows, w->rows.cols,
                                   place->scratch, place->stream);
}

/* Returns the elements of an array from `index` on; an array without data is returned as it is. */
static struct cuda_array array_from_element_on(struct cuda_array x, int64_t index)
{
    if (x.data != NULL)
        x.data = (char *)x.data + (size_t)index * dtype_bytes((enum dtype)x.dtype);
    return x;
}

int cuda_set_to_before_or_zero(struct cuda_array y, struct cuda_array before, int64_t count,
                               cudaStream_t stream)
{
    if (before.data != NULL)
        return before.data == y.data ? 0 : cuda_cast(y, before, count, stream);
    return (int)cudaMemsetAsync(y.data, 0, (size_t)count * dtype_bytes((enum dtype)y.dtype),
                                stream);
}

static int column_sum(const struct call *call, const struct cuda_launch_context *place)
{
    const int64_t total = call->work->column_sum.rows, cols = call->work->column_sum.cols;
    const int64_t groups = work_row_group_count(call->work);
    int64_t end = 0;
    int error = 0;
    for (int64_t g = 0; g < groups && error == 0; g++) {
        const int64_t first = end;
        end = assignment_group_rows_end(call->routed_rows, total, groups, g, first);
        const int64_t rows = end - first;
        const struct cuda_array y = array_from_element_on(cuda_array_of_write(call, 0), g * cols),
                                before = array_from_element_on(cuda_array_of_read_or_none(call, 1),
                                                               g * cols);
        error = rows == 0 ? cuda_set_to_before_or_zero(y, before, cols, place->stream)
                          : cuda_column_sum(
                                y, array_from_element_on(cuda_array_of_read(call, 0), first * cols),
                                before, rows, cols, place->scratch, place->stream);
    }
    return error;
}

static size_t one_column_sum_scratch_bytes(const struct work *work)
{
    return cuda_column_scratch_bytes(work->rows.rows, work->rows.cols, 1);
}

static size_t two_column_sums_scratch_bytes(const struct work *work)
{
    return cuda_column_scratch_bytes(work->rows.rows, work->rows.cols, 2);
}

/* ---- RoPE, the keys of latent attention, work on single elements, square sums, and casts ---- */

static int rotate_pairs(const struct call *call, const struct cuda_launch_context *place,
                        int direction)
{
    const struct work *w = call->work;
    const struct cuda_rope_shape turn = {
        .rows = w->rope.rows,
        .heads = w->rope.heads,
        .dim = w->rope.dim,
        .rotated = w->rope.rotated ? w->rope.rotated : w->rope.dim,
        .stride = w->rope.stride ? w->rope.stride : w->rope.heads * w->rope.dim,
        .theta = call->model.rope_theta,
        .rotation_sign = direction,
    };
    return cuda_rope(cuda_array_of_write(call, 0), cuda_array_of_read(call, 0), call->read[1].data,
                     turn, place->stream);
}

static int rope(const struct call *call, const struct cuda_launch_context *place)
{
    return rotate_pairs(call, place, 1);
}

static int rope_backward(const struct call *call, const struct cuda_launch_context *place)
{
    return rotate_pairs(call, place, -1);
}

static int latent_keys(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_latent_keys(
        (struct cuda_latent_keys_operands){
            cuda_array_of_read(call, 0), cuda_array_of_read(call, 1), cuda_array_of_write(call, 0),
            cuda_array_of_write(call, 1), w->latent_keys.rows, w->latent_keys.heads,
            w->latent_keys.plain, w->latent_keys.rotated, w->latent_keys.vdim},
        place->stream);
}

static int latent_keys_backward(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_latent_keys_backward(
        (struct cuda_latent_keys_operands){
            cuda_array_of_write(call, 0), cuda_array_of_write(call, 1), cuda_array_of_read(call, 0),
            cuda_array_of_read(call, 1), w->latent_keys.rows, w->latent_keys.heads,
            w->latent_keys.plain, w->latent_keys.rotated, w->latent_keys.vdim},
        place->stream);
}

static enum cuda_activation_kind cuda_activation_kind_of(const struct call *call)
{
    return (enum cuda_activation_kind)call->work->activation.function;
}

static int swiglu(const struct call *call, const struct cuda_launch_context *place)
{
    return cuda_swiglu(cuda_array_of_write(call, 0), cuda_array_of_read(call, 0),
                       call->work->activation.weights ? call->read[1].data : NULL,
                       call->work->activation.rows, call->work->activation.cols,
                       cuda_activation_kind_of(call), place->stream);
}

static int swiglu_backward(const struct call *call, const struct cuda_launch_context *place)
{
    if (call->work->activation.weights)
        return cuda_weighted_swiglu_backward(
            cuda_array_of_write(call, 0), call->write[1].data, cuda_array_of_read(call, 0),
            cuda_array_of_read(call, 1), call->read[2].data, call->work->activation.rows,
            call->work->activation.cols, cuda_activation_kind_of(call), place->stream);
    return cuda_swiglu_backward(
        cuda_array_of_write(call, 0), cuda_array_of_read(call, 0), cuda_array_of_read(call, 1),
        call->work->rows.rows, call->work->rows.cols, cuda_activation_kind_of(call), place->stream);
}

static int gelu(const struct call *call, const struct cuda_launch_context *place)
{
    return cuda_gelu(cuda_array_of_write(call, 0), cuda_array_of_read(call, 0),
                     call->work->rows.rows * call->work->rows.cols, cuda_activation_kind_of(call),
                     place->stream);
}

static int gelu_backward(const struct call *call, const struct cuda_launch_context *place)
{
    return cuda_gelu_backward(cuda_array_of_write(call, 0), cuda_array_of_read(call, 0),
                              cuda_array_of_read(call, 1),
                              call->work->rows.rows * call->work->rows.cols,
                              cuda_activation_kind_of(call), place->stream);
}

static int add_arrays(const struct call *call, const struct cuda_launch_context *place)
{
    int64_t count = call->work->elements.count, cols = call->work->elements.cols;
    return cols > 0 ? cuda_add_bias(cuda_array_of_write(call, 0), cuda_array_of_read(call, 0),
                                    cuda_array_of_read(call, 1), cuda_array_of_read(call, 2),
                                    count / cols, cols, place->stream)
                    : cuda_add(cuda_array_of_write(call, 0), cuda_array_of_read(call, 0),
                               cuda_array_of_read(call, 1), count, place->stream);
}

static int cast_array(const struct call *call, const struct cuda_launch_context *place)
{
    return cuda_cast(cuda_array_of_write(call, 0), cuda_array_of_read(call, 0),
                     call->work->elements.count, place->stream);
}

static int dequantise(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    const enum frozen_storage storage = (enum frozen_storage)w->dequantise.storage;
    struct cuda_stored_weight stored = {
        .codes = call->read[0].data,
        .scales = call->read[1].data,
        .count = w->dequantise.rows * w->dequantise.cols,
        .scale_elements = storage == FROZEN_STORAGE_INT8 ? w->dequantise.cols : 64,
        .has_bytes = storage == FROZEN_STORAGE_INT8,
        .has_narrow_scales = storage == FROZEN_STORAGE_NF4_DOUBLE,
    };
    memcpy(stored.value, frozen_storage_values, sizeof stored.value);
    frozen_storage_scale_values(stored.scale_value);
    return cuda_dequantise(cuda_array_of_write(call, 0), stored, place->stream);
}

/* Computes the same constants as cpu_adamw() of exec/cpu/pointwise.c, in the same order of operations. */
static int adamw(const struct call *call, const struct cuda_launch_context *place)
{
    const struct exec_adamw *a = &call->adamw;
    const struct cuda_adamw constants = {
        .beta1 = (float)a->beta1,
        .beta2 = (float)a->beta2,
        .one_less_beta1 = (float)(1 - a->beta1),
        .one_less_beta2 = (float)(1 - a->beta2),
        .eps = (float)a->eps,
        .decay_factor = (float)(1 - a->lr * a->weight_decay),
        .corrected_lr = (float)(a->lr / (1 - pow(a->beta1, (double)a->step_number))),
        .root_correction = (float)(1 / sqrt(1 - pow(a->beta2, (double)a->step_number))),
        .max_norm = (float)a->max_norm,
    };
    return cuda_adamw(call->write_count > 3 ? cuda_array_of_write(call, 3) : NOTHING,
                      cuda_array_of_write(call, 0), cuda_array_of_write(call, 1),
                      cuda_array_of_write(call, 2), cuda_array_of_read(call, 0),
                      cuda_array_of_read(call, 1), cuda_array_of_read(call, 2),
                      cuda_array_of_read(call, 3), call->read_count > 4 ? call->read[4].data : NULL,
                      call->work->adamw.count, constants, place->stream);
}

static int clip_gradients(const struct call *call, const struct cuda_launch_context *place)
{
    return cuda_clip(cuda_array_of_write(call, 0), cuda_array_of_read(call, 0), call->read[1].data,
                     call->adamw.max_norm, call->work->elements.count, place->stream);
}

static size_t square_sum_scratch_bytes(const struct work *work)
{
    return cuda_square_sum_scratch_bytes(work->square_sum.count);
}

/* Adds the squares of one run of elements after the other; each launch adds to the sum of the runs before. */
static int square_sum(const struct call *call, const struct cuda_launch_context *place)
{
    const struct copied_run all = {0, (uint64_t)call->work->square_sum.count, 1}, none = {0, 0, 1};
    const struct copied_run *share = call->square_sum_runs == NULL     ? &all
                                     : call->square_sum_run_count == 0 ? &none
                                                                       : call->square_sum_runs;
    const float *before = call->read_count > 1 ? call->read[1].data : NULL;
    uint32_t shares = call->square_sum_run_count > 0 ? call->square_sum_run_count : 1;
    int error = 0;
    for (uint32_t k = 0; k < shares && error == 0; k++) {
        struct cuda_array x = cuda_array_of_read(call, 0);
        x.data = (char *)x.data + share[k].begin * dtype_bytes((enum dtype)call->read[0].dtype);
        error = cuda_square_sum(call->write[0].data, before, x, (int64_t)share[k].element_count,
                                share[k].copies, place->scratch, place->stream);
        before = call->write[0].data;
    }
    return error;
}

/* Returns the bytes of scratch memory of a cast to 8 bits: for cuda_largest_magnitude(), followed by one float, its
 * result. */
static size_t quantise_scratch_bytes(const struct work *work)
{
    return cuda_largest_magnitude_scratch_bytes(work->quantise.rows * work->quantise.cols) +
           sizeof(float);
}

static int quantise(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    const int64_t rows = w->quantise.rows, cols = w->quantise.cols;
    const struct cuda_eight_bit_format e4m3 = {3, 7, 448}, e5m2 = {2, 15, 57344};
    float *largest =
        w->quantise.finds ? call->write[0].data
        : w->quantise.given
            ? call->read[1].data
            : (void *)((char *)place->scratch + cuda_largest_magnitude_scratch_bytes(rows * cols));
    int error = 0;
    if (w->quantise.scaling == SCALING_VECTOR || w->quantise.scaling == SCALING_BLOCK) {
        const int block_rows = w->quantise.scaling == SCALING_BLOCK ? CUDA_SCALE_BLOCK : 1;
        for (uint32_t k = 0; k + 1 < call->write_count && error == 0; k += 2)
            error = cuda_quantise_blocks(
                call->write[k].data, call->write[k + 1].data, cuda_array_of_read(call, 0), rows,
                cols, w->quantise.turned || k > 0, block_rows,
                call->write[k].dtype == DTYPE_E4M3 ? e4m3 : e5m2, place->stream);
        return error;
    }
    if (!w->quantise.given)
        error = cuda_largest_magnitude(largest, cuda_array_of_read(call, 0), rows * cols,
                                       place->scratch, place->stream);
    for (uint32_t k = 0; k + 1 < call->write_count && error == 0; k += 2)
        error =
            cuda_quantise(call->write[k].data, call->write[k + 1].data, cuda_array_of_read(call, 0),
                          rows, cols, w->quantise.turned || k > 0, largest,
                          call->write[k].dtype == DTYPE_E4M3 ? e4m3 : e5m2, place->stream);
    return error;
}

/* ---- embedding and loss ---- */

/* Returns the first row of the vocabulary in a rank's part of the table. */
static int64_t first_vocabulary_row(const struct call *call)
{
    return call->work->embedding.first +
           call->index_in_sharding_group * call->work->embedding.vocab;
}

static int embedding(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_embedding(cuda_array_of_write(call, 0), call->read[0].data,
                          cuda_array_of_read(call, 1), w->embedding.rows, w->embedding.cols,
                          w->embedding.vocab, first_vocabulary_row(call), place->stream);
}

static size_t embedding_backward_scratch_bytes(const struct work *work)
{
    return cuda_embedding_backward_scratch_bytes(work->embedding.rows, work->embedding.vocab);
}

static int embedding_backward(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    if (call->write_count > 1) {
        const struct operand *others = &call->write[1];
        const int error = (int)cudaMemsetAsync(
            others->data, 0, others->element_count * dtype_bytes(others->dtype), place->stream);
        if (error != 0)
            return error;
    }
    return cuda_embedding_backward(cuda_array_of_write(call, 0), cuda_array_of_read(call, 0),
                                   call->read[1].data, cuda_array_of_read_or_none(call, 2),
                                   w->embedding.rows, w->embedding.cols, w->embedding.vocab,
                                   first_vocabulary_row(call), place->scratch, place->stream);
}

static size_t loss_scratch_bytes(const struct work *work)
{
    return cuda_cross_entropy_scratch_bytes(work->cross_entropy.rows);
}

static int cross_entropy(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    bool softmax = call->write_count > 2 && call->write[2].dtype != DTYPE_U8;
    return cuda_cross_entropy(
        call->write[0].data, call->write[1].data, softmax ? cuda_array_of_write(call, 2) : NOTHING,
        cuda_array_of_read(call, 0), call->read[1].data,
        w->cross_entropy.accumulate ? call->read[2].data : NULL, w->cross_entropy.rows,
        w->cross_entropy.vocab, (double)w->cross_entropy.count, place->fault_op_plus_1_address,
        place->fault_op_plus_1, place->scratch, place->stream);
}

static int cross_entropy_backward(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_cross_entropy_backward(
        cuda_array_of_write(call, 0), cuda_array_of_read(call, 0), call->read[1].data,
        call->reads_softmax, w->cross_entropy.rows, w->cross_entropy.vocab,
        (double)w->cross_entropy.count, place->fault_op_plus_1_address, place->fault_op_plus_1,
        place->stream);
}

/* Returns how many columns of a rank's part of the logits, of `vocab` columns from token `first` on, belong to tokens
 * of the vocabulary; the rest is padding. total: the size of the vocabulary; 0: no column is padding. */
static int64_t vocabulary_columns(int64_t vocab, int64_t first, int64_t total)
{
    int64_t left = total > 0 ? total - first : vocab;
    return left < 0 ? 0 : left < vocab ? left : vocab;
}

static int cross_entropy_partial(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    int64_t vocab = w->loss_partial.vocab,
            first = w->loss_partial.first + call->index_in_sharding_group * vocab;
    return cuda_cross_entropy_partial(
        call->write[0].data, cuda_array_of_read(call, 0), call->read[1].data, w->loss_partial.rows,
        vocab, vocabulary_columns(vocab, first, w->loss_partial.total), first, place->stream);
}

static int cross_entropy_partial_backward(const struct call *call,
                                          const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    int64_t vocab = w->loss_backward.vocab,
            first = w->loss_backward.first + call->index_in_sharding_group * vocab;
    return cuda_cross_entropy_partial_backward(
        cuda_array_of_write(call, 0), cuda_array_of_read(call, 0), call->read[1].data,
        call->read[2].data, w->loss_backward.rows, vocab,
        vocabulary_columns(vocab, first, w->loss_backward.total), first,
        (double)w->loss_backward.count, place->stream);
}

static int cross_entropy_finish(const struct call *call, const struct cuda_launch_context *place)
{
    const int64_t *p = call->work->p; /* rows, vocab, count, first, accumulate */
    int64_t parts = (int64_t)call->read[2].element_count / (3 * p[0]);
    return cuda_cross_entropy_finish(call->write[0].data, call->write[1].data, call->read[2].data,
                                     call->read[1].data, p[4] ? call->read[3].data : NULL, p[0],
                                     parts, (double)p[2], place->scratch, place->stream);
}

/* ---- mixtures of experts ---- */

static struct cuda_route cuda_route_of(const struct work *work,
                                       const struct cuda_launch_context *place)
{
    return (struct cuda_route){
        .rows = work->route.rows,
        .experts = work->route.experts,
        .copies_per_token = work->route.copies,
        .score = (enum cuda_route_score_kind)work->route.score,
        .divides_scores_by_sum = work->route.norm != 0,
        .scale = work->route.scale > 0 ? (float)((double)work->route.scale * 1e-6) : 1,
        .expert_begins = place->expert_begins,
    };
}

static int route(const struct call *call, const struct cuda_launch_context *place)
{
    return cuda_route(call->write[0].data, call->read[0].data, cuda_route_of(call->work, place),
                      place->stream);
}

static int route_backward(const struct call *call, const struct cuda_launch_context *place)
{
    return cuda_route_backward(cuda_array_of_write(call, 0), call->read[0].data, call->read[1].data,
                               cuda_route_of(call->work, place), place->stream);
}

static int permute(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_permute(cuda_array_of_write(call, 0), cuda_array_of_read(call, 0),
                        w->permute.weights ? call->read[1].data : NULL, w->permute.rows,
                        w->permute.cols, w->permute.copies, place->stream);
}

static int unpermute(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_unpermute(cuda_array_of_write(call, 0), cuda_array_of_read(call, 0),
                          w->permute.weights ? call->read[1].data : NULL, w->permute.rows,
                          w->permute.cols, w->permute.copies, place->stream);
}

static int unpermute_backward(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_unpermute_backward(cuda_array_of_write(call, 0), call->write[1].data,
                                   cuda_array_of_read(call, 0), cuda_array_of_read(call, 1),
                                   call->read[2].data, w->permute.rows, w->permute.cols,
                                   w->permute.copies, place->stream);
}

static int permute_weights(const struct call *call, const struct cuda_launch_context *place)
{
    return cuda_permute_weights(call->write[0].data, call->read[0].data, call->work->permute.rows,
                                call->work->permute.copies, place->stream);
}

static int permute_weights_backward(const struct call *call,
                                    const struct cuda_launch_context *place)
{
    return cuda_permute_weights_backward(call->write[0].data, call->read[0].data,
                                         call->work->permute.rows, call->work->permute.copies,
                                         place->stream);
}

/* ---- work that moves elements, merges, row dots, and attention sinks ---- */

static struct cuda_pack cuda_pack_of(const struct work *work, const struct operand *whole,
                                     const struct operand *block, uint32_t blocks)
{
    struct cuda_pack pack = {
        .whole = whole->data,
        .rows = work->pack.rows,
        .parts = work->pack.parts,
        .block_cols = {work->pack.w[0], work->pack.w[1], work->pack.w[2]},
        .element_bytes = (int)dtype_bytes(whole->dtype),
    };
    for (uint32_t i = 0; i < blocks && i < 3; i++)
        pack.block[i] = block[i].data;
    return pack;
}

/* Copies rows of experts from the order of the ranks that sent them to the order of experts; with `back`, in the other
 * direction. */
static int reorder_expert_rows(const struct call *call, const struct cuda_launch_context *place,
                               bool back)
{
    const struct routed_rows *routed = call->routed_rows;
    const struct cuda_routed_rows rows = {
        .y = call->write[0].data,
        .x = call->read[0].data,
        .expert_begins = place->expert_begins + routed->first_expert,
        .experts = routed->experts / routed->ranks,
        .ranks = routed->ranks,
        .row_count = routed->row_count,
        .row_bytes = call->work->pack.w[0] * (int64_t)dtype_bytes((enum dtype)call->read[0].dtype),
        .is_to_rank_order = back,
    };
    return cuda_reorder_expert_rows(rows, place->stream);
}

static int pack_blocks(const struct call *call, const struct cuda_launch_context *place)
{
    if (call->routed_rows != NULL)
        return reorder_expert_rows(call, place, false);
    struct cuda_pack p = cuda_pack_of(call->work, &call->read[0], call->write, call->write_count);
    return cuda_pack(&p, place->stream);
}

static int unpack_blocks(const struct call *call, const struct cuda_launch_context *place)
{
    if (call->routed_rows != NULL)
        return reorder_expert_rows(call, place, true);
    struct cuda_pack p = cuda_pack_of(call->work, &call->write[0], call->read, call->read_count);
    return cuda_unpack(&p, place->stream);
}

static int head_expand(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_head_expand(cuda_array_of_write(call, 0), cuda_array_of_read(call, 0),
                            w->heads.rows * w->heads.heads, w->heads.dim, w->heads.copies,
                            place->stream);
}

static int head_reduce(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_head_reduce(cuda_array_of_write(call, 0), cuda_array_of_read(call, 0),
                            w->heads.rows * w->heads.heads, w->heads.dim, w->heads.copies,
                            place->stream);
}

/* Returns the pairs of one of a call's lists. A call that is measured without a schedule has `room` pairs (i, i). */
static struct cuda_moved_row_pairs
cuda_moved_row_pairs_of_list(const struct cuda_launch_context *place,
                             enum moved_rows_list_kind which, int64_t room)
{
    return place->moved_row_pair_lists != NULL ? place->moved_row_pair_lists[which]
                                               : (struct cuda_moved_row_pairs){NULL, room};
}

static int take_rows(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    const int64_t rows = w->take_rows.rows, to = w->take_rows.to, room = rows < to ? rows : to;
    const enum take_rows_order how = (enum take_rows_order)w->take_rows.take;
    struct cuda_row_copy copy = {
        .y = call->write[0].data,
        .x = call->read[0].data,
        .parts = w->take_rows.parts,
        .y_rows = to,
        .x_rows = rows,
        .row_bytes = w->take_rows.width * (int64_t)dtype_bytes((enum dtype)call->write[0].dtype),
        .to_outer = how != TAKE_ARRIVED_ROWS_TO_POSITIONS,
        .zeroes_other_rows = true,
    };
    if (how == TAKE_ROWS_TO_ROUND_ORDER && call->read_count > 1) {
        struct cuda_row_copy arrived = copy;
        arrived.x = call->read[1].data;
        arrived.x_rows = w->take_rows.arrived;
        arrived.to_outer = copy.zeroes_other_rows = false;
        int error = cuda_take_rows(
            arrived, cuda_moved_row_pairs_of_list(place, MOVED_RECEIVED, room), place->stream);
        if (error != 0)
            return error;
    }
    return cuda_take_rows(copy, cuda_moved_row_pairs_of_list(place, moved_list_of_work(w), room),
                          place->stream);
}

static int add_rows(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    const int64_t rows = w->add_rows.rows, to = w->add_rows.to, room = rows < to ? rows : to;
    int error = 0;
    if (call->write[0].data != call->read[1].data)
        error = cuda_cast(cuda_array_of_write(call, 0), cuda_array_of_read(call, 1),
                          (int64_t)call->write[0].element_count, place->stream);
    return error != 0
               ? error
               : cuda_add_rows(call->write[0].data, to, cuda_array_of_read(call, 0), rows,
                               w->add_rows.parts, w->add_rows.width,
                               cuda_moved_row_pairs_of_list(place, moved_list_of_work(w), room),
                               place->stream);
}

static int merge_rows(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    const bool first = w->merge_rows.first;
    const struct cuda_row_merge merged = {
        .out = call->write[0].data,
        .lse = call->write[1].data,
        .before = first ? NULL : call->read[2].data,
        .lse_before = first ? NULL : call->read[3].data,
        .block_lse = call->read[1].data,
        .block = cuda_array_of_read(call, 0),
        .out_rows = w->merge_rows.to,
        .heads = w->merge_rows.heads,
        .dim = w->merge_rows.dim,
    };
    return cuda_merge_rows(
        merged, cuda_moved_row_pairs_of_list(place, moved_list_of_work(w), w->merge_rows.rows),
        place->stream);
}

static int row_dot(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_row_dot(call->write[0].data, cuda_array_of_read(call, 0),
                        cuda_array_of_read(call, 1), w->merge.rows * w->merge.heads, w->merge.dim,
                        w->merge.dim, place->stream);
}

static int merge_tiles(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    return cuda_merge(call->write[0].data, call->write[1].data, cuda_array_of_read(call, 2),
                      call->read[3].data, w->merge.rows * w->merge.heads, w->merge.dim,
                      place->stream);
}

static struct cuda_sink_operands cuda_sink_operands_of(const struct call *call, uint32_t o)
{
    const struct work *w = call->work;
    return (struct cuda_sink_operands){
        .o = cuda_array_of_read(call, o),
        .sink = array_from_element_on(cuda_array_of_read(call, o + 2),
                                      call->index_in_sharding_group * w->sink.heads),
        .lse = call->read[o + 1].data,
        .rows = w->sink.rows,
        .heads = w->sink.heads,
        .dim = w->sink.dim};
}

static int sink(const struct call *call, const struct cuda_launch_context *place)
{
    return cuda_sink(cuda_array_of_write(call, 0), call->write[1].data,
                     cuda_sink_operands_of(call, 0), place->stream);
}

static size_t sink_term_bytes(const struct work *work)
{
    const size_t bytes = (size_t)(work->sink.rows * work->sink.heads) * sizeof(float);
    return (bytes + CUDA_SCRATCH_ALIGNMENT - 1) / CUDA_SCRATCH_ALIGNMENT * CUDA_SCRATCH_ALIGNMENT;
}

static size_t sink_scratch_bytes(const struct work *work)
{
    return sink_term_bytes(work) + cuda_column_scratch_bytes(work->sink.rows, work->sink.heads, 1);
}

/* Computes the gradients of the sinks: a term for each row and head, and then the sums of these terms over rows. */
static int sink_backward(const struct call *call, const struct cuda_launch_context *place)
{
    const struct work *w = call->work;
    const struct cuda_sink_operands s = cuda_sink_operands_of(call, 1);
    const struct cuda_array own = array_from_element_on(cuda_array_of_write(call, 0),
                                                        call->index_in_sharding_group * s.heads);
    const struct cuda_array terms = {place->scratch, CUDA_F32};
    int error = cuda_set_to_before_or_zero(cuda_array_of_write(call, 0),
                                           cuda_array_of_read_or_none(call, 4), w->sink.sinks,
                                           place->stream);
    if (error == 0)
        error = cuda_row_dot(place->scratch, cuda_array_of_read(call, 0), s.o, s.rows * s.heads,
                             s.dim, s.dim, place->stream);
    if (error == 0)
        error = cuda_sink_terms(place->scratch, s, place->stream);
    return error ? error
                 : cuda_column_sum(own, terms, own, s.rows, s.heads,
                                   (char *)place->scratch + sink_term_bytes(w), place->stream);
}

const struct cuda_kernel_table_row cuda_compute_rows[WORK_KIND_COUNT] = {
    [WORK_SINK] = {sink, NULL},
    [WORK_SINK_BACKWARD] = {sink_backward, sink_scratch_bytes},
    [WORK_MERGE] = {merge_tiles, NULL},
    [WORK_RMSNORM] = {rmsnorm, NULL},
    [WORK_RMSNORM_BACKWARD] = {rmsnorm_backward, one_column_sum_scratch_bytes},
    [WORK_LAYERNORM] = {layernorm, NULL},
    [WORK_LAYERNORM_BACKWARD] = {layernorm_backward, two_column_sums_scratch_bytes},
    [WORK_ROPE] = {rope, NULL},
    [WORK_ROPE_BACKWARD] = {rope_backward, NULL},
    [WORK_LATENT_KEYS] = {latent_keys, NULL},
    [WORK_LATENT_KEYS_BACKWARD] = {latent_keys_backward, NULL},
    [WORK_SWIGLU] = {swiglu, NULL},
    [WORK_SWIGLU_BACKWARD] = {swiglu_backward, NULL},
    [WORK_GELU] = {gelu, NULL},
    [WORK_GELU_BACKWARD] = {gelu_backward, NULL},
    [WORK_ROUTE] = {route, NULL},
    [WORK_ROUTE_BACKWARD] = {route_backward, NULL},
    [WORK_PERMUTE] = {permute, NULL},
    [WORK_UNPERMUTE] = {unpermute, NULL},
    [WORK_UNPERMUTE_BACKWARD] = {unpermute_backward, NULL},
    [WORK_PERMUTE_WEIGHTS] = {permute_weights, NULL},
    [WORK_PERMUTE_WEIGHTS_BACKWARD] = {permute_weights_backward, NULL},
    [WORK_EMBEDDING] = {embedding, NULL},
    [WORK_EMBEDDING_BACKWARD] = {embedding_backward, embedding_backward_scratch_bytes},
    [WORK_CROSS_ENTROPY] = {cross_entropy, loss_scratch_bytes},
    [WORK_CROSS_ENTROPY_BACKWARD] = {cross_entropy_backward, NULL},
    [WORK_CROSS_ENTROPY_PARTIAL] = {cross_entropy_partial, NULL},
    [WORK_CROSS_ENTROPY_PARTIAL_BACKWARD] = {cross_entropy_partial_backward, NULL},
    [WORK_CROSS_ENTROPY_FINISH] = {cross_entropy_finish, loss_scratch_bytes},
    [WORK_ADD] = {add_arrays, NULL},
    [WORK_CAST] = {cast_array, NULL},
    [WORK_QUANTISE] = {quantise, quantise_scratch_bytes},
    [WORK_DEQUANTISE] = {dequantise, NULL},
    [WORK_PACK] = {pack_blocks, NULL},
    [WORK_UNPACK] = {unpack_blocks, NULL},
    [WORK_HEAD_EXPAND] = {head_expand, NULL},
    [WORK_HEAD_REDUCE] = {head_reduce, NULL},
    [WORK_TAKE_ROWS] = {take_rows, NULL},
    [WORK_ADD_ROWS] = {add_rows, NULL},
    [WORK_MERGE_ROWS] = {merge_rows, NULL},
    [WORK_ROW_DOT] = {row_dot, NULL},
    [WORK_COLUMN_SUM] = {column_sum, one_column_sum_scratch_bytes},
    [WORK_ADAMW] = {adamw, NULL},
    [WORK_SQUARE_SUM] = {square_sum, square_sum_scratch_bytes},
    [WORK_CLIP] = {clip_gradients, NULL},
};

const char *cuda_fault_text(enum work_kind kind)
{
    return kind == WORK_CROSS_ENTROPY || kind == WORK_CROSS_ENTROPY_BACKWARD
               ? "meets a label that is neither -1 nor in the vocabulary"
               : "meets wrong data";
}
