/* FPDT's backward with queries in the outer loop. The queries of a chunk are fetched once. For each of its tiles the
 * keys and values of a key chunk are fetched with the fp32 sums of their gradients, and the sums are stored again. The
 * sums of a key chunk are complete after the last queries that attend to it. With few key and value heads this moves
 * far fewer bytes than keys in the outer loop. The gradient of a chunk's queries is complete before that of its keys,
 * and is stored until then. */
#include "schedule/attention/fpdt_gradients.h"

#include <stddef.h>

struct stored_key_gradients {
    struct view dk, dv, dq; /* views that fpdt_store_tensor() has set; empty: not stored yet */
};

struct key_chunk_tensors {
    struct fpdt_keys_values keys_values;
    struct view dk, dv; /* sums of the gradients so far; empty: no tile has added to them */
};

static struct key_chunk_tensors fetch_key_tensors(const struct fpdt *f,
                                                  const struct stored_key_gradients *state,
                                                  int64_t q, int64_t k, op_id after)
{
    struct key_chunk_tensors keys = {.keys_values = fpdt_keys_values_for_backward(f, q, k, after)};
    if (state->dk.count > 0) {
        keys.dk = fpdt_fetch_tensor(f, f->load_stream, after, k, state->dk, "dk_sum");
        keys.dv = fpdt_fetch_tensor(f, f->load_stream, after, k, state->dv, "dv_sum");
    }
    return keys;
}

/* Stores the sums of the gradients of chunk k's keys and values after a tile: on the host, or on the device if nothing
 * is offloaded. The tiles of later queries fetch them. */
static void store_key_gradients(const struct fpdt *f, struct stored_key_gradients *state, int64_t k,
                                const struct key_chunk_tensors *keys)
{
    fpdt_store_tensor(f, f->store_stream, k, keys->dk, "dk_host", &state->dk, sizeof *state);
    fpdt_store_tensor(f, f->store_stream, k, keys->dv, "dv_host", &state->dv, sizeof *state);
}

/* Passes the gradients of chunk k's q, k and v to fpdt_finish_chunk_backward(), once the last queries that attend to
 * the chunk's keys are done. dq: the gradient of chunk k's queries if these are the last ones; empty: it has been
 * stored and is fetched. */
static void finish_key_chunk_gradients(const struct fpdt *f,
                                       const struct stored_key_gradients *state,
                                       const struct key_chunk_tensors *keys, int64_t k,
                                       struct view dq, struct fpdt_gradient_target to)
{
    if (dq.count == 0)
        dq = fpdt_fetch_tensor(f, f->load_stream, f->e->last_compute, k, state->dq, "dq");
    fpdt_finish_chunk_backward(f, k, (struct qkv){dq, keys->dk, keys->dv},
                               fpdt_fetch_normed_input(f, k, to), to);
}

/* Emits the tiles of query chunk q. *keys holds, on entry, the first key chunk that q attends to, and on return the
 * first one that chunk q + 1 attends to. *set holds the tensors of chunk q; *next becomes those of chunk q + 1. */
static void emit_backward_tiles_of_query_chunk(struct fpdt_gradients *g,
                                               struct stored_key_gradients *state, int64_t q,
                                               struct query_chunk_tensors *set,
                                               struct query_chunk_tensors *next,
                                               struct key_chunk_tensors *keys,
                                               struct fpdt_gradient_target to)
{
    const struct fpdt *f = g->fpdt;
    struct emit *e = f->e;
    bool last = q + 1 == f->chunk_count;
    int64_t following = last ? q : fpdt_first_visible_chunk(f, q + 1);
    for (int64_t k = fpdt_first_visible_chunk(f, q); k <= q; k++) {
        bool done = last || !fpdt_chunk_sees_keys_of_chunk(f, q + 1,
                                                           k); /* no later queries see the chunk */
        bool stays = !done && k == q && following == q;
        struct key_chunk_tensors then = {0};
        e->op_tags.chunk = (uint16_t)q;
        e->op_tags.step = (uint16_t)k;
        op_id after = e->last_compute;
        if (k < q)
            then = fetch_key_tensors(f, &state[k + 1], q, k + 1, after);
        if (k == q && !last) {
            next->queries = fpdt_queries_for_backward(f, q + 1, after);
            next->d_o = fpdt_exchange_d_o(g, q + 1);
            if (following != q) /* otherwise the chunk's own tile has first to store the sums */
                then = fetch_key_tensors(f, &state[following], q + 1, following, after);
        }
        keys->keys_values = fpdt_expand_latents(f, q, k, keys->keys_values);
        struct qkv part = fpdt_tile_backward(f, q, k, set, &keys->keys_values);
        fpdt_emit_host_wait_for_tile(f);
        set->dq = fpdt_add_to_sum(f, set->dq, part.q, "dq_sum");
        keys->dk = fpdt_add_to_sum(f, keys->dk, part.k, "dk_sum");
        keys->dv = fpdt_add_to_sum(f, keys->dv, part.v, "dv_sum");
        if (!done && !stays)
            store_key_gradients(f, &state[k], k, keys);
        if (done)
            finish_key_chunk_gradients(f, &state[k], keys, k, k == q ? set->dq : view_none(), to);
        if (k < q || (!last && following != q))
            *keys = then;
    }
    e->op_tags.step = IR_NONE16;
    if (last || !fpdt_chunk_sees_keys_of_chunk(f, q + 1, q))
        return;
    struct view dq = fpdt_cast(f, set->dq, (enum dtype)e->choices->dtype, "dq");
    fpdt_store_tensor(f, f->store_stream, q, dq, "dq_host", &state[q].dq, sizeof *state);
}

void fpdt_backward_by_query(struct fpdt_gradients *g, struct fpdt_gradient_target to)
{
    const struct fpdt *f = g->fpdt;
    struct emit *e = f->e;
    struct stored_key_gradients *state =
        arena_array(&e->arena, (size_t)f->chunk_count, sizeof *state);
    struct query_chunk_tensors set = {.queries = fpdt_queries_for_backward(
                                          f, 0, e->last_compute_before_wo_backward)},
                               next = {0};
    struct key_chunk_tensors keys = {
        .keys_values = fpdt_keys_values_for_backward(f, 0, 0, e->last_compute_before_wo_backward)};
    set.d_o = fpdt_exchange_d_o(g, 0);
    fpdt_emit_host_wait_for_tile(f);
    for (int64_t q = 0; q < f->chunk_count; q++) {
        emit_backward_tiles_of_query_chunk(g, state, q, &set, &next, &keys, to);
        set = next;
    }
    e->op_tags.chunk = IR_NONE16;
}
