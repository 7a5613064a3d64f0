#include "predict/plan/longest_certificate.h"

#include "base/interrupt.h"
#include "predict/workers.h"

#include <stdlib.h>
#include <string.h>

void longest_certificate_release(struct longest_certificate *r)
{
    prediction_release(&r->longest_prediction);
    prediction_release(&r->next_prediction);
    *r = (struct longest_certificate){0};
}

/* ---- the longest sequence with each other option ---- */

/* With schedules of more ops than this, searching with each other option would take too long. */
enum { OPTION_OPS_MAX = 100000 };

struct longest_with_option_search {
    const struct setup *setup;
    const struct longest_certificate *certificate;
};

static void find_longest_with_option(void *context, size_t job, void *result)
{
    const struct longest_with_option_search *search = context;
    const struct longest_certificate *report = search->certificate;
    struct request request = report->request;
    struct length_ladder ladder;
    struct longest longest;
    struct longest_length_with_option *found = result;
    alternatives_set_option(&request, job);
    if (ladder_make(&ladder, &request, NULL) == STATUS_OK &&
        longest_find(&longest, search->setup, &request, &ladder,
                     report->longest.shortest_unfit_tokens, NULL, NULL) == STATUS_OK) {
        found->tokens = longest.tokens;
        found->tokens_if_longer_may_fit = longest_is_lower_bound(&longest) ? longest.tokens : 0;
    }
}

static int compare_longest_with_option(const void *left, const void *right)
{
    const struct longest_length_with_option *a = left, *b = right;
    return a->tokens != b->tokens ? (a->tokens > b->tokens ? -1 : 1) : strcmp(a->option, b->option);
}

static enum status find_longest_with_each_option(struct longest_certificate *r,
                                                 const struct setup *setup, struct diag *diag)
{
    struct longest_with_option_search search = {setup, r};
    struct longest_length_with_option all[ALTERNATIVES_MAX];
    size_t count = alternatives_option_count();
    struct progress progress;
    progress_begin(&progress, count, 0);
    enum status status =
        workers_run(count, sizeof all[0], find_longest_with_option, &search, all, &progress, diag);
    progress_end();
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        if (all[i].tokens > r->longest.tokens) {
            r->longest_length_with_option[r->longest_with_option_count] = all[i];
            r->longest_length_with_option[r->longest_with_option_count++].option =
                alternatives_option_text(i);
        }
    qsort(r->longest_length_with_option, r->longest_with_option_count,
          sizeof r->longest_length_with_option[0], compare_longest_with_option);
    return status;
}

/* ---- the longest length that fits, and the next one ---- */

static enum status predict_length(struct prediction *p, const struct setup *setup,
                                  const struct request *request, int64_t tokens, struct diag *diag)
{
    struct request at = *request;
    at.seq = tokens;
    const struct prediction_question question = {.setup = setup, .request = &at};
    enum status status = prediction_make(p, &question, diag);
    p->question.request = request; /* but for its length; `at` ends here */
    return status == STATUS_OK ? spreads_find(&p->spreads, p, diag) : status;
}

/* Finds the longest length that fits with a probability of at least one half. It becomes r->longest if no length fits
 * with the probability that was asked for; else r->less_probable_longest, if it is longer than r->longest. Does nothing
 * if one half was asked for, if all lengths fit, or after an interrupt. */
static enum status find_less_probable_longest_length(struct longest_certificate *r,
                                                     struct setup *setup, struct progress *progress,
                                                     struct diag *diag)
{
    const double asked = setup->fits_probability;
    if (asked <= 0.5 || interrupt_caught_signal_number() != 0 ||
        r->longest.shortest_unfit_tokens == 0)
        return STATUS_OK;
    setup->fits_probability = 0.5;
    enum status status = longest_find(&r->less_probable_longest, setup, &r->request, &r->ladder,
                                      r->longest.shortest_unfit_tokens, progress, diag);
    setup->fits_probability = asked;
    if (status == STATUS_OK && r->longest.tokens == 0 && r->less_probable_longest.tokens > 0) {
        r->longest = r->less_probable_longest;
        r->is_less_probable = true;
    }
    if (status != STATUS_OK || r->less_probable_longest.tokens <= r->longest.tokens)
        r->less_probable_longest = (struct longest){0};
    return status;
}

enum status longest_certificate_make(struct longest_certificate *r, struct setup *setup,
                                     struct diag *diag)
{
    r->request = setup->request;
    enum status status = ladder_make(&r->ladder, &r->request, diag);
    struct progress progress;
    progress_begin(&progress, 0, 0);
    if (status == STATUS_OK)
        status = longest_find(&r->longest, setup, &r->request, &r->ladder, r->request.seq,
                              &progress, diag);
    if (status == STATUS_OK)
        status = find_less_probable_longest_length(r, setup, &progress, diag);
    progress_end();
    if (status == STATUS_OK && r->wants_length_only)
        return r->longest.tokens > 0 ? STATUS_OK : STATUS_NO;
    if (status == STATUS_OK && r->longest.tokens > 0 && interrupt_caught_signal_number() == 0)
        status =
            predict_length(&r->longest_prediction, setup, &r->request, r->longest.tokens, diag);
    if (status == STATUS_OK && r->longest.shortest_unfit_tokens > 0 &&
        r->longest.refusal_of_shortest_unfit[0] == '\0' && interrupt_caught_signal_number() == 0)
        status = predict_length(&r->next_prediction, setup, &r->request,
                                r->longest.shortest_unfit_tokens, diag);
    r->has_tried_options =
        r->longest.shortest_unfit_tokens > 0 &&
        repeats_whole_op_count(&r->longest_prediction.ir.repeats, REPEATS_ALL_ROLES,
                               r->longest_prediction.ir.op.count) < OPTION_OPS_MAX &&
        interrupt_caught_signal_number() == 0;
    if (status == STATUS_OK && r->has_tried_options)
        status = find_longest_with_each_option(r, setup, diag);
    return status == STATUS_OK && r->longest.tokens == 0 ? STATUS_NO : status;
}
