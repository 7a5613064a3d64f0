#include "cli/validate/coverage.h"

#include "base/arena.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A run that was predicted, and the interval of its prediction. */
struct run_with_interval {
    const struct residual *run;
    struct interval interval;
    bool is_error_inside_interval;
};

/* Fills judged[] with the runs that have an error, each with the interval of its time and whether its error lies
 * inside. Returns their number. first: the error is that at first sight, if it is known, and the interval is made
 * without the rows of the run's laboratory. */
static size_t find_runs_with_intervals(struct run_with_interval *judged,
                                       const struct residuals *runs,
                                       const struct evidence *evidence, bool first)
{
    size_t count = 0;
    for (size_t i = 0; i < runs->row_count; i++) {
        const struct residual *run = &runs->rows[i];
        const double value = first && !isnan(run->log_ratio_at_first_prediction)
                                 ? run->log_ratio_at_first_prediction
                                 : run->log_ratio[RESIDUAL_TIME];
        if (isnan(value))
            continue;
        struct run_with_interval *j = &judged[count++];
        j->run = run;
        j->interval = interval_of_run(evidence, RESIDUAL_TIME, run, first ? run->laboratory : NULL);
        j->is_error_inside_interval = value >= j->interval.low && value <= j->interval.high;
    }
    return count;
}

typedef bool in_class_fn(const struct run_with_interval *judged, int class);

/* Counts the runs of a class, and how many of them lie inside their intervals. Also returns the mean share over
 * laboratories, and the median half width of the intervals. */
static struct coverage coverage_of_class(const struct run_with_interval *judged, size_t count,
                                         in_class_fn *is_run_in_class_fn, int class)
{
    struct coverage c = {0};
    double *half_widths = heap_zalloc(count + 1, sizeof *half_widths);
    bool *done = heap_zalloc(count + 1, sizeof *done);
    for (size_t i = 0; i < count; i++) {
        size_t runs = 0, inside = 0;
        if (done[i] || !is_run_in_class_fn(&judged[i], class))
            continue;
        for (size_t k = i; k < count; k++) {
            const struct interval *interval = &judged[k].interval;
            if (strcmp(judged[k].run->laboratory, judged[i].run->laboratory) != 0 ||
                !is_run_in_class_fn(&judged[k], class))
                continue;
            done[k] = true;
            half_widths[c.run_count + runs++] = (exp(interval->high) - exp(interval->low)) / 2;
            inside += judged[k].is_error_inside_interval;
        }
        c.run_count += runs;
        c.inside_count += inside;
        c.mean_laboratory_share += (double)inside / (double)runs;
        c.laboratory_count++;
    }
    gsl_sort(half_widths, 1, c.run_count);
    if (c.run_count > 0)
        c.median_half_width_share = gsl_stats_median_from_sorted_data(half_widths, 1, c.run_count);
    if (c.laboratory_count > 0)
        c.mean_laboratory_share /= (double)c.laboratory_count;
    free(half_widths);
    free(done);
    return c;
}

static bool is_in_class_of_all_runs(const struct run_with_interval *judged, int class)
{
    (void)judged;
    (void)class;
    return true;
}

/* Returns how many unmeasured features widen the interval by at least INTERVAL_NOTABLE_DEVIATION: 0, 1, or 2 for two or
 * more. */
static int class_by_unmeasured_feature_count(const struct run_with_interval *judged)
{
    int count = 0;
    for (uint32_t i = 0; i < judged->interval.unmeasured_count; i++)
        count += judged->interval.unmeasured[i].variance >=
                 INTERVAL_NOTABLE_DEVIATION * INTERVAL_NOTABLE_DEVIATION;
    return count < 2 ? count : 2;
}

static bool is_in_class_of_unmeasured_count(const struct run_with_interval *judged, int class)
{
    return class_by_unmeasured_feature_count(judged) == class;
}

static bool is_in_class_of_unmeasured_feature(const struct run_with_interval *judged, int class)
{
    for (uint32_t i = 0; i < judged->interval.unmeasured_count; i++)
        if (judged->interval.unmeasured[i].feature == class &&
            judged->interval.unmeasured[i].variance >=
                INTERVAL_NOTABLE_DEVIATION * INTERVAL_NOTABLE_DEVIATION)
            return true;
    return false;
}

static bool is_in_class_of_unmeasured_mechanism(const struct run_with_interval *judged, int class)
{
    for (uint32_t i = 0; i < judged->interval.unmeasured_count; i++)
        if (judged->interval.unmeasured[i].feature == FEATURE_MECHANISM &&
            judged->interval.unmeasured[i].mechanism == class)
            return true;
    return false;
}

/* The classes of runs other than those of laboratories, in the order of the printed table. class: the argument of
 * is_run_in_class_fn(). What it is depends on the function: a number of unmeasured features
 * (class_by_unmeasured_feature_count()), an enum interval_feature or an enum mechanism; is_in_class_of_all_runs()
 * ignores it. */
