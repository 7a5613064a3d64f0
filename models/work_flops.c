/* Counts the floating-point operations of work, and the visible pairs of attention. */
#include "models/work.h"

#include <assert.h>

/* Returns the sum over all integers x <= n of x clamped to [0, top]: negative x add 0. */
static double sum_of_clamped_terms(double n, double top)
{
    if (n <= 0)
        return 0;
    return n <= top ? n * (n + 1) / 2 : top * (top + 1) / 2 + (n - top) * top;
}

/* Returns the number of pairs with j <= i + offset. Query i sees i + offset + 1 keys, clamped to [0, kv]. */
static double causal_pairs(int64_t q, int64_t kv, int64_t offset)
{
    /* An offset below -q or above kv has the same pairs as that limit. The sums are exact in doubles then. */
    double first = (double)(offset < -q ? -q : offset > kv ? kv : offset);
    return sum_of_clamped_terms(first + (double)q, (double)kv) -
           sum_of_clamped_terms(first, (double)kv);
}

double attention_piece_pairs(const struct attention_piece *piece)
{
    double pairs = causal_pairs(piece->query_count, piece->key_count, piece->offset);
    if (piece->window > 0) {
        int64_t hidden =
            piece->offset < INT64_MIN + piece->window ? INT64_MIN : piece->offset - piece->window;
        pairs -= causal_pairs(piece->query_count, piece->key_count, hidden);
    }
    return pairs;
}

double work_attention_pairs(const struct work *work)
{
    assert(work->kind == WORK_ATTENTION || work->kind == WORK_ATTENTION_BACKWARD);
    assert(work->attention.mask < MASK_DOCUMENTS);
    if (work->attention.mask == MASK_FULL)
        return (double)work->attention.q * (double)work->attention.kv;
    struct attention_piece piece = {.query_count = work->attention.q,
                                    .key_count = work->attention.kv,
                                    .offset = work->attention.offset};
    if (work->attention.mask == MASK_WINDOW && work->attention.window == 0)
        return 0;
    if (work->attention.mask == MASK_WINDOW)
        piece.window = work->attention.window;
    return attention_piece_pairs(&piece);
}

int64_t work_attention_vdim(const struct work *work)
{
    return work->attention.vdim > 0 ? work->attention.vdim : work->attention.dim;
}

double work_attention_pair_flops(const struct work *work)
{
    const double dim = (double)work->attention.dim, vdim = (double)work_attention_vdim(work);
    return work->kind == WORK_ATTENTION ? 2 * (dim + vdim) : 2 * (3 * dim + 2 * vdim);
}

double work_attention_flops(const struct work *work, double pairs)
{
    return pairs * (double)work->attention.heads * work_attention_pair_flops(work);
}

double work_flops(const struct work *work)
{
    if (work->kind == WORK_OPAQUE) {
        const struct work as = work_cost_equivalent(work);
        return as.kind == WORK_OPAQUE ? 0 : work_flops(&as);
    }
    switch ((enum work_kind)work->kind) {
    case WORK_MATMUL:
        return 2.0 * (double)work->matmul.m * (double)work->matmul.n * (double)work->matmul.k;
    case WORK_ATTENTION:
    case WORK_ATTENTION_BACKWARD:
        return work_attention_flops(work, work_attention_pairs(work));
    default:
        return 0;
    }
}
