/* Attention tile by tile with a running maximum and sum (FlashAttention's order of work, Dao et al., arXiv 2205.14135);
 * also merges of its results, attention sinks, and row dots. The products of attention go through CBLAS on strided
 * rows, so that no operand is copied. */
#include "exec/cpu/kernels.h"

#include "exec/cpu/fast_exp.h"
#include "exec/cpu/lanes.h"
#include "exec/moved_rows.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

/* Returns the keys of a piece that row i of the piece sees. */
static struct visible_keys visible_keys_of_row(const struct attention_piece *piece, int64_t i)
{
    int64_t kv = piece->key_count, offset = piece->offset;
    /* With an offset this low no row sees a key. It is raised to a bound with which none does either, so that the sums
     * below do not overflow. */
    if (offset < -kv - piece->query_count)
        offset = -kv - piece->query_count;
    /* With an offset this high the row sees all keys or, with a window, none. It is lowered for the same reason. */
    if (offset > kv && offset - kv > piece->window)
        offset = kv + piece->window;
    int64_t end = i + offset + 1, begin = 0;
    if (piece->window > 0 && piece->window < end)
        begin = end - piece->window;
    if (end > kv)
        end = kv;
    return begin < end ? (struct visible_keys){piece->first_key + begin, piece->first_key + end}
                       : (struct visible_keys){0, 0};
}

/* Returns the last piece whose first row is at most i; NULL: there is none. The pieces are in ascending order of
 * rows. */
static const struct attention_piece *last_piece_up_to_row(const struct call *call, int64_t i)
{
    uint32_t low = 0, high = call->visible_attention_piece_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (call->visible_attention_pieces[middle].first_query <= i)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? &call->visible_attention_pieces[low - 1] : NULL;
}

struct visible_keys cpu_visible_keys(const struct call *call, int64_t i)
{
    const struct work *work = call->work;
    if (work->attention.mask == MASK_FULL)
        return (struct visible_keys){0, work->attention.kv};
    if (work->attention.mask >= MASK_DOCUMENTS) {
        const struct attention_piece *piece = last_piece_up_to_row(call, i);
        if (piece == NULL || i >= piece->first_query + piece->query_count)
            return (struct visible_keys){0, 0};
        return visible_keys_of_row(piece, i - piece->first_query);
    }
    struct attention_piece whole = {.query_count = work->attention.q,
                                    .key_count = work->attention.kv,
                                    .offset = work->attention.offset};
    if (work->attention.mask == MASK_WINDOW)
        whole.window = work->attention.window;
    return visible_keys_of_row(&whole, i);
}

