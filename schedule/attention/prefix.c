/* Attention over subsequences (TeraPipe, arXiv 2102.07988; Seq1F1B, arXiv 2406.03488): the s_i queries of subsequence
 * i attend to the keys and values of the P_i tokens up to its end, bottom-right causal. Keys and values lie in a
 * buffer of the whole sequence, to which each subsequence adds its own (with the profile's switch prefix_copied, the
 * forward of every later subsequence also copies all of them, as Seq1F1B's torch.cat does).
 *
 * The backward goes from the last subsequence to the first: each adds gradients for all P_i keys to those that came
 * from later queries; the gradients of its own s_i keys are then complete. Sums in the compute dtype get shorter with
 * the prefix; sums in fp32 stay in one buffer.
 *
 * Stages that share a subsequence (schedule/pipeline/multiplex.h) have consecutive pieces of its queries, all equal
 * except for a shorter last one. Keys and values are gathered on all of these stages, each tensor rank's heads
 * separately; their gradients are summed on the stage that computes them and reduce-scattered when they are complete.
 * A shorter last piece is padded with zeros: a gather puts the padding where the next subsequence's keys will be
 * written later, and a reduce-scatter reads gradients there that are no longer needed. schedule/step/kv_exchange.c
 * describes how stages that share the last subsequences get the keys of the earlier ones. */
#include "schedule/attention/attention.h"
#include "schedule/attention/exchange.h"
#include "schedule/choices/pieces.h"
#include "schedule/choices/profile.h"
#include "schedule/pipeline/pipeline.h"

/* Positions in the sequence, in tokens: begin and end of the subsequence, and begin (from) and end (to) of this
 * stage's queries. The core of this stage attends to the tokens from 0 up to `to`. piece: the tokens of every piece but
 * the last. */
struct prefix_reach {
    int64_t begin, end, from, to, piece;
};

static struct prefix_reach reach_of(const struct emit *e)
{
    struct prefix_reach reach = {.begin = pipeline_prefix(e->choices, e->unit.subsequence),
                                 .end = pipeline_prefix(e->choices, e->unit.subsequence + 1)};
    int64_t tp = (int64_t)e->tensor.size, rows = (reach.end - reach.begin) / tp;
    struct piece own = emit_piece(rows, e->unit.shared.count, e->unit.shared.index);
    reach.from = reach.begin + own.begin * tp;
    reach.to = reach.from + own.rows * tp;
    reach.piece = emit_piece(rows, e->unit.shared.count, 0).rows * tp;
    return reach;
}

/* ---- what stages share ---- */

static void collective(struct emit *e, enum work_kind kind, struct view x, struct view y)
{
    struct work work = {.kind = (uint8_t)kind,
                        .collective = {e->unit.shared.group, bytes_of(e, x)}};
    emit_op(e, e->stream.shared_comm, &work, &x, 1, &y, 1);
}

static struct view new_cache(struct emit *e, const char *stem, int64_t width)
{
    struct view cache = emit_computed(e, stem, CATEGORY_KV, e->unit.most_keys, width);
    saved_buffers_add(&e->caches, cache.buffer);
    return cache;
}

struct prefix *prefix_open(struct emit *e, uint32_t row, struct kv_widths *width)
{
    struct head_exchange z = exchange_of(e, 0); /* widths are those of all layers */
    struct prefix *prefix = &e->prefix[row];
    *width = (struct kv_widths){z.kv_width / z.ranks, z.v_width / z.ranks};
    if (prefix->k.count == 0)
        *prefix = (struct prefix){.k = new_cache(e, "k_cache", width->k),
                                  .v = new_cache(e, "v_cache", width->v)};
    return prefix;
}

/* Returns a buffer with room for a full piece, whose end is zeroed; the keys or values of a shorter piece are written
 * before the zeros later. Returns an empty view if this piece has full length. */
static struct view filled_up(struct emit *e, const char *stem, struct prefix_reach reach,
                             int64_t width)
{
    int64_t own = reach.to - reach.from, lacks = (reach.piece - own) * width;
    if (lacks == 0)
        return view_none();
    struct view all = emit_computed(e, stem, CATEGORY_KV, reach.piece, width);
    emit_zeros(e, view_part(all, own * width, lacks));
    return all;
}

