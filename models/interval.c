#include "models/interval.h"

#include "base/arena.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_vector.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* These numbers and their reasons are in docs/accuracy/intervals.md. */

/* The model explains a source if the root mean square of the source's errors is at most this. */
static const double EXPLAINED_ERROR = 0.15;

/* Two runs are about equally large if no size of one is more than this many times that of the other. */
static const double SIZE_FACTOR = 8;

/* A layer with fewer seconds of forward products (residual.layer_s) has short kernels, whose times are less certain. */
static const double SHORT_LAYER_S = 1e-3;

/* The degrees of freedom of Student's t, which errors over their standard deviation follow; and the probability of an
 * error beyond each end of the interval, before the slow end of times is moved outwards (interval_of_run()). */
static const double DEGREES_OF_FREEDOM = 5, TAIL_PROBABILITY = 0.05;

/* The correlation, between two runs, of the errors that one unmeasured feature of both causes, and of the errors that
 * remain if all features were measured (FEATURE_BASE). */
static const double ERROR_CORRELATION = 0.5;

enum status evidence_load_shipped(struct evidence *evidence, struct diag *diag)
{
    enum status status = residuals_load_shipped(&evidence->runs, diag);
    if (status == STATUS_OK)
        status = deviations_load_shipped(&evidence->feature_standard_deviations, diag);
    if (status == STATUS_OK)
        evidence_mark_explained_runs(evidence);
    return status;
}

void evidence_release(struct evidence *evidence)
{
    for (int of = 0; of < RESIDUAL_COUNT; of++)
        free(evidence->is_run_residual_explained[of]);
    residuals_release(&evidence->runs);
    residuals_release(&evidence->own_runs);
    *evidence = (struct evidence){0};
}

/* ---- what was measured ---- */

/* True if the model explains a source: the root mean square of the errors of its rows is at most
 * EXPLAINED_ERROR. Rows that did not measure the figure do not count. */
static bool is_source_explained_by_model(const struct residuals *runs, enum residual_quantity of,
                                         const char *source)
{
    double squares = 0;
    size_t rows = 0;
    for (size_t i = 0; i < runs->row_count; i++) {
        const double value = runs->rows[i].log_ratio[of];
        if (isnan(value) || strcmp(runs->rows[i].source, source) != 0)
            continue;
        squares += value * value;
        rows++;
    }
    return squares <= EXPLAINED_ERROR * EXPLAINED_ERROR * (double)rows;
}

void evidence_mark_explained_runs(struct evidence *evidence)
{
    const struct residuals *runs = &evidence->runs;
    for (int of = 0; of < RESIDUAL_COUNT; of++) {
        free(evidence->is_run_residual_explained[of]);
        evidence->is_run_residual_explained[of] =
            heap_zalloc(runs->row_count + 1, sizeof *evidence->is_run_residual_explained[of]);
        for (size_t i = 0; i < runs->row_count; i++)
            evidence->is_run_residual_explained[of][i] =
                !isnan(runs->rows[i].log_ratio[of]) &&
                is_source_explained_by_model(runs, (enum residual_quantity)of,
                                             runs->rows[i].source);
    }
}

/* The measured runs of one figure (time or memory) from which an interval is made. */
struct measured_rows {
    const struct residuals *runs;
    const bool *is_run_residual_explained; /* [rows] as evidence.is_run_residual_explained */
    const char *left_out_laboratory;       /* a laboratory that is left out, or NULL */
};

static bool same_device(const struct residual *a, const struct residual *b)
{
    return strcmp(a->device, b->device) == 0;
}

static bool are_runs_of_same_profile(const struct residual *a, const struct residual *b)
{
    return strcmp(a->framework, b->framework) == 0;
}

static bool is_run_of_neutral_profile(const struct residual *run)
{
    return strcmp(run->framework, "neutral") == 0;
}

/* True if the layouts of both runs have the mechanism. For MECHANISM_CONTEXT both must have the same kind of context
 * parallelism; for MECHANISM_DATA_PARALLEL_ONLY both must have none of the others. */
