/* Kernels that rearrange elements, and the embedding's look-ups and their gradient. */
#include "exec/cuda/device.cuh"

enum { THREADS = 256 };

/* ---- pack and unpack ---- */

/* The operands of cuda_pack(), with widths counted in words, the widest that divide every width and every address.
 * INDEX is the integer type of these sizes. It has 32 bits if they suffice, since the kernel divides, and a division in
 * 32 bits is several times as fast as one in 64. */
template <class INDEX> struct pack_units {
    char *whole, *block[3];
    INDEX rows, parts, w[3], cols;
};

template <class INDEX, class UNIT, bool PACK>
static __global__ void pack_kernel(struct pack_units<INDEX> p)
{
    FOR_EACH(at, (int64_t)(p.rows * p.cols))
    {
        INDEX i = (INDEX)at, row = i / p.cols, c = i % p.cols, w = p.w[0];
        char *block = p.block[0];
        if (c >= p.parts * p.w[0] + p.parts * p.w[1]) {
            c -= p.parts * p.w[0] + p.parts * p.w[1];
            w = p.w[2];
            block = p.block[2];
        } else if (c >= p.parts * p.w[0]) {
            c -= p.parts * p.w[0];
            w = p.w[1];
            block = p.block[1];
        }
        INDEX part = c / w;
        UNIT *in_block = (UNIT *)block + (part * p.rows + row) * w + (c - part * w);
        UNIT *in_whole = (UNIT *)p.whole + i;
        *(PACK ? in_block : in_whole) = *(PACK ? in_whole : in_block);
    }
}

template <class INDEX, class UNIT, bool PACK>
static int launch_pack_with_index_type(const struct cuda_pack *pack, cudaStream_t stream)
{
    struct pack_units<INDEX> p = {
    };
    p.whole = (char *)pack->whole;
    p.rows = (INDEX)pack->rows;
    p.parts = (INDEX)pack->parts;
    int blocks = 0;
    for (int i = 0; i < 3; i++)
        if (pack->block_cols[i] > 0) {
            p.block[blocks] = (char *)pack->block[blocks];
            p.w[blocks] =
                (INDEX)(pack->block_cols[i] * pack->element_bytes / (int64_t)sizeof(UNIT));
            p.cols += p.parts * p.w[blocks++];
        }
    return LAUNCH_INDEPENDENT_THREADS((pack_kernel<INDEX, UNIT, PACK>),
                                      blocks_for((int64_t)(p.rows * p.cols), THREADS), THREADS,
                                      stream, p);
}

template <class UNIT, bool PACK>
static int launch_pack_in_wide_units(const struct cuda_pack *pack, cudaStream_t stream)
{
    int64_t units = pack->rows * pack->parts *
                    (pack->block_cols[0] + pack->block_cols[1] + pack->block_cols[2]) *
                    pack->element_bytes / (int64_t)sizeof(UNIT);
    return units < INT32_MAX ? launch_pack_with_index_type<uint32_t, UNIT, PACK>(pack, stream)
                             : launch_pack_with_index_type<uint64_t, UNIT, PACK>(pack, stream);
}

template <bool PACK> static int pack_by_width(const struct cuda_pack *pack, cudaStream_t stream)
{
    uint64_t bits = (uintptr_t)pack->whole;
    int blocks = 0;
    for (int i = 0; i < 3; i++)
        if (pack->block_cols[i] > 0)
            bits |= (uint64_t)(pack->block_cols[i] * pack->element_bytes) |
                    (uintptr_t)pack->block[blocks++];
    if (bits % sizeof(uint4) == 0)
        return launch_pack_in_wide_units<uint4, PACK>(pack, stream);
    if (bits % sizeof(uint32_t) == 0)
        return launch_pack_in_wide_units<uint32_t, PACK>(pack, stream);
    if (bits % sizeof(uint16_t) == 0)
        return launch_pack_in_wide_units<uint16_t, PACK>(pack, stream);
    return launch_pack_in_wide_units<uint8_t, PACK>(pack, stream);
}

