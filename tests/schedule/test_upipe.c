/* tests/schedule/test_upipe.c: compares Untied Ulysses (arXiv 2602.21196) with plain Ulysses: what a layer
 * sends, how often it projects, and what it keeps in memory while attention runs. */
#include "schedule/analysis/happens_before.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"
#include "schedule/verify/verify.h"
#include "tests/schedule/shapes.h"

#include <stdio.h>
#include <stdlib.h>

enum { RANKS = 2, TOKENS = 1024, HEADS = 16, KV_HEADS = 4, DIM = 32, HIDDEN = HEADS * DIM };

/* 16 query heads on 2 ranks: 8 stages; 4 key and value heads: sent in stages 0 and 4. */
static const struct transformer block = {.name = "block",
                                         .layers = 1,
                                         .hidden = HIDDEN,
                                         .heads = HEADS,
                                         .kv_heads = KV_HEADS,
                                         .head_dim = DIM,
                                         .ffn = 64,
                                         .vocab = 64,
                                         .activation = ACTIVATION_GELU,
                                         .norm = NORM_LAYERNORM,
                                         .positions = POSITIONS_NONE,
                                         .norm_eps = 1e-5};

static bool make_schedule(struct ir *ir, const char *strategy, const struct transformer *model,
                          uint32_t hp, uint32_t tp, struct diag *diag)
{
    struct choices c;
    struct request request = {.model = model,
                              .strategy = strategy,
                              .profile = "ideal",
                              .weights = CHOICE_WEIGHTS_REPLICATED,
                              .activations = CHOICE_ACTIVATIONS_FULL,
                              .optimizer = -1,
                              .attention_impl = -1,
                              .dtype = -1,
                              .ranks = hp * tp,
                              .hp = hp,
                              .tp = tp,
                              .seq = TOKENS,
                              .loss_chunks = 1,
                              .sm = 80,
                              .gpus_per_node = 8};
    return resolve_choices(&c, &request, NULL, diag) == STATUS_OK &&
           step_build(ir, &c, diag) == STATUS_OK &&
           verify(ir, NULL, strategy, NULL, diag) == STATUS_OK;
}

/* Number of ops of a kind in the layer, and the bytes that they send. */
struct sent {
    int64_t ops, bytes;
};

static struct sent count_ops_and_sent_bytes(const struct ir *ir, enum work_kind kind,
                                            enum phase phase)
{
    struct sent sum = {0};
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.kind[op] == kind && ir->op.phase[op] == phase && ir->op.layer[op] == 0) {
            struct view view = ir_read_view(ir, op, 0);
            sum.ops++;
            sum.bytes += (int64_t)view.count * (int64_t)dtype_bytes(ir->dtype);
        }
    return sum;
}

/* In the forward 8 stages exchange q and the output, and 2 exchange k and v. In the backward 8 stages exchange
 * the gradients of the output and of q, and 2 those of k and v; the exchanges of recomputed q, k and v are not
 * counted. The bytes are those of Ulysses, for n tokens of a rank in 16 bits: 2 n h for each of q and the output, and
 * 2 n h_kv for each of k and v (h_kv: their width). */
static void stages_send_what_ulysses_sends(void)
{
    struct ir stages = {0}, ulysses = {0};
    struct diag diag = {0};
    CHECK("upipe", make_schedule(&stages, "upipe", &block, RANKS, 1, &diag));
    CHECK("ulysses", make_schedule(&ulysses, "ulysses", &block, RANKS, 1, &diag));
    CHECK_TEXT("no complaint", diag.text ? diag.text : "", "");
    int64_t row = TOKENS / RANKS * DIM * (int64_t)dtype_bytes(stages.dtype);
    struct sent forward = count_ops_and_sent_bytes(&stages, WORK_ALL_TO_ALL, PHASE_FORWARD);
    CHECK_INT("forward, all-to-alls", forward.ops, 8 + 8 + 2 + 2);
    CHECK_INT("forward, bytes", forward.bytes, row * (2 * HEADS + 2 * KV_HEADS));
    CHECK_INT("as Ulysses", forward.bytes,
              count_ops_and_sent_bytes(&ulysses, WORK_ALL_TO_ALL, PHASE_FORWARD).bytes);
    struct sent backward = count_ops_and_sent_bytes(&stages, WORK_ALL_TO_ALL, PHASE_BACKWARD);
    CHECK_INT("backward, all-to-alls", backward.ops, 8 + 8 + 2 + 2);
    CHECK_INT("backward, bytes", backward.bytes, forward.bytes);
    CHECK_INT("tiles", count_ops_and_sent_bytes(&stages, WORK_ATTENTION, PHASE_FORWARD).ops, 8);
    CHECK_INT("gradients of tiles",
              count_ops_and_sent_bytes(&stages, WORK_ATTENTION_BACKWARD, PHASE_BACKWARD).ops, 8);
    ir_release(&stages);
    ir_release(&ulysses);
    diag_release(&diag);
}

