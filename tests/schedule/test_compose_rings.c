/* tests/schedule/test_compose_rings.c: schedules of rings and 2D attention: what is sent, what is kept, and
 * what the operator or its exchanges by themselves are. */
#include "base/text.h"
#include "schedule/choices/strategies.h"
#include "schedule/config/resolve_config.h"
#include "schedule/ir/ir_text.h"
#include "schedule/verify/verify.h"
#include "tests/schedule/composed.h"

#include <string.h>

/* Compares a layer of 2D attention with a recorded schedule: a plain ring of two context ranks (windows of 1), two
 * head ranks, and a recomputation. */
static void a_small_ring_is_as_recorded(void)
{
    struct transformer one = shapes[1];
    one.layers = 1;
    struct request request = composed_request(1, 4);
    struct ir ir;
    struct choices c;
    struct text text = {0};
    request.model = &one;
    request.strategy = "2d";
    request.cp = 2;
    request.hp = 2;
    composed_build(&ir, &c, &request, "golden");
    ir_print(&text, &ir);
    CHECK_GOLDEN("schedule/golden/two_d.ir", text.data);
    text_release(&text);
    ir_release(&ir);
}

/* Numbers of passes of keys, values and their gradients with windows of w ranks, as LoongTrain counts them (section
 * 4.3). The forward has (cp/w)(w-1) inner and cp/w - 1 outer passes of keys and values. The backward has as many again,
 * and cp inner and cp/w outer passes of the gradients dKV. */
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
        struct request request = composed_request(0, 8);
        struct ir ir;
        struct choices c;
        request.strategy = "ring";
        request.ring_window = rows[i].window;
        request.activations = CHOICE_ACTIVATIONS_KEEP;
        composed_build(&ir, &c, &request, rows[i].label);
        int64_t got[2] = {0, 0}, layers = shapes[0].layers, kv = 2 * (64 / 8) * 64, moved = 0;
        for (uint32_t op = 0; op < ir.op.count; op++)
            if (ir.op.kind[op] == WORK_SHIFT) {
                const char *stream = ir.stream[ir.op.stream[op]].name;
                got[strstr(stream, "_in") == NULL]++;
                moved += work_payload_bytes(ir_work(&ir, op));
            }
        CHECK_INT(rows[i].label, got[0], layers * rows[i].inner);
        CHECK_INT(rows[i].label, got[1], layers * rows[i].outer);
        if (rows[i].window == 1) /* all in 16 bits: (3 cp - 2) Size(kv) */
            CHECK_INT(rows[i].label, moved, layers * (3 * 8 - 2) * kv * 2);
        ir_release(&ir);
    }
}

/* 2D attention with one rank along an axis equals the strategy that has only the other axis, op for op. */
static void attention_2d_on_one_axis_is_the_plain_strategy(void)
{
    static const struct {
        const char *strategy;
        int64_t cp, hp;
    } rows[] = {{"ring", 4, 1}, {"ulysses", 1, 4}};
    size_t profiles;
    const struct profile *profile = profiles_list(&profiles);
    for (size_t p = 0; p < profiles; p++)
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            struct request request = composed_request(0, 4);
            struct ir corner, plain;
            struct choices c;
            struct text text[2] = {{0}, {0}};
            request.profile = profile[p].name;
            request.cp = rows[i].cp;
            request.hp = rows[i].hp;
            request.strategy = "2d";
            composed_build(&corner, &c, &request, profile[p].name);
            request.strategy = rows[i].strategy;
            composed_build(&plain, &c, &request, profile[p].name);
            CHECK(profile[p].name,
                  c.rotation != ROTATE_PROFILE); /* every profile names its rotation */
            ir_print(&text[0], &corner);
            ir_print(&text[1], &plain);
            CHECK_TEXT(profile[p].name, text[0].data, text[1].data);
            text_release(&text[0]);
            text_release(&text[1]);
            ir_release(&corner);
            ir_release(&plain);
        }
}

