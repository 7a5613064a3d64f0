#include "schedule/attention/ring.h"
#include "schedule/choices/profile.h"
#include "schedule/ir/visible.h"

/* The tile of a rank's queries by the block of another rank, for each ring layout: [0] if the block is from an earlier
 * rank of the ring, [1] if it is from a later one. A row has: begin, rows: the first query and the number of queries;
 * keys: the number of keys, from the first on; all three in halves of a rank's tokens. 0 rows: the rank sees no key of
 * the block. mask, offset: as in struct ring_tile. */
static const struct tile_of_halves {
    int8_t begin, rows, keys;
    uint8_t mask;
    int8_t offset;
} rules[RING_BY_CORE_PLAN + 1][2] = {
    /* Rank r has slices r and 2 cp - 1 - r. Its queries of both slices attend to the first slice of an earlier rank;
     * those of its second slice attend to both slices of a later rank. */
    [RING_ZIGZAG] = {{0, 2, 1, MASK_FULL, 0}, {1, 1, 2, MASK_FULL, 0}},
    [RING_CONTIGUOUS] = {{0, 2, 2, MASK_FULL, 0}, {0, 0, 0, MASK_FULL, 0}},
    /* token i cp + r is the i-th of rank r */
    [RING_STRIPED] = {{0, 2, 2, MASK_CAUSAL, 0}, {0, 2, 2, MASK_CAUSAL, -1}},
    [RING_ZIGZAG_DOCUMENTS] = {{0, 2, 1, MASK_FULL, 0},
                               {1, 1, 2, MASK_FULL, 0}}, /* as RING_ZIGZAG, for one document */
    /* A query may see any key. apply_mask_to_tiles() replaces these two by one tile of all queries and keys. */
    [RING_BY_CORE_PLAN] = {{0, 2, 2, MASK_FULL, 0}, {0, 2, 2, MASK_FULL, 0}},
};

int64_t ring_block_elements(const struct ring_attention_sizes *z)
{
    return z->rank_tokens * (z->kv_width + z->v_width);
}

struct view ring_new_blocks(struct emit *e, const struct ring_attention_sizes *z, const char *stem,
                            int64_t blocks)
{
    if (z->kv_width == z->v_width)
        return emit_compute_tensor(e, stem, CATEGORY_KV, blocks * 2 * z->rank_tokens, z->kv_width);
    return emit_compute_tensor(e, stem, CATEGORY_KV, blocks * z->rank_tokens,
                               z->kv_width + z->v_width);
}

struct qkv ring_split_kv_block(const struct ring_attention_sizes *z, struct view block)
{
    const int64_t keys = z->rank_tokens * z->kv_width;
    return (struct qkv){.k = view_slice(block, 0, keys),
                        .v = view_slice(block, keys, z->rank_tokens * z->v_width)};
}

struct view ring_own_keys_values(const struct attention_saved *saved)
{
    struct view kv = saved->qkv.k;
    kv.count *= 2; /* v lies after k */
    return kv;
}

struct qkv ring_qkv_from_q_and_kv(struct view q, struct view kv)
{
    const int64_t half = (int64_t)kv.count / 2;
    return (struct qkv){q, view_slice(kv, 0, half), view_slice(kv, half, half)};
}

uint32_t ring_step_count(const struct emit *e)
{
    return e->group.outer_ring.size * e->group.inner_ring.size;
}

static bool has_two_rings(const struct emit *e)
{
    return e->group.outer_ring.size > 1 && e->group.inner_ring.size > 1;
}

static uint32_t list_tiles_of_layout(struct emit *e, int64_t rows, uint32_t step,
                                     struct ring_tile tile[2])
{
    uint32_t outer = step / e->group.inner_ring.size, away = outer > 0 ? outer : step, count = 0;
    uint16_t group = outer > 0 ? e->group.outer_ring.group : e->group.inner_ring.group;
    if (away == 0) {
        tile[0] = (struct ring_tile){
            .query_count = rows, .key_count = rows, .mask = MASK_CAUSAL, .guard = IR_NONE16};
        return 1;
    }
    for (int behind = 0; behind < 2; behind++) {
        const struct tile_of_halves *rule = &rules[e->choices->ring_layout][behind];
        struct guard guard = {group, (uint8_t)(behind ? GUARD_LT : GUARD_GE), away};
        if (rule->rows > 0)
            tile[count++] = (struct ring_tile){.first_query = rule->begin * rows / 2,
                                               .query_count = rule->rows * rows / 2,
                                               .key_count = rule->keys * rows / 2,
                                               .mask = rule->mask,
                                               .offset = rule->offset,
                                               .guard = ir_add_guard(e->ir, guard)};
    }
    return count;
}