int cuda_pack(const struct cuda_pack *pack, cudaStream_t stream)
{
    return pack_by_width<true>(pack, stream);
}

int cuda_unpack(const struct cuda_pack *pack, cudaStream_t stream)
{
    return pack_by_width<false>(pack, stream);
}

/* ---- rows that context ranks exchange ---- */

template <class UNIT>
static __global__ void take_rows_kernel(struct cuda_row_copy r, struct cuda_moved_row_pairs pairs)
{
    const int64_t units = r.row_bytes / (int64_t)sizeof(UNIT);
    FOR_EACH_COLUMN_GROUP(w, pairs.count, (uint32_t)units)
    {
        const struct cuda_moved_row_pair pair = pair_at(pairs, w.row);
        const int64_t to = r.to_outer ? pair.outer : pair.inner,
                      from = r.to_outer ? pair.inner : pair.outer;
        for (int64_t p = 0; p < r.parts; p++)
            ((UNIT *)r.y)[(p * r.y_rows + to) * units + w.column_group] =
                ((const UNIT *)r.x)[(p * r.x_rows + from) * units + w.column_group];
    }
}

template <class UNIT>
static int launch_take_rows_in_units(struct cuda_row_copy copy, struct cuda_moved_row_pairs pairs,
                                     cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(
        take_rows_kernel<UNIT>,
        blocks_for(pairs.count * (copy.row_bytes / (int64_t)sizeof(UNIT)), THREADS), THREADS,
        stream, copy, pairs);
}

int cuda_take_rows(struct cuda_row_copy copy, struct cuda_moved_row_pairs pairs,
                   cudaStream_t stream)
{
    const uint64_t bits = (uintptr_t)copy.y | (uintptr_t)copy.x | (uint64_t)copy.row_bytes;
    int error = 0;
    if (copy.zeroes_other_rows)
        error = (int)cudaMemsetAsync(copy.y, 0, (size_t)(copy.parts * copy.y_rows * copy.row_bytes),
                                     stream);
    if (error != 0)
        return error;
    if (bits % sizeof(uint4) == 0)
        return launch_take_rows_in_units<uint4>(copy, pairs, stream);
    if (bits % sizeof(uint32_t) == 0)
        return launch_take_rows_in_units<uint32_t>(copy, pairs, stream);
    if (bits % sizeof(uint16_t) == 0)
        return launch_take_rows_in_units<uint16_t>(copy, pairs, stream);
    return launch_take_rows_in_units<uint8_t>(copy, pairs, stream);
}

/* Adds rows of x to rows of y. The outer rows of pairs with the same inner row are added in the order of the pairs, by
 * the threads of the first such pair. */
static __global__ void add_moved_rows_kernel(struct array y, int64_t y_rows, struct array x,
                                             int64_t x_rows, int64_t parts, int64_t width,
                                             struct cuda_moved_row_pairs pairs)
{
    FOR_EACH_COLUMN_GROUP(w, pairs.count, column_groups(width))
    {
        const int64_t inner = pair_at(pairs, w.row).inner, c = (int64_t)w.column_group * EIGHT;
        const int n = at_most_eight(width - c);
        if (has_inner_row(pairs, w.row - 1, inner))
            continue;
        for (int64_t p = 0; p < parts; p++) {
            struct eight_floats sum = load8(y, (p * y_rows + inner) * width + c, n);
            for (int64_t i = w.row; has_inner_row(pairs, i, inner); i++) {
                struct eight_floats e =
                    load8(x, (p * x_rows + pair_at(pairs, i).outer) * width + c, n);
#pragma unroll
                for (int j = 0; j < EIGHT; j++)
                    sum.x[j] += e.x[j];
            }
            store8(y, (p * y_rows + inner) * width + c, n, sum);
        }
    }
}

