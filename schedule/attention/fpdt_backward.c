/* FPDT's backward with keys in the outer loop. The gradients of a chunk's keys and values are summed on the device over
 * the chunks of queries that attend to them. For each of these query chunks a set of tensors is fetched: queries,
 * outputs, log-sum-exps, output gradients, and the sum of the queries' gradients so far, which is then stored again.
 * The gradient of a query chunk is complete after its diagonal tile. fpdt_by_query.c has queries in the outer loop.
 *
 * If chunks are offloaded and the profile's switch chunk_refetches_queries is set, as in DeepSpeed's code, the set is
 * fetched again for every tile, and zeros are stored for all sums first (`reload` below). */
#include "schedule/attention/attention.h"
#include "schedule/attention/fpdt_gradients.h"
#include "schedule/attention/latent.h"
#include "schedule/choices/profile.h"

#include <stddef.h>

/* Returns the tensors of query chunk q that the next tile reads: q, o, lse, d_o and the sum dq so far. Those on the
 * host are fetched. For the chunk's first tile d_o comes from the all-to-all; it is stored if another tile will read
 * it. again: the current tile, by the keys of chunk k, is also of chunk q and will still add to dq, so dq is not
 * fetched here. */
static struct query_chunk_tensors fetch_next_query_tensors(struct fpdt_gradients *g, int64_t q,
                                                           int64_t k, bool again)
{
    const struct fpdt *f = g->fpdt;
    struct stored_query_gradients *state = &g->stored[q];
    bool reload = f->e->choices->profile->chunk_refetches_queries, first = state->d_o.count == 0;
    op_id after = k == 0 && q == 0 ? f->e->last_compute_before_wo_backward : f->e->last_compute;
    struct query_chunk_tensors set = {.queries = fpdt_queries_for_backward(f, q, after),
                                      .dq = view_none()};
    if (first) {
        set.d_o = fpdt_exchange_d_o(g, q);
        if (q > 0 && fpdt_chunk_sees_keys_of_chunk(f, q, q - 1)) { /* another tile will read it */
            fpdt_sync_ranks(f);
            fpdt_store_tensor(f, f->store_stream, q, set.d_o, "d_o_host", &state->d_o,
                              sizeof *state);
        }
    } else {
        set.d_o = fpdt_fetch_tensor(f, f->load_stream, after, q, state->d_o, "d_o");
    }
    if (state->dq.count > 0 && !again && (reload || !first))
        set.dq = fpdt_fetch_tensor(f, f->load_stream, after, q, state->dq, "dq_sum");
    return set;
}

/* Stores the sum of the gradients of query chunk q on the host after its tile, for the chunk's next tile. The sum stays
 * on the device if `stays` is set or if nothing is offloaded. It stays there after the diagonal tile, too, which
 * completes it, unless the switch chunk_refetches_queries is set. */
static void store_query_gradient(struct fpdt_gradients *g, int64_t q, int64_t k,
                                 const struct query_chunk_tensors *set, bool stays)
{
    const struct fpdt *f = g->fpdt;
    struct stored_query_gradients *state = &g->stored[q];
    bool reload = f->e->choices->profile->chunk_refetches_queries;
    if (!stays && (q != k || reload))
        fpdt_store_tensor(f, f->store_stream, q, set->dq, "dq_host", &state->dq, sizeof *state);
}

static struct view new_zeros(const struct fpdt *f, const char *stem, enum category category,
                             int64_t count)
{
    return emit_zeros(f->e, emit_tensor(f->e, stem, category, DTYPE_F32, count, 0));
}

/* Writes the zeros that DeepSpeed writes before the loops: the gradient of the first query chunk on the device, and
 * the gradients of all query chunks on the host. */
static void zero_query_gradients(struct fpdt_gradients *g, struct query_chunk_tensors *set)
{
    const struct fpdt *f = g->fpdt;
    set->dq = new_zeros(f, "dq_sum", CATEGORY_ACTIVATION, fpdt_chunk_tokens(f, 0) * f->q_width);
    struct stored_query_gradients *state = g->stored;
    fpdt_store_tensor(f, f->store_stream, 0, set->dq, "dq_host", &state->dq, sizeof *state);
    for (int64_t q = 1; q < f->chunk_count; q++)
        fpdt_store_zeros(f, q, f->q_width, "dq_host", &state[q].dq, sizeof *state);
    fpdt_emit_host_wait_for_stream(f, f->e->stream.host);
}

/* Emits the tiles of key chunk k, whose keys and values are `pair`, and returns the gradients of chunk k's q, k and v.
 * *set holds the tensors of query chunk k on entry, and of query chunk k + 1 on return. *next becomes the keys and
 * values of chunk k + 1, except with `reload`: then the caller fetches them later. After the last chunk, *set and *next
 * are not valid. */