/* True if some rank that passes the tile's guard sees a key of the tile, where the sequence is taken as a single
 * document. */
static bool tile_has_visible_key(const struct emit *e, const struct ring_attention_sizes *z,
                                 const struct ring_tile *tile)
{
    struct visible_pieces pieces = {0};
    struct work work = ring_tile_work(e, WORK_ATTENTION, z, tile);
    uint32_t ranks = mesh_rank_count(&e->ir->mesh);
    bool seen = false;
    for (uint32_t rank = 0; rank < ranks && !seen; rank++) {
        if (tile->guard != IR_NONE16 &&
            !guard_passes(&e->ir->mesh, e->ir->group, &e->ir->guard[tile->guard], rank))
            continue;
        visible_find_pieces_as_one_document(e->ir, &work, rank, &pieces);
        seen = pieces.count > 0;
    }
    visible_release(&pieces);
    return seen;
}

/* Does what tile_has_visible_key() does, and keeps the answer for each tile of a step (row: 2 * step + tile). One
 * answer serves all layers and sequences, because all layers that have a window have the same one. */
static bool cached_tile_has_visible_key(struct emit *e, const struct ring_attention_sizes *z,
                                        const struct ring_tile *tile, uint32_t row)
{
    enum { UNKNOWN, SEEN, UNSEEN };
    if (e->group.ring_tile_visibility == NULL)
        e->group.ring_tile_visibility = arena_array(&e->arena, 2 * (size_t)ring_step_count(e), 1);
    if (e->group.ring_tile_visibility[row] == UNKNOWN)
        e->group.ring_tile_visibility[row] = tile_has_visible_key(e, z, tile) ? SEEN : UNSEEN;
    return e->group.ring_tile_visibility[row] == SEEN;
}

/* Gives the tiles of a step the mask DOCUMENTS, or CHUNKS if the window is one of chunks, with the window and documents
 * of the sequence. Returns the number of tiles that are left. In three layouts a step after the first has one tile, of
 * all queries and keys: with stripes, if documents are cut one by one, and if a core plan deals the tokens. Drops the
 * tiles in which the window hides all keys from all ranks, except in the last two of these layouts. */
static uint32_t apply_mask_to_tiles(struct emit *e, const struct ring_attention_sizes *z,
                                    uint32_t step, const struct sequence_mask *mask,
                                    struct ring_tile tile[2], uint32_t count)
{
    bool two = has_two_rings(e);
    uint8_t layout = e->choices->ring_layout;
    bool apart =
        (layout == RING_ZIGZAG_DOCUMENTS && mask->has_documents) || layout == RING_BY_CORE_PLAN;
    uint32_t seen = 0;
    if (step > 0 && (layout == RING_STRIPED || apart)) {
        tile[0] = (struct ring_tile){
            .query_count = z->rank_tokens, .key_count = z->rank_tokens, .guard = IR_NONE16};
        count = 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        tile[i].mask = mask->has_chunked_window ? MASK_CHUNKS : MASK_DOCUMENTS;
        tile[i].offset = 0;
        tile[i].window = mask->window;
        tile[i].sequence = mask->sequence;
        tile[i].away = two ? step % e->group.inner_ring.size : step;
        tile[i].away_out = two ? step / e->group.inner_ring.size : 0;
        if (step == 0 || mask->window == 0 || apart ||
            cached_tile_has_visible_key(e, z, &tile[i], 2 * step + i))
            tile[seen++] = tile[i];
    }
    return seen;
}

uint32_t ring_list_tiles_of_step(struct emit *e, const struct ring_attention_sizes *z,
                                 uint32_t step, struct ring_tile tile[2])
{
    uint32_t count = list_tiles_of_layout(e, z->rank_tokens, step, tile);
    struct sequence_mask mask = sequence_mask_of(e, z->layer, z->sequence, e->choices->seq);
    if (!mask.has_documents && mask.window == 0 && e->choices->ring_layout != RING_BY_CORE_PLAN)
        return count;
    return apply_mask_to_tiles(e, z, step, &mask, tile, count);
}

struct work ring_tile_work(const struct emit *e, enum work_kind kind,
                           const struct ring_attention_sizes *z, const struct ring_tile *tile)
{
    struct work work = attention_causal_work(e, kind, tile->query_count, z->heads, z->kv_heads);
    work.attention.kv = tile->key_count;
    work.attention.mask = tile->mask;
    work.attention.offset = tile->offset;
    if (tile->mask < MASK_DOCUMENTS)
        return work;
    work.attention.window = tile->window;
    work.attention.sequence = tile->sequence;
    work.attention.q_first = tile->first_query;
    work.attention.away = tile->away;
    work.attention.away_out = tile->away_out;
    return work;
}

