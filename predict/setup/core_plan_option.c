#include "predict/setup/core_plan_option.h"

#include "schedule/core_plan/coverage.h"
#include "schedule/core_plan/deal_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gives the request the documents, owners and tiles of a plan and, if it has no number of sequences, the plan's. */
static void store_core_plan_in_request(struct setup *setup, const struct core_plan *plan)
{
    setup->request.documents = core_plan_make_documents(plan, &setup->arena);
    if (setup->request.global_batch == 0)
        setup->request.global_batch = (int64_t)plan->sequence_count;
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
        store_core_plan_in_request(setup, &plan);
    core_plan_release(&plan);
    text_release(&data);
    return status;
}