static bool is_mechanism_of_both_runs(const struct residual *row, enum mechanism mechanism,
                                      const struct residual *run)
{
    switch (mechanism) {
    case MECHANISM_TENSOR:
        return row->tp > 1 && run->tp > 1;
    case MECHANISM_PIPELINE:
        return row->pp > 1 && run->pp > 1;
    case MECHANISM_CONTEXT:
        return strcmp(run->context, "none") != 0 && strcmp(row->context, run->context) == 0;
    case MECHANISM_HOST_OPTIMIZER:
        return row->host_optimizer && run->host_optimizer;
    default:
        for (int m = 0; m < MECHANISM_DATA_PARALLEL_ONLY; m++)
            if (is_mechanism_of_both_runs(row, (enum mechanism)m, row) ||
                is_mechanism_of_both_runs(run, (enum mechanism)m, run))
                return false;
        return true;
    }
}

/* True if two layouts consist of the same mechanisms, and of the same kind of context parallelism. */
static bool are_runs_of_same_layout(const struct residual *a, const struct residual *b)
{
    return (a->tp > 1) == (b->tp > 1) && (a->pp > 1) == (b->pp > 1) &&
           strcmp(a->context, b->context) == 0 && a->host_optimizer == b->host_optimizer;
}

static bool has_offloaded_activations(const struct residual *run)
{
    return strstr(run->activations, "offload") != NULL;
}

/* True if rows of tokens are sent between nodes to their experts. */
static bool sends_tokens_to_experts_across_nodes(const struct residual *run)
{
    return strstr(run->context, CONTEXT_SUFFIX_EXPERTS_ACROSS_NODES) != NULL;
}

static bool is_within_size_factor(double a, double b)
{
    return a <= SIZE_FACTOR * b && b <= SIZE_FACTOR * a;
}

static bool are_runs_of_similar_size(const struct residual *a, const struct residual *b)
{
    return has_offloaded_activations(a) == has_offloaded_activations(b) &&
           is_within_size_factor((double)a->parameters, (double)b->parameters) &&
           is_within_size_factor((double)a->gpus, (double)b->gpus) &&
           is_within_size_factor((double)a->seq_len * (double)a->sequences,
                                 (double)b->seq_len * (double)b->sequences) &&
           is_within_size_factor(a->layer_s, b->layer_s);
}

/* The properties that a measured row and a run must have in common, as a bit mask. */
enum trait_bit {
    TRAIT_SAME_DEVICE = 1,
    TRAIT_SAME_PROFILE = 2,
    TRAIT_SAME_KERNEL = 4,
    TRAIT_SAME_LAYOUT = 8,
    TRAIT_SAME_SIZE = 16
};

/* True if some measured row that counts has the properties `shared` (bits of enum trait_bit) in common with the
 * run, and both have the mechanism. MECHANISM_COUNT: no mechanism is asked for. */
static bool has_measured_run_like(const struct measured_rows *measured, const struct residual *run,
                                  unsigned shared, enum mechanism mechanism)
{
    for (size_t i = 0; i < measured->runs->row_count; i++) {
        const struct residual *row = &measured->runs->rows[i];
        if (measured->is_run_residual_explained[i] &&
            (measured->left_out_laboratory == NULL ||
             strcmp(row->laboratory, measured->left_out_laboratory) != 0) &&
            ((shared & TRAIT_SAME_DEVICE) == 0 || same_device(row, run)) &&
            ((shared & TRAIT_SAME_PROFILE) == 0 || are_runs_of_same_profile(row, run)) &&
            ((shared & TRAIT_SAME_KERNEL) == 0 || strcmp(row->attention, run->attention) == 0) &&
            ((shared & TRAIT_SAME_LAYOUT) == 0 || are_runs_of_same_layout(row, run)) &&
            ((shared & TRAIT_SAME_SIZE) == 0 || are_runs_of_similar_size(row, run)) &&
            (mechanism == MECHANISM_COUNT || is_mechanism_of_both_runs(row, mechanism, run)))
            return true;
    }
    return false;
}

/* ---- variances ---- */

/* Adds an unmeasured feature to the interval, with share^2 times its variance. It adds nothing if the variance is 0 or
 * unknown, or if the list is full. mechanism: for features that have one, else MECHANISM_COUNT. */
static void add_deviation_of_feature(struct interval *interval, const double *deviation,
                                     enum interval_feature feature, enum mechanism mechanism,
                                     double share)
{
    double variance = deviation[feature] * deviation[feature] * share * share;
    uint32_t at = interval->unmeasured_count;
    if (!(variance > 0) || interval->unmeasured_count == UNMEASURED_MAX)
        return;
    for (; at > 0 && interval->unmeasured[at - 1].variance < variance; at--)
        interval->unmeasured[at] = interval->unmeasured[at - 1];
    interval->unmeasured[at] =
        (struct unmeasured_feature){(uint8_t)feature, (uint8_t)mechanism, variance};
    interval->unmeasured_count++;
}