uint32_t ring_next_step_with_tiles(struct emit *e, const struct ring_attention_sizes *z,
                                   uint32_t step)
{
    struct ring_tile tiles_of_step[2];
    uint32_t next = step + 1;
    while (!has_two_rings(e) && next < ring_step_count(e) &&
           ring_list_tiles_of_step(e, z, next, tiles_of_step) == 0)
        next++;
    return next;
}

/* Returns x, copied into a message of its own if the implementation does so. */
static struct view copy_if_ring_packs_messages(struct emit *e, struct view x)
{
    if (!e->choices->profile->ring_packs_messages)
        return x;
    int64_t count = (int64_t)x.count;
    struct view y =
        emit_tensor(e, "message", CATEGORY_COMMUNICATION, dtype_of_view(e, x), count, 0);
    return emit_pack_or_unpack(e, WORK_PACK, x, y, count, 1, 1);
}

struct view ring_send_and_receive(struct emit *e, const struct ring *ring, uint32_t by,
                                  uint8_t stream, struct view x, const char *stem)
{
    struct view message = copy_if_ring_packs_messages(e, x);
    bool together = e->choices->rotation != ROTATE_P2P;
    struct work work = {.kind = WORK_SHIFT,
                        .p2p = {ring->group, by, bytes_of_view(e, x), 0, together}};
    struct view y = emit_tensor(e, stem, CATEGORY_KV, dtype_of_view(e, x), (int64_t)x.count, 0);
    emit_op_after(e, e->last_compute, stream, &work, &message, 1, &y, 1);
    return y;
}

/* Returns the blocks of keys and values of all ranks of the outer ring: block k is that of the rank k places before
 * this one. */
static struct view gather_kv_blocks_of_outer_ring(struct emit *e, struct view kv,
                                                  struct view message)
{
    struct work work = {
        .kind = WORK_ALL_GATHER,
        .collective = {e->group.outer_ring.group, bytes_of_view(e, kv), ALGORITHM_AUTO, 0, 1}};
    struct view all = emit_tensor(e, "kv_all", CATEGORY_KV, dtype_of_view(e, kv),
                                  e->group.outer_ring.size, (int64_t)kv.count);
    op_id op = emit_op_after(e, e->last_compute, e->group.outer_ring.kv_stream, &work, &message, 1,
                             &all, 1);
    if (e->choices->profile->first_tile_waits_for_gather || e->choices->kernels == KERNELS_COMPILED)
        e->awaited_by_next_compute = op;
    return all;
}

void ring_emit_messages_of_step(struct emit *e, const struct ring_attention_sizes *z, uint32_t step,
                                struct ring_blocks *b)
{
    const struct ring *outer_ring = &e->group.outer_ring, *inner_ring = &e->group.inner_ring;
    uint32_t next = ring_next_step_with_tiles(e, z, step), outer = step / inner_ring->size;
    uint32_t inner = step - outer * inner_ring->size, next_inner = next - outer * inner_ring->size;
    uint32_t next_outer = inner_ring->size == 1 ? next : outer + 1;
    e->op_tags.step = (uint16_t)step;
    b->current_block = inner == 0 ? b->next_window_first_block : b->next_block_in_window;
    if (e->choices->rotation == ROTATE_ALL_GATHER) {
        /* the block is packed in every step but the last, as PyTorch does, though only the first one is sent */
        int64_t count = (int64_t)b->current_block.count;
        if (next_outer < outer_ring->size) {
            struct view message = copy_if_ring_packs_messages(e, b->current_block);
            if (outer == 0)
                b->gathered_blocks_of_all_ranks =
                    gather_kv_blocks_of_outer_ring(e, b->current_block, message);
            b->next_window_first_block =
                view_slice(b->gathered_blocks_of_all_ranks, next_outer * count, count);
        }
    } else {
        if (inner == 0 && next_outer < outer_ring->size)
            b->next_window_first_block = ring_send_and_receive(
                e, outer_ring, next_outer - outer, outer_ring->kv_stream, b->current_block, "kv");
        if (next_inner < inner_ring->size)
            b->next_block_in_window = ring_send_and_receive(
                e, inner_ring, next_inner - inner, inner_ring->kv_stream, b->current_block, "kv");
    }
}
