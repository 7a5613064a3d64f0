/* schedule/attention/fpdt_only_fetches.c: a schedule of only the fetches of tiles, as FPDT's Figure 10 times them: the
 * keys and values of one chunk that a forward tile reads, and the tensors that a backward tile reads, each between two
 * waits of the host. Before that, fills make the chunk's tensors on the device, and copies store them on the host. */
#include "schedule/attention/attention.h"
#include "schedule/attention/fpdt.h"
#include "schedule/config/derived.h"

static void emit_host_wait_for_stream(struct emit *e, uint8_t stream)
{
    e->op_tags.region = REGION_NONE;
    emit_host_wait(e, stream);
}

void fpdt_emit_only_fetches(struct emit *e)
{
    struct fpdt f = fpdt_of_sequence(e, 0, 0);
    enum dtype dtype = (enum dtype)e->choices->dtype;
    const int64_t tokens = fpdt_chunk_tokens(&f, 0), queries = tokens * f.q_width;
    const int64_t results = tokens * f.o_width;
    const struct {
        const char *stem;
        enum category category;
        enum dtype dtype;
        int64_t count;
        bool backward;
    } parts[] = {
        {"k", CATEGORY_KV, dtype, tokens * f.kv_width, false},
        {"v", CATEGORY_KV, dtype, tokens * f.v_width, false},
        {"q", CATEGORY_ACTIVATION, dtype, queries, true},
        {"o", CATEGORY_ACTIVATION, dtype, results, true},
        {"lse", CATEGORY_ACTIVATION, DTYPE_F32, tokens * f.heads, true},
        {"d_o", CATEGORY_ACTIVATION, dtype, results, true},
        {"dq_sum", CATEGORY_ACTIVATION, DTYPE_F32, queries, true},
    };
    struct view host[ARRAY_LEN(parts)] = {{{0}, 0, 0}};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        e->op_tags.region = REGION_NONE;
        struct view x = emit_zeros(
            e, emit_tensor(e, parts[i].stem, parts[i].category, parts[i].dtype, parts[i].count, 0));
        /* Only chunk 0 is stored, so host[i] is one view and not an array with a view for each chunk. With stride 0,
         * fpdt_store_tensor() finds host[i] for every chunk. */
        const size_t stride = 0;
        fpdt_store_tensor(&f, f.store_stream, 0, x, parts[i].stem, &host[i], stride);
        /* With block-sparse attention the queries of a later chunk see only a part of the keys and values. Only this
         * part is fetched, unless one rank fetches for all. */
        if (parts[i].category == CATEGORY_KV && !fpdt_one_rank_fetches_for_all(e->choices))
            host[i] =
                view_slice(host[i], 0, fpdt_visible_keys(&f, 1, 0) * (parts[i].count / tokens));
    }
    emit_host_wait_for_stream(e, f.store_stream);
    for (int backward = 0; backward < 2; backward++) {
        e->op_tags.phase = backward ? PHASE_BACKWARD : PHASE_FORWARD;
        for (size_t i = 0; i < ARRAY_LEN(parts); i++)
            if (parts[i].backward == (backward != 0))
                fpdt_fetch_tensor(&f, f.load_stream, (op_id){IR_NONE}, 0, host[i], parts[i].stem);
        /* If one rank fetches for all, it then scatters what it copied, on the fetch stream, which ends last. */
        emit_host_wait_for_stream(e, fpdt_one_rank_fetches_for_all(e->choices)
                                         ? e->stream.chunk_collective_stream
                                         : f.load_stream);
    }
}
