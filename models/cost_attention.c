/* Attention: thread blocks of uneven length on the multiprocessors (docs/costs.md, "Attention"). */
#include "models/cost_parts.h"

#include <assert.h>
#include <math.h>

/* A column that the edge of the mask crosses takes 1.5 times as long, since the mask is applied to each of its elements
 * (docs/costs.md, "Attention"); this is the part above 1. */
static const double MASKED_EXTRA = 0.5;

/* The columns over which the thread blocks of one op loop. A block skips the steps of which the mask hides every
 * element; it loops over all columns of any other step. */
struct attention_blocks {
    double block_count;                  /* number of blocks that have any work */
    double block_columns_total;          /* columns over which all blocks together loop */
    double fewest_columns, most_columns; /* the fewest and the most columns of one block */
};

static double clamp(double value, double low, double high)
{
    return fmin(fmax(value, low), high);
}

/* Returns the sum over t in 0..n-1 of first + t * step, each term clamped to [0, top]. */
static double sum_of_clamped_terms(double first, double step, double n, double top)
{
    /* the first term that is not negative */
    double from = clamp(ceil(-first / step), 0, n);
    /* the first term that reaches the top */
    double to = clamp(ceil((top - first) / step), from, n);
    double count = to - from;
    return count * first + step * (from + to - 1) * count / 2 + (n - to) * top;
}

/* The pairs that a mask leaves form a band of the score matrix: row i of `rows` sees columns j <= i + offset and, if
 * windowed, j > i + offset - window. A block owns `tile_rows` rows, and loops over the columns that any of them sees,
 * in whole steps. With 12 rows, 6 columns, offset -2, window 3, tile 2 and step 2, where x is a pair that is seen:
 *
 *     column     0 1 2 3 4 5
 *     block 0    . . . . . .    1 block before the band (unseeing_before)
 *                . . . . . .
 *     block 1    x . . . . .    loops over columns 0 and 1
 *                x x . . . .
 *     block 2    x x x . . .    loops over columns 0 to 3
 *                . x x x . .
 *     block 3    . . x x x .    loops over columns 2 to 5; the window hides columns 0 and 1 from it
 *                . . . x x x
 *     block 4    . . . . x x    loops over columns 4 and 5
 *                . . . . . x
 *     block 5    . . . . . .    1 block after the band (unseeing_after)
 *                . . . . . .
 *
 * The 4 blocks that see anything loop over 12 columns. The upper edge of the band crosses blocks 1 to 3. */
struct mask_diagonal_band {
    double rows, columns, offset, window;
    bool is_causal, is_windowed;
};

/* Returns the band of a piece of attention. In the backward a block owns keys, so keys are the rows. Counted from the
 * end, i' = q - 1 - i and j' = kv - 1 - j, the condition j <= i + offset becomes i' <= j' + offset + q - kv, which has
 * the same form with the sides exchanged. Blocks are counted from the first key, so keys are padded to whole blocks
 * after the last key; this adds rows - kv to j', and the new offset is offset + q - rows. */
static struct mask_diagonal_band
mask_band_of(enum work_kind kind, const struct attention_piece *piece, bool causal, double tile)
{
    double q = (double)piece->query_count, kv = (double)piece->key_count;
    struct mask_diagonal_band band = {.rows = q,
                                      .columns = kv,
                                      .offset = (double)piece->offset,
                                      .window = (double)piece->window,
                                      .is_causal = causal,
                                      .is_windowed = piece->window > 0};
    if (kind == WORK_ATTENTION_BACKWARD) {
        band.rows = ceil(kv / tile) * tile;
        band.columns = q;
        band.offset += q - band.rows;
    }
    return band;
}

/* Subtracts from the blocks of a causal band the columns that a window hides: in each block, those before the first
 * column that its first row sees. count: the number of blocks; all: the number of columns, rounded up to a multiple of
 * the step. */