static const struct {
    const char *name;
    in_class_fn *is_run_in_class_fn;
    int class;
} classes[] = {
    {"all", is_in_class_of_all_runs, 0},
    {"everything measured", is_in_class_of_unmeasured_count, 0},
    {"one feature unmeasured", is_in_class_of_unmeasured_count, 1},
    {"two or more unmeasured", is_in_class_of_unmeasured_count, 2},
    {"profile unmeasured", is_in_class_of_unmeasured_feature, FEATURE_PROFILE},
    {"profile neutral", is_in_class_of_unmeasured_feature, FEATURE_NEUTRAL},
    {"tensor parallelism", is_in_class_of_unmeasured_mechanism, MECHANISM_TENSOR},
    {"pipelines", is_in_class_of_unmeasured_mechanism, MECHANISM_PIPELINE},
    {"context parallelism", is_in_class_of_unmeasured_mechanism, MECHANISM_CONTEXT},
    {"optimizer on the host", is_in_class_of_unmeasured_mechanism, MECHANISM_HOST_OPTIMIZER},
    {"plain data parallelism", is_in_class_of_unmeasured_mechanism, MECHANISM_DATA_PARALLEL_ONLY},
    {"measured elsewhere", is_in_class_of_unmeasured_feature, FEATURE_ELSEWHERE},
    {"not together", is_in_class_of_unmeasured_feature, FEATURE_TOGETHER},
    {"device or kernel", is_in_class_of_unmeasured_feature, FEATURE_KERNEL},
    {"another size", is_in_class_of_unmeasured_feature, FEATURE_FAR},
    {"short layers", is_in_class_of_unmeasured_feature, FEATURE_SMALL},
};

static size_t add_class_unless_empty(struct coverage *out, const char *name, struct coverage c)
{
    if (c.run_count == 0)
        return 0;
    *out = c;
    out->name = name;
    return 1;
}

/* Fills out[] with a class for each laboratory, and returns their number. */
static size_t add_class_of_each_laboratory(struct coverage *out,
                                           const struct run_with_interval *judged, size_t count)
{
    bool *done = heap_zalloc(count + 1, sizeof *done);
    struct run_with_interval *own = heap_zalloc(count + 1, sizeof *own);
    size_t added_class_count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t n = 0;
        for (size_t k = i; k < count && !done[i]; k++) {
            if (strcmp(judged[k].run->laboratory, judged[i].run->laboratory) != 0)
                continue;
            own[n++] = judged[k];
            done[k] = k != i;
        }
        added_class_count +=
            add_class_unless_empty(&out[added_class_count], judged[i].run->laboratory,
                                   coverage_of_class(own, n, is_in_class_of_all_runs, 0));
    }
    free(own);
    free(done);
    return added_class_count;
}

size_t coverage_make(struct coverage *out, const struct residuals *runs,
                     const struct evidence *evidence, bool first)
{
    struct run_with_interval *judged = heap_zalloc(runs->row_count + 1, sizeof *judged);
    const size_t count = find_runs_with_intervals(judged, runs, evidence, first);
    size_t made = 0;
    for (size_t i = 0; i < ARRAY_LEN(classes); i++)
        made += add_class_unless_empty(
            &out[made], classes[i].name,
            coverage_of_class(judged, count, classes[i].is_run_in_class_fn, classes[i].class));
    made += add_class_of_each_laboratory(&out[made], judged, count);
    free(judged);
    return made;
}

size_t coverage_max_class_count(const struct residuals *runs)
{
    return ARRAY_LEN(classes) + runs->row_count;
}

void coverage_print(struct text *out, const struct residuals *runs, const struct evidence *evidence)
{
    static const char *const titles[] = {
        "of today's errors, by all rows",
        "at first sight (today's errors where there are none), by rows of other laboratories"};
    struct coverage *rows = heap_zalloc(coverage_max_class_count(runs), sizeof *rows);
    for (int first = 0; first < 2; first++) {
        const size_t count = coverage_make(rows, runs, evidence, first == 1);
        if (count == 0)
            continue;
        text_printf(out, "\nwhether 90 %% intervals hold, %s\n  %-28s %4s %4s %8s %8s %8s\n",
                    titles[first], "", "runs", "labs", "inside", "by lab", "half");
        for (size_t i = 0; i < count; i++)
            text_printf(out, "  %-28s %4zu %4zu %6.0f %% %6.0f %% %6.0f %%\n", rows[i].name,
                        rows[i].run_count, rows[i].laboratory_count,
                        100 * (double)rows[i].inside_count / (double)rows[i].run_count,
                        100 * rows[i].mean_laboratory_share, 100 * rows[i].median_half_width_share);
    }
    free(rows);
}