/* Adds to the interval what was not measured of the run's layout:
 *   - each mechanism that no measured row of the run's profile has. For profile neutral, which
 *     belongs to no framework, it is each that no row of the run's device has; a mechanism that rows
 *     of another device have adds the smaller variance of FEATURE_ELSEWHERE, or none if that is
 *     unknown. Context parallelism that sends tokens between nodes adds that of FEATURE_EXCHANGE,
 *     if it is known;
 *   - if all mechanisms were measured, but not together: FEATURE_TOGETHER;
 *   - if they were measured together, but by no run of about this size: FEATURE_FAR.
 * all_unmeasured: no mechanism counts as measured. A layout that is not known adds nothing. */
static void add_unmeasured_layout_features(struct interval *interval,
                                           const struct measured_rows *measured,
                                           const struct residual *run, const double *deviation,
                                           bool all_unmeasured)
{
    const unsigned pool = is_run_of_neutral_profile(run) ? TRAIT_SAME_DEVICE : TRAIT_SAME_PROFILE;
    bool all = true;
    if (run->context[0] == '\0') /* the layout of a schedule from a file is not known */
        return;
    for (int m = 0; m < MECHANISM_COUNT; m++) {
        const enum mechanism mechanism = (enum mechanism)m;
        if (!is_mechanism_of_both_runs(run, mechanism, run) ||
            (!all_unmeasured && has_measured_run_like(measured, run, pool, mechanism)))
            continue;
        bool elsewhere =
            is_run_of_neutral_profile(run) && has_measured_run_like(measured, run, 0, mechanism);
        bool exchange = mechanism == MECHANISM_CONTEXT &&
                        sends_tokens_to_experts_across_nodes(run) &&
                        deviation[FEATURE_EXCHANGE] > 0;
        add_deviation_of_feature(
            interval, deviation,
            exchange                                        ? FEATURE_EXCHANGE
            : elsewhere && deviation[FEATURE_ELSEWHERE] > 0 ? FEATURE_ELSEWHERE
                                                            : FEATURE_MECHANISM,
            mechanism, elsewhere && !(deviation[FEATURE_ELSEWHERE] > 0) ? 0 : 1);
        all = false;
    }
    if (all && !has_measured_run_like(measured, run, pool | TRAIT_SAME_LAYOUT, MECHANISM_COUNT))
        add_deviation_of_feature(interval, deviation, FEATURE_TOGETHER, MECHANISM_COUNT, 1);
    else if (all && !has_measured_run_like(
                        measured, run, pool | TRAIT_SAME_LAYOUT | TRAIT_SAME_SIZE, MECHANISM_COUNT))
        add_deviation_of_feature(interval, deviation, FEATURE_FAR, MECHANISM_COUNT, 1);
}

static void find_unmeasured_features(struct interval *interval, const struct evidence *evidence,
                                     enum residual_quantity of, const struct residual *run,
                                     const char *without)
{
    const double *deviation = evidence->feature_standard_deviations.log_deviation[of];
    const struct measured_rows measured = {&evidence->runs, evidence->is_run_residual_explained[of],
                                           without};
    interval->unmeasured_count = 0;
    interval->device_is_measured =
        has_measured_run_like(&measured, run, TRAIT_SAME_DEVICE, MECHANISM_COUNT);
    if (is_run_of_neutral_profile(run) && deviation[FEATURE_NEUTRAL] > 0)
        add_deviation_of_feature(interval, deviation, FEATURE_NEUTRAL, MECHANISM_COUNT, 1);
    else if (is_run_of_neutral_profile(run) || run->real_framework != NULL ||
             !has_measured_run_like(&measured, run, TRAIT_SAME_PROFILE, MECHANISM_COUNT))
        add_deviation_of_feature(interval, deviation, FEATURE_PROFILE, MECHANISM_COUNT, 1);
    /* If the profile only stands in for the real framework, its measured runs do not say how much memory the real
     * framework's layers need: those of Nanotron need up to twice as much as Megatron-LM's. */
    add_unmeasured_layout_features(interval, &measured, run, deviation,
                                   of == RESIDUAL_MEMORY && run->real_framework != NULL);
    const unsigned kernel = run->attention[0] != '\0' ? TRAIT_SAME_KERNEL : 0;
    if (!has_measured_run_like(&measured, run, TRAIT_SAME_DEVICE | kernel, MECHANISM_COUNT))
        add_deviation_of_feature(interval, deviation, FEATURE_KERNEL, MECHANISM_COUNT, 1);
    if (run->layer_s > 0)
        add_deviation_of_feature(interval, deviation, FEATURE_SMALL, MECHANISM_COUNT,
                                 fmin(1, SHORT_LAYER_S / run->layer_s));
}

