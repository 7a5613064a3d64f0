#include "predict/reproduce/outcome.h"

#include <math.h>
#include <string.h>

const char *const outcome_state_names[STATE_COUNT] = {"matched", "off",           "claims", "drawn",
                                                      "failed",  "not simulable", "not run"};

static void add_point(struct entry_outcome *o, const struct reproduction_point *point,
                      double sums[2])
{
    switch (point->outcome) {
    case OUTCOME_RIGHT:
    case OUTCOME_WRONG:
        o->verdict_count++;
        o->right_verdicts += point->outcome == OUTCOME_RIGHT;
        break;
    case OUTCOME_PUBLISHED_ZERO:
        o->zero_published_points++;
        break;
    case OUTCOME_NOT_COMPARABLE:
        o->unpredictable_points++;
        break;
    case OUTCOME_PREDICTION_FAILED:
        o->failed_points++;
        break;
    default:
        if (!point->counts_in_means)
            break;
        o->counted_points++;
        o->point_count_within_limit += fabs(point->error) <= OUTCOME_WORST_TOLERANCE;
        sums[0] += fabs(point->error);
        sums[1] += point->error;
        if (isnan(o->worst_error) || fabs(point->error) > fabs(o->worst_error))
            o->worst_error = point->error;
    }
}

static enum outcome_state state_of_outcome(const struct entry_outcome *o,
                                           const struct catalogue_entry *entry, bool all_done)
{
    bool failed =
        o->failed_points + o->unpredictable_points > 0 || o->right_verdicts < o->verdict_count;
    size_t claims = 0;
    for (int i = 0; i < CLAIM_VERDICT_COUNT; i++)
        claims += o->claim_count_by_verdict[i];
    if (entry->kind == ENTRY_NOT_SIMULABLE)
        return STATE_NOT_SIMULABLE;
    if (!all_done)
        return STATE_NOT_RUN;
    if (o->counted_points + o->verdict_count + o->unpredictable_points + o->failed_points > 0 &&
        entry->kind == ENTRY_POINTS)
        return failed || o->mean_error > OUTCOME_MEAN_TOLERANCE ||
                       fabs(o->worst_error) > OUTCOME_WORST_TOLERANCE
                   ? STATE_NOT_MATCHED
                   : STATE_MATCHED;
    if (o->failed_points + o->unpredictable_points > 0)
        return STATE_FAILED;
    return claims > 0 ? STATE_JUDGED_BY_CLAIMS : STATE_DRAWN_WITHOUT_CLAIMS;
}

struct entry_outcome outcome_of_entry(const struct reproduction *r, size_t e)
{
    const struct catalogue_entry *entry = &r->catalogue.entry[e];
    struct entry_outcome o = {.mean_error = NAN, .worst_error = NAN, .mean_signed_error = NAN};
    double sums[2] = {0};
    bool all_done = true;
    for (size_t i = 0; i < r->point_count; i++)
        if (r->point[i].entry == e) {
            all_done &= r->point[i].is_done;
            if (r->point[i].is_done &&
                (r->point[i].row != SIZE_MAX || !isnan(r->point[i].published) ||
                 r->point[i].outcome == OUTCOME_PREDICTION_FAILED))
                add_point(&o, &r->point[i], sums);
        }
    for (size_t i = 0; i < r->job_count; i++)
        if (r->job[i].kind == JOB_TRACE && r->job[i].entry == e)
            all_done &= r->job[i].is_done;
    if (o.counted_points > 0) {
        o.mean_error = sums[0] / (double)o.counted_points;
        o.mean_signed_error = sums[1] / (double)o.counted_points;
    }
    struct text numbers = {0};
    for (size_t i = 0; i < entry->claim_count; i++)
        o.claim_count_by_verdict[claim_judge(&numbers, r, e, &entry->claim[i])]++;
    text_release(&numbers);
    o.state = state_of_outcome(&o, entry, all_done);
    return o;
}

/* Appends a separator if text has been appended since `from`. */
static void put_separator_if_text(struct text *out, size_t from)
{
    if (out->size > from)
        text_puts(out, "; ");
}

