/* The schedules that choices make: legal products verify, work does not depend on the strategy. */
#include "base/text.h"
#include "schedule/compose.h"
#include "schedule/ir_text.h"
#include "schedule/lifetimes.h"
#include "schedule/verify.h"
#include "schedule/weights/tensor_parallel.h"
#include "tests/check.h"
#include "tests/schedule/shapes.h"

#include <string.h>

static bool build(struct ir *ir, struct choices *choices, const struct request *request,
                  const char *label)
{
    struct diag diag = {0};
    *ir = (struct ir){0};
    bool ok = compose_resolve(choices, request, NULL, &diag) == STATUS_OK &&
              compose_build(ir, choices, &diag) == STATUS_OK;
    CHECK_TEXT(label, diag.errors > 0 ? diag.text : "", "");
    diag_release(&diag);
    return ok;
}

static struct request small(size_t shape, int64_t ranks)
{
    return (struct request){.model = &shapes[shape],
                            .weights = -1,
                            .activations = -1,
                            .optimizer = -1,
                            .attention_impl = -1,
                            .dtype = -1,
                            .ranks = ranks,
                            .seq = 64,
                            .sm = 80,
                            .gpus_per_node = 4};
}

static void random_products_verify(void)
{
    struct check_random random = check_random_make();
    for (int i = 0; i < 300; i++) {
        struct request request = shapes_request(&random, 8, i % 2 == 0);
        char label[256];
        shapes_label(&request, label, sizeof label);
        struct ir ir;
        struct choices choices;
        struct diag diag = {0};
        if (build(&ir, &choices, &request, label)) {
            verify(&ir, NULL, "schedule", NULL, &diag);
            CHECK_TEXT(label, diag.text ? diag.text : "", "");
        }
        diag_release(&diag);
        ir_release(&ir);
    }
}

/* Ranks that an op's guard lets do its work. */
static double ranks_doing(const struct ir *ir, uint32_t op)
{
    uint32_t ranks = mesh_ranks(&ir->mesh), count = 0;
    if (ir->op.guard[op] == IR_NONE16)
        return ranks;
    for (uint32_t rank = 0; rank < ranks; rank++)
        count += guard_passes(&ir->mesh, ir->group, &ir->guard[ir->op.guard[op]], rank);
    return count;
}

/* Forward products of all ranks together, in flops; and scores of the attention core. */
static void forward_work(const struct ir *ir, double *products, double *attention)
{
    *products = *attention = 0;
    for (uint32_t op = 0; op < ir->op.count; op++) {
        if (ir->op.phase[op] != PHASE_FORWARD)
            continue;
        double flops = work_flops(ir_work(ir, op)) * ranks_doing(ir, op);
        if (ir->op.kind[op] == WORK_MATMUL)
            *products += flops;
        if (ir->op.kind[op] == WORK_ATTENTION)
            *attention += flops;
    }
}

static void forward_flops_are_the_models(void)
{
    struct check_random random = check_random_make();
    for (int i = 0; i < 100; i++) {
        struct request request = shapes_request(&random, 8, false);
        char label[256];
        shapes_label(&request, label, sizeof label);
        struct ir ir;
        struct choices c;
        if (build(&ir, &c, &request, label)) {
            /* tensor ranks round the vocabulary up, some to what they are padded to, and may each have a copy of a key and value head */
            const struct transformer share = tensor_share(
                                         c.model, c.tp,
                                         c.tp > 1 ? tensor_vocabulary_unit(c.profile) : 1),
                                     *m = &share;
            double tokens = (double)c.global_batch * (double)c.seq, products, attention;
            double pairs = (double)c.seq * ((double)c.seq + 1) / 2; /* j <= i, the diagonal too */
            forward_work(&ir, &products, &attention);
            CHECK_CLOSE(label, products,
                        tokens * c.tp *
                            ((double)m->layers * (double)transformer_linear_flops_per_token(m) +
                             (double)transformer_head_flops_per_token(m)),
                        1e-12);
            CHECK_CLOSE(label, attention,
                        (double)c.global_batch * (double)m->layers * 4 * pairs *
                            (double)(c.tp * m->heads * m->head_dim),
                        1e-12);
        }
        ir_release(&ir);
    }
}

