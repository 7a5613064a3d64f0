/* tests/exec/core_plan_cases.h: steps whose attention a core plan divides compute the reference's loss, gradients,
 * parameters and moments: plans by hand, random plans, and plans of which one field was changed and that are still
 * right. On the backend `matrix_backend` (tests/exec/matrix.h). */
#ifndef TESTS_EXEC_CORE_PLAN_CASES_H
#define TESTS_EXEC_CORE_PLAN_CASES_H

#include "schedule/core_plan/coverage.h"
#include "schedule/core_plan/tile_rules.h"
#include "tests/exec/matrix.h"
#include "tests/schedule/random_plan.h"

/* The strategy, profile, degrees and dtype of the step around the attention of a plan. */
struct step_configuration {
    const char *strategy, *profile;
    int64_t replicas, hp, tp;
    uint8_t dtype;
};

static const struct step_configuration plain_ring = {.strategy = "ring", .dtype = DTYPE_F32};

/* Runs a step with a legal plan, on the ranks of the plan times the replicas, hp and tp of *s. Returns false if it
 * differs from the reference. variant: chooses the model and what it keeps for its backward. */
static bool step_with_plan_matches_reference(const struct core_plan *plan,
                                             const struct step_configuration *s, size_t variant)
{
    struct transformer model = shapes[variant % 2];
    struct arena arena = {0};
    struct diag diag = {0};
    struct choices choices;
    bool holds = false;
    model.attention_window = plan->window_tokens;
    const int64_t replicas = s->replicas > 0 ? s->replicas : 1, hp = s->hp > 0 ? s->hp : 1,
                  tp = s->tp > 0 ? s->tp : 1;
    struct request request = {.model = &model,
                              .strategy = s->strategy,
                              .profile = s->profile,
                              .core_plan = "file",
                              .documents = core_plan_make_documents(plan, &arena),
                              .weights = CHOICE_WEIGHTS_ZERO1,
                              .activations = (int)variant % CHOICE_ACTIVATIONS_COUNT,
                              .optimizer = -1,
                              .attention_impl = ATTENTION_CPU,
                              .dtype = s->dtype,
                              .ranks = plan->rank_count * replicas * hp * tp,
                              .cp = plan->rank_count,
                              .hp = hp,
                              .tp = tp,
                              .global_batch = (int64_t)plan->sequence_count,
                              .micro_batch = (int64_t)plan->sequence_count / replicas,
                              .seq = plan->sequence[0].tokens,
                              .gpus_per_node = 4,
                              .sm = 80};
    if (CHECK_INT("choices", resolve_choices(&choices, &request, NULL, &diag), STATUS_OK))
        holds = check_choices(&choices, true);
    else
        fputs(diag.text, stderr);
    diag_release(&diag);
    arena_release(&arena);
    return holds;
}

/* Parses and checks a plan, which must be right. */
static bool parse_right_plan(struct core_plan *plan, const char *text)
{
    struct diag diag = {0};
    bool ok = core_plan_parse(plan, "plan", text, strlen(text), &diag) == STATUS_OK &&
              core_plan_check(plan, "plan", &diag) == STATUS_OK;
    CHECK(diag.text != NULL ? diag.text : text, ok);
    diag_release(&diag);
    return ok;
}

#define PLAN_HEAD_OF_TWO_RANKS "core plan 1 ranks=2\nsequence,what,begin,rows,key,keys,rank,round\n"
#define THREE_DOCUMENTS "0,document,0,8,,,,\n0,document,8,4,,,,\n0,document,12,4,,,,\n"
#define OWN_HALVES "0,own,0,8,,,0,\n0,own,8,8,,,1,\n"