size_t cpu_attention_scratch_floats(const struct work *work)
{
    (void)work;
    return (size_t)ATTENTION_QUERY_TILE * (ATTENTION_KEY_TILE + 2);
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Turns the scores of one query row within a tile of keys, of which the row sees those from `begin` to `end`, into
 * probabilities relative to the row's running maximum; those of other keys become 0. Updates the running maximum and
 * sum. *scale becomes the factor by which the row's earlier results must be multiplied. */
static void softmax_tile_row(float *score, int64_t begin, int64_t end, int64_t width,
                             float *maximum, float *sum, float *scale)
{
    float top = largest_of_lanes(score + begin, end - begin);
    if (top < *maximum)
        top = *maximum;
    for (int64_t j = 0; j < begin; j++)
        score[j] = 0;
    for (int64_t j = begin; j < end; j++)
        score[j] = fast_exp(score[j] - top);
    for (int64_t j = end; j < width; j++)
        score[j] = 0;
    *scale = isinf(*maximum) ? 0 : expf(*maximum - top);
    *sum = *sum * *scale + sum_of_lanes(score + begin, end - begin);
    *maximum = top;
}

/* Computes the output and the log-sum-exp of one tile of queries, from row `first` on, of one head. */
static void attend_query_tile(const struct call *call, const float *q, const float *k,
                              const float *v, float *o, float *lse, int64_t first, int64_t rows,
                              float *scratch)
{
    const struct work *work = call->work;
    const int64_t dim = work->attention.dim, heads = work->attention.heads;
    const int64_t vdim = work_attention_vdim(work), o_step = heads * vdim;
    const int64_t step = heads * dim, k_step = work->attention.kv_heads * dim;
    const int64_t v_step = work->attention.kv_heads * vdim;
    float *score = scratch, *maximum = scratch + ATTENTION_QUERY_TILE * ATTENTION_KEY_TILE,
          *sum = maximum + ATTENTION_QUERY_TILE;
    for (int64_t i = 0; i < rows; i++) {
        memset(o + i * o_step, 0, (size_t)vdim * sizeof *o);
        maximum[i] = -INFINITY;
        sum[i] = 0;
    }
    int64_t begin = cpu_visible_keys(call, first).begin, end = 0;
    for (int64_t i = 0; i < rows; i++) { /* rows that see nothing have an empty range at 0 */
        struct visible_keys keys = cpu_visible_keys(call, first + i);
        if (keys.begin == keys.end)
            continue;
        begin = end == 0 ? keys.begin : min_i64(begin, keys.begin);
        end = max_i64(end, keys.end);
    }
    for (int64_t key = begin; key < end; key += ATTENTION_KEY_TILE) {
        int64_t width = min_i64(ATTENTION_KEY_TILE, end - key);
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (blasint)rows, (blasint)width,
                    (blasint)dim, 1 / sqrtf((float)dim), q, (blasint)step, k + key * k_step,
                    (blasint)k_step, 0, score, ATTENTION_KEY_TILE);
        for (int64_t i = 0; i < rows; i++) {
            struct visible_keys keys = cpu_visible_keys(call, first + i);
            float *row = score + i * ATTENTION_KEY_TILE, scale;
            int64_t from = max_i64(keys.begin - key, 0), to = min_i64(keys.end - key, width);
            if (from >= to) {
                memset(row, 0, (size_t)width * sizeof *row);
                continue;
            }
            softmax_tile_row(row, from, to, width, &maximum[i], &sum[i], &scale);
            if (scale != 1)
                for (int64_t d = 0; d < vdim; d++)
                    o[i * o_step + d] *= scale;
        }
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (blasint)rows, (blasint)vdim,
                    (blasint)width, 1, score, ATTENTION_KEY_TILE, v + key * v_step, (blasint)v_step,
                    1, o, (blasint)o_step);
    }
    for (int64_t i = 0; i < rows; i++) {
        lse[i * heads] = sum[i] > 0 ? maximum[i] + logf(sum[i]) : -INFINITY;
        for (int64_t d = 0; sum[i] > 0 && d < vdim; d++)
            o[i * o_step + d] /= sum[i];
    }
}

const char *cpu_attention(const struct call *call, float *scratch)
{
    const struct work *work = call->work;
    const int64_t heads = work->attention.heads, dim = work->attention.dim;
    const int64_t vdim = work_attention_vdim(work), group = heads / work->attention.kv_heads;
    const float *q = call->read[0].data, *k = call->read[1].data, *v = call->read[2].data;
    float *o = call->write[0].data, *lse = call->write[1].data; /* (q, heads, vdim), (q, heads) */
    for (int64_t h = 0; h < heads; h++)
        for (int64_t i = 0; i < work->attention.q; i += ATTENTION_QUERY_TILE) {
            int64_t rows = min_i64(ATTENTION_QUERY_TILE, work->attention.q - i);
            const int64_t row = i * heads + h, key = h / group;
            attend_query_tile(call, q + row * dim, k + key * dim, v + key * vdim, o + row * vdim,
                              lse + row, i, rows, scratch);
        }
    return NULL;
}

/* Merges one row and head of a tile into a sum as ring-flash-attention does (pull request 34), without overflow. out
 * and l are the sum and its log-sum-exp, block and b those of the tile. With s = sigmoid(b - l): out_new = out - s (out
 * - block), and lse_new = l - logsigmoid(l - b). */
static void merge_block(const float *out, float l, const float *block, float b, int64_t dim,
                        float *out_new, float *lse_new)
{
    float share;
    if (isinf(b) && b < 0) { /* the block has seen no key; neither, perhaps, has the row */
        share = 0;
        *lse_new = l;
    } else if (isinf(l) && l < 0) {
        share = 1;
        *lse_new = b;
    } else {
        share = 1 / (1 + expf(l - b));
        *lse_new = l > b ? l + log1pf(expf(b - l)) : b + log1pf(expf(l - b));
    }
    for (int64_t d = 0; d < dim; d++)
        out_new[d] = out[d] - share * (out[d] - block[d]);
}

const char *cpu_merge(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t rows = work->merge.rows * work->merge.heads, dim = work->merge.dim;
    const float *out = call->read[0].data, *lse = call->read[1].data; /* (rows, heads, dim) */
    const float *block = call->read[2].data, *block_lse = call->read[3].data;
    float *out_new = call->write[0].data, *lse_new = call->write[1].data;
    for (int64_t i = 0; i < rows; i++)
        merge_block(out + i * dim, lse[i], block + i * dim, block_lse[i], dim, out_new + i * dim,
                    &lse_new[i]);
    return NULL;
}

