/* tests/schedule/test_fpdt.c: compares FPDT's schedule with what its paper and its code count: tensors of a
 * block (Table 2 of arXiv 2408.16978), copies and tiles of a layer, and memory that falls with the size of a
 * chunk. */
#include "schedule/analysis/happens_before.h"
#include "schedule/analysis/liveness.h"
#include "schedule/config/resolve_config.h"
#include "schedule/step/build.h"
#include "schedule/verify/verify.h"
#include "tests/schedule/shapes.h"

#include <stdio.h>
#include <string.h>

/* The paper's block: multi-head attention, and a feed-forward part four times as wide. */
static const struct transformer block = {.name = "block",
                                         .layers = 1,
                                         .hidden = 512,
                                         .heads = 8,
                                         .kv_heads = 8,
                                         .head_dim = 64,
                                         .ffn = 2048,
                                         .vocab = 64,
                                         .activation = ACTIVATION_GELU,
                                         .norm = NORM_LAYERNORM,
                                         .positions = POSITIONS_NONE,
                                         .norm_eps = 1e-5};

enum { RANKS = 4, TOKENS = 4096 };

static struct request request_of(const char *strategy, const char *profile, int activations,
                                 int64_t chunk, int64_t seq)
{
    return (struct request){.model = &block,
                            .strategy = strategy,
                            .profile = profile,
                            .weights = CHOICE_WEIGHTS_REPLICATED,
                            .activations = activations,
                            .optimizer = -1,
                            .attention_impl = -1,
                            .dtype = -1,
                            .ranks = RANKS,
                            .hp = RANKS,
                            .seq = seq,
                            .chunk_tokens = chunk,
                            .loss_chunks = strcmp(strategy, "fpdt") == 0 ? 0 : 1,
                            .sm = 80,
                            .gpus_per_node = 4};
}

static void resolve_and_build_schedule(struct ir *ir, struct choices *c,
                                       const struct request *request)
{
    struct diag diag = {0};
    CHECK("resolve", resolve_choices(c, request, NULL, &diag) == STATUS_OK);
    CHECK("build", step_build(ir, c, &diag) == STATUS_OK);
    CHECK("verify", verify(ir, NULL, "fpdt", NULL, &diag) == STATUS_OK);
    if (diag.text != NULL)
        fputs(diag.text, stderr);
    diag_release(&diag);
}

static void make_schedule(struct ir *ir, struct choices *c, const char *strategy,
                          const char *profile, int activations, int64_t chunk, int64_t seq)
{
    const struct request request = request_of(strategy, profile, activations, chunk, seq);
    resolve_and_build_schedule(ir, c, &request);
}

/* ---- Table 2 ---- */

/* Returns the k-th op (from 0) of a kind in a phase of the layer. If there is none, a check fails,
 * and it returns 0. */
static uint32_t find_kth_op_of_kind(const struct ir *ir, enum work_kind kind, enum phase phase,
                                    int k)
{
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.kind[op] == kind && ir->op.phase[op] == phase && ir->op.layer[op] == 0 &&
            k-- == 0)
            return op;
    CHECK("there is such an op", false);
    return 0;
}

/* Returns the size of those operands [from, to) that are in the compute dtype, in units of one
 * hidden tensor. */
static double size_of_operands_in_hidden_tensors(const struct ir *ir, uint32_t op, uint32_t from,
                                                 uint32_t to)
{
    double elements = 0, unit = (double)TOKENS / RANKS * (double)block.hidden;
    for (uint32_t k = from; k < to; k++) {
        struct view view = ir_read_view(ir, op, k); /* writes follow the reads */
        if (ir->buffer.dtype[view.buffer.i] == ir->dtype)
            elements += (double)view.count;
    }
    return elements / unit;
}

static double operand_size_in_hidden_tensors(const struct ir *ir, uint32_t op)
{
    return size_of_operands_in_hidden_tensors(
        ir, op, 0, (uint32_t)ir->op.read_count[op] + ir->op.write_count[op]);
}

