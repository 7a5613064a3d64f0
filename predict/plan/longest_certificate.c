#include "predict/plan/longest_certificate.h"

#include "base/interrupt.h"
#include "predict/workers.h"

#include <stdlib.h>
#include <string.h>

void longest_certificate_release(struct longest_certificate *r)
{
    prediction_release(&r->at_longest);
    prediction_release(&r->at_next);
    *r = (struct longest_certificate){0};
}

/* ---- what other options would give ---- */

enum { FLIPS_OPS_MAX = 100000 }; /* a search of each option takes too long beyond */

struct flips {
    const struct setup *setup;
    const struct longest_certificate *report;
};

static void find_flip(void *context, size_t job, void *result)
{
    const struct flips *flips = context;
    const struct longest_certificate *report = flips->report;
    struct request request = report->request;
    struct ladder ladder;
    struct longest longest;
    struct length_flip *flip = result;
    alternatives_apply(&request, job);
    if (ladder_of(&ladder, &request, NULL) == STATUS_OK &&
        longest_find(&longest, flips->setup, &request, &ladder, report->longest.next, NULL, NULL) ==
            STATUS_OK) {
        flip->tokens = longest.tokens;
        flip->last_tried_tokens = longest_is_least(&longest) ? longest.tokens : 0;
    }
}

static int longer_first(const void *left, const void *right)
{
    const struct length_flip *a = left, *b = right;
    return a->tokens != b->tokens ? (a->tokens > b->tokens ? -1 : 1) : strcmp(a->option, b->option);
}

static enum status find_flips(struct longest_certificate *r, const struct setup *setup,
                              struct diag *diag)
{
    struct flips flips = {setup, r};
    struct length_flip all[ALTERNATIVES_MAX];
    size_t count = alternatives_count();
    struct progress progress;
    progress_begin(&progress, count, 0);
    enum status status = workers_run(count, sizeof all[0], find_flip, &flips, all, &progress, diag);
    progress_end();
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        if (all[i].tokens > r->longest.tokens) {
            r->flip[r->flip_count] = all[i];
            r->flip[r->flip_count++].option = alternatives_option(i);
        }
    qsort(r->flip, r->flip_count, sizeof r->flip[0], longer_first);
    return status;
}

/* ---- both sides of the boundary ---- */

static enum status predict_at(struct prediction *p, const struct setup *setup,
                              const struct request *request, int64_t tokens, struct diag *diag)
{
    struct request at = *request;
    at.seq = tokens;
    const struct prediction_question question = {.setup = setup, .request = &at};
    enum status status = prediction_make(p, &question, diag);
    p->question.request = request; /* but for its length; `at` ends here */
    return status == STATUS_OK ? spreads_find(&p->spreads, p, diag) : status;
}

/* Finds the longest length that fits in half of the cases. Where none fits as surely as was asked, it is the answer. */
static enum status find_risky_best(struct longest_certificate *r, struct setup *setup,
                                   struct progress *progress, struct diag *diag)
{
    const double asked = setup->fits_probability;
    if (asked <= 0.5 || interrupt_signal() != 0 || r->longest.next == 0)
        return STATUS_OK;
    setup->fits_probability = 0.5;
    enum status status = longest_find(&r->risky_longest, setup, &r->request, &r->ladder,
                                      r->longest.next, progress, diag);
    setup->fits_probability = asked;
    if (status == STATUS_OK && r->longest.tokens == 0 && r->risky_longest.tokens > 0) {
        r->longest = r->risky_longest;
        r->is_unsafe = true;
    }
    if (status != STATUS_OK || r->risky_longest.tokens <= r->longest.tokens)
        r->risky_longest = (struct longest){0};
    return status;
}

enum status longest_certificate_make(struct longest_certificate *r, struct setup *setup,
                                     struct diag *diag)
{
    r->request = setup->request;
    enum status status = ladder_of(&r->ladder, &r->request, diag);
    struct progress progress;
    progress_begin(&progress, 0, 0);
    if (status == STATUS_OK)
        status = longest_find(&r->longest, setup, &r->request, &r->ladder, r->request.seq,
                              &progress, diag);
    if (status == STATUS_OK)
        status = find_risky_best(r, setup, &progress, diag);
    progress_end();
    if (status == STATUS_OK && r->length_only)
        return r->longest.tokens > 0 ? STATUS_OK : STATUS_NO;
    if (status == STATUS_OK && r->longest.tokens > 0 && interrupt_signal() == 0)
        status = predict_at(&r->at_longest, setup, &r->request, r->longest.tokens, diag);
    if (status == STATUS_OK && r->longest.next > 0 && r->longest.refusal[0] == '\0' &&
        interrupt_signal() == 0)
        status = predict_at(&r->at_next, setup, &r->request, r->longest.next, diag);
    r->flips_asked = r->longest.next > 0 &&
                     repeats_ops(&r->at_longest.ir.repeats, REPEATS_ALL_ROLES,
                                 r->at_longest.ir.op.count) < FLIPS_OPS_MAX &&
                     interrupt_signal() == 0;
    if (status == STATUS_OK && r->flips_asked)
        status = find_flips(r, setup, diag);
    return status == STATUS_OK && r->longest.tokens == 0 ? STATUS_NO : status;
}
