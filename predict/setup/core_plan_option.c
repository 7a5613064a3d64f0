#include "predict/setup/core_plan_option.h"

#include "schedule/core_plan/coverage.h"
#include "schedule/core_plan/deal_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_runs(const void *left, const void *right)
{
    const struct core_run *a = left, *b = right;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* Returns the deal of a sequence that core_plan_check() has found right. */
static struct token_deal *deal_of(struct arena *arena, uint32_t ranks,
                                  const struct core_sequence *s)
{
    struct core_run *run = heap_alloc(s->runs, sizeof *run);
    struct token_share *share = heap_alloc(s->runs, sizeof *share);
    memcpy(run, s->run, s->runs * sizeof *run);
    qsort(run, s->runs, sizeof *run, compare_runs);
    for (size_t i = 0; i < s->runs; i++)
        share[i] = (struct token_share){run[i].rows, run[i].owner};
    struct token_deal *deal = deal_make(arena, ranks, share, (uint32_t)s->runs);
    free(share);
    free(run);
    return deal;
}

/* Gives the request the documents and owners of a plan. */
static enum status take_plan(struct setup *setup, const struct core_plan *plan, const char *name,
                             struct diag *diag)
{
    struct documents *documents = arena_array(&setup->arena, 1, sizeof *documents);
    documents_init(documents, &setup->arena, (uint32_t)plan->sequences);
    for (size_t i = 0; i < plan->sequences; i++) {
        struct document_list list = core_plan_documents(&plan->sequence[i]);
        if (plan->sequence[i].tiles > 0)
            return diag_error(
                diag, (struct loc){.name = name}, STATUS_BAD_INPUT,
                "sequence %zu has tiles, and schedules are made only of plans in which "
                "each rank computes the queries that it owns: without rows 'tile'",
                i);
        list.deal = deal_of(&setup->arena, plan->ranks, &plan->sequence[i]);
        documents_set_list(documents, &setup->arena, (uint32_t)i, list);
    }
    setup->request.documents = documents;
    if (setup->request.global_batch == 0)
        setup->request.global_batch = (int64_t)plan->sequences;
    return STATUS_OK;
}

bool core_plan_option_is_all(const char *text)
{
    return text != NULL && strcmp(text, "all") == 0;
}

enum status core_plan_option_read(struct setup *setup, const char *text, struct diag *diag)
{
    struct deal_choice rule;
    struct core_plan plan = {0};
    struct text data = {0};
    FILE *file = NULL;
    setup->request.core_plan = text;
    if (text == NULL || core_plan_option_is_all(text) ||
        deal_choice_parse(&rule, text, NULL) == STATUS_OK)
        return STATUS_OK;
    file = fopen(text, "rb");
    if (file == NULL)
        return deal_choice_parse(&rule, text, diag);
    fclose(file);
    enum status status = text_read(&data, text, diag);
    if (status == STATUS_OK)
        status = core_plan_parse(&plan, text, data.data, data.size, diag);
    if (status == STATUS_OK && core_plan_check(&plan, text, diag) != STATUS_OK)
        status = STATUS_BAD_INPUT;
    if (status == STATUS_OK)
        status = take_plan(setup, &plan, text, diag);
    core_plan_release(&plan);
    text_release(&data);
    return status;
}