static double variance_from_base_and_features(const struct interval *interval, double base)
{
    double sum = base * base;
    for (uint32_t i = 0; i < interval->unmeasured_count; i++)
        sum += interval->unmeasured[i].variance;
    return sum;
}

/* ---- the user's own runs ---- */

/* Returns the covariance of the errors of runs i and j: 0.5 (base^2 + sum over k of sqrt(v(k, i) v(k, j))). base is the
 * standard deviation of FEATURE_BASE, which every run has. The sum is over the features k that are unmeasured for both
 * runs; v(k, i) is the variance that feature k adds to run i. */
static double covariance_of_run_errors(const struct interval *a, const struct interval *b,
                                       double base)
{
    double sum = base * base;
    for (uint32_t i = 0; i < a->unmeasured_count; i++)
        for (uint32_t k = 0; k < b->unmeasured_count; k++)
            if (a->unmeasured[i].feature == b->unmeasured[k].feature &&
                a->unmeasured[i].mechanism == b->unmeasured[k].mechanism)
                sum += sqrt(a->unmeasured[i].variance * b->unmeasured[k].variance);
    return ERROR_CORRELATION * sum;
}

/* Conditions the interval of a new run on the residuals r of n own runs. c is the vector of the covariances of the own
 * runs with the new one (covariance_of_run_errors()). K is the matrix of the covariances of the own runs, to which 0.5
 * s(i)^2 is added on the diagonal, where s(i) is the standard deviation of run i. With a = K^-1 c, the shift grows by a
 * . r, and *variance falls by a . c. */
static void condition_interval_on_own_runs(struct interval *interval, double *variance,
                                           const struct interval *own, const double *residual,
                                           size_t n, double base)
{
    gsl_matrix *k = gsl_matrix_alloc(n, n);
    gsl_vector *covariance_with_new = gsl_vector_alloc(n), *a = gsl_vector_alloc(n);
    for (size_t i = 0; i < n; i++) {
        gsl_vector_set(covariance_with_new, i, covariance_of_run_errors(&own[i], interval, base));
        for (size_t j = 0; j < n; j++)
            gsl_matrix_set(k, i, j,
                           covariance_of_run_errors(&own[i], &own[j], base) +
                               (i == j ? (1 - ERROR_CORRELATION) *
                                             variance_from_base_and_features(&own[i], base)
                                       : 0));
    }
    gsl_linalg_cholesky_decomp1(k);
    gsl_linalg_cholesky_solve(k, covariance_with_new, a);
    for (size_t i = 0; i < n; i++) {
        interval->log_shift_by_own_runs += gsl_vector_get(a, i) * residual[i];
        *variance -= gsl_vector_get(a, i) * gsl_vector_get(covariance_with_new, i);
    }
    gsl_matrix_free(k);
    gsl_vector_free(covariance_with_new);
    gsl_vector_free(a);
}

/* ---- intervals ---- */

/* Shifts the interval and lowers *variance by the errors of the user's own runs (condition_interval_on_own_runs()).
 * Sets own_run_count, the number of own runs that measured the figure; if it is 0, nothing else changes. */
static void apply_own_runs(struct interval *interval, double *variance,
                           const struct evidence *evidence, enum residual_quantity of,
                           const char *without)
{
    const struct residuals *rows = &evidence->own_runs;
    struct interval *own = heap_zalloc(rows->row_count + 1, sizeof *own);
    double *residual = heap_zalloc(rows->row_count + 1, sizeof *residual);
    size_t n = 0;
    for (size_t i = 0; i < rows->row_count; i++) {
        if (isnan(rows->rows[i].log_ratio[of]))
            continue;
        find_unmeasured_features(&own[n], evidence, of, &rows->rows[i], without);
        residual[n++] = rows->rows[i].log_ratio[of];
    }
    if (n > 0)
        condition_interval_on_own_runs(
            interval, variance, own, residual, n,
            evidence->feature_standard_deviations.log_deviation[of][FEATURE_BASE]);
    interval->own_run_count = (uint32_t)n;
    free(own);
    free(residual);
}

