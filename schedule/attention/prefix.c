/* Attention over subsequences (TeraPipe, arXiv 2102.07988; Seq1F1B, arXiv 2406.03488): the s_i queries of subsequence i
 * attend to the keys and values of the P_i tokens up to its end, with a causal mask aligned to the bottom right. Keys
 * and values lie in a buffer for the whole sequence, the cache, to which each subsequence adds its own. With the
 * profile's switch prefix_keys_copied, the forward of every later subsequence also copies all keys and values so far,
 * as Seq1F1B's torch.cat does.
 *
 * The backward goes from the last subsequence to the first. Each adds its gradients for all P_i keys to those from
 * later queries; the gradients of its own s_i keys are then complete. If the sums are in the compute dtype, each sum is
 * a new tensor for the P_i keys; if they are in fp32, or if stages share subsequences, they stay in one buffer.
 *
 * Stages that share a subsequence (schedule/pipeline/multiplex.h) have consecutive pieces of its queries, all equal
 * except for a shorter last one. Keys and values are gathered on all of these stages, each tensor rank's heads
 * separately. Each stage sums gradients of all keys; they are reduce-scattered over the stages when they are complete.
 * A shorter last piece is padded with zeros. A gather puts this padding where the next subsequence's keys will be
 * written later, and a reduce-scatter reads there gradients that are no longer needed. schedule/step/kv_exchange.c
 * describes how stages that share the last subsequences get the keys of the earlier ones. */
#include "schedule/attention/attention.h"
#include "schedule/attention/exchange.h"
#include "schedule/choices/pieces.h"
#include "schedule/choices/profile.h"
#include "schedule/pipeline/pipeline.h"

/* Positions in the sequence: begin and end of the subsequence, and of this stage's queries. The core of this stage
 * attends to the tokens from 0 up to queries_end. piece_tokens: the number of tokens of every piece but the last. */
struct prefix_positions {
    int64_t subsequence_begin, subsequence_end, queries_begin, queries_end, piece_tokens;
};

static struct prefix_positions prefix_positions_of(const struct emit *e)
{
    struct prefix_positions prefix_positions = {
        .subsequence_begin = pipeline_tokens_before_subsequence(e->choices, e->unit.subsequence),
        .subsequence_end = pipeline_tokens_before_subsequence(e->choices, e->unit.subsequence + 1)};
    int64_t tp = (int64_t)e->tensor.size,
            rows = (prefix_positions.subsequence_end - prefix_positions.subsequence_begin) / tp;
    struct piece own = piece_of_rows(rows, e->unit.stages.count, e->unit.stages.index);
    prefix_positions.queries_begin = prefix_positions.subsequence_begin + own.begin * tp;
    prefix_positions.queries_end = prefix_positions.queries_begin + own.rows * tp;
    prefix_positions.piece_tokens = piece_of_rows(rows, e->unit.stages.count, 0).rows * tp;
    return prefix_positions;
}

/* ---- caches, and the collectives of the stages that share a subsequence ---- */

static void emit_collective_of_sharing_stages(struct emit *e, enum work_kind kind, struct view x,
                                              struct view y)
{
    struct work work = {.kind = (uint8_t)kind,
                        .collective = {e->unit.stages.group, bytes_of_view(e, x)}};
    emit_op(e, e->stream.comm_stream_of_sharing_stages, &work, &x, 1, &y, 1);
}

static struct view new_kv_cache_of_prefix(struct emit *e, const char *stem, int64_t width)
{
    struct view cache =
        emit_compute_tensor(e, stem, CATEGORY_KV, e->unit.kv_cache_capacity_tokens, width);
    saved_buffers_add(&e->buffers_never_recomputed, cache.buffer);
    return cache;
}