void outcome_put_sentence(struct text *out, const struct entry_outcome *o)
{
    size_t from = out->size, claims = 0;
    for (int i = 0; i < CLAIM_NOT_KNOWN; i++)
        claims += o->claim_count_by_verdict[i];
    if (o->counted_points > 0) {
        text_printf(out, "%zu value%s, ", o->counted_points, o->counted_points == 1 ? "" : "s");
        if (o->counted_points == 1)
            text_printf(out, "error %+.1f %%", 100 * o->worst_error);
        else
            text_printf(out, "mean error %.1f %%, worst %+.1f %%", 100 * o->mean_error,
                        100 * o->worst_error);
        if (o->point_count_within_limit < o->counted_points)
            text_printf(out, ", %zu of them beyond 15 %%",
                        o->counted_points - o->point_count_within_limit);
    }
    if (o->verdict_count > 0) {
        put_separator_if_text(out, from);
        text_printf(out, "%zu of %zu verdicts and lengths right", o->right_verdicts,
                    o->verdict_count);
    }
    if (o->unpredictable_points > 0) {
        put_separator_if_text(out, from);
        text_printf(out, "%zu cannot be predicted", o->unpredictable_points);
    }
    if (o->failed_points > 0) {
        put_separator_if_text(out, from);
        text_printf(out, "%zu failed", o->failed_points);
    }
    if (claims > 0) {
        put_separator_if_text(out, from);
        text_printf(out, "%zu of %zu claims hold", o->claim_count_by_verdict[CLAIM_HOLDS], claims);
        if (o->claim_count_by_verdict[CLAIM_HOLDS_BY_LESS] > 0)
            text_printf(out, ", %zu by less", o->claim_count_by_verdict[CLAIM_HOLDS_BY_LESS]);
    }
}

/* Appends the point with the largest error; nothing if no error counts, or if the largest is 0. */
static void put_worst_point(struct text *out, const struct reproduction *r, size_t e)
{
    const struct reproduction_point *worst = NULL;
    for (size_t i = 0; i < r->point_count; i++) {
        const struct reproduction_point *point = &r->point[i];
        if (point->entry == e && point->counts_in_means && !isnan(point->error) &&
            (worst == NULL || fabs(point->error) > fabs(worst->error)))
            worst = point;
    }
    if (worst == NULL || worst->error == 0)
        return;
    text_puts(out, "The farthest is");
    const char *const parts[] = {worst->panel, worst->series, worst->x};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (parts[i][0] != '\0')
            text_printf(out, "%s %s", i > 0 && parts[i - 1][0] != '\0' ? "," : "", parts[i]);
    text_printf(out, ": %.4g published, %.4g predicted (%+.1f %%).\n", worst->published,
                worst->predicted, 100 * worst->error);
}

static void put_points_that_do_not_match(struct text *out, const struct reproduction *r, size_t e)
{
    for (size_t i = 0; i < r->point_count; i++) {
        const struct reproduction_point *point = &r->point[i];
        if (point->entry != e || point->outcome != OUTCOME_WRONG)
            continue;
        text_printf(out, "Wrong: %s%s%s%s%s: published ", point->panel,
                    point->panel[0] != '\0' ? ", " : "", point->series,
                    point->series[0] != '\0' ? ", " : "", point->x);
        if (point->published_text != NULL)
            text_puts(out, point->published_text);
        else
            text_printf(out, "%.9g", point->published);
        text_puts(out, ", predicted ");
        if (point->predicted_text != NULL)
            text_puts(out, point->predicted_text);
        else
            text_printf(out, "%.9g", point->predicted);
        text_puts(out, ".\n");
    }
}

void outcome_put_paragraph(struct text *out, const struct reproduction *r, size_t e)
{
    const struct catalogue_entry *entry = &r->catalogue.entry[e];
    struct entry_outcome o = outcome_of_entry(r, e);
    struct text numbers = {0};
    if (o.state == STATE_NOT_SIMULABLE)
        text_puts(&numbers, entry->reason);
    else
        outcome_put_sentence(&numbers, &o);
    text_puts(out, outcome_state_names[o.state]);
    text_printf(out, numbers.size > 0 ? ": %s.\n" : "%s.\n", numbers.size > 0 ? numbers.data : "");
    put_worst_point(out, r, e);
    put_points_that_do_not_match(out, r, e);
    if (o.state == STATE_NOT_MATCHED && entry->reason != NULL)
        text_printf(out, "Why: %s.\n", entry->reason);
    for (size_t i = 0; i < entry->claim_count; i++) {
        numbers.size = 0;
        enum claim_verdict verdict = claim_judge(&numbers, r, e, &entry->claim[i]);
        text_printf(out, "Claim: %s: %s", entry->claim[i].statement, claim_verdict_names[verdict]);
        text_printf(out, numbers.size > 0 ? ": %s.\n" : "%s.\n",
                    numbers.size > 0 ? numbers.data : "");
    }
    if (entry->note != NULL)
        text_printf(out, "Assumed: %s.\n", entry->note);
    text_release(&numbers);
}