static double written(const struct ir *ir, uint32_t op)
{
    return size_of_operands_in_hidden_tensors(
        ir, op, ir->op.read_count[op], (uint32_t)ir->op.read_count[op] + ir->op.write_count[op]);
}

/* Returns the size of the operands of three all-to-alls that are live while the k-th runs, in units
 * of one hidden tensor: earlier all-to-alls have ended and later ones have not started. */
static double live_all_to_all_size_in_hiddens(const struct ir *ir, int k)
{
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        uint32_t op = find_kth_op_of_kind(ir, WORK_ALL_TO_ALL, PHASE_FORWARD, i);
        sum += i > k   ? size_of_operands_in_hidden_tensors(ir, op, 0, 1)
               : i < k ? size_of_operands_in_hidden_tensors(ir, op, 1, 2)
                       : operand_size_in_hidden_tensors(ir, op);
    }
    return sum;
}

static void block_memory_is_that_of_table_2(void)
{
    struct ir ir = {0};
    struct choices c;
    double in_flight = 0;
    make_schedule(&ir, &c, "ulysses", "ideal", CHOICE_ACTIVATIONS_KEEP, 0, TOKENS);
    for (int i = 0; i < 3; i++)
        in_flight += operand_size_in_hidden_tensors(
            &ir, find_kth_op_of_kind(&ir, WORK_ALL_TO_ALL, PHASE_FORWARD, i));
    uint32_t gelu = find_kth_op_of_kind(&ir, WORK_GELU_BACKWARD, PHASE_BACKWARD, 0);
    const struct {
        const char *label;
        double got, paper;
    } rows[] = {
        {"forward, qkv", written(&ir, find_kth_op_of_kind(&ir, WORK_MATMUL, PHASE_FORWARD, 0)), 3},
        {"forward, the first all-to-all", live_all_to_all_size_in_hiddens(&ir, 0), 4},
        {"forward, the second", live_all_to_all_size_in_hiddens(&ir, 1), 4},
        {"forward, the third", live_all_to_all_size_in_hiddens(&ir, 2), 4},
        {"forward, all in flight", in_flight, 6},
        {"forward, attention",
         operand_size_in_hidden_tensors(&ir,
                                        find_kth_op_of_kind(&ir, WORK_ATTENTION, PHASE_FORWARD, 0)),
         4},
        {"forward, feed-forward",
         written(&ir, find_kth_op_of_kind(&ir, WORK_MATMUL, PHASE_FORWARD, 2)), 4},
        {"backward, attention",
         operand_size_in_hidden_tensors(
             &ir, find_kth_op_of_kind(&ir, WORK_ATTENTION_BACKWARD, PHASE_BACKWARD, 0)),
         8},
        {"backward, qkv",
         operand_size_in_hidden_tensors(&ir,
                                        find_kth_op_of_kind(&ir, WORK_UNPACK, PHASE_BACKWARD, 0)),
         6},
        /* the gradients on both sides of the activation; the forward counts what it keeps */
        {"backward, feed-forward",
         size_of_operands_in_hidden_tensors(&ir, gelu, 0, 1) + written(&ir, gelu), 8},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CHECK_CLOSE(rows[i].label, rows[i].got, rows[i].paper, 1e-12);
    ir_release(&ir);
}

/* Tensors of one of u chunks are 1/u of those of Table 2. */
static void chunk_memory_is_its_share(void)
{
    enum { U = 8 };
    struct ir ir = {0};
    struct choices c;
    make_schedule(&ir, &c, "fpdt", "ideal", CHOICE_ACTIVATIONS_KEEP, TOKENS / U, TOKENS);
    CHECK_CLOSE("qkv", written(&ir, find_kth_op_of_kind(&ir, WORK_MATMUL, PHASE_FORWARD, 0)),
                3. / U, 1e-12);
    CHECK_CLOSE("a tile",
                operand_size_in_hidden_tensors(
                    &ir, find_kth_op_of_kind(&ir, WORK_ATTENTION, PHASE_FORWARD, 5)),
                4. / U, 1e-12);
    CHECK_CLOSE("a tile backward",
                operand_size_in_hidden_tensors(
                    &ir, find_kth_op_of_kind(&ir, WORK_ATTENTION_BACKWARD, PHASE_BACKWARD, 5)),
                8. / U, 1e-12);
    CHECK_CLOSE("feed-forward, in twice as many",
                written(&ir, find_kth_op_of_kind(&ir, WORK_GELU, PHASE_FORWARD, 3)), 4. / (2 * U),
                1e-12);
    ir_release(&ir);
}

/* ---- counts ---- */

struct fpdt_tally {
    int64_t tiles[2], causal[2];     /* forward, backward */
    int64_t load_bytes, store_bytes; /* between device and host */
    int64_t loads, stores, syncs, barriers, merges;
};

static struct fpdt_tally count_ops_of_phase(const struct ir *ir, enum phase phase)
{
    struct fpdt_tally t = {{0}, {0}, 0, 0, 0, 0, 0, 0, 0};
    for (uint32_t op = 0; op < ir->op.count; op++) {
        const struct work *work = ir_work(ir, op);
        bool back = work->kind == WORK_ATTENTION_BACKWARD;
        if (ir->op.phase[op] != phase || ir->op.layer[op] != 0)
            continue;
        if (work->kind == WORK_ATTENTION || back) {
            t.tiles[back]++;
            t.causal[back] += work->attention.mask == MASK_CAUSAL;
        }
        t.loads += work->kind == WORK_H2D;
        t.stores += work->kind == WORK_D2H;
        t.load_bytes += work->kind == WORK_H2D ? work->copy.bytes : 0;
        t.store_bytes += work->kind == WORK_D2H ? work->copy.bytes : 0;
        t.syncs += work->kind == WORK_HOST_SYNC;
        t.barriers += work->kind == WORK_BARRIER;
        t.merges += work->kind == WORK_MERGE;
    }
    return t;
}

/* In FPDT's public code the forward loads the keys and values of every earlier chunk again, and the backward loads
 * the set of query tensors of every tile again: q, o, dO, the fp32 sum of dq, and lse. */
static void the_public_code_copies_what_it_says(void)
{
    for (int64_t u = 2; u <= 8; u++) {
        char label[32];
        struct ir ir = {0};
        struct choices c;
        int64_t chunk = 512, n = chunk / RANKS * block.hidden * 2; /* X: bytes of q of a chunk */
        int64_t lse = 4 * chunk * block.heads / RANKS, tiles = u * (u + 1) / 2;
        snprintf(label, sizeof label, "u %lld", (long long)u);
        make_schedule(&ir, &c, "fpdt", "deepspeed", CHOICE_ACTIVATIONS_KEEP, chunk, u * chunk);
        struct fpdt_tally f = count_ops_of_phase(&ir, PHASE_FORWARD),
                          b = count_ops_of_phase(&ir, PHASE_BACKWARD);
        CHECK_INT(label, f.tiles[0], tiles);
        CHECK_INT(label, f.causal[0], u);
        CHECK_INT(label, f.merges, tiles - u);
        CHECK_INT(label, b.tiles[1], tiles);
        CHECK_INT(label, b.causal[1], u);
        /* loads: u (u - 1) / 2 - 1 pairs of keys and values, and q, o, lse and a pair for the backward; stores: q, k,
         * v, o, the normed input and lse of every chunk */
        CHECK_INT(label, f.load_bytes, (u * (u - 1) - 2) * n + 4 * n + lse);
        CHECK_INT(label, f.store_bytes, u * (5 * n + lse));
        /* loads of the backward: a set of queries (5 n bytes and lse) for every tile but the first, whose set the
         * forward has fetched; u - 1 of the sets get dO, n bytes, from an all-to-all and not from the host; a pair of
         * keys and values for every chunk but one, which the forward has fetched; the normed input of every chunk */
        CHECK_INT(label, b.load_bytes,
                  (tiles - 1) * (5 * n + lse) - (u - 1) * n + (u - 1) * 2 * n + u * n);
        /* dq after every tile, its zeros before the first, and dO */
        CHECK_INT(label, b.store_bytes, (tiles + 1) * 2 * n + (u - 1) * n);
        CHECK("barriers", f.barriers == u && b.barriers >= u);
        ir_release(&ir);
    }
}

/* The profile ideal copies only what the method needs: no zeros, nothing that is already on the device, and no dq
 * that is complete. */
static void ideal_profile_copies_only_needs(void)
{
    for (int64_t u = 2; u <= 8; u++) {
        char label[32];
        struct ir ir = {0};
        struct choices c;
        int64_t chunk = 512, n = chunk / RANKS * block.hidden * 2;
        int64_t lse = 4 * chunk * block.heads / RANKS, tiles = u * (u + 1) / 2;
        snprintf(label, sizeof label, "u %lld", (long long)u);
        make_schedule(&ir, &c, "fpdt", "ideal", CHOICE_ACTIVATIONS_KEEP, chunk, u * chunk);
        struct fpdt_tally f = count_ops_of_phase(&ir, PHASE_FORWARD),
                          b = count_ops_of_phase(&ir, PHASE_BACKWARD);
        CHECK_INT(label, f.load_bytes, (u * (u - 1) - 2) * n);
        /* sets are fetched for all tiles but the last, which uses that of the previous tile; dO of the first round
         * does not come from the host, and dq of the first round does not exist yet; a pair of every chunk is
         * fetched as well */
        int64_t sets = tiles - 1;
        CHECK_INT(label, b.load_bytes, sets * (2 * n + lse) + (sets - u) * 3 * n + u * 2 * n);
        /* with two chunks, the second's dO is still on the device when it is needed again */
        CHECK_INT(label, b.store_bytes, (tiles - u - 1) * 2 * n + (u > 2 ? u - 1 : 0) * n);
        CHECK_INT(label, f.syncs + b.syncs + f.barriers + b.barriers, 0);
        ir_release(&ir);
    }
}

/* With the loop over queries outside, keys and values are copied and not the tensors of queries.
 * That is much less if K and V have few heads. */
static void grouped_queries_move_less_with_queries_outside(void)
{
    int64_t bytes[2];
    struct transformer grouped = block;
    grouped.kv_heads = 4;
    grouped.heads = 32;
    grouped.head_dim = 16;
    for (int order = 0; order < ORDER_COUNT; order++) {
        struct diag diag = {0};
        struct ir ir = {0};
        struct choices c;
        const struct request request = {.model = &grouped,
                                        .strategy = "fpdt",
                                        .profile = "ideal",
                                        .weights = 0,
                                        .activations = CHOICE_ACTIVATIONS_KEEP,
                                        .optimizer = -1,
                                        .attention_impl = -1,
                                        .dtype = -1,
                                        .ranks = RANKS,
                                        .hp = RANKS,
                                        .seq = TOKENS,
                                        .chunk_tokens = TOKENS / 8,
                                        .chunk_order = order,
                                        .sm = 80,
                                        .gpus_per_node = 4};
        CHECK("build", resolve_choices(&c, &request, NULL, &diag) == STATUS_OK &&
                           step_build(&ir, &c, &diag) == STATUS_OK);
        struct fpdt_tally b = count_ops_of_phase(&ir, PHASE_BACKWARD);
        bytes[order] = b.load_bytes + b.store_bytes;
        ir_release(&ir);
        diag_release(&diag);
    }
    CHECK("less than half", 2 * bytes[ORDER_QUERY_OUTER] < bytes[ORDER_KV_OUTER]);
}

/* ---- memory, and sums of pieces ---- */

static void smaller_chunks_take_less_memory(void)
{
    static const char *const profiles[] = {"deepspeed", "ideal"};
    for (size_t p = 0; p < ARRAY_LEN(profiles); p++) {
        uint64_t before = UINT64_MAX;
        for (int64_t u = 1; u <= 16; u *= 2) {
            struct ir ir = {0};
            struct choices c;
            make_schedule(&ir, &c, "fpdt", profiles[p], CHOICE_ACTIVATIONS_OFFLOAD, 16384 / u,
                          16384);
            CHECK(profiles[p], ir.planned_bytes[MEMORY_HBM] < before);
            CHECK(profiles[p], (ir.planned_bytes[MEMORY_PINNED] > 0) ==
                                   (u > 1 || strcmp(profiles[p], "ideal") == 0));
            before = ir.planned_bytes[MEMORY_HBM];
            ir_release(&ir);
        }
    }
}

/* The chunks of a micro-batch reuse the host memory of the previous one's chunks. */
static void micro_batches_share_their_memory_of_the_host(void)
{
    static const char *const labels[FETCH_COUNT] = {"each rank fetches",
                                                    "one rank fetches for all"};
    for (int f = 0; f < FETCH_COUNT; f++) {
        uint64_t of_one = 0;
        for (int64_t batches = 1; batches <= 3; batches++) {
            struct ir ir = {0};
            struct choices c;
            struct request request =
                request_of("fpdt", "ideal", CHOICE_ACTIVATIONS_FULL, 512, 4096);
            request.chunk_fetch = f;
            request.global_batch = batches;
            resolve_and_build_schedule(&ir, &c, &request);
            of_one = batches == 1 ? ir.planned_bytes[MEMORY_PINNED] : of_one;
            CHECK("the host stores chunks", of_one > 0);
            CHECK_INT(labels[f], (int64_t)ir.planned_bytes[MEMORY_PINNED], (int64_t)of_one);
            ir_release(&ir);
        }
    }
}

/* As in fpdt_layer.py, weight gradients of pieces are added in fp32: w1 and w2 have 2 u pieces, wqkv has u, and the
 * head as many as the loss. The head's input is on the host between the two passes over it. */
static void pieces_are_summed_as_the_public_code_does(void)
{
    enum { CHUNKS = 4 };
    struct ir ir = {0};
    struct choices c;
    uint32_t sums = 0, products = 0, stored = 0, loaded = 0;
    int64_t touches = 0;
    make_schedule(&ir, &c, "fpdt", "deepspeed", CHOICE_ACTIVATIONS_KEEP, TOKENS / CHUNKS, TOKENS);
    for (uint32_t op = 0; op < ir.op.count; op++) {
        const struct work *work = ir_work(&ir, op);
        bool wide = work->kind == WORK_ADD && work->in == DTYPE_BF16 && work->out == DTYPE_F32;
        sums += wide && ir.buffer.category[ir_read_view(&ir, op, 0).buffer.i] == CATEGORY_GRADIENT;
        products += work->kind == WORK_MATMUL && work->matmul.form == MATMUL_TN;
        bool loss = ir.op.region[op] == REGION_LOSS;
        stored += loss && work->kind == WORK_D2H && work->copy.blocking;
        loaded += loss && work->kind == WORK_H2D && work->copy.blocking;
        if (work->kind == WORK_GELU || work->kind == WORK_GELU_BACKWARD)
            touches += work->activation.touches;
    }
    CHECK_INT("sums", sums, 5 * CHUNKS + (int)c.loss_chunks);
    CHECK_INT("products, wo's among them", products, (int64_t)sums + 1);
    CHECK_INT("stored", stored, 1);
    CHECK_INT("loaded", loaded, (int)c.loss_chunks);
    CHECK_INT("touches", touches, 2 * CHUNKS * (4 + 22 + 27));
    ir_release(&ir);
}

static const struct check_case cases[] = {
    {"pieces are summed as the public code does", pieces_are_summed_as_the_public_code_does},
    {"a block is Table 2", block_memory_is_that_of_table_2},
    {"a chunk is its share", chunk_memory_is_its_share},
    {"the public code copies what it says", the_public_code_copies_what_it_says},
    {"the ideal copies less", ideal_profile_copies_only_needs},
    {"grouped queries move less with queries outside",
     grouped_queries_move_less_with_queries_outside},
    {"smaller chunks take less memory", smaller_chunks_take_less_memory},
    {"micro-batches share their memory of the host", micro_batches_share_their_memory_of_the_host},
};
CHECK_MAIN("fpdt", cases)