/* The padded sizes that Megatron-LM's tokenizer prints: 50257 becomes a multiple of 128 tp. */
static void megatron_pads_the_vocabulary(void)
{
    static const struct {
        int64_t tp, rows;
    } rows[] = {{2, 25216}, {8, 6400}, {16, 3200}, {64, 896}};
    struct transformer model = shapes[0];
    model.vocab = 50257;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        model.heads = model.kv_heads = rows[i].tp;
        CHECK_INT("rows", tensor_share(&model, rows[i].tp, 128).vocab, rows[i].rows);
        CHECK_INT("as many as there are", tensor_share(&model, rows[i].tp, 1).vocab,
                  (model.vocab + rows[i].tp - 1) / rows[i].tp);
    }
    CHECK_INT("fits", (model.vocab = 51200, tensor_share(&model, 8, 128).vocab), 6400);
}

static double phase_flops(const struct ir *ir, enum phase phase)
{
    double flops = 0;
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.phase[op] == phase &&
            (ir->op.kind[op] == WORK_MATMUL || ir->op.kind[op] == WORK_ATTENTION ||
             ir->op.kind[op] == WORK_ATTENTION_BACKWARD))
            flops += work_flops(ir_work(ir, op));
    return flops;
}

static void recomputation_repeats_the_layers(void)
{
    for (size_t shape = 0; shape < SHAPE_COUNT; shape++) {
        struct request request = small(shape, 2);
        struct ir keep, full;
        struct choices c;
        request.strategy = "ulysses";
        request.profile = "deepspeed";
        request.activations = CHOICE_ACTIVATIONS_KEEP;
        build(&keep, &c, &request, shapes[shape].name);
        request.activations = CHOICE_ACTIVATIONS_FULL;
        build(&full, &c, &request, shapes[shape].name);
        double head = 64.0 * (double)transformer_head_flops_per_token(&shapes[shape]) / 2;
        CHECK_CLOSE(shapes[shape].name, phase_flops(&keep, PHASE_RECOMPUTE), 0, 0);
        CHECK_CLOSE(shapes[shape].name, phase_flops(&full, PHASE_RECOMPUTE),
                    phase_flops(&full, PHASE_FORWARD) - head, 1e-12);
        CHECK_CLOSE(shapes[shape].name, phase_flops(&full, PHASE_BACKWARD),
                    phase_flops(&keep, PHASE_BACKWARD), 1e-12);
        ir_release(&keep);
        ir_release(&full);
    }
}

static void what_the_backward_does_not_read_is_not_repeated(void)
{
    struct request request = small(0, 2);
    struct ir ir;
    struct choices c;
    request.profile = "ideal";
    request.activations = CHOICE_ACTIVATIONS_FULL;
    build(&ir, &c, &request, "ideal");
    const struct transformer *m = &shapes[0];
    double down = 2.0 * 32 * (double)(m->ffn * m->hidden) *
                  (double)m->layers; /* the last product of a layer */
    double head = 32.0 * (double)transformer_head_flops_per_token(m);
    CHECK_CLOSE("recomputed", phase_flops(&ir, PHASE_RECOMPUTE),
                phase_flops(&ir, PHASE_FORWARD) - head - down, 1e-12);
    ir_release(&ir);
}

static uint32_t count(const struct ir *ir, enum work_kind kind, enum phase phase)
{
    uint32_t n = 0;
    for (uint32_t op = 0; op < ir->op.count; op++)
        n += ir->op.kind[op] == kind && (phase == PHASE_COUNT || ir->op.phase[op] == phase);
    return n;
}

static int64_t bytes(const struct ir *ir, enum work_kind kind)
{
    int64_t n = 0;
    for (uint32_t op = 0; op < ir->op.count; op++)
        if (ir->op.kind[op] == kind)
            n += work_payload_bytes(ir_work(ir, op));
    return n;
}