int cuda_add_rows(float *y, int64_t y_rows, struct cuda_array x, int64_t x_rows, int64_t parts,
                  int64_t width, struct cuda_moved_row_pairs pairs, cudaStream_t stream)
{
    struct array to = kernel_array_of_f32(y);
    to.is_aligned16 = to.is_aligned16 && width % EIGHT == 0;
    return LAUNCH_INDEPENDENT_THREADS(
        add_moved_rows_kernel, blocks_for(pairs.count * ceil_div(width, EIGHT), THREADS), THREADS,
        stream, to, y_rows, kernel_array_of_rows(x, width), x_rows, parts, width, pairs);
}

/* ---- copies of heads, and their sums ---- */

/* Copies each row of x[groups, dim] to `copies` consecutive rows of y[groups, copies, dim]. */
static __global__ void head_expand_kernel(struct array y, struct array x, int64_t groups,
                                          int64_t dim, int64_t copies)
{
    FOR_EACH_COLUMN_GROUP(w, groups, column_groups(dim))
    {
        int64_t group = w.row, c = (int64_t)w.column_group * EIGHT;
        int n = at_most_eight(dim - c);
        struct eight_floats e = load8(x, group * dim + c, n);
        for (int64_t i = 0; i < copies; i++)
            store8(y, (group * copies + i) * dim + c, n, e);
    }
}

int cuda_head_expand(struct cuda_array y, struct cuda_array x, int64_t groups, int64_t dim,
                     int64_t copies, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(
        head_expand_kernel, blocks_for(groups * ceil_div(dim, EIGHT), THREADS), THREADS, stream,
        kernel_array_of_rows(y, dim), kernel_array_of_rows(x, dim), groups, dim, copies);
}

/* Sums the `copies` rows of each group of x[groups, copies, dim] into its row of y[groups, dim]. */
static __global__ void head_reduce_kernel(struct array y, struct array x, int64_t groups,
                                          int64_t dim, int64_t copies)
{
    FOR_EACH_COLUMN_GROUP(w, groups, column_groups(dim))
    {
        int64_t group = w.row, c = (int64_t)w.column_group * EIGHT;
        int n = at_most_eight(dim - c);
        struct eight_floats sum = load8(x, group * copies * dim + c, n);
        for (int64_t i = 1; i < copies; i++) {
            struct eight_floats e = load8(x, (group * copies + i) * dim + c, n);
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                sum.x[j] += e.x[j];
        }
        store8(y, group * dim + c, n, sum);
    }
}

int cuda_head_reduce(struct cuda_array y, struct cuda_array x, int64_t groups, int64_t dim,
                     int64_t copies, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(
        head_reduce_kernel, blocks_for(groups * ceil_div(dim, EIGHT), THREADS), THREADS, stream,
        kernel_array_of_rows(y, dim), kernel_array_of_rows(x, dim), groups, dim, copies);
}

/* ---- latent attention ---- */

struct latent_arrays {
    struct array up, shared, k, v;
    int64_t rows, plain, rotated, vdim;
    uint32_t heads;
};

static struct latent_arrays latent_arrays_of(struct cuda_latent_keys_operands l)
{
    struct latent_arrays a = {kernel_array_of_rows(l.up, l.plain),
                              kernel_array_of_rows(l.shared, l.rotated),
                              kernel_array_of_rows(l.k, l.plain),
                              kernel_array_of_rows(l.v, l.vdim),
                              l.rows,
                              l.plain,
                              l.rotated,
                              l.vdim,
                              (uint32_t)l.heads};
    a.up.is_aligned16 = a.up.is_aligned16 && l.vdim % EIGHT == 0;
    a.k.is_aligned16 = a.k.is_aligned16 && l.rotated % EIGHT == 0;
    return a;
}

