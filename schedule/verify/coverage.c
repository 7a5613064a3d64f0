/* The rule `coverage`: the tiles of a plan hold every visible pair once, and every layer computes all of them. */
#include "schedule/core_plan/coverage.h"
#include "schedule/ir/visible.h"
#include "schedule/verify/rules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Checks the tiles of a list of documents. A fault is reported with the number of the first sequence that has the list
 * and the text that core_plan_check() gives after "sequence 0: ". */
static void check_tiles(struct verifier *v, uint32_t list)
{
    static const char intro[] = "sequence 0: ";
    const struct documents *d = &v->ir->documents;
    struct core_plan plan = {0};
    struct diag diag = {0};
    uint32_t sequence = 0;
    while (sequence < d->sequence_count && d->list_of_sequence[sequence] != list)
        sequence++;
    core_plan_add_sequence(&plan, &d->list[list]);
    plan.window_tokens = d->list[list].tiles->window;
    if (core_plan_check(&plan, "plan", &diag) != STATUS_OK) {
        const char *at = strstr(diag.text, intro) + strlen(intro);
        verify_fail(v, "sequence %" PRIu32 ": %.*s", sequence, (int)strcspn(at, "\n"), at);
    }
    diag_release(&diag);
    core_plan_release(&plan);
}

/* An attention op over the tiles of a round. Ops with equal keys are of one layer and pass, and their rounds are
 * counted together. */
struct attention_op_of_round {
    uint32_t op;
    int64_t key[6]; /* role, layer, micro, phase, kind, sequence */
    int64_t round;
};

static int compare_keys(const void *left, const void *right)
{
    const struct attention_op_of_round *a = left, *b = right;
    for (size_t i = 0; i < ARRAY_LEN(a->key); i++)
        if (a->key[i] != b->key[i])
            return a->key[i] < b->key[i] ? -1 : 1;
    return (a->round > b->round) - (a->round < b->round);
}

/* Checks that attention ops of one layer and pass, sorted by round, run every round that has tiles equally often. */
static void check_rounds_are_complete(struct verifier *v, const struct attention_op_of_round *op,
                                      size_t count)
{
    const struct work *work = ir_work(v->ir, op->op);
    const enum plan_pass pass = work->kind == WORK_ATTENTION ? PLAN_FORWARD : PLAN_BACKWARD;
    const int64_t rounds = row_use_round_count(v->ir, work->attention.sequence, pass);
    size_t next = 0, times = 0;
    for (int64_t round = 1; round <= rounds; round++) {
        const struct row_use use = {work->attention.sequence, work->attention.window, round, pass,
                                    PLAN_QUERIES};
        size_t own = 0;
        for (; next < count && op[next].round == round; next++)
            own++;
        if (own == 0 && row_use_max_rows_of_any_rank(v->ir, &use).packed_rows == 0)
            continue;
        if (times == 0)
            times = own > 0 ? own : 1;
        if (own != times)
            verify_fail(v,
                        "the layer of %s computes round %" PRId64 " of its sequence's tiles %zu "
                        "times and another round %zu times",
                        op_text(v, op->op), round, own, times);
    }
}

void check_coverage(struct verifier *v)
{
    const struct ir *ir = v->ir;
    struct attention_op_of_round *op = NULL;
    size_t ops = 0, capacity = 0;
    uint32_t lists = 0;
    /* if the schedule cannot have documents, nothing is checked here, and the rule `documents` reports a fault */
    for (uint32_t l = 0; l < ir->documents.list_count && visible_why_schedule_unfit(ir) == NULL;
         l++)
        if (ir->documents.list[l].tiles != NULL) {
            check_tiles(v, l);
            lists++;
        }
    for (uint32_t role = 0; role < ir->role_count && lists > 0; role++)
        for (uint32_t k = 0; k < ir->role[role].op_count; k++) {
            const uint32_t id = ir->role[role].op_begin + k;
            const struct work *work = ir_work(ir, id);
            if (!work_pairs_depend_on_rank(work) || work->attention.round == 0 ||
                visible_why_work_unfit(ir, work) != NULL)
                continue;
            op = heap_grow(op, &capacity, ops + 1, sizeof *op);
            op[ops++] = (struct attention_op_of_round){id,
                                                       {role, ir->op.layer[id], ir->op.micro[id],
                                                        ir->op.phase[id], work->kind,
                                                        work->attention.sequence},
                                                       work->attention.round};
        }
    if (ops > 0)
        qsort(op, ops, sizeof *op, compare_keys);
    for (size_t i = 0, end; i < ops; i = end) {
        for (end = i; end < ops && memcmp(op[i].key, op[end].key, sizeof op->key) == 0;)
            end++;
        check_rounds_are_complete(v, &op[i], end - i);
    }
    free(op);
    verify_set_what_was_checked_text(v, "%" PRIu32 " plans of tiles, %zu attention ops", lists,
                                     ops);
}