/* ---- which share of runs fits, by the predicted probability ---- */

/* The upper ends of the bins of the probability. The last one is above 1, so that a probability of 1 is in the last
 * bin. */
static const double bins[] = {0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 1.01};

/* Sums over cases. A case is a run whose outcome is known, with the probability with which it was predicted to fit. */
struct verdict_reliability {
    size_t cases_of_bin[ARRAY_LEN(bins)], ran_cases_of_bin[ARRAY_LEN(bins)], all_cases;
    double expected_ran_by_bin[ARRAY_LEN(bins)]; /* the sum of the probabilities */
    /* squared differences between outcome (1: it ran) and prediction, which is the probability or, for the verdict, 1
     * if the probability is at least 0.5 and otherwise 0 */
    double brier_score, brier_score_of_verdict;
};

static void add_verdict_case(struct verdict_reliability *c, const struct verdict *verdict, bool ran)
{
    const double p = verdict->fits_probability, miss = p - (ran ? 1 : 0);
    size_t bin = 0;
    while (p >= bins[bin] && bin + 1 < ARRAY_LEN(bins))
        bin++;
    c->cases_of_bin[bin]++;
    c->ran_cases_of_bin[bin] += ran;
    c->expected_ran_by_bin[bin] += p;
    c->brier_score += miss * miss;
    c->brier_score_of_verdict += (p >= 0.5) != ran;
    c->all_cases++;
}

/* Adds the cases that row i of the figures gives: predicted verdicts, and whether the run fitted. A row with a measured
 * verdict gives one. So does a row with a measured rate or time, if it is the first row of its run; that run fitted. A
 * row with a longest length gives up to two: the longest length that is predicted to fit, and the next one. Each of
 * them counts as a run that fitted if it is not longer than the measured length. The next one is left out if it is
 * longer than a measured length that is only a lower bound. */
static void add_verdict_cases_of_figure(struct verdict_reliability *c, const struct validation *v,
                                        size_t i)
{
    const struct external_run *row = &v->rows->rows[i];
    if (v->row[i].run_index == SIZE_MAX || !v->answer[v->row[i].run_index].has_succeeded)
        return;
    const struct validated_run *answer = &v->answer[v->row[i].run_index];
    if (row->metric == METRIC_VERDICT) {
        add_verdict_case(c, &answer->verdict, row->is_number);
    } else if (row->metric == METRIC_MAX_SEQ_LEN && row->is_number) {
        const double measured = row->value * row->si_factor;
        if (answer->longest_tokens > 0)
            add_verdict_case(c, &answer->verdict, (double)answer->longest_tokens <= measured);
        if (answer->verdict_on_next_length_or_against.available_bytes[LIMIT_DEVICE] > 0 &&
            !(row->is_lower_bound && (double)answer->longest_tokens >= measured))
            add_verdict_case(c, &answer->verdict_on_next_length_or_against,
                             (double)answer->longest_tokens < measured);
    } else if (v->first_row_of_each_run[v->row[i].run_index] == i &&
               (row->metric == METRIC_TGS || row->metric == METRIC_MFU ||
                row->metric == METRIC_STEP_MS)) {
        add_verdict_case(c, &answer->verdict, true);
    }
}

void coverage_print_verdict_reliability(struct text *out, const struct validation *figures,
                                        const struct external_validation *steps)
{
    struct verdict_reliability c = {0};
    for (size_t i = 0; i < figures->rows->row_count; i++)
        add_verdict_cases_of_figure(&c, figures, i);
    for (size_t i = 0; i < steps->runs->row_count; i++)
        if (steps->answer[steps->answer_index_of_each_row[i]].has_succeeded)
            add_verdict_case(&c, &steps->answer[steps->answer_index_of_each_row[i]].verdict, true);
    if (c.all_cases == 0)
        return;
    text_puts(out, "\nwhether P(fits) holds: runs that ran, and that ran out of memory\n"
                   "  P(fits)        cases   mean P      ran\n");
    for (size_t bin = 0; bin < ARRAY_LEN(bins); bin++)
        if (c.cases_of_bin[bin] > 0)
            text_printf(out, "  %4.2f to %4.2f  %7zu  %5.0f %%  %5.0f %%\n",
                        bin > 0 ? bins[bin - 1] : 0, fmin(bins[bin], 1), c.cases_of_bin[bin],
                        100 * c.expected_ran_by_bin[bin] / (double)c.cases_of_bin[bin],
                        100 * (double)c.ran_cases_of_bin[bin] / (double)c.cases_of_bin[bin]);
    text_printf(out, "  Brier score %.3f (of a bare \"fits\" %.3f), %zu cases\n",
                c.brier_score / (double)c.all_cases, c.brier_score_of_verdict / (double)c.all_cases,
                c.all_cases);
}