/* Gathers the pieces of all stages into the cache, after the tokens that it already has. */
static void gather_cache(struct emit *e, struct view own, struct view filled, struct view cache,
                         struct prefix_reach reach, int64_t width)
{
    int64_t all = reach.piece * width * e->unit.shared.count;
    collective(e, WORK_ALL_GATHER, filled.count > 0 ? filled : own,
               view_part(cache, reach.begin * width, all));
}

/* Returns a copy of x, the part of a cache that is filled so far. */
static struct view copy_view(struct emit *e, struct view x, const char *stem, int64_t rows,
                             int64_t width)
{
    struct view y = emit_computed(e, stem, CATEGORY_KV, rows, width);
    return emit_pack(e, WORK_PACK, x, y, rows, 1, width);
}

static struct work tile_work(const struct emit *e, uint32_t layer, int64_t sequence,
                             const struct head_exchange *z, enum work_kind kind,
                             struct prefix_reach reach)
{
    struct work work = attention_work(e, kind, z->s, z->heads / z->ranks, z->kv_sent / z->ranks);
    work.attention.kv = reach.to;
    work.attention.offset = reach.from;
    return attention_masked(e, layer, sequence, work, reach.from);
}

/* Returns the row of a layer's sequence in e->prefix. */
static uint32_t row_of(const struct emit *e, uint32_t layer, int64_t sequence)
{
    return layer * (uint32_t)e->choices->micro_batch + (uint32_t)sequence;
}

void prefix_forward(struct emit *e, uint32_t layer, int64_t sequence, struct view qkv,
                    struct view out)
{
    struct head_exchange z = exchange_of(e, layer);
    struct prefix_reach reach = reach_of(e);
    struct kv_widths width;
    struct prefix *prefix = prefix_open(e, row_of(e, layer, sequence), &width);
    struct attention_saved *saved = &e->saved[layer].attention[sequence];
    const int64_t before = reach.begin;
    bool shares = e->unit.shared.count > 1;
    struct qkv to = {0}, filled = {0};
    if (shares) {
        filled.k = filled_up(e, "k_piece", reach, width.k);
        filled.v = filled_up(e, "v_piece", reach, width.v);
    }
    if (!shares || filled.k.count > 0) {
        const int64_t first = shares ? 0 : before;
        to.k = view_part(shares ? filled.k : prefix->k, first * width.k, z.s * width.k);
        to.v = view_part(shares ? filled.v : prefix->v, first * width.v, z.s * width.v);
    }
    struct qkv in = exchange_in(e, layer, &z, qkv, to, saved);
    if (shares) {
        gather_cache(e, in.k, filled.k, prefix->k, reach, width.k);
        gather_cache(e, in.v, filled.v, prefix->v, reach, width.v);
    }
    in.k = view_part(prefix->k, 0, reach.to * width.k);
    in.v = view_part(prefix->v, 0, reach.to * width.v);
    if (e->choices->profile->prefix_copied && before > 0) {
        in.k = copy_view(e, in.k, "k_prefix", reach.to, width.k);
        in.v = copy_view(e, in.v, "v_prefix", reach.to, width.v);
    }
    saved->in.q = in.q;
    struct view o = exchange_output(e, &z, out);
    attention_save(e, saved, o, z.s, z.heads / z.ranks);
    attention_tile(e, tile_work(e, layer, sequence, &z, WORK_ATTENTION, reach), &in, o, saved->lse);
    attention_sinks(e, layer, saved, z.s, z.heads / z.ranks);
    exchange_out(e, &z, o, out);
}

static enum dtype sum_dtype(const struct emit *e)
{
    return e->choices->profile->prefix_grad_f32 ? DTYPE_F32 : (enum dtype)e->choices->dtype;
}