static void subtract_hidden_columns(struct attention_blocks *blocks,
                                    const struct cost_attention *attention,
                                    const struct mask_diagonal_band *band, double count, double all)
{
    double tile = attention->tile_rows, step = attention->step_columns;
    /* the number of columns that the window hides from block 0, rounded down to a multiple of the step */
    double hidden = floor((band->offset - band->window + 1) / step) * step;
    blocks->block_columns_total -= sum_of_clamped_terms(hidden, tile, count, all);
    blocks->fewest_columns -= clamp(hidden, 0, all);
    blocks->most_columns = fmin(blocks->most_columns, ceil((band->window + tile) / step) * step);
}

/* Returns the blocks of one head for one piece. block_columns_total also has the share MASKED_EXTRA of columns at the
 * mask's edge, which take longer; it is exact if the rows of a tile are a multiple of the step's columns. causal: the
 * piece is a band (struct mask_diagonal_band); false: every row sees every column. */
static struct attention_blocks blocks_of_piece(const struct cost_attention *attention,
                                               enum work_kind kind,
                                               const struct attention_piece *piece, bool causal)
{
    double tile = attention->tile_rows, step = attention->step_columns;
    struct mask_diagonal_band band = mask_band_of(kind, piece, causal, tile);
    double count = ceil(band.rows / tile), all = ceil(band.columns / step) * step;
    if (!band.is_causal || band.rows == 0)
        return (struct attention_blocks){count, count * all, all, all};
    if (attention_piece_pairs(piece) == 0)
        return (struct attention_blocks){0};

    /* Without a window, a block loops from column 0 to the last column that its last row sees. */
    double first_end = ceil((band.offset + fmin(tile, band.rows)) / step) * step;
    double last_end = ceil((band.offset + band.rows) / step) * step;
    struct attention_blocks blocks = {.block_columns_total =
                                          sum_of_clamped_terms(first_end, tile, count - 1, all) +
                                          clamp(last_end, 0, all),
                                      .most_columns = clamp(last_end, 0, all),
                                      .fewest_columns = clamp(first_end, 0, all)};
    double unseeing_before = clamp(ceil(-band.offset / tile), 0, count), unseeing_after = 0;
    if (band.is_windowed) {
        double end = ceil((band.columns - band.offset + band.window - 1) / tile);
        unseeing_after = clamp(count - end, 0, count - unseeing_before);
        subtract_hidden_columns(&blocks, attention, &band, count, all);
    }
    /* The edge of the band crosses a block if the block's first row does not see every column. A window adds a second
     * edge, which crosses as many blocks. */
    double end = clamp(ceil((band.columns - 1 - band.offset) / tile), 0, count);
    double crossed = fmax(end - unseeing_before, 0);
    blocks.block_columns_total += crossed * tile * MASKED_EXTRA * (band.is_windowed ? 2 : 1);
    blocks.block_count = count - unseeing_before - unseeing_after;
    blocks.block_columns_total = fmax(blocks.block_columns_total, 0);
    blocks.fewest_columns = clamp(blocks.fewest_columns, 0, blocks.most_columns);
    return blocks;
}

/* Returns the blocks of one head for the whole work. */
static struct attention_blocks blocks_of_work(const struct cost_attention *attention,
                                              const struct work *work)
{
    struct attention_piece piece = {.query_count = work->attention.q,
                                    .key_count = work->attention.kv,
                                    .offset = work->attention.offset};
    /* cuDNN's backward in 8 bits computes what a window hides, too (docs/costs.md, "Attention in 8 bits") */
    const bool skips_hidden =
        work->kind == WORK_ATTENTION || work->attention.scaling == SCALING_NONE;
    if (work->attention.mask == MASK_WINDOW && skips_hidden)
        piece.window = work->attention.window;
    return blocks_of_piece(attention, (enum work_kind)work->kind, &piece,
                           work->attention.mask != MASK_FULL);
}

/* Returns the blocks of one head for all pieces of an attention. Each piece has blocks of its own, as in
 * FlashAttention's kernels for variable lengths. */
static struct attention_blocks blocks_of_pieces(const struct cost_attention *attention,
                                                enum work_kind kind,
                                                const struct attention_piece *piece, size_t count)
{
    struct attention_blocks all = {0};
    for (size_t i = 0; i < count; i++) {
        bool causal = piece[i].window > 0 || piece[i].offset < piece[i].key_count - 1;
        struct attention_blocks blocks = blocks_of_piece(attention, kind, &piece[i], causal);
        if (blocks.block_count == 0)
            continue;
        all.fewest_columns = all.block_count == 0 ? blocks.fewest_columns
                                                  : fmin(all.fewest_columns, blocks.fewest_columns);
        all.most_columns = fmax(all.most_columns, blocks.most_columns);
        all.block_count += blocks.block_count;
        all.block_columns_total += blocks.block_columns_total;
    }
    return all;
}