/* Adds the sink of each head to the softmax of a finished attention: rescales o, and updates the lse. A sink is a score
 * without a key and a value, so it enlarges the sum of the softmax and adds nothing to the output. */
const char *cpu_sink(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t heads = work->sink.heads, dim = work->sink.dim, rows = work->sink.rows * heads;
    const float *o = call->read[0].data, *lse = call->read[1].data; /* (rows, heads, dim) */
    const float *sink = (const float *)call->read[2].data + call->index_in_sharding_group * heads;
    float *o_new = call->write[0].data, *lse_new = call->write[1].data;
    for (int64_t i = 0; i < rows; i++) {
        const double with = log1p(exp(-fabs((double)lse[i] - (double)sink[i % heads]))) +
                            fmax((double)lse[i], (double)sink[i % heads]);
        const float share = (float)exp((double)lse[i] - with);
        for (int64_t d = 0; d < dim; d++)
            o_new[i * dim + d] = o[i * dim + d] * share;
        lse_new[i] = (float)with;
    }
    return NULL;
}

/* Computes the gradient of sinks: d sink = - the sum over rows of exp(sink - lse) (d_o . o), where o and lse include
 * the sink. */
const char *cpu_sink_backward(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t heads = work->sink.heads, dim = work->sink.dim,
                  first = call->index_in_sharding_group * heads;
    const float *d_o = call->read[0].data, *o = call->read[1].data, *lse = call->read[2].data;
    const float *sink = (const float *)call->read[3].data + first;
    float *d_sinks = call->write[0].data;
    if (!work->sink.accumulate)
        memset(d_sinks, 0, call->write[0].element_count * sizeof *d_sinks);
    else if (d_sinks != call->read[4].data)
        memmove(d_sinks, call->read[4].data, call->write[0].element_count * sizeof *d_sinks);
    for (int64_t h = 0; h < heads; h++) {
        double sum = 0;
        for (int64_t i = h; i < work->sink.rows * heads; i += heads) {
            double dot = 0;
            for (int64_t d = 0; d < dim; d++)
                dot += (double)d_o[i * dim + d] * (double)o[i * dim + d];
            sum += exp((double)sink[h] - (double)lse[i]) * dot;
        }
        d_sinks[first + h] -= (float)sum;
    }
    return NULL;
}

const char *cpu_merge_rows(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t heads = work->merge_rows.heads, dim = work->merge_rows.dim,
                  sums = work->merge_rows.to * heads;
    const float *block = call->read[0].data, *block_lse = call->read[1].data;
    float *out = call->write[0].data, *lse = call->write[1].data;
    const struct moved_rows moved =
        moved_rows_get_list(call->exchanged_rows, moved_list_of_work(work), work->merge_rows.rows);
    if (work->merge_rows.first) {
        memset(out, 0, (size_t)(sums * dim) * sizeof *out);
        for (int64_t i = 0; i < sums; i++)
            lse[i] = -INFINITY;
    } else {
        if (out != call->read[2].data)
            memmove(out, call->read[2].data, (size_t)(sums * dim) * sizeof *out);
        if (lse != call->read[3].data)
            memmove(lse, call->read[3].data, (size_t)sums * sizeof *lse);
    }
    for (int64_t i = 0; i < moved.count; i++)
        for (int64_t h = 0; h < heads; h++) {
            const int64_t from = moved_outer_row(&moved, i) * heads + h,
                          to = moved_inner_row(&moved, i) * heads + h;
            merge_block(out + to * dim, lse[to], block + from * dim, block_lse[from], dim,
                        out + to * dim, &lse[to]);
        }
    return NULL;
}

const char *cpu_row_dot(const struct call *call, float *scratch)
{
    (void)scratch;
    const struct work *work = call->work;
    const int64_t rows = work->merge.rows * work->merge.heads, dim = work->merge.dim;
    const float *a = call->read[0].data, *b = call->read[1].data; /* (rows, heads, dim) */
    float *y = call->write[0].data;
    for (int64_t i = 0; i < rows; i++) {
        float sum = 0;
        for (int64_t d = 0; d < dim; d++)
            sum += a[i * dim + d] * b[i * dim + d];
        y[i] = sum;
    }
    return NULL;
}