struct prefix *prefix_open_kv_caches(struct emit *e, uint32_t row, struct kv_widths *width)
{
    struct head_exchange z = exchange_of_layer(e, 0); /* widths are those of all layers */
    struct prefix *prefix = &e->prefix[row];
    *width = (struct kv_widths){z.kv_width / z.head_ranks, z.v_width / z.head_ranks};
    if (prefix->k.count == 0)
        *prefix = (struct prefix){.k = new_kv_cache_of_prefix(e, "k_cache", width->k_width),
                                  .v = new_kv_cache_of_prefix(e, "v_cache", width->v_width)};
    return prefix;
}

/* Returns a new buffer with room for a full piece of keys or values, and emits the fill that zeroes the end which this
 * shorter piece will not write. Returns an empty view if this piece has full length. */
static struct view new_zero_padded_kv_piece(struct emit *e, const char *stem,
                                            struct prefix_positions prefix_positions, int64_t width)
{
    int64_t own = prefix_positions.queries_end - prefix_positions.queries_begin,
            lacks = (prefix_positions.piece_tokens - own) * width;
    if (lacks == 0)
        return view_none();
    struct view all =
        emit_compute_tensor(e, stem, CATEGORY_KV, prefix_positions.piece_tokens, width);
    emit_zeros(e, view_slice(all, own * width, lacks));
    return all;
}

/* Gathers the pieces of all stages into the cache, at the place of the subsequence. filled: this stage's piece with its
 * padding; empty: `own` needs no padding. */
static void gather_stage_pieces_into_cache(struct emit *e, struct view own, struct view filled,
                                           struct view cache,
                                           struct prefix_positions prefix_positions, int64_t width)
{
    int64_t all = prefix_positions.piece_tokens * width * e->unit.stages.count;
    emit_collective_of_sharing_stages(
        e, WORK_ALL_GATHER, filled.count > 0 ? filled : own,
        view_slice(cache, prefix_positions.subsequence_begin * width, all));
}

/* Returns a copy of x[rows, width], the part of a cache that is filled so far, in the compute dtype. */
static struct view copy_filled_part_of_cache(struct emit *e, struct view x, const char *stem,
                                             int64_t rows, int64_t width)
{
    struct view y = emit_compute_tensor(e, stem, CATEGORY_KV, rows, width);
    return emit_pack_or_unpack(e, WORK_PACK, x, y, rows, 1, width);
}

/* ---- forward and backward ---- */

static struct work prefix_tile_work(const struct emit *e, uint32_t layer, int64_t sequence,
                                    const struct head_exchange *z, enum work_kind kind,
                                    struct prefix_positions prefix_positions)
{
    struct work work = attention_causal_work(e, kind, z->group_tokens, z->heads / z->head_ranks,
                                             z->core_kv_heads / z->head_ranks);
    work.attention.kv = prefix_positions.queries_end;
    work.attention.offset = prefix_positions.queries_begin;
    return attention_masked_work(e, layer, sequence, work, prefix_positions.queries_begin);
}

/* Returns the row of a layer's sequence in e->prefix. */
static uint32_t prefix_row_of_layer_sequence(const struct emit *e, uint32_t layer, int64_t sequence)
{
    return layer * (uint32_t)e->choices->micro_batch + (uint32_t)sequence;
}

