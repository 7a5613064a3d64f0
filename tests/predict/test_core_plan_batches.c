/* tests/predict/test_core_plan_batches.c: how evenly rules deal the pairs of packed batches, and how many rows of keys a
 * rank needs of others, in units of the rows that it owns. */
#include "predict/documents/packing.h"
#include "schedule/core_plan/coverage.h"
#include "schedule/core_plan/deal_rules.h"
#include "tests/check.h"

#include <stdio.h>
#include <stdlib.h>

enum { RANKS_MAX = 64 };

/* Values of a prototype that was written before this code, in another language, from the same list of lengths. */
static const struct {
    int64_t tokens;
    uint32_t ranks;
    const char *rule;
    double balance, rows;
} batches[] = {
    {1 << 17, 8, "zigzag", 2.50, 1.4},       {1 << 17, 8, "per-document", 1.00, 5.3},
    {1 << 17, 8, "chunks:2048", 1.00, 3.9},  {1 << 20, 64, "zigzag", 4.65, 0.7},
    {1 << 20, 64, "per-document", 1.01, 47}, {1 << 20, 64, "chunks:2048", 1.19, 2.8},
};

static void batches_are_balanced_as_in_the_prototype(void)
{
    for (size_t i = 0; i < ARRAY_LEN(batches); i++) {
        struct lengths lengths = {0};
        struct packed_batch batch = {0};
        struct packing_options sizes = {
            .seq = batches[i].tokens, .multiple = 1, .sequences = 1, .ranks = 1, .micro_batch = 1};
        struct documents documents;
        struct arena arena = {0};
        struct deal_choice rule;
        struct core_plan plan = {0};
        struct coverage_load load[RANKS_MAX];
        struct diag diag = {0};
        enum status status =
            lengths_open(&lengths, check_path("../traces/documents/python-3.11.csv"), 0, &diag);
        if (status == STATUS_OK)
            status = packing_next(&batch, &lengths, &sizes, &diag);
        if (status == STATUS_OK)
            status = deal_choice_parse(&rule, batches[i].rule, &diag);
        if (CHECK_INT(batches[i].rule, status, STATUS_OK)) {
            double pairs = 0, most = 0, rows = 0;
            packed_batch_documents(&batch, batches[i].tokens, &documents, &arena);
            const struct document_list *list = documents_of(&documents, 0);
            struct document_list dealt = *list;
            dealt.deal =
                deal_by_rule(&arena, &rule, batches[i].ranks, list, (struct deal_windows){0});
            core_plan_add(&plan, &dealt);
            CHECK_INT(batches[i].rule, core_plan_check(&plan, "rule", &diag), STATUS_OK);
            coverage_loads(&plan, 0, load);
            for (uint32_t r = 0; r < batches[i].ranks; r++) {
                pairs += load[r].pairs;
                most = load[r].pairs > most ? load[r].pairs : most;
                rows += (double)load[r].keys;
            }
            CHECK_CLOSE(batches[i].rule, most * batches[i].ranks / pairs, batches[i].balance, 0.05);
            CHECK_CLOSE(batches[i].rule, rows / (double)batches[i].tokens, batches[i].rows, 0.06);
        }
        CHECK_TEXT("messages", diag.text != NULL ? diag.text : "", "");
        diag_release(&diag);
        core_plan_release(&plan);
        arena_release(&arena);
        packed_batch_release(&batch);
        lengths_release(&lengths);
    }
}

static const struct check_case cases[] = {
    {"batches are balanced as in the prototype", batches_are_balanced_as_in_the_prototype},
};
CHECK_MAIN("core plan batches", cases)