/* Returns the seconds of thread blocks with these lengths. If all blocks have one length, they run in waves, of which
 * the last may be only partly filled. If lengths differ, all multiprocessors are busy until the last block starts; then
 * they finish at times spread over the length of the longest block, so half of that length is lost. The result is a
 * mean of the two cases, weighted by how much the lengths differ. */
static double attention_blocks_s(const struct device_cost *cost,
                                 const struct cost_attention *attention,
                                 struct attention_blocks blocks, double heads, double column_s)
{
    double multiprocessors = cost->device_sm_count, count = blocks.block_count * heads;
    if (count == 0)
        return 0;
    double longest = blocks.most_columns * column_s + attention->ramp_s;
    double work = heads * blocks.block_columns_total * column_s + count * attention->ramp_s;
    double uneven = blocks.most_columns > 0 ? 1 - blocks.fewest_columns / blocks.most_columns : 0;
    double thin = ceil(count / multiprocessors) - count / multiprocessors;
    double lost = ((1 - uneven) * thin + uneven / 2) * longest;
    return fmax(longest, work / multiprocessors + lost);
}

bool cost_attention_find(const struct device_cost *cost, enum attention_impl impl,
                         const struct work *work, const struct cost_attention **attention,
                         size_t *row)
{
    enum attention_direction pass =
        work->kind == WORK_ATTENTION ? ATTENTION_FORWARD_PASS : ATTENTION_BACKWARD_PASS;
    *attention = &cost->attention[impl][pass];
    for (*row = 0; *row < (*attention)->dim_count; ++*row) {
        if ((*attention)->head_dim[*row] >= work->attention.dim &&
            (*attention)->head_dim[*row] >= work->attention.vdim)
            return true;
    }
    return false;
}

/* Returns the watts that an implementation's kernels would draw at their highest rate. */
static double watts_by_attention_impl(const struct device_cost *cost, enum attention_impl impl)
{
    double of_impl = cost->watts_by_attention_impl[impl];
    return of_impl > 0 ? of_impl : cost->device_tensor_power;
}

double cost_attention_flop_per_s(const struct device_cost *cost, enum attention_impl impl,
                                 enum attention_direction pass, size_t i)
{
    return cost->attention[impl][pass].flop_per_s[i] *
           cost_power_limited_rate_share(cost, watts_by_attention_impl(cost, impl));
}

double cost_attention_mhz(const struct device_cost *cost, enum attention_impl impl)
{
    return cost->device_clock_mhz *
           cost_power_limited_rate_share(cost, watts_by_attention_impl(cost, impl));
}

/* Returns the flop/s of a kernel whose heads of v have another width than those of q and k. Device files have only the
 * rates of equal widths. So the rate is interpolated at the mean of the widths over the products of attention, and
 * multiplied by unequal_dims_rate_share. Such a kernel pads nothing (docs/costs.md, "Attention"). row: the row of
 * head_dim[] that cost_attention_find() has found. */
static double flop_per_s_of_unequal_heads(const struct cost_attention *attention, size_t row,
                                          const struct work *work)
{
    const double mean = work_attention_pair_flops(work) / (work->kind == WORK_ATTENTION ? 4 : 10);
    const double of_equal =
        attention->unequal_dims_rate_share > 0 ? attention->unequal_dims_rate_share : 1;
    while (row > 0 && (double)attention->head_dim[row - 1] >= mean)
        row--;
    if (row == 0)
        return attention->flop_per_s[0] * of_equal;
    const double below = (double)attention->head_dim[row - 1],
                 above = (double)attention->head_dim[row];
    const double share = (mean - below) / (above - below);
    return of_equal *
           (attention->flop_per_s[row - 1] * (1 - share) + attention->flop_per_s[row] * share);
}

