/* A schedule of only the all-to-alls of the attention operator, as the papers time them. In the forward and in the
 * backward, the three of q, k and v stand between two synchronisations of the host, and so does that of the output.
 * Fills write what the core would have written. */
#include "schedule/attention/attention.h"
#include "schedule/attention/exchange.h"

static void synchronize(struct emit *e)
{
    e->tags.region = REGION_NONE;
    emit_wait(e, e->stream.compute);
    e->tags.region = REGION_ATTENTION;
}

/* Makes a new tensor by a fill, which replaces the op that makes it in a whole schedule. */
static struct view given_view(struct emit *e, const char *stem, int64_t rows, int64_t cols)
{
    e->tags.region = REGION_NONE;
    return emit_zeros(e, emit_computed(e, stem, CATEGORY_ACTIVATION, rows, cols));
}

void exchange_alone(struct emit *e, buffer_id qkv, buffer_id out, buffer_id d_out, buffer_id dqkv)
{
    struct head_exchange z = exchange_of(e, 0);
    struct attention_saved *saved = &e->saved[0].attention[0];
    int64_t q = z.q_width / z.ranks, k = z.kv_width / z.ranks, v = z.v_width / z.ranks;
    synchronize(e);
    exchange_in(e, 0, &z, view_rows(qkv, 0, z.n, z.width), (struct qkv){0}, saved);
    if (z.ranks > 1) {
        struct view o = given_view(e, "o", z.s, z.o_width / z.ranks);
        synchronize(e);
        exchange_out(e, &z, o, view_rows(out, 0, z.n, z.o_width));
        synchronize(e);
        e->tags.phase = PHASE_BACKWARD;
        exchange_out_backward(e, &z, view_rows(d_out, 0, z.n, z.o_width));
    }
    e->tags.phase = PHASE_BACKWARD;
    struct qkv grads = {given_view(e, "dq", z.s, q), given_view(e, "dk", z.s, k),
                        given_view(e, "dv", z.s, v)};
    synchronize(e);
    exchange_in_backward(e, 0, &z, grads, view_rows(dqkv, 0, z.n, z.width), saved);
    synchronize(e);
}