struct interval interval_of_run(const struct evidence *evidence, enum residual_quantity of,
                                const struct residual *run, const char *without)
{
    struct interval interval = {.low = NAN, .high = NAN, .log_standard_deviation = NAN};
    const double base = evidence->feature_standard_deviations.log_deviation[of][FEATURE_BASE];
    if (!(base > 0))
        return interval;
    find_unmeasured_features(&interval, evidence, of, run, without);
    double variance = variance_from_base_and_features(&interval, base);
    const double slower = of == RESIDUAL_TIME ? 2 - base * base / variance : 1;
    apply_own_runs(&interval, &variance, evidence, of, without);
    interval.log_standard_deviation = sqrt(variance);
    const double q = gsl_cdf_tdist_Qinv(TAIL_PROBABILITY, DEGREES_OF_FREEDOM);
    interval.low = interval.log_shift_by_own_runs - q * interval.log_standard_deviation;
    interval.high = interval.log_shift_by_own_runs + q * interval.log_standard_deviation * slower;
    return interval;
}

bool interval_is_known(const struct interval *interval)
{
    return !isnan(interval->low);
}

double interval_low(const struct interval *interval, double predicted)
{
    return predicted * exp(interval->low);
}

double interval_high(const struct interval *interval, double predicted)
{
    return predicted * exp(interval->high);
}

struct interval interval_of_reciprocal(const struct interval *interval)
{
    struct interval reciprocal_interval = *interval;
    reciprocal_interval.low = -interval->high;
    reciprocal_interval.high = -interval->low;
    reciprocal_interval.log_shift_by_own_runs = -interval->log_shift_by_own_runs;
    return reciprocal_interval;
}

double interval_fit_probability(const struct interval *interval, double needed, double limit)
{
    if (!(needed > 0) || isinf(limit))
        return 1;
    if (!interval_is_known(interval))
        return needed <= limit;
    return limit > 0 ? gsl_cdf_tdist_P((log(limit / needed) - interval->log_shift_by_own_runs) /
                                           interval->log_standard_deviation,
                                       DEGREES_OF_FREEDOM)
                     : 0;
}

static void put_mechanism(struct text *out, enum mechanism mechanism, const struct residual *run)
{
    static const char *const names[MECHANISM_COUNT] = {
        [MECHANISM_TENSOR] = "tensor parallelism",
        [MECHANISM_PIPELINE] = "pipelines",
        [MECHANISM_HOST_OPTIMIZER] = "the optimizer on the host",
        [MECHANISM_DATA_PARALLEL_ONLY] = "plain data parallelism",
    };
    text_puts(out, mechanism == MECHANISM_CONTEXT ? run->context : names[mechanism]);
}

void interval_put_unmeasured(struct text *out, const struct unmeasured_feature *unmeasured,
                             const struct residual *run)
{
    switch ((enum interval_feature)unmeasured->feature) {
    case FEATURE_PROFILE:
    case FEATURE_NEUTRAL:
        if (run->real_framework != NULL)
            text_printf(out, "%s, described by profile %s", run->real_framework, run->framework);
        else /* "a recorded program" is no profile */
            text_printf(out, "%s%s", strchr(run->framework, ' ') != NULL ? "" : "profile ",
                        run->framework);
        break;
    case FEATURE_MECHANISM:
    case FEATURE_EXCHANGE:
        put_mechanism(out, (enum mechanism)unmeasured->mechanism, run);
        if (!is_run_of_neutral_profile(run))
            text_printf(out, " with %s", run->framework);
        break;
    case FEATURE_ELSEWHERE:
        put_mechanism(out, (enum mechanism)unmeasured->mechanism, run);
        text_printf(out, " on %s", run->device);
        break;
    case FEATURE_TOGETHER:
        text_puts(out, "these parallelisms together");
        break;
    case FEATURE_KERNEL:
        text_printf(out, "%s%son %s", run->attention, run->attention[0] != '\0' ? " " : "",
                    run->device);
        break;
    case FEATURE_FAR:
        text_puts(out, "a run of about this size");
        break;
    case FEATURE_SMALL:
        text_puts(out, "layers as short as these");
        break;
    default:
        break;
    }
}