/* The facts about one attention op that are known before it is timed. */
struct attention_op_facts {
    const struct cost_attention *attention;
    struct attention_blocks blocks;
    double heads, column_s; /* column_s: seconds of one column of one block at the highest clock */
    double other_kernels_s; /* seconds of the kernels before and after a backward */
};

static struct attention_op_facts attention_op_facts_without_blocks(const struct device_cost *cost,
                                                                   enum attention_impl impl,
                                                                   const struct work *work)
{
    struct attention_op_facts op = {.heads = (double)work->attention.heads};
    size_t i;
    bool found = cost_attention_find(cost, impl, work, &op.attention, &i);
    assert(found); /* cost_check_attention() has found the parameters */
    (void)found;
    /* flops for each pair of a query and a key and for each element of the head: 2 products forward, 5 backward */
    double flops = work->kind == WORK_ATTENTION ? 4 : 10;
    op.column_s = flops * op.attention->tile_rows * (double)op.attention->head_dim[i] /
                  (op.attention->flop_per_s[i] / cost->device_sm_count);
    if (work->attention.vdim > 0)
        op.column_s = work_attention_pair_flops(work) * op.attention->tile_rows /
                      (flop_per_s_of_unequal_heads(op.attention, i, work) / cost->device_sm_count);
    if (work->kind == WORK_ATTENTION_BACKWARD) {
        double kernels = work->attention.kv_heads < work->attention.heads ? 4 : 3;
        op.other_kernels_s = kernels * cost->device_kernel_start_s +
                             cost_memory_s_for_bytes(cost, cost->memory_stream_fraction,
                                                     cost_memory_around_attention_bytes(work));
    }
    return op;
}

static struct attention_op_facts attention_op_facts_of(const struct device_cost *cost,
                                                       enum attention_impl impl,
                                                       const struct work *work)
{
    struct attention_op_facts op = attention_op_facts_without_blocks(cost, impl, work);
    op.blocks = blocks_of_work(op.attention, work);
    return op;
}

/* Returns the work that an op gives to the tensor cores. Its seconds are those that it would take if the columns of all
 * blocks were spread evenly over the multiprocessors. */
static struct cost_tensor_work tensor_work_of(const struct device_cost *cost,
                                              enum attention_impl impl,
                                              const struct attention_op_facts *op)
{
    return (struct cost_tensor_work){
        op->blocks.block_columns_total * op->heads * op->column_s / cost->device_sm_count,
        watts_by_attention_impl(cost, impl), cost->device_kernel_start_s + op->other_kernels_s};
}

struct cost_tensor_work cost_attention_tensor_work(const struct device_cost *cost,
                                                   enum attention_impl impl,
                                                   const struct work *work)
{
    struct attention_op_facts op = attention_op_facts_of(cost, impl, work);
    return tensor_work_of(cost, impl, &op);
}

static double attention_op_s(const struct device_cost *cost, enum attention_impl impl,
                             const struct work *work, const struct attention_op_facts *op,
                             enum cost_clock_kind clock)
{
    const struct cost_tensor_work busy = tensor_work_of(cost, impl, op);
    double blocks = attention_blocks_s(cost, op->attention, op->blocks, op->heads, op->column_s);
    double memory =
        cost_memory_s_for_bytes(cost, cost->memory_stream_fraction, work_memory_bytes(work));
    double burst_s = busy.other_kernels_s + fmax(fmax(blocks, busy.seconds), memory);
    return clock == COST_BURST ? burst_s : cost_sustained_s(cost, &busy, burst_s);
}

double cost_attention_s(const struct device_cost *cost, enum attention_impl impl,
                        const struct work *work, enum cost_clock_kind clock)
{
    struct attention_op_facts op = attention_op_facts_of(cost, impl, work);
    return attention_op_s(cost, impl, work, &op, clock);
}

double cost_attention_pieces_s(const struct device_cost *cost, enum attention_impl impl,
                               const struct work *work, const struct attention_piece *piece,
                               size_t count)
{
    struct attention_op_facts op = attention_op_facts_without_blocks(cost, impl, work);
    op.blocks = blocks_of_pieces(op.attention, (enum work_kind)work->kind, piece, count);
    return attention_op_s(cost, impl, work, &op, COST_SUSTAINED);
}