/* Returns the sum of a tile's gradient and of the gradient that later queries have given to the same keys. */
static struct view add_tile(struct emit *e, struct view tile, struct view later)
{
    bool wide = sum_dtype(e) != (enum dtype)e->choices->dtype;
    if (later.count == 0)
        return emit_as(e, tile, sum_dtype(e), "dkv_sum", CATEGORY_KV);
    later = view_part(later, 0, (int64_t)tile.count);
    struct view sum = wide ? later : tile, part = wide ? tile : later;
    emit_add(e, sum, part, sum);
    return sum;
}

/* Does the same as add_tile(), for pipelines whose stages share subsequences: adds the tile in place to the sum from
 * later queries (or to zeros if there is none yet). The returned view has all keys up to the subsequence's end; the
 * tile may cover only the first of them. */
static struct view summed_in_place(struct emit *e, struct view tile, struct view later,
                                   struct prefix_reach reach, int64_t width)
{
    struct view sum = later;
    int64_t seen = reach.end * width;
    int64_t all = (reach.begin + reach.piece * e->unit.shared.count) * width;
    if (later.count == 0)
        sum = emit_zeros(e, emit_tensor(e, "dkv_sum", CATEGORY_KV, sum_dtype(e), all, 0));
    struct view part = view_part(sum, 0, (int64_t)tile.count);
    emit_add(e, part, tile, part);
    return view_part(sum, 0, seen);
}

/* Returns, in the compute dtype, the gradients of the piece's own keys, to which no earlier query adds. */
static struct view complete_sum(struct emit *e, struct view sum, struct view given,
                                struct prefix_reach reach, int64_t width)
{
    int64_t own = (reach.to - reach.from) * width, piece = reach.piece * width;
    int64_t begin = reach.begin * width, count = (reach.end - reach.begin) * width;
    struct view part = view_part(sum, begin, count);
    if (given.count > 0)
        emit_add(e, part, view_part(given, begin, count), part);
    if (e->unit.shared.count > 1) {
        struct view mine = emit_tensor(e, "dkv_part", CATEGORY_KV, dtype_of(e, sum), piece, 0);
        part.count = (uint64_t)piece * e->unit.shared.count;
        collective(e, WORK_REDUCE_SCATTER, part, mine);
        part = view_part(mine, 0, own);
    }
    return emit_as(e, part, (enum dtype)e->choices->dtype, "dkv", CATEGORY_KV);
}

void prefix_backward(struct emit *e, uint32_t layer, int64_t sequence, struct view d_out,
                     struct view dqkv)
{
    struct head_exchange z = exchange_of(e, layer);
    struct prefix_reach reach = reach_of(e);
    struct prefix *prefix = &e->prefix[row_of(e, layer, sequence)];
    const struct attention_saved *saved = &e->saved[layer].attention[sequence];
    const struct kv_widths width = {z.kv_width / z.ranks, z.v_width / z.ranks};
    bool multiplexed = pipeline_of(e->choices)->is_multiplexed;
    struct view d_o = exchange_out_backward(e, &z, d_out);
    attention_sinks_backward(e, layer, saved->o, saved->lse, d_o, z.s, z.heads / z.ranks);
    struct qkv in = {saved->in.q, view_part(prefix->k, 0, reach.to * width.k),
                     view_part(prefix->v, 0, reach.to * width.v)};
    struct qkv grads = new_gradients(e, z.s, z.q_width / z.ranks, reach.to, width.k, width.v);
    attention_tile_backward(e, tile_work(e, layer, sequence, &z, WORK_ATTENTION_BACKWARD, reach),
                            &in, saved->o, saved->lse, d_o, &grads);
    if (multiplexed) {
        prefix->dk = summed_in_place(e, grads.k, prefix->dk, reach, width.k);
        prefix->dv = summed_in_place(e, grads.v, prefix->dv, reach, width.v);
    } else {
        prefix->dk = add_tile(e, grads.k, prefix->dk);
        prefix->dv = add_tile(e, grads.v, prefix->dv);
    }
    grads.k = complete_sum(e, prefix->dk, prefix->given_dk, reach, width.k);
    grads.v = complete_sum(e, prefix->dv, prefix->given_dv, reach, width.v);
    exchange_in_backward(e, layer, &z, grads, dqkv, saved);
}