static __device__ __forceinline__ void copy8(const struct array &to, int64_t to_row,
                                             const struct array &from, int64_t from_row,
                                             uint32_t group, int64_t cols)
{
    const int64_t c = (int64_t)group * EIGHT;
    const int n = at_most_eight(cols - c);
    store8(to, to_row + c, n, load8(from, from_row + c, n));
}

/* Makes k and v. FOR_EACH_COLUMN_GROUP goes through the heads of all rows. The column groups of a head are first those
 * of the plain columns, then v's, and then those of the shared columns. */
static __global__ void latent_keys_kernel(struct latent_arrays a)
{
    const uint32_t plain = column_groups(a.plain), of_v = plain + column_groups(a.vdim);
    FOR_EACH_COLUMN_GROUP(w, a.rows * a.heads, of_v + column_groups(a.rotated))
    {
        const int64_t up = w.row * (a.plain + a.vdim), k = w.row * (a.plain + a.rotated);
        if (w.column_group < plain)
            copy8(a.k, k, a.up, up, w.column_group, a.plain);
        else if (w.column_group < of_v)
            copy8(a.v, w.row * a.vdim, a.up, up + a.plain, w.column_group - plain, a.vdim);
        else
            copy8(a.k, k + a.plain, a.shared, (int64_t)((uint32_t)w.row / a.heads) * a.rotated,
                  w.column_group - of_v, a.rotated);
    }
}

int cuda_latent_keys(struct cuda_latent_keys_operands latent, cudaStream_t stream)
{
    const int64_t heads = latent.rows * latent.heads;
    return LAUNCH_INDEPENDENT_THREADS(
        latent_keys_kernel,
        blocks_for(heads * ceil_div(latent.plain + latent.rotated + latent.vdim, EIGHT), THREADS),
        THREADS, stream, latent_arrays_of(latent));
}

static __global__ void latent_keys_backward_kernel(struct latent_arrays a)
{
    const uint32_t plain = column_groups(a.plain);
    FOR_EACH_COLUMN_GROUP(w, a.rows * a.heads, plain + column_groups(a.vdim))
    {
        const int64_t up = w.row * (a.plain + a.vdim);
        if (w.column_group < plain)
            copy8(a.up, up, a.k, w.row * (a.plain + a.rotated), w.column_group, a.plain);
        else
            copy8(a.up, up + a.plain, a.v, w.row * a.vdim, w.column_group - plain, a.vdim);
    }
}

/* Computes the gradient of the shared columns: the sum over heads, in their order. */
static __global__ void shared_columns_kernel(struct latent_arrays a)
{
    FOR_EACH_COLUMN_GROUP(w, a.rows, column_groups(a.rotated))
    {
        const int64_t c = (int64_t)w.column_group * EIGHT;
        const int n = at_most_eight(a.rotated - c);
        struct eight_floats sum = {};
        for (uint32_t h = 0; h < a.heads; h++) {
            const int64_t head = w.row * a.heads + h;
            struct eight_floats e = load8(a.k, head * (a.plain + a.rotated) + a.plain + c, n);
#pragma unroll
            for (int j = 0; j < EIGHT; j++)
                sum.x[j] += e.x[j];
        }
        store8(a.shared, w.row * a.rotated + c, n, sum);
    }
}

int cuda_latent_keys_backward(struct cuda_latent_keys_operands latent, cudaStream_t stream)
{
    const int64_t heads = latent.rows * latent.heads;
    int error = LAUNCH_INDEPENDENT_THREADS(
        latent_keys_backward_kernel,
        blocks_for(heads * ceil_div(latent.plain + latent.vdim, EIGHT), THREADS), THREADS, stream,
        latent_arrays_of(latent));
    return error != 0 ? error
                      : LAUNCH_INDEPENDENT_THREADS(
                            shared_columns_kernel,
                            blocks_for(latent.rows * ceil_div(latent.rotated, EIGHT), THREADS),
                            THREADS, stream, latent_arrays_of(latent));
}