void prefix_forward(struct emit *e, uint32_t layer, int64_t sequence, struct view qkv,
                    struct view out)
{
    struct head_exchange z = exchange_of_layer(e, layer);
    struct prefix_positions prefix_positions = prefix_positions_of(e);
    struct kv_widths width;
    struct prefix *prefix =
        prefix_open_kv_caches(e, prefix_row_of_layer_sequence(e, layer, sequence), &width);
    struct attention_saved *saved = &e->layer_saved[layer].attention[sequence];
    const int64_t before = prefix_positions.subsequence_begin;
    bool shares = e->unit.stages.count > 1;
    struct qkv to = {0}, filled = {0};
    if (shares) {
        filled.k = new_zero_padded_kv_piece(e, "k_piece", prefix_positions, width.k_width);
        filled.v = new_zero_padded_kv_piece(e, "v_piece", prefix_positions, width.v_width);
    }
    if (!shares || filled.k.count > 0) {
        const int64_t first = shares ? 0 : before;
        to.k = view_slice(shares ? filled.k : prefix->k, first * width.k_width,
                          z.group_tokens * width.k_width);
        to.v = view_slice(shares ? filled.v : prefix->v, first * width.v_width,
                          z.group_tokens * width.v_width);
    }
    struct qkv in = exchange_qkv(e, layer, &z, qkv, to, saved);
    if (shares) {
        gather_stage_pieces_into_cache(e, in.k, filled.k, prefix->k, prefix_positions,
                                       width.k_width);
        gather_stage_pieces_into_cache(e, in.v, filled.v, prefix->v, prefix_positions,
                                       width.v_width);
    }
    in.k = view_slice(prefix->k, 0, prefix_positions.queries_end * width.k_width);
    in.v = view_slice(prefix->v, 0, prefix_positions.queries_end * width.v_width);
    if (e->choices->profile->prefix_keys_copied && before > 0) {
        in.k = copy_filled_part_of_cache(e, in.k, "k_prefix", prefix_positions.queries_end,
                                         width.k_width);
        in.v = copy_filled_part_of_cache(e, in.v, "v_prefix", prefix_positions.queries_end,
                                         width.v_width);
    }
    saved->qkv.q = in.q;
    struct view o = exchange_view_for_core_output(e, &z, out);
    attention_save_output_and_make_lse(e, saved, o, z.group_tokens, z.heads / z.head_ranks);
    attention_tile(e, prefix_tile_work(e, layer, sequence, &z, WORK_ATTENTION, prefix_positions),
                   &in, o, saved->lse);
    attention_sinks(e, layer, saved, z.group_tokens, z.heads / z.head_ranks);
    exchange_attention_output(e, &z, o, out);
}

static enum dtype prefix_gradient_sum_dtype(const struct emit *e)
{
    return e->choices->profile->prefix_sums_kv_gradients_in_fp32 ? DTYPE_F32
                                                                 : (enum dtype)e->choices->dtype;
}

/* Returns, for the keys of a tile, the sum of the tile's gradient and of `later`. `later` holds the gradients that
 * later queries gave to these keys, and after them those of later keys; empty: there are none. Adds in place: to
 * `later` if sums are in a wider dtype than the tile, else to the tile. */
static struct view add_gradient_tile(struct emit *e, struct view tile, struct view later)
{
    bool wide = prefix_gradient_sum_dtype(e) != (enum dtype)e->choices->dtype;
    if (later.count == 0)
        return emit_in_dtype(e, tile, prefix_gradient_sum_dtype(e), "dkv_sum", CATEGORY_KV);
    later = view_slice(later, 0, (int64_t)tile.count);
    struct view sum = wide ? later : tile, part = wide ? tile : later;
    emit_add(e, sum, part, sum);
    return sum;
}

/* Does what add_gradient_tile() does in pipelines whose stages share subsequences: adds the tile in place to `later`,
 * or, if that is empty, to a new buffer of zeros. The returned view covers all keys up to the subsequence's end, of
 * which the tile may cover only the first ones. */
static struct view add_gradient_tile_in_place(struct emit *e, struct view tile, struct view later,
                                              struct prefix_positions prefix_positions,
                                              int64_t width)
{
    struct view sum = later;
    int64_t seen = prefix_positions.subsequence_end * width;
    int64_t all = (prefix_positions.subsequence_begin +
                   prefix_positions.piece_tokens * e->unit.stages.count) *
                  width;
    if (later.count == 0)
        sum = emit_zeros(
            e, emit_tensor(e, "dkv_sum", CATEGORY_KV, prefix_gradient_sum_dtype(e), all, 0));
    struct view part = view_slice(sum, 0, (int64_t)tile.count);
    emit_add(e, part, tile, part);
    return view_slice(sum, 0, seen);
}