/* Collectives of one step of a model of two layers. */
static void weights_move_as_the_table_says(void)
{
    static const struct {
        const char *profile;
        int weights;
        int64_t shard, gathers, reductions, all_reductions;
    } rows[] = {
        {"internevo", CHOICE_WEIGHTS_REPLICATED, 0, 0, 0, 3}, /* embedding, both layers, head */
        {"internevo", CHOICE_WEIGHTS_ZERO1, 0, 3, 3, 0},
        {"internevo", CHOICE_WEIGHTS_ZERO2, 0, 3, 3, 0},
        {"internevo", CHOICE_WEIGHTS_ZERO3, 0, 6, 4, 0}, /* embedding, 0, 1, head, 1, 0 */
        {"internevo", CHOICE_WEIGHTS_HSDP, 2, 6, 4, 4},
        {"deepspeed", CHOICE_WEIGHTS_ZERO3, 0, 4, 4, 0}, /* so small a model stays gathered */
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = small(0, 4);
        struct ir ir;
        struct choices c;
        request.weights = rows[i].weights;
        request.shard = rows[i].shard;
        request.profile = rows[i].profile;
        build(&ir, &c, &request, weights_names[rows[i].weights]);
        CHECK_INT(weights_names[rows[i].weights], count(&ir, WORK_ALL_GATHER, PHASE_COUNT),
                  rows[i].gathers);
        CHECK_INT(weights_names[rows[i].weights], count(&ir, WORK_REDUCE_SCATTER, PHASE_COUNT),
                  rows[i].reductions);
        CHECK_INT(weights_names[rows[i].weights], count(&ir, WORK_ALL_REDUCE, PHASE_COUNT),
                  rows[i].all_reductions);
        ir_release(&ir);
    }
}

/* Forward, recomputation and backward each move q, k, v and o once: 2 n h bytes for each with MHA. */
static void all_to_alls_move_what_ulysses_says(void)
{
    struct request request = small(0, 4);
    struct ir ir;
    struct choices c;
    request.profile = "internevo";
    build(&ir, &c, &request, "mha");
    int64_t tensor = 2 * (64 / 4) * 64;
    CHECK_INT("all-to-alls", count(&ir, WORK_ALL_TO_ALL, PHASE_COUNT), 2 * (4 + 4 + 4));
    CHECK_INT("bytes", bytes(&ir, WORK_ALL_TO_ALL), 2 * 12 * tensor);
    ir_release(&ir);

    request = small(1, 4); /* 2 kv heads on 4 ranks: copied to 4, half of q's 8 */
    request.profile = "internevo";
    build(&ir, &c, &request, "gqa");
    CHECK_INT("bytes, kv copied to the ranks", bytes(&ir, WORK_ALL_TO_ALL),
              3 * 3 * (tensor + tensor + 2 * tensor / 2));
    ir_release(&ir);
    request.profile = "deepspeed";
    build(&ir, &c, &request, "gqa");
    CHECK_INT("bytes, kv copied to all heads", bytes(&ir, WORK_ALL_TO_ALL), 3 * 3 * 4 * tensor);
    ir_release(&ir);
}

static void fewer_activations_take_less_memory(void)
{
    static const int order[] = {CHOICE_ACTIVATIONS_KEEP, CHOICE_ACTIVATIONS_SELECTIVE,
                                CHOICE_ACTIVATIONS_SELECTIVE_OFFLOAD, CHOICE_ACTIVATIONS_FULL,
                                CHOICE_ACTIVATIONS_OFFLOAD};
    struct choices c;
    uint64_t before = UINT64_MAX;
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        int a = order[i];
        struct transformer deep = shapes[0];
        deep.layers = 16;
        struct request request = small(0, 2);
        struct ir ir;
        request.model = &deep;
        request.seq = 4096;
        request.activations = a;
        build(&ir, &c, &request, activations_names[a]);
        struct lifetimes_figures figures;
        lifetimes_plan(&ir, LIFETIMES_ALIGNMENT, &figures);
        CHECK(activations_names[a], figures.live[MEMORY_HBM] < before);
        before = figures.live[MEMORY_HBM];
        CHECK(activations_names[a],
              (ir.arena_bytes[MEMORY_PAGEABLE] > 0) == (a == CHOICE_ACTIVATIONS_OFFLOAD));
        ir_release(&ir);
    }
}