/* ---- embedding ---- */

static __global__ void embedding_kernel(struct array y, const int32_t *token, struct array table,
                                        int64_t rows, int64_t cols, int64_t vocab, int64_t first)
{
    FOR_EACH_COLUMN_GROUP(w, rows, column_groups(cols))
    {
        int64_t row = w.row, c = (int64_t)w.column_group * EIGHT, entry = token[row] - first;
        int n = at_most_eight(cols - c);
        struct eight_floats e = {};
        if (entry >= 0 && entry < vocab)
            e = load8(table, entry * cols + c, n);
        store8(y, row * cols + c, n, e);
    }
}

int cuda_embedding(struct cuda_array y, const int32_t *token, struct cuda_array table, int64_t rows,
                   int64_t cols, int64_t vocab, int64_t first, cudaStream_t stream)
{
    return LAUNCH_INDEPENDENT_THREADS(embedding_kernel,
                                      blocks_for(rows * ceil_div(cols, EIGHT), THREADS), THREADS,
                                      stream, kernel_array_of_rows(y, cols), token,
                                      kernel_array_of_rows(table, cols), rows, cols, vocab, first);
}

/* ---- gradient of the embedding ---- */

/* Counts how often each token occurs. This is the first of five kernels, which make the result independent of the order
 * in which threads run: the positions in the batch are listed by token, each token's list is sorted, and a row of the
 * table adds the gradients of its positions in that order. */
static __global__ void count_tokens_kernel(int32_t *count, const int32_t *token, int64_t rows,
                                           int64_t vocab, int64_t first)
{
    FOR_EACH(i, rows)
    {
        int64_t entry = token[i] - first;
        if (entry >= 0 && entry < vocab)
            atomicAdd(&count[entry], 1);
    }
}

/* Makes prefix sums, in one block: begin[i] becomes the sum of count[j] over j < i, and begin[vocab] the sum of all
 * counts. count becomes a copy of begin without begin[vocab]. */
static __global__ void token_begins_kernel(int32_t *begin, int32_t *count, int64_t vocab)
{
    __shared__ int32_t sum[BLOCK_MAX];
    int64_t each = (vocab + blockDim.x - 1) / blockDim.x;
    int64_t from = threadIdx.x * each, to = from + each < vocab ? from + each : vocab;
    int32_t own = 0;
    for (int64_t i = from; i < to; i++)
        own += count[i];
    sum[threadIdx.x] = own;
    __syncthreads();
    int32_t before = 0;
    for (unsigned i = 0; i < threadIdx.x; i++)
        before += sum[i];
    for (int64_t i = from; i < to; i++) {
        int32_t here = count[i];
        begin[i] = count[i] = before;
        before += here;
    }
    if (threadIdx.x == blockDim.x - 1)
        begin[vocab] = before;
}

static __global__ void scatter_positions_kernel(int32_t *list, int32_t *next, const int32_t *token,
                                                int64_t rows, int64_t vocab, int64_t first)
{
    FOR_EACH(i, rows)
    {
        int64_t entry = token[i] - first;
        if (entry >= 0 && entry < vocab)
            list[atomicAdd(&next[entry], 1)] = (int32_t)i;
    }
}

/* Returns how many elements of list[from..to), which is in ascending order, are below x. */
static __device__ int64_t count_below(const int32_t *list, int64_t from, int64_t to, int32_t x)
{
    int64_t first = from;
    while (from < to) {
        int64_t middle = from + (to - from) / 2;
        if (list[middle] < x)
            from = middle + 1;
        else
            to = middle;
    }
    return from - first;
}

/* Sorts the positions of each token in ascending order; a block sorts one token's at a time. It merges sorted runs of
 * 1, 2, 4, ... positions: a position's index in the merged run is the number of smaller positions in both runs. For n
 * positions this takes n log^2 n steps, and not n^2, because one token may fill the batch (padding does). */
