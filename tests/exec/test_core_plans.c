/* tests/exec/test_core_plans.c: the cases of core_plan_cases.h on the processor, and rules that make such plans. */
#include "schedule/ir/visible.h"
#include "tests/exec/core_plan_cases.h"

/* ---- rules ---- */

/* Returns a request for a ring of 4 ranks. documents NULL: one document. rule NULL: a ring of messages. */
static struct request ring_request(const struct transformer *model, const char *rule,
                                   const struct documents *documents, int64_t seq)
{
    return (struct request){.model = model,
                            .strategy = "ring",
                            .core_plan = rule,
                            .documents = documents,
                            .weights = CHOICE_WEIGHTS_ZERO1,
                            .activations = CHOICE_ACTIVATIONS_KEEP,
                            .optimizer = -1,
                            .attention_impl = ATTENTION_CPU,
                            .dtype = DTYPE_F32,
                            .ranks = 4,
                            .cp = 4,
                            .global_batch = 1,
                            .seq = seq,
                            .gpus_per_node = 4,
                            .sm = 80};
}

/* Adds the flops of the forward's attention in layer 0 to flops[rank][step], and the rows of queries or keys that its
 * exchanges send among all ranks to rows[what][step]. */
static void add_flops_and_rows_of_ring_steps(const struct request *request, double flops[4][4],
                                             int64_t rows[2][4])
{
    struct ir ir = {0};
    struct choices choices;
    struct diag diag = {0};
    enum status status = resolve_choices(&choices, request, NULL, &diag);
    if (status == STATUS_OK)
        status = step_build(&ir, &choices, &diag);
    CHECK_INT(diag.text != NULL ? diag.text : "built", status, STATUS_OK);
    for (uint32_t op = 0; op < ir.op.count; op++) {
        const struct work *work = ir_work(&ir, op);
        struct row_use use;
        int64_t pair[16];
        if (ir.op.layer[op] != 0 || ir.op.phase[op] != PHASE_FORWARD)
            continue;
        for (uint32_t rank = 0; work->kind == WORK_ATTENTION && rank < 4; rank++)
            if (ir.op.guard[op] == IR_NONE16 ||
                guard_passes(&ir.mesh, ir.group, &ir.guard[ir.op.guard[op]], rank))
                flops[rank][ir.op.step[op]] += ir_work_flops_on_rank(&ir, work, rank);
        if (work->kind != WORK_EXCHANGE || work->exchange.back || work->exchange.width == 1)
            continue;
        row_use_if_work_moves_rows(work, &use);
        row_use_rows_of_all_pairs(&ir, &use, 0, pair);
        for (int i = 0; i < 16; i++)
            rows[use.what][ir.op.step[op]] += pair[i];
    }
    ir_release(&ir);
    diag_release(&diag);
}

/* One document of 16 tokens in zigzag order on 4 ranks, each with 34 of the 136 pairs of a query and a key. A ring of
 * messages sends all 16 rows of keys in each step. The rules send a rank only the rows that one of its queries sees: in
 * step s of zigzag-ring the 4 - s ranks that get keys of a rank before them need half of its rows. When queries travel,
 * those of later ranks need both halves and those of earlier ranks one. */
static void ring_rows_and_flops_by_hand(void)
{
    static const struct {
        const char *rule;
        int64_t rows[2][4];
    } rules[] = {
        {"zigzag-ring", {{0, 10, 12, 14}, {0}}}, {"double-ring:2", {{0, 12, 12, 12}, {0}}},
        {"gather", {{0, 36, 0, 0}, {0}}},        {"token-ring", {{0}, {0, 14, 12, 10}}},
        {"burst", {{0, 10, 12, 14}, {0}}},
    };
    double ring[4][4] = {{0}};
    int64_t none[2][4] = {{0}};
    const struct request messages = ring_request(&shapes[0], NULL, NULL, 16);
    add_flops_and_rows_of_ring_steps(&messages, ring, none);
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        double flops[4][4] = {{0}};
        int64_t rows[2][4] = {{0}};
        const struct request request = ring_request(&shapes[0], rules[i].rule, NULL, 16);
        add_flops_and_rows_of_ring_steps(&request, flops, rows);
        for (int rank = 0; rank < 4; rank++) {
            double all[2] = {0};
            for (int step = 0; step < 4; step++) {
                all[0] += ring[rank][step];
                all[1] += flops[rank][step];
                if (i == 0)
                    CHECK_CLOSE("a step of a ring", flops[rank][step], ring[rank][step], 0);
            }
            CHECK_CLOSE(rules[i].rule, all[1], all[0], 0);
        }
        for (int k = 0; k < 8; k++)
            CHECK_INT(rules[i].rule, rows[k / 4][k % 4], rules[i].rows[k / 4][k % 4]);
    }
}

/* All rules compute the reference, over random documents and windows. */
static void core_plan_rules_match_reference(void)
{
    static const char *const rules[] = {"zigzag-ring",   "gather", "token-ring", "burst",
                                        "double-ring:2", "move:1", "move:3",     "blocks:2"};
    struct check_random random = check_random_make();
    for (size_t i = 0; i < 3 * ARRAY_LEN(rules); i++) {
        enum { SEQ = 48 };
        struct transformer model = shapes[i % 2];
        struct arena arena = {0};
        struct documents documents;
        int64_t length[SEQ];
        uint32_t count = 0;
        model.attention_window = i % 3 == 2 ? check_random_i64(&random, 2, 20) : 0;
        model.full_attention_every = i % 2 == 0 && model.attention_window > 0 ? 2 : 0;
        model.attention_sinks = i % 3 == 1;
        for (int64_t left = SEQ; left > 0; left -= length[count++])
            length[count] = check_random_i64(&random, 1, left);
        documents_init(&documents, &arena, 1);
        documents_set_lengths(&documents, &arena, 0, length, count);
        struct request request = ring_request(&model, rules[i % ARRAY_LEN(rules)], &documents, SEQ);
        request.activations = (int)i % CHOICE_ACTIVATIONS_COUNT;
        check_request_if_sampled_today(&request, 1);
        arena_release(&arena);
    }
}

static const struct check_case cases[] = {
    {"rings by hand", ring_rows_and_flops_by_hand},
    {"rules compute the reference", core_plan_rules_match_reference},
    {"plans by hand", plans_receive_rows_counted_by_hand},
    {"random plans compute the reference", random_plans_compute_the_reference},
    {"changed plans compute the reference", changed_plans_compute_the_reference},
};
CHECK_MAIN("core plans", cases)