static void print_parse_print_is_the_identity(void)
{
    struct check_random random = check_random_make();
    for (int i = 0; i < 60; i++) {
        struct request request = shapes_request(&random, 8, false);
        char label[256];
        shapes_label(&request, label, sizeof label);
        struct ir ir, again = {0};
        struct choices c;
        struct diag diag = {0};
        struct text first = {0}, second = {0};
        if (build(&ir, &c, &request, label)) {
            ir_print(&first, &ir);
            CHECK(label, ir_parse(&again, "printed", first.data, first.size, &diag) == STATUS_OK);
            CHECK_TEXT(label, diag.text ? diag.text : "", "");
            ir_print(&second, &again);
            CHECK(label,
                  first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
        }
        text_release(&first);
        text_release(&second);
        diag_release(&diag);
        ir_release(&ir);
        ir_release(&again);
    }
}

static void a_small_schedule_is_as_recorded(void)
{
    struct transformer one = shapes[1];
    one.layers = 1;
    struct request request = small(1, 2);
    struct ir ir;
    struct choices c;
    struct text text = {0};
    request.model = &one;
    request.profile = "internevo";
    build(&ir, &c, &request, "golden");
    ir_print(&text, &ir);
    CHECK_GOLDEN("schedule/golden/ulysses.ir", text.data);
    text_release(&text);
    ir_release(&ir);
}

/* One layer of 2D attention: a window of one ring, two head ranks, and a recomputation. */
static void a_small_ring_is_as_recorded(void)
{
    struct transformer one = shapes[1];
    one.layers = 1;
    struct request request = small(1, 4);
    struct ir ir;
    struct choices c;
    struct text text = {0};
    request.model = &one;
    request.strategy = "2d";
    request.cp = 2;
    request.hp = 2;
    build(&ir, &c, &request, "golden");
    ir_print(&text, &ir);
    CHECK_GOLDEN("schedule/golden/two_d.ir", text.data);
    text_release(&text);
    ir_release(&ir);
}

/* Keys and values and their gradients as LoongTrain counts them (section 4.3): forward (cp/w)(w-1)
 * inner and cp/w - 1 outer passes, backward as many and w cp/w inner and cp/w outer ones of dKV. */
static void rings_pass_what_the_paper_counts(void)
{
    static const struct {
        const char *label;
        int64_t window, inner, outer;
    } rows[] = {
        {"plain ring", 1, 0, 7 + 7 + 8},
        {"windows of 2", 2, 4 + 4 + 8, 3 + 3 + 4},
        {"windows of 4", 4, 6 + 6 + 8, 1 + 1 + 2},
        {"one window", 8, 7 + 7 + 8, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = small(0, 8);
        struct ir ir;
        struct choices c;
        request.strategy = "ring";
        request.window = rows[i].window;
        request.activations = CHOICE_ACTIVATIONS_KEEP;
        build(&ir, &c, &request, rows[i].label);
        int64_t got[2] = {0, 0}, layers = shapes[0].layers, kv = 2 * (64 / 8) * 64, moved = 0;
        for (uint32_t op = 0; op < ir.op.count; op++)
            if (ir.op.kind[op] == WORK_SHIFT) {
                const char *stream = ir.stream[ir.op.stream[op]].name;
                got[strstr(stream, "_in") == NULL]++;
                moved += work_payload_bytes(ir_work(&ir, op));
            }
        CHECK_INT(rows[i].label, got[0], layers * rows[i].inner);
        CHECK_INT(rows[i].label, got[1], layers * rows[i].outer);
        if (rows[i].window == 1) /* everything in 16 bits: (3 cp - 2) Size(kv) */
            CHECK_INT(rows[i].label, moved, layers * (3 * 8 - 2) * kv * 2);
        ir_release(&ir);
    }
}

/* 2D attention with one rank along an axis is the strategy that has only the other, op for op. */
static void corners_are_the_plain_strategies(void)
{
    static const struct {
        const char *strategy;
        int64_t cp, hp;
    } rows[] = {{"ring", 4, 1}, {"ulysses", 1, 4}};
    size_t profiles;
    const struct profile *profile = compose_profiles(&profiles);
    for (size_t p = 0; p < profiles; p++)
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            struct request request = small(0, 4);
            struct ir corner, plain;
            struct choices c;
            struct text text[2] = {{0}, {0}};
            request.profile = profile[p].name;
            request.cp = rows[i].cp;
            request.hp = rows[i].hp;
            request.strategy = "2d";
            build(&corner, &c, &request, profile[p].name);
            request.strategy = rows[i].strategy;
            build(&plain, &c, &request, profile[p].name);
            ir_print(&text[0], &corner);
            ir_print(&text[1], &plain);
            CHECK_TEXT(profile[p].name, text[0].data, text[1].data);
            text_release(&text[0]);
            text_release(&text[1]);
            ir_release(&corner);
            ir_release(&plain);
        }
}

/* Selective Checkpoint++: projections and the exchange are made again, the core and its ring not. */
static void what_the_core_made_is_not_made_again(void)
{
    static const struct {
        const char *strategy, *profile;
        int64_t cp, hp, exchanges; /* q, k, v and the output */
        int64_t syncs;             /* behind the core: what follows it is made again */
    } rows[] = {
        {"ring", "internevo", 4, 1, 0, 1},  {"2d", "internevo", 2, 2, 4, 1},
        {"2d", "ideal", 2, 2, 4, 0},        {"ulysses", "deepspeed", 1, 4, 4, 0},
        {"local", "deepspeed", 1, 1, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = small(0, 4);
        struct ir ir;
        struct choices c;
        int64_t layers = shapes[0].layers;
        request.strategy = rows[i].strategy;
        request.profile = rows[i].profile;
        request.cp = rows[i].cp;
        request.hp = rows[i].hp;
        request.activations = CHOICE_ACTIVATIONS_SELECTIVE;
        build(&ir, &c, &request, rows[i].strategy);
        CHECK_INT(rows[i].strategy, count(&ir, WORK_ATTENTION, PHASE_RECOMPUTE), 0);
        CHECK_INT(rows[i].strategy, count(&ir, WORK_SHIFT, PHASE_RECOMPUTE), 0);
        CHECK_INT(rows[i].strategy, count(&ir, WORK_MERGE, PHASE_RECOMPUTE), 0);
        CHECK_INT(rows[i].strategy, count(&ir, WORK_HOST_SYNC, PHASE_RECOMPUTE),
                  layers * rows[i].syncs);
        CHECK_INT(rows[i].strategy, count(&ir, WORK_ROPE, PHASE_RECOMPUTE),
                  count(&ir, WORK_ROPE, PHASE_FORWARD));
        CHECK_INT(rows[i].strategy, count(&ir, WORK_ALL_TO_ALL, PHASE_RECOMPUTE),
                  layers * rows[i].exchanges);
        ir_release(&ir);
    }
}

/* One layer's operator alone is the layer's attention, no more and no less. */
static void an_operator_alone_is_a_part_of_the_step(void)
{
    static const char *const strategies[] = {"local", "ulysses", "ring", "2d"};
    for (size_t i = 0; i < ARRAY_LEN(strategies); i++) {
        struct request request = small(1, 4);
        struct ir step, part;
        struct choices c;
        struct diag diag = {0};
        request.strategy = strategies[i];
        request.profile = "internevo";
        request.activations = CHOICE_ACTIVATIONS_KEEP;
        build(&step, &c, &request, strategies[i]);
        request.scope = SCOPE_ATTENTION;
        build(&part, &c, &request, strategies[i]);
        verify(&part, NULL, "operator", NULL, &diag);
        CHECK_TEXT(strategies[i], diag.text ? diag.text : "", "");
        static const uint8_t kinds[] = {WORK_ATTENTION, WORK_ATTENTION_BACKWARD, WORK_MERGE,
                                        WORK_ALL_TO_ALL, WORK_SHIFT};
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
            CHECK_INT(strategies[i], shapes[1].layers * count(&part, kinds[k], PHASE_COUNT),
                      count(&step, kinds[k], PHASE_COUNT));
        CHECK_INT(strategies[i], count(&part, WORK_MATMUL, PHASE_COUNT), 0);
        diag_release(&diag);
        ir_release(&step);
        ir_release(&part);
    }
}

/* The exchanges alone: those of the operator, each call between two waits of the host. */
static void exchanges_alone_are_those_of_the_operator(void)
{
    static const struct {
        const char *strategy, *profile;
        int64_t cp, hp;
    } rows[] = {{"2d", "internevo", 2, 2}, {"ulysses", "deepspeed", 1, 4}, {"ring", "ideal", 4, 1}};
    static const uint8_t kinds[] = {WORK_ALL_TO_ALL, WORK_PACK, WORK_UNPACK, WORK_HEAD_EXPAND,
                                    WORK_HEAD_REDUCE};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = small(1, 4);
        struct ir whole, part;
        struct choices c;
        struct diag diag = {0};
        request.strategy = rows[i].strategy;
        request.profile = rows[i].profile;
        request.cp = rows[i].cp;
        request.hp = rows[i].hp;
        request.scope = SCOPE_ATTENTION;
        build(&whole, &c, &request, rows[i].strategy);
        request.scope = SCOPE_EXCHANGE;
        build(&part, &c, &request, rows[i].strategy);
        verify(&part, NULL, "exchange", NULL, &diag);
        CHECK_TEXT(rows[i].strategy, diag.text ? diag.text : "", "");
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
            CHECK_INT(rows[i].strategy, count(&part, kinds[k], PHASE_COUNT),
                      count(&whole, kinds[k], PHASE_COUNT));
        CHECK_INT(rows[i].strategy, count(&part, WORK_ATTENTION, PHASE_COUNT), 0);
        CHECK_INT(rows[i].strategy, count(&part, WORK_SHIFT, PHASE_COUNT), 0);
        CHECK_INT(rows[i].strategy, count(&part, WORK_HOST_SYNC, PHASE_COUNT),
                  rows[i].hp > 1 ? 5 : 3);
        diag_release(&diag);
        ir_release(&whole);
        ir_release(&part);
    }
}

static void wrong_rings_say_what_would_do(void)
{
    static const struct {
        const char *label, *strategy;
        size_t shape;
        int64_t ranks, dp, cp, hp, window, seq;
        const char *message;
    } rows[] = {
        {"split", "2d", 0, 8, 1, 3, 2, 0, 64,
         "--dp: error: dp 1 x cp 3 x hp 2 does not make 8 ranks; cp x hp 2 x 4, 4 x 2 or 8 x 1 "
         "would "
         "do\n"},
        {"heads", "2d", 0, 8, 0, 1, 8, 0, 64,
         "--hp: error: 4 heads do not divide over hp 8; cp x hp 2 x 4, 4 x 2 or 8 x 1 would do\n"},
        {"slices", "ring", 0, 4, 1, 4, 0, 0, 60,
         "--seq: error: 60 tokens do not divide into 2 zigzag slices for each of 4 ranks; 56 or 64 "
         "tokens "
         "would do\n"},
        {"ring", "ring", 0, 4, 0, 2, 2, 0, 64,
         "--hp: error: strategy 'ring' keeps all heads on every rank: hp is 2; 1 would do, or "
         "--strategy "
         "2d\n"},
        {"windows", "ring", 0, 8, 0, 8, 0, 3, 64,
         "--window: error: windows of 3 do not divide a ring of 8 ranks; --window 1, 2, 4 or 8 "
         "would do\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = small(rows[i].shape, rows[i].ranks);
        struct choices c;
        struct diag diag = {0};
        request.strategy = rows[i].strategy;
        request.dp = rows[i].dp;
        request.cp = rows[i].cp;
        request.hp = rows[i].hp;
        request.window = rows[i].window;
        request.seq = rows[i].seq;
        CHECK(rows[i].label, compose_resolve(&c, &request, NULL, &diag) == STATUS_BAD_INPUT);
        CHECK_TEXT(rows[i].label, diag.text ? diag.text : "", rows[i].message);
        diag_release(&diag);
    }
    {
        struct request request = small(0, 4);
        struct choices c;
        struct diag diag = {0};
        request.strategy = "ring";
        request.window = 4;
        request.windows = WINDOWS_INTERLEAVED;
        CHECK("interleaved", compose_resolve(&c, &request, NULL, &diag) == STATUS_BAD_INPUT);
        CHECK_TEXT(
            "interleaved", diag.text ? diag.text : "",
            "--windows: error: windows of 4 do not divide the even ranks of a node of 4 with cp 4; "
            "--windows contiguous would do\n");
        diag_release(&diag);
    }
    struct transformer odd = shapes[0];
    odd.heads = odd.kv_heads = 3;
    struct request request = small(0, 6);
    struct choices c;
    struct diag diag = {0};
    request.model = &odd;
    request.strategy = "2d";
    request.cp = 2;
    request.hp = 3;
    request.seq = 96;
    CHECK("odd", compose_resolve(&c, &request, NULL, &diag) == STATUS_BAD_INPUT);
    CHECK_TEXT(
        "odd", diag.text ? diag.text : "",
        "--hp: error: hp 3 is odd: half of the head ranks takes each slice of a zigzag pair; "
        "cp x hp 6 x 1 would do\n");
    diag_release(&diag);
}

static void wrong_requests_say_what_would_do(void)
{
    struct request base = small(0, 4);
    static const struct {
        const char *label;
        size_t shape;
        int64_t ranks, dp, hp, cp, seq, batch, micro, shard;
        int weights, optimizer;
        const char *strategy, *profile, *message;
    } rows[] = {
        {"unknown strategy", 0, 4, 0, 0, 0, 64, 0, 0, 0, -1, -1, "ulises", NULL,
         "--strategy: error: unknown strategy 'ulises'; did you mean 'ulysses'?; `longhaul list "
         "strategies` "
         "has them all\n"},
        {"unknown profile", 0, 4, 0, 0, 0, 64, 0, 0, 0, -1, -1, NULL, "deepsped",
         "--profile: error: unknown profile 'deepsped'; did you mean 'deepspeed'?; `longhaul list "
         "profiles` "
         "has them all\n"},
        {"heads", 0, 8, 1, 8, 0, 64, 0, 0, 0, -1, -1, NULL, NULL,
         "--hp: error: 4 heads do not divide over hp 8; hp 1, 2 or 4 would do\n"},
        {"tokens", 0, 4, 1, 4, 0, 63, 0, 0, 0, -1, -1, NULL, NULL,
         "--seq: error: 63 tokens do not divide over 4 ranks; 60 or 64 tokens would do\n"},
        {"degrees", 0, 4, 3, 2, 0, 64, 0, 0, 0, -1, -1, NULL, NULL,
         "--dp: error: dp 3 x hp 2 does not make 4 ranks; hp 1, 2 or 4 would do\n"},
        {"head degree", 0, 8, 0, 16, 0, 64, 0, 0, 0, -1, -1, NULL, NULL,
         "--hp: error: hp 16 does not divide 8 ranks; hp 1, 2 or 4 would do\n"},
        {"data degree", 0, 8, 3, 0, 0, 64, 0, 0, 0, -1, -1, NULL, NULL,
         "--dp: error: dp 3 does not divide 8 ranks; dp 1, 2, 4 or 8 would do\n"},
        {"context", 0, 4, 0, 0, 2, 64, 0, 0, 0, -1, -1, NULL, NULL,
         "--cp: error: strategy 'ulysses' has no context-parallel axis: cp is 2; 1 would do\n"},
        {"local", 0, 4, 0, 4, 0, 64, 0, 0, 0, -1, -1, "local", NULL,
         "--hp: error: strategy 'local' keeps a sequence on one rank: hp is 4; 1 would do, or "
         "--strategy "
         "ulysses\n"},
        {"batch", 0, 4, 2, 2, 0, 64, 5, 2, 0, -1, -1, NULL, NULL,
         "--batch: error: a batch of 5 sequences does not divide over dp 2 x micro-batch 2; 4 or 8 "
         "would "
         "do\n"},
        {"shard without hsdp", 0, 4, 0, 0, 0, 64, 0, 0, 2, CHOICE_WEIGHTS_ZERO3, -1, NULL, NULL,
         "--shard: error: is for --weights hsdp; weights are 'zero3'\n"},
        {"shard", 0, 4, 0, 0, 0, 64, 0, 0, 3, CHOICE_WEIGHTS_HSDP, -1, NULL, NULL,
         "--shard: error: weights cannot be sharded over runs of 3 of 4 ranks with hp 4; --shard "
         "1, 2 or 4 "
         "would do\n"},
        {"no ranks", 0, 0, 0, 0, 0, 64, 0, 0, 0, -1, -1, NULL, NULL,
         "--gpus: error: the number of ranks is 0; 1 to 1048576 would do\n"},
        {"no tokens", 0, 4, 0, 0, 0, -5, 0, 0, 0, -1, -1, NULL, NULL,
         "--seq: error: the sequence length is -5; 1 to 1099511627776 would do\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = base;
        struct choices c;
        struct diag diag = {0};
        request.model = &shapes[rows[i].shape];
        request.ranks = rows[i].ranks;
        request.dp = rows[i].dp;
        request.hp = rows[i].hp;
        request.cp = rows[i].cp;
        request.seq = rows[i].seq;
        request.global_batch = rows[i].batch;
        request.micro_batch = rows[i].micro;
        request.shard = rows[i].shard;
        request.weights = rows[i].weights;
        request.optimizer = rows[i].optimizer;
        request.strategy = rows[i].strategy;
        request.profile = rows[i].profile;
        CHECK(rows[i].label, compose_resolve(&c, &request, NULL, &diag) == STATUS_BAD_INPUT);
        CHECK_TEXT(rows[i].label, diag.text ? diag.text : "", rows[i].message);
        diag_release(&diag);
    }
}

static const struct check_case cases[] = {
    {"random products verify", random_products_verify},
    {"forward flops are the model's, whatever the strategy", forward_flops_are_the_models},
    {"megatron pads the vocabulary", megatron_pads_the_vocabulary},
    {"recomputation repeats the layers", recomputation_repeats_the_layers},
    {"what the backward does not read is not repeated",
     what_the_backward_does_not_read_is_not_repeated},
    {"weights move as the table says", weights_move_as_the_table_says},
    {"all-to-alls move what Ulysses says", all_to_alls_move_what_ulysses_says},
    {"fewer kept activations take less memory", fewer_activations_take_less_memory},
    {"print, parse, print is the identity", print_parse_print_is_the_identity},
    {"a small schedule is as recorded", a_small_schedule_is_as_recorded},
    {"a small ring is as recorded", a_small_ring_is_as_recorded},
    {"corners are the plain strategies", corners_are_the_plain_strategies},
    {"rings pass what the paper counts", rings_pass_what_the_paper_counts},
    {"what the core made is not made again", what_the_core_made_is_not_made_again},
    {"an operator alone is a part of the step", an_operator_alone_is_a_part_of_the_step},
    {"exchanges alone are those of the operator", exchanges_alone_are_those_of_the_operator},
    {"wrong rings say what would do", wrong_rings_say_what_would_do},
    {"wrong requests say what would do", wrong_requests_say_what_would_do},
};
CHECK_MAIN("compose", cases)