static __global__ void sort_positions_kernel(int32_t *sorted, int32_t *list, const int32_t *begin,
                                             int64_t vocab)
{
    for (int64_t entry = blockIdx.x; entry < vocab; entry += gridDim.x) {
        int64_t first = begin[entry], end = begin[entry + 1], count = end - first;
        int32_t *from = list, *to = sorted;
        for (int shift = 0; count > 0 && (1ll << shift < count || from == list); shift++) {
            const int64_t run = 1ll << shift;
            for (int64_t i = threadIdx.x; i < count; i += blockDim.x) {
                int64_t own = i >> shift, pair = first + (own >> 1 << 1 << shift);
                int64_t other = first + ((own ^ 1) << shift);
                int64_t behind = i & (run - 1);
                if (other < end)
                    behind += count_below(from, other, other + run < end ? other + run : end,
                                          from[first + i]);
                to[pair + behind] = from[first + i];
            }
            __syncthreads();
            int32_t *full = to;
            to = from;
            from = full;
        }
    }
}

static __global__ void embedding_backward_kernel(struct array table, struct array dy,
                                                 struct array before, const int32_t *sorted,
                                                 const int32_t *begin, int64_t vocab, int64_t cols)
{
    for (int64_t entry = blockIdx.x; entry < vocab; entry += gridDim.x) {
        int32_t from = begin[entry], to = begin[entry + 1];
        if (from == to && before.data == table.data)
            continue;
        FOR_EACH_EIGHT_COLUMNS(c, n, cols)
        {
            struct eight_floats sum = {};
            if (before.data)
                sum = load8(before, entry * cols + c, (int)n);
            for (int32_t i = from; i < to; i++) {
                struct eight_floats e = load8(dy, sorted[i] * cols + c, (int)n);
#pragma unroll
                for (int j = 0; j < EIGHT; j++)
                    sum.x[j] += e.x[j];
            }
            store8(table, entry * cols + c, (int)n, sum);
        }
    }
}

size_t cuda_embedding_backward_scratch_bytes(int64_t rows, int64_t vocab)
{
    return (size_t)(2 * vocab + 1 + 2 * rows) * sizeof(int32_t);
}

int cuda_embedding_backward(struct cuda_array table, struct cuda_array dy, const int32_t *token,
                            struct cuda_array before, int64_t rows, int64_t cols, int64_t vocab,
                            int64_t first, void *scratch, cudaStream_t stream)
{
    int32_t *count = (int32_t *)scratch, *begin = count + vocab, *list = begin + vocab + 1,
            *sorted = list + rows;
    int error = (int)cudaMemsetAsync(count, 0, (size_t)vocab * sizeof *count, stream);
    if (error == 0)
        error = LAUNCH_INDEPENDENT_THREADS(count_tokens_kernel, blocks_for(rows, THREADS), THREADS,
                                           stream, count, token, rows, vocab, first);
    if (error == 0)
        error = LAUNCH(token_begins_kernel, 1, threads_for_row(vocab, BLOCK_MAX), 0, stream, begin,
                       count, vocab);
    if (error == 0)
        error = LAUNCH_INDEPENDENT_THREADS(scatter_positions_kernel, blocks_for(rows, THREADS),
                                           THREADS, stream, list, count, token, rows, vocab, first);
    if (error == 0)
        error = LAUNCH(sort_positions_kernel, blocks_for(vocab, 1), WARP, 0, stream, sorted, list,
                       begin, vocab);
    if (error == 0)
        error = LAUNCH_INDEPENDENT_THREADS(
            embedding_backward_kernel, blocks_for(vocab, 1), threads_for_row(cols, THREADS), stream,
            kernel_array_of_rows(table, cols), kernel_array_of_rows(dy, cols),
            kernel_array_of_rows(before, cols), sorted, begin, vocab, cols);
    return error;
}