/* Returns, in the compute dtype, the gradients of the piece's own keys, which are complete now, since earlier queries
 * do not see these keys. sum: the gradients that this stage has summed; given: those that came from stages which shared
 * later subsequences, empty if there are none. Adds `given`, and reduce-scatters over the stages that share the
 * subsequence. */
static struct view add_and_scatter_kv_gradients(struct emit *e, struct view sum, struct view given,
                                                struct prefix_positions prefix_positions,
                                                int64_t width)
{
    int64_t own = (prefix_positions.queries_end - prefix_positions.queries_begin) * width,
            piece = prefix_positions.piece_tokens * width;
    int64_t begin = prefix_positions.subsequence_begin * width,
            count = (prefix_positions.subsequence_end - prefix_positions.subsequence_begin) * width;
    struct view part = view_slice(sum, begin, count);
    if (given.count > 0)
        emit_add(e, part, view_slice(given, begin, count), part);
    if (e->unit.stages.count > 1) {
        struct view mine = emit_tensor(e, "dkv_part", CATEGORY_KV, dtype_of_view(e, sum), piece, 0);
        part.count = (uint64_t)piece * e->unit.stages.count;
        emit_collective_of_sharing_stages(e, WORK_REDUCE_SCATTER, part, mine);
        part = view_slice(mine, 0, own);
    }
    return emit_in_dtype(e, part, (enum dtype)e->choices->dtype, "dkv", CATEGORY_KV);
}

void prefix_backward(struct emit *e, uint32_t layer, int64_t sequence, struct view d_out,
                     struct view dqkv)
{
    struct head_exchange z = exchange_of_layer(e, layer);
    struct prefix_positions prefix_positions = prefix_positions_of(e);
    struct prefix *prefix = &e->prefix[prefix_row_of_layer_sequence(e, layer, sequence)];
    const struct attention_saved *saved = &e->layer_saved[layer].attention[sequence];
    const struct kv_widths width = {z.kv_width / z.head_ranks, z.v_width / z.head_ranks};
    bool multiplexed = pipeline_of_choices(e->choices)->is_multiplexed;
    struct view d_o = exchange_attention_output_backward(e, &z, d_out);
    attention_sinks_backward(e, layer, saved->o, saved->lse, d_o, z.group_tokens,
                             z.heads / z.head_ranks);
    struct qkv in = {saved->qkv.q,
                     view_slice(prefix->k, 0, prefix_positions.queries_end * width.k_width),
                     view_slice(prefix->v, 0, prefix_positions.queries_end * width.v_width)};
    struct qkv grads =
        new_qkv_gradients(e, z.group_tokens, z.q_width / z.head_ranks, prefix_positions.queries_end,
                          width.k_width, width.v_width);
    attention_tile_backward(
        e, prefix_tile_work(e, layer, sequence, &z, WORK_ATTENTION_BACKWARD, prefix_positions), &in,
        saved->o, saved->lse, d_o, &grads);
    if (multiplexed) {
        prefix->dk =
            add_gradient_tile_in_place(e, grads.k, prefix->dk, prefix_positions, width.k_width);
        prefix->dv =
            add_gradient_tile_in_place(e, grads.v, prefix->dv, prefix_positions, width.v_width);
    } else {
        prefix->dk = add_gradient_tile(e, grads.k, prefix->dk);
        prefix->dv = add_gradient_tile(e, grads.v, prefix->dv);
    }
    grads.k = add_and_scatter_kv_gradients(e, prefix->dk, prefix->given_dk, prefix_positions,
                                           width.k_width);
    grads.v = add_and_scatter_kv_gradients(e, prefix->dv, prefix->given_dv, prefix_positions,
                                           width.v_width);
    exchange_qkv_backward(e, layer, &z, grads, dqkv, saved);
}