/* Selective Checkpoint++ recomputes projections and the exchange, but not attention and its ring. */
static void attention_core_is_not_recomputed(void)
{
    static const struct {
        const char *strategy, *profile;
        int64_t cp, hp, exchanges; /* q, k, v and the output */
        int64_t syncs;             /* of the host, recomputed with the ops after the core */
    } rows[] = {
        {"ring", "internevo", 4, 1, 0, 1},  {"2d", "internevo", 2, 2, 4, 1},
        {"2d", "ideal", 2, 2, 4, 0},        {"ulysses", "deepspeed", 1, 4, 4, 0},
        {"local", "deepspeed", 1, 1, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(0, 4);
        struct ir ir;
        struct choices c;
        int64_t layers = shapes[0].layers;
        request.strategy = rows[i].strategy;
        request.profile = rows[i].profile;
        request.cp = rows[i].cp;
        request.hp = rows[i].hp;
        request.activations = CHOICE_ACTIVATIONS_SELECTIVE;
        composed_build(&ir, &c, &request, rows[i].strategy);
        CHECK_INT(rows[i].strategy, composed_op_count_of_kind(&ir, WORK_ATTENTION, PHASE_RECOMPUTE),
                  0);
        CHECK_INT(rows[i].strategy, composed_op_count_of_kind(&ir, WORK_SHIFT, PHASE_RECOMPUTE), 0);
        CHECK_INT(rows[i].strategy, composed_op_count_of_kind(&ir, WORK_MERGE, PHASE_RECOMPUTE), 0);
        CHECK_INT(rows[i].strategy, composed_op_count_of_kind(&ir, WORK_HOST_SYNC, PHASE_RECOMPUTE),
                  layers * rows[i].syncs);
        CHECK_INT(rows[i].strategy, composed_op_count_of_kind(&ir, WORK_ROPE, PHASE_RECOMPUTE),
                  composed_op_count_of_kind(&ir, WORK_ROPE, PHASE_FORWARD));
        CHECK_INT(rows[i].strategy,
                  composed_op_count_of_kind(&ir, WORK_ALL_TO_ALL, PHASE_RECOMPUTE),
                  layers * rows[i].exchanges);
        ir_release(&ir);
    }
}

/* The attention operator of one layer, built by itself, has as many ops of each kind as the
 * attention of a layer in a step. */
static void an_operator_alone_is_a_part_of_the_step(void)
{
    static const char *const strategies[] = {"local", "ulysses", "ring", "2d"};
    for (size_t i = 0; i < ARRAY_LEN(strategies); i++) {
        struct request request = composed_request(1, 4);
        struct ir step, part;
        struct choices c;
        struct diag diag = {0};
        request.strategy = strategies[i];
        request.profile = "internevo";
        request.activations = CHOICE_ACTIVATIONS_KEEP;
        composed_build(&step, &c, &request, strategies[i]);
        request.scope = SCOPE_ATTENTION_OPERATOR;
        composed_build(&part, &c, &request, strategies[i]);
        verify(&part, NULL, "operator", NULL, &diag);
        CHECK_TEXT(strategies[i], diag.text ? diag.text : "", "");
        static const uint8_t kinds[] = {WORK_ATTENTION, WORK_ATTENTION_BACKWARD, WORK_MERGE,
                                        WORK_ALL_TO_ALL, WORK_SHIFT};
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
            CHECK_INT(strategies[i],
                      shapes[1].layers * composed_op_count_of_kind(&part, kinds[k], PHASE_COUNT),
                      composed_op_count_of_kind(&step, kinds[k], PHASE_COUNT));
        CHECK_INT(strategies[i], composed_op_count_of_kind(&part, WORK_MATMUL, PHASE_COUNT), 0);
        diag_release(&diag);
        ir_release(&step);
        ir_release(&part);
    }
}

/* The exchanges built by themselves are those of the operator, each call between two waits of the host. */
static void exchanges_alone_are_those_of_the_operator(void)
{
    static const struct {
        const char *strategy, *profile;
        int64_t cp, hp;
    } rows[] = {{"2d", "internevo", 2, 2}, {"ulysses", "deepspeed", 1, 4}, {"ring", "ideal", 4, 1}};
    static const uint8_t kinds[] = {WORK_ALL_TO_ALL, WORK_PACK, WORK_UNPACK, WORK_HEAD_EXPAND,
                                    WORK_HEAD_REDUCE};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(1, 4);
        struct ir whole, part;
        struct choices c;
        struct diag diag = {0};
        request.strategy = rows[i].strategy;
        request.profile = rows[i].profile;
        request.cp = rows[i].cp;
        request.hp = rows[i].hp;
        request.scope = SCOPE_ATTENTION_OPERATOR;
        composed_build(&whole, &c, &request, rows[i].strategy);
        request.scope = SCOPE_ATTENTION_EXCHANGES;
        composed_build(&part, &c, &request, rows[i].strategy);
        verify(&part, NULL, "exchange", NULL, &diag);
        CHECK_TEXT(rows[i].strategy, diag.text ? diag.text : "", "");
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
            CHECK_INT(rows[i].strategy, composed_op_count_of_kind(&part, kinds[k], PHASE_COUNT),
                      composed_op_count_of_kind(&whole, kinds[k], PHASE_COUNT));
        CHECK_INT(rows[i].strategy, composed_op_count_of_kind(&part, WORK_ATTENTION, PHASE_COUNT),
                  0);
        CHECK_INT(rows[i].strategy, composed_op_count_of_kind(&part, WORK_SHIFT, PHASE_COUNT), 0);
        CHECK_INT(rows[i].strategy, composed_op_count_of_kind(&part, WORK_HOST_SYNC, PHASE_COUNT),
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
        /* label, strategy, shape, ranks, dp, cp, hp, window, seq, message */
        {"split", "2d", 0, 8, 1, 3, 2, 0, 64,
         "--dp: error: dp 1 x cp 3 x hp 2 does not make 8 ranks; cp x hp 2 x 4, 4 x 2 or 8 x 1 "
         "would do\n"},
        {"heads", "2d", 0, 8, 0, 1, 8, 0, 64,
         "--hp: error: 4 heads do not divide over hp 8; cp x hp 2 x 4, 4 x 2 or 8 x 1 would do\n"},
        {"slices", "ring", 0, 4, 1, 4, 0, 0, 60,
         "--seq: error: 60 tokens do not divide into 2 zigzag slices for each of 4 ranks; 56 or 64 "
         "tokens would do\n"},
        {"ring", "ring", 0, 4, 0, 2, 2, 0, 64,
         "--hp: error: strategy 'ring' keeps all heads on every rank: hp is 2; 1 would do, or one "
         "of the strategies that have head ranks: ulysses, 2d, fpdt, upipe\n"},
        {"windows", "ring", 0, 8, 0, 8, 0, 3, 64,
         "--window: error: windows of 3 do not divide a ring of 8 ranks; --window 1, 2, 4 or 8 "
         "would do\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct request request = composed_request(rows[i].shape, rows[i].ranks);
        struct choices c;
        struct diag diag = {0};
        request.strategy = rows[i].strategy;
        request.dp = rows[i].dp;
        request.cp = rows[i].cp;
        request.hp = rows[i].hp;
        request.ring_window = rows[i].window;
        request.seq = rows[i].seq;
        CHECK(rows[i].label, resolve_choices(&c, &request, NULL, &diag) == STATUS_BAD_INPUT);
        CHECK_TEXT(rows[i].label, diag.text ? diag.text : "", rows[i].message);
        diag_release(&diag);
    }
    {
        struct request request = composed_request(0, 4);
        struct choices c;
        struct diag diag = {0};
        request.strategy = "ring";
        request.ring_window = 4;
        request.windows = WINDOWS_INTERLEAVED;
        CHECK("interleaved", resolve_choices(&c, &request, NULL, &diag) == STATUS_BAD_INPUT);
        CHECK_TEXT(
            "interleaved", diag.text ? diag.text : "",
            "--windows: error: windows of 4 do not divide the even ranks of a node of 4 with cp 4; "
            "--windows contiguous would do\n");
        diag_release(&diag);
    }
    struct transformer odd = shapes[0];
    odd.heads = odd.kv_heads = 3;
    struct request request = composed_request(0, 6);
    struct choices c;
    struct diag diag = {0};
    request.model = &odd;
    request.strategy = "2d";
    request.cp = 2;
    request.hp = 3;
    request.seq = 96;
    CHECK("odd", resolve_choices(&c, &request, NULL, &diag) == STATUS_BAD_INPUT);
    CHECK_TEXT(
        "odd", diag.text ? diag.text : "",
        "--hp: error: hp 3 is odd: half of the head ranks takes each slice of a zigzag pair; "
        "cp x hp 6 x 1 would do\n");
    diag_release(&diag);
}

static const struct check_case cases[] = {
    {"a small ring is as recorded", a_small_ring_is_as_recorded},
    {"corners are the plain strategies", attention_2d_on_one_axis_is_the_plain_strategy},
    {"rings pass what the paper counts", rings_pass_what_the_paper_counts},
    {"what the core made is not made again", attention_core_is_not_recomputed},
    {"an operator alone is a part of the step", an_operator_alone_is_a_part_of_the_step},
    {"exchanges alone are those of the operator", exchanges_alone_are_those_of_the_operator},
    {"wrong rings say what would do", wrong_rings_say_what_would_do},
};
CHECK_MAIN("compose rings", cases)