/* Returns the bytes of the buffers that are live at an op: from the first op that accesses them to the last. Persistent
 * buffers do not count. */
static int64_t live_bytes_at(const struct ir *ir, uint32_t at)
{
    uint32_t count = ir->buffer.count;
    uint32_t *first = heap_alloc(count, sizeof *first), *last = heap_zalloc(count, sizeof *last);
    for (uint32_t b = 0; b < count; b++)
        first[b] = IR_NONE;
    for (uint32_t op = 0; op < ir->op.count; op++)
        for (uint32_t k = 0; k < (uint32_t)ir->op.read_count[op] + ir->op.write_count[op]; k++) {
            uint32_t b = ir_read_view(ir, op, k).buffer.i;
            first[b] = first[b] == IR_NONE ? op : first[b];
            last[b] = op;
        }
    int64_t sum = 0;
    for (uint32_t b = 0; b < count; b++)
        if (!(ir->buffer.flags[b] & BUFFER_PERSISTENT) && first[b] <= at && at <= last[b])
            sum += (int64_t)ir_buffer_bytes(ir, (buffer_id){b});
    free(first);
    free(last);
    return sum;
}

/* Returns the most bytes that are live while the backward of attention runs. */
static int64_t peak_bytes_of_attention_backward(const struct ir *ir)
{
    int64_t peak = 0;
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.kind[op] == WORK_ATTENTION_BACKWARD) {
            int64_t live = live_bytes_at(ir, op);
            peak = live > peak ? live : peak;
        }
    return peak;
}

/* With Ulysses q, k, v, their gradients and the workspace of all heads are live at one time; with stages only those
 * of one head per rank. Both also keep the layer's inputs, the output and its gradient, and the stages collect dqkv.
 * With 16 heads and 4 key and value heads, q, k and v take 1.5 tensors of [n, h] and their gradients as much; with
 * stages q shrinks to an eighth, and k and v to a half. */
static void upipe_stages_keep_fewer_heads_live(void)
{
    struct ir stages = {0}, ulysses = {0};
    struct diag diag = {0};
    CHECK("upipe", make_schedule(&stages, "upipe", &block, RANKS, 1, &diag));
    CHECK("ulysses", make_schedule(&ulysses, "ulysses", &block, RANKS, 1, &diag));
    int64_t tensor = TOKENS / RANKS * HIDDEN * (int64_t)dtype_bytes(stages.dtype);
    int64_t saved =
        peak_bytes_of_attention_backward(&ulysses) - peak_bytes_of_attention_backward(&stages);
    printf("saved: %.2f tensors\n", (double)saved / (double)tensor);
    CHECK("at least a tensor of [n, h] less", saved >= tensor);
    ir_release(&stages);
    ir_release(&ulysses);
    diag_release(&diag);
}

static void impossible_upipe_requests_are_refused(void)
{
    static const struct {
        uint32_t hp, tp;
        const char *message;
    } rows[] = {
        {8, 1,
         "--hp: error: a stage of --strategy upipe sends every head rank one key and value head, "
         "so "
         "the model's key and value heads must divide evenly over the head ranks; choose a smaller "
         "--hp, or --strategy ulysses\n"},
        {2, 2,
         "--tp: error: the stages of --strategy upipe project their heads with whole weights, from "
         "rows that no tensor rank has gathered; choose --tp 1, with head ranks (--hp), which cut "
         "attention's heads as well\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct ir ir = {0};
        struct diag diag = {0};
        CHECK("refused", !make_schedule(&ir, "upipe", &block, rows[i].hp, rows[i].tp, &diag));
        CHECK_TEXT("message", diag.text ? diag.text : "", rows[i].message);
        diag_release(&diag);
    }
}

static const struct check_case cases[] = {
    {"stages send what Ulysses sends", stages_send_what_ulysses_sends},
    {"stages keep less", upipe_stages_keep_fewer_heads_live},
    {"what stages cannot do is refused", impossible_upipe_requests_are_refused},
};
CHECK_MAIN("upipe", cases)