/* Documents of 8, 4 and 4 tokens on 2 ranks: the rows that ranks receive in a round, by hand. */
static inline void plans_receive_rows_counted_by_hand(void)
{
    static const struct {
        const char *label, *text;
        uint32_t round;
        int64_t keys[2], queries[2]; /* received by each rank in the round */
        int64_t packed[2];           /* queries that each rank computes in it */
    } rows[] = {
        /* label, text, round, keys, queries, packed */
        {"query 7 moves",
         PLAN_HEAD_OF_TWO_RANKS THREE_DOCUMENTS OWN_HALVES
         "0,tile,0,7,0,8,0,0\n0,tile,7,1,0,8,1,1\n0,tile,8,8,8,8,1,0\n",
         1,
         {0, 8},
         {0, 1},
         {0, 1}},
        {"queries 6 and 7 by keys 0 to 3 move",
         PLAN_HEAD_OF_TWO_RANKS THREE_DOCUMENTS OWN_HALVES
         "0,tile,0,6,0,8,0,0\n0,tile,6,2,4,4,0,0\n0,tile,6,2,0,4,1,1\n"
         "0,tile,8,8,8,8,1,0\n",
         1,
         {0, 4},
         {0, 2},
         {0, 2}},
        /* tiles of the same queries in one round: their keys 0..1 and 4..7 are not consecutive among keys 0..7 */
        {"a query twice",
         PLAN_HEAD_OF_TWO_RANKS THREE_DOCUMENTS OWN_HALVES
         "0,tile,0,7,0,8,0,0\n0,tile,7,1,0,2,1,0\n0,tile,7,1,2,2,0,1\n"
         "0,tile,7,1,4,4,1,0\n0,tile,8,8,8,8,1,0\n",
         0,
         {0, 6},
         {0, 1},
         {7, 9}},
        {"the backward moves other tiles",
         PLAN_HEAD_OF_TWO_RANKS THREE_DOCUMENTS OWN_HALVES
         "0,tile,0,8,0,8,0,0\n0,tile,8,8,8,8,1,0\n"
         "0,btile,0,8,0,4,1,0\n0,btile,4,4,4,4,0,0\n0,btile,8,8,8,8,0,1\n",
         0,
         {0, 0},
         {0, 0},
         {8, 8}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct core_plan plan = {0};
        struct arena arena = {0};
        if (parse_right_plan(&plan, rows[i].text)) {
            const struct documents *d = core_plan_make_documents(&plan, &arena);
            for (uint32_t r = 0; r < 2; r++) {
                const struct plan_round_data_of_rank *part =
                    tile_plan_part(d->list[0].tiles, PLAN_FORWARD, rows[i].round, r);
                CHECK_INT(rows[i].label, tile_plan_row_count_of_owner(part, PLAN_KEYS, !r),
                          rows[i].keys[r]);
                CHECK_INT(rows[i].label, tile_plan_row_count_of_owner(part, PLAN_QUERIES, !r),
                          rows[i].queries[r]);
                CHECK_INT(rows[i].label, part->of[PLAN_QUERIES].rows, rows[i].packed[r]);
            }
            CHECK(rows[i].label, step_with_plan_matches_reference(&plan, &plain_ring, i));
        }
        arena_release(&arena);
        core_plan_release(&plan);
    }
}

/* Random plans on 2 to 4 context ranks compute the reference: without other ranks, and together with data-parallel,
 * head or tensor ranks. */
static inline void random_plans_compute_the_reference(void)
{
    static const struct step_configuration around[] = {
        {.strategy = "ring", .dtype = DTYPE_F32},
        {.strategy = "ring", .replicas = 2, .dtype = DTYPE_F32},
        {.strategy = "2d", .hp = 2, .dtype = DTYPE_F32},
        {.strategy = "ring", .tp = 2, .dtype = DTYPE_F32},
        {.strategy = "ring", .profile = "megatron-te", .dtype = DTYPE_F32},
    };
    struct check_random random = check_random_make();
    const size_t count = ARRAY_LEN(around) * CHOICE_ACTIVATIONS_COUNT;
    for (size_t i = 0; i < count; i++) {
        struct text text = {0};
        struct core_plan plan = {0};
        const struct step_configuration *s = &around[i % ARRAY_LEN(around)];
        uint32_t ranks = (uint32_t)check_random_i64(&random, 2, PLAN_RANKS_MAX);
        int64_t own = 2 * check_random_i64(&random, 2, 6);
        int64_t window = check_random_i64(&random, 0, 1) * check_random_i64(&random, 1, own);
        plan_write_random(&text, &random, ranks, own, window);
        if (s->replicas > 1)
            plan_write_sequence(&text, &random, 1, ranks, own);
        if (check_is_sampled_today(i, count, matrix_backend != NULL ? 10 : 2) &&
            parse_right_plan(&plan, text.data) && !step_with_plan_matches_reference(&plan, s, i))
            fputs(text.data, stderr);
        core_plan_release(&plan);
        text_release(&text);
    }
}

/* One field of one row is changed in each of 1,000 plans. Those that the check still finds right compute the
 * reference. That the others are wrong is proved in tests/schedule/test_core_plan.c. */
static inline void changed_plans_compute_the_reference(void)
{
    struct check_random random = check_random_make();
    size_t accepted = 0;
    for (size_t i = 0; i < 1000; i++) {
        struct text text = {0};
        struct core_plan plan = {0};
        struct diag diag = {0};
        const uint32_t ranks = (uint32_t)check_random_i64(&random, 2, PLAN_RANKS_MAX);
        const int64_t own = check_random_i64(&random, 2, 6);
        plan_write_random(&text, &random, ranks, own,
                          check_random_i64(&random, 0, 1) * check_random_i64(&random, 1, own));
        if (parse_right_plan(&plan, text.data)) {
            plan_change_one_field(&plan, &random);
            if (core_plan_check(&plan, "plan", &diag) == STATUS_OK &&
                check_is_sampled_today(accepted++, SIZE_MAX, matrix_backend != NULL ? 40 : 8) &&
                !step_with_plan_matches_reference(&plan, &plain_ring, i))
                fputs(text.data, stderr);
        }
        diag_release(&diag);
        core_plan_release(&plan);
        text_release(&text);
    }
    printf("%zu of 1000 changed plans are right", accepted);
    CHECK("some changed plans are right", accepted > 100);
}

#endif