static struct qkv emit_backward_tiles_of_key_chunk(struct fpdt_gradients *g, int64_t k,
                                                   const struct fpdt_keys_values *pair,
                                                   struct query_chunk_tensors *set,
                                                   struct fpdt_keys_values *next)
{
    const struct fpdt *f = g->fpdt;
    struct emit *e = f->e;
    bool reload = e->choices->profile->chunk_refetches_queries && f->offloads;
    const int64_t keys = fpdt_chunk_tokens(f, k);
    int64_t last = k;
    struct qkv sums = {0};
    if (reload) {
        sums.k = new_zeros(f, "dk_sum", CATEGORY_KV, keys * f->kv_width);
        sums.v = new_zeros(f, "dv_sum", CATEGORY_KV, keys * f->v_width);
    }
    while (last + 1 < f->chunk_count && fpdt_chunk_sees_keys_of_chunk(f, last + 1, k))
        last++;
    for (int64_t q = k; q <= last; q++) {
        int64_t ahead = q < last ? q + 1 : k + 1;
        bool more = ahead < f->chunk_count, again = ahead == q;
        struct query_chunk_tensors then = {0};
        e->op_tags.chunk = (uint16_t)q;
        e->op_tags.step = (uint16_t)k;
        if (more && (!again || reload))
            then = fetch_next_query_tensors(g, ahead, k, again);
        if (more && ahead == k + 1 && q == last && !reload)
            *next = fpdt_keys_values_for_backward(f, k + 1, k + 1, e->last_compute);
        struct qkv part = fpdt_tile_backward(f, q, k, set, pair);
        fpdt_emit_host_wait_for_tile(f);
        set->dq = fpdt_add_to_sum(f, set->dq, part.q, "dq_sum");
        sums.k = fpdt_add_to_sum(f, sums.k, part.k, "dk_sum");
        sums.v = fpdt_add_to_sum(f, sums.v, part.v, "dv_sum");
        store_query_gradient(g, q, k, set, more && again && !reload);
        if (q == k)
            sums.q = set->dq;
        if (more && again && reload)
            then.dq = fpdt_fetch_tensor(f, f->load_stream, e->last_compute, ahead,
                                        g->stored[ahead].dq, "dq_sum");
        if (more && (!again || reload))
            *set = then;
    }
    e->op_tags.step = IR_NONE16;
    return sums;
}

static void fpdt_backward_by_key_chunks(struct fpdt_gradients *g, struct fpdt_gradient_target to)
{
    const struct fpdt *f = g->fpdt;
    struct emit *e = f->e;
    bool reload = e->choices->profile->chunk_refetches_queries && f->offloads;
    struct view norm = fpdt_fetch_normed_input(f, 0, to);
    struct fpdt_keys_values pair =
        fpdt_keys_values_for_backward(f, 0, 0, e->last_compute_before_wo_backward);
    struct query_chunk_tensors set = fetch_next_query_tensors(g, 0, 0, false);
    fpdt_emit_host_wait_for_stream(f, f->side_stream);
    fpdt_emit_host_wait_for_tile(f);
    if (reload)
        zero_query_gradients(g, &set);
    for (int64_t k = 0; k < f->chunk_count; k++) {
        struct fpdt_keys_values next = {0};
        pair = fpdt_expand_latents(f, k, k, pair);
        struct qkv sums = emit_backward_tiles_of_key_chunk(g, k, &pair, &set, &next);
        fpdt_finish_chunk_backward(f, k, sums, norm, to);
        if (k + 1 == f->chunk_count)
            break;
        pair = reload ? fpdt_keys_values_for_backward(f, k + 1, k + 1, e->last_compute) : next;
        norm = fpdt_fetch_normed_input(f, k + 1, to);
        fpdt_emit_host_wait_for_tile(f);
    }
    e->op_tags.chunk = IR_NONE16;
}

static void fpdt_backward_of_sequence(struct emit *e, uint32_t layer, int64_t sequence,
                                      buffer_id d_out, struct fpdt_gradient_target to)
{
    e->op_tags.region = REGION_ATTENTION;
    struct fpdt f = fpdt_of_sequence(e, layer, sequence);
    struct fpdt_gradients g = {.fpdt = &f, .d_out = d_out};
    g.stored = arena_array(&e->arena, (size_t)f.chunk_count, sizeof *g.stored);
    if (e->choices->chunk_order == ORDER_QUERY_OUTER)
        fpdt_backward_by_query(&g, to);
    else
        fpdt_backward_by_key_chunks(&g, to);
}

void fpdt_backward(struct emit *e, uint32_t layer, buffer_id d_out, buffer_id dx)
{
    for (int64_t s = 0; s < e->choices->micro_batch; s++)
        fpdt_backward_of_sequence(e, layer, s, d_out,
                                  (struct fpdt_gradient_target){.dx = dx, .dqkv = {IR_NONE}});
}

void fpdt_operator_backward(struct emit *e, uint32_t layer, int64_t sequence, struct view d_out,
                            struct view dqkv)
{
    fpdt_backward_of_sequence(e, layer, sequence, d_out.buffer,
                              (struct fpdt_gradient_target){.dx = {IR_NONE}, .dqkv = dqkv.buffer});
}
